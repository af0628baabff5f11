"""The faces that texts can be written with on this machine, and which characters each really draws.

Reading a font takes about 30 ms, and there may be hundreds: what was found is kept in the cache, by a file's path, size
and time of change.
"""

from __future__ import annotations

import contextlib
import json
import sys
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from jumok.data.folders import UNREADABLE, default_cache, put
from jumok.data.rendering.face import Face, codes_of
from jumok.data.rendering.font_coverage import ReadFace, read_fonts
from jumok.data.rendering.font_files import absolute, font_files
from jumok.data.rendering.font_split import split_faces
from jumok.data.rendering.processes import cores, in_processes
from jumok.errors import BadInput

__all__ = ["Face", "faces_for", "find_faces", "must_cover", "split_faces", "what_to_install"]

Say = Callable[[str], None]
FORMAT = 2
KEPT = "fonts.json"
SHOWN = 5  # broken files that are named
TOGETHER = 16  # files that are worth another process: about half a second
MOST_KEPT = 10_000  # files
PACKAGES = {
    "HANGUL": "fonts-nanum",
    "CJK": "fonts-noto-cjk",
    "HIRAGANA": "fonts-noto-cjk",
    "KATAKANA": "fonts-noto-cjk",
    **dict.fromkeys(("LATIN", "DIGIT", "GREEK", "CYRILLIC", "ARMENIAN", "GEORGIAN", "HEBREW"), "fonts-dejavu"),
}
ANYWHERE = 'anywhere: pip install "jumok[fonts]"'


def _tell(text: str) -> None:
    print(text, file=sys.stderr)


def find_faces(paths: Sequence[str | Path] = (), say: Say = _tell, cache: Path | None = None) -> list[Face]:
    """All faces that can write something, in font files and folders; none given: those of the system, of its user and
    of installed Python packages. A face that is there twice comes once, the one with more characters; so do faces that
    draw the same."""
    files = font_files(paths)
    known = _known(files, (cache or default_cache()) / KEPT)
    asked_for = {absolute(path) for path in paths}
    problems = [f"{path}: {entry['broken']}" for path, entry in known.items() if entry["broken"]]
    if problems:
        more = f"; and {len(problems) - SHOWN} more" if len(problems) > SHOWN else ""
        say(f"fonts that cannot be read are left out: {'; '.join(problems[:SHOWN])}{more}")
    found = [(path, face) for path, entry in known.items() for face in entry["faces"]]
    faces: dict[tuple[str, str], Face] = {}
    drawings: set[str] = set()
    for path, (number, family, style, covered, drawing, unfit) in sorted(
        found, key=lambda each: -sum(each[1][3][1::2])
    ):
        if unfit:
            if path in asked_for:
                say(f"{path}: {family} is left out: {unfit}")
        elif (family, style) not in faces and drawing not in drawings:
            drawings.add(drawing)
            faces[family, style] = Face(path, number, family, style, _unpacked(covered))
    return sorted(faces.values(), key=lambda face: (face.family.casefold(), face.style.casefold(), face.name))


def faces_for(faces: Iterable[Face], characters: Iterable[str]) -> list[Face]:
    """Those that have all of these characters."""
    wanted = tuple(characters)
    return [face for face in faces if face.covers(wanted)]


def must_cover(faces: Sequence[Face], characters: Iterable[str]) -> None:
    """Refuses characters that no face has."""
    missing = codes_of(characters)
    for face in faces:
        missing = missing[~np.isin(missing, face.covered, assume_unique=True)]
    if not len(missing):
        return
    shown = ", ".join(_described(code) for code in missing[:8].tolist())
    more = f" and {len(missing) - 8:,} more" if len(missing) > 8 else ""
    raise BadInput(f"no font can draw {shown}{more}. {what_to_install(map(chr, missing.tolist()))}")


def what_to_install(characters: Iterable[str]) -> str:
    """A sentence: which packages bring fonts for these characters."""
    wanted = set(characters)
    packages = sorted({PACKAGES.get(_script(character), "fonts-noto") for character in wanted})
    hangul = f"; {ANYWHERE}" if "fonts-nanum" in packages else ""
    return (
        f"Install one (Debian, Ubuntu: apt install {' '.join(packages)}{hangul}), or name font files and folders of "
        "yours (render.fonts, or the environment variable JUMOK_FONTS)"
    )


def _script(character: str) -> str:
    """The first word of a character's name; signs come with the letters that they are used with."""
    if unicodedata.category(character).startswith("L"):
        return unicodedata.name(character, "").split(" ")[0].split("-")[0]
    code = ord(character)
    return "LATIN" if code < 0x2E80 else "CJK" if code < 0xFFF0 else ""


def _described(code: int) -> str:
    character = chr(code)
    sign = f' "{character}"' if character.isprintable() else ""
    return f"U+{code:04X}{sign} ({unicodedata.name(character, 'no character')})"


def _known(files: Sequence[Path], kept: Path) -> dict[Path, dict[str, Any]]:
    """What each file has: from the cache, or read now."""
    try:
        content = json.loads(kept.read_text(encoding="utf-8"))
        entries: dict[str, Any] = content["files"] if content["format"] == FORMAT else {}
    except UNREADABLE:
        entries = {}
    marks = {path: mark for path in files if (mark := _mark(path)) is not None}
    unread = [path for path, mark in marks.items() if entries.get(str(path), {}).get("mark") != mark]
    parts = [unread[start : start + TOGETHER] for start in range(0, len(unread), TOGETHER)]
    for part, read in zip(parts, in_processes(read_fonts, parts, cores()), strict=True):
        for path, faces in zip(part, read, strict=True):
            broken, packed = (faces, []) if isinstance(faces, str) else ("", [_packed(face) for face in faces])
            entries[str(path)] = {"mark": marks[path], "broken": broken, "faces": packed}
    found = {path: entries[str(path)] for path in marks}
    if unread:
        fresh = {str(path): entry for path, entry in found.items()}
        others = [(name, entry) for name, entry in entries.items() if name not in fresh]
        everything = {**dict(others[-MOST_KEPT:]), **fresh}
        with contextlib.suppress(OSError):  # it is read again next time
            kept.parent.mkdir(parents=True, exist_ok=True)
            put(kept, json.dumps({"format": FORMAT, "files": everything}, separators=(",", ":")))
    return found


def _mark(path: Path) -> list[int] | None:
    try:
        found = path.stat()
    except OSError:  # a link to nothing, or removed meanwhile
        return None
    return [found.st_size, found.st_mtime_ns]


def _packed(face: ReadFace) -> list[Any]:
    """For JSON: of the code points only the ranges, each as its first one and how many there are."""
    codes = face.covered
    starts = np.flatnonzero(np.diff(codes, prepend=-2) != 1)
    ranges = np.stack([codes[starts], np.diff(starts, append=len(codes))], axis=1)
    return [face.number, face.family, face.style, ranges.ravel().tolist(), face.drawing, face.unfit]


def _unpacked(ranges: Sequence[int]) -> npt.NDArray[np.int32]:
    starts, counts = np.array(ranges, np.int32).reshape(-1, 2).T
    steps = np.arange(counts.sum(), dtype=np.int32) - np.repeat(np.cumsum(counts) - counts, counts)
    return (np.repeat(starts, counts) + steps).astype(np.int32)
