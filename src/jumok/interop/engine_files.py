"""RUN/engines/NAME: what another engine computes with, made from the run at first use, and again for other weights.

A folder that is there is whole: it got its name when it was. `key.json` says what it was made from, and how large its
files are.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from filelock import FileLock

from jumok.data.folders import default_cache
from jumok.errors import BadInput
from jumok.files import disk_errors_named, flush_file, flush_folder, remove_folder
from jumok.training import checkpoint
from jumok.training.run import RunFolder

ENGINES, KEY = "engines", "key.json"
PACKAGE = Path(__file__).resolve().parents[1]

Say = Callable[[str], None]


def place_of(run: RunFolder, engine: str, precision: str) -> Path:
    """In the run's folder; for the run in the package, and for one that cannot be written to, in the user's cache."""
    path = run.path.resolve()
    name = f"{engine}-{precision}"
    if PACKAGE in path.parents or not os.access(path, os.W_OK):
        own = hashlib.sha256(str(path).encode()).hexdigest()[:16]
        return default_cache() / ENGINES / f"{path.name}-{own}" / name
    return run.path / ENGINES / name


def best_checkpoint(run: RunFolder, say: Say) -> Path:
    found = checkpoint.newest_good(run, say, prefer="best")
    if found is None:
        raise BadInput(checkpoint.why_none(run))
    return found


def sum_of(found: Path) -> str:
    """The checksum of a checkpoint's weights."""
    return str(json.loads((found / checkpoint.CHECKSUMS).read_text(encoding="utf-8"))[checkpoint.MODEL])


def is_made(folder: Path, key: str) -> bool:
    """Whether these are the files that would be made."""
    try:
        about: dict[str, Any] = json.loads((folder / KEY).read_text(encoding="utf-8"))
        whole = all((folder / name).stat().st_size == size for name, size in about["sizes"].items())
        return bool(about["key"] == key and about["sizes"] and whole)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def make_once(folder: Path, key: str, write: Callable[[Path], None], say: Callable[[], None]) -> Path:
    """The folder, with what `write` puts into it; `say` is called before, if it is not there yet."""
    engine = folder.name.partition("-")[0]
    advice = "Free some space, or --engine torch."
    with disk_errors_named(f"making the files for --engine {engine}", folder.parent, advice):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.parent / f".{folder.name}.lock"):
            if is_made(folder, key):  # somebody else was faster
                return folder
            for abandoned in folder.parent.glob(f".writing-{folder.name}-*"):
                remove_folder(abandoned)
            say()
            temporary = folder.with_name(f".writing-{folder.name}-{os.getpid()}")
            try:
                temporary.mkdir()
                write(temporary)
                sizes = {path.name: path.stat().st_size for path in sorted(temporary.iterdir())}
                (temporary / KEY).write_text(json.dumps({"key": key, "sizes": sizes}) + "\n", encoding="utf-8")
                for path in temporary.iterdir():
                    flush_file(path)
                remove_folder(folder)
                temporary.rename(folder)
                flush_folder(folder.parent)
            finally:
                remove_folder(temporary)
    return folder
