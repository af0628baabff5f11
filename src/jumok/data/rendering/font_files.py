"""Where font files are: folders of the system and of the user, what JUMOK_FONTS names, and installed Python packages.

Packages are looked through, never imported: some change matplotlib's settings when they are.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from jumok.errors import BadInput

SUFFIXES = (".ttf", ".otf", ".ttc", ".otc", ".woff", ".woff2")
VARIABLE = "JUMOK_FONTS"


def font_files(paths: Sequence[str | Path] = ()) -> list[Path]:
    """Font files and those in folders; none given: all that can be found. Each once, in an order that stays."""
    if paths:
        found: Iterable[Path] = _named(paths, "")
    else:
        named = [name for name in os.environ.get(VARIABLE, "").split(os.pathsep) if name]
        found = [*_named(named, f"{VARIABLE}: "), *_inside(system_folders()), *_inside(package_folders())]
    once: dict[str, Path] = {}
    for path in found:
        once.setdefault(os.path.realpath(path), path)
    return list(once.values())


def system_folders() -> list[Path]:
    """Where this kind of system keeps fonts, for all of its users and for this one."""
    home = Path.home()
    if sys.platform == "win32":
        own = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
        return [Path(os.environ.get("WINDIR") or "C:/Windows") / "Fonts", own / "Microsoft" / "Windows" / "Fonts"]
    if sys.platform == "darwin":
        assets = sorted(Path("/System/Library/AssetsV2").glob("com_apple_MobileAsset_Font*"))
        return [Path("/System/Library/Fonts"), Path("/Library/Fonts"), home / "Library" / "Fonts", *assets]
    shared = [name for name in os.environ.get("XDG_DATA_DIRS", "").split(os.pathsep) if name]
    own_data = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    return [
        *(Path(name) / "fonts" for name in ("/usr/local/share", "/usr/share", *shared)),
        Path(sys.prefix) / "fonts",  # conda's
        own_data / "fonts",
        home / ".fonts",
    ]


def package_folders() -> list[Path]:
    """The folders that Python imports packages from, as far as packages are installed there."""
    return [Path(name) for name in sys.path if Path(name).name in ("site-packages", "dist-packages")]


def absolute(path: str | Path) -> Path:
    return Path(os.path.abspath(os.path.expanduser(path)))


def _named(paths: Iterable[str | Path], where: str) -> Iterator[Path]:
    for name in paths:
        path = absolute(name)
        if path.is_dir():
            yield from _inside([path])
        elif path.is_file():
            yield path
        else:
            raise BadInput(f"{where}{name}: there is no such font file or folder")


def _inside(folders: Iterable[Path]) -> Iterator[Path]:
    """All font files below. Links are followed, for people link folders of fonts into others, but no folder twice."""
    seen: set[str] = set()
    for folder in folders:
        for place, below, names in os.walk(folder, followlinks=True):
            real = os.path.realpath(place)
            if real in seen:
                below.clear()
                continue
            seen.add(real)
            below[:] = sorted(name for name in below if name != "__pycache__")
            yield from (Path(place) / name for name in sorted(names) if name.lower().endswith(SUFFIXES))
