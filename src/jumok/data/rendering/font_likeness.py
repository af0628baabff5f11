"""Families whose letters are drawn alike under names that do not tell: copies, revivals, and fonts for another script
that took their Latin letters from somewhere.

A few letters of each script are drawn once, each stretched to one size (so a condensed family is like its wide one),
and compared by their correlation r, of which the mean over the letters that two faces both have counts:

    alike: mean r > 0.94 (Latin), 0.92 (Hangul) for any two faces of the families

Of 1,237 faces in 756 families (Debian's), r is below 0.8 for 97 of 100 pairs of families; above 0.94 there is hardly a
pair without a common origin, and at 0.90 a chain of plain grotesques joins 67 families.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from jumok.data.folders import UNREADABLE, default_cache, put
from jumok.data.rendering.face import Face
from jumok.data.rendering.glyphs import Job
from jumok.data.rendering.processes import cores, in_processes

Shapes = npt.NDArray[np.float32]
Pair = tuple[str, str]
FORMAT = 1
KEPT = "alike.json"
MOST_KEPT = 50  # sets of faces
LETTERS = {"latin": "agReSkQG35t&", "hangul": "한글뷁의를많"}  # those that differ most from face to face
ALIKE = {"latin": 0.94, "hangul": 0.92}
COMMON = 0.6  # of the letters: fewer say little
EM = 96  # pixels that letters are drawn at
SIDE = 16  # pixels that they are compared at
TOGETHER = 200  # faces that are worth another process: about half a second
ROWS = 512  # faces compared with all others at once


def families_alike(faces: Sequence[Face], cache: Path | None = None) -> list[Pair]:
    """Pairs of families with letters alike, in order. Faces whose files are gone are like no other."""
    marked = [(face, mark) for face in faces if (mark := _mark(face)) is not None]
    kept = (cache or default_cache()) / KEPT
    known, key = _known(kept), _key([mark for _, mark in marked])
    if key in known:
        return [(first, second) for first, second in known[key]]
    found = sorted(_compared([face for face, _ in marked]))
    known = dict([*known.items(), (key, [list(pair) for pair in found])][-MOST_KEPT:])
    with contextlib.suppress(OSError):  # they are compared again next time
        kept.parent.mkdir(parents=True, exist_ok=True)
        put(kept, json.dumps({"format": FORMAT, "alike": known}, ensure_ascii=False, separators=(",", ":")))
    return found


def _mark(face: Face) -> list[Any] | None:
    try:
        found = face.path.stat()
    except OSError:
        return None
    return [str(face.path), found.st_size, found.st_mtime_ns, face.number, face.family]


def _key(marks: Sequence[list[Any]]) -> str:
    from PIL import features

    about = json.dumps([FORMAT, features.version("freetype2"), LETTERS, ALIKE, COMMON, EM, SIDE, sorted(marks)])
    return hashlib.sha256(about.encode()).hexdigest()[:32]


def _known(kept: Path) -> dict[str, list[list[str]]]:
    try:
        content = json.loads(kept.read_text(encoding="utf-8"))
        found: dict[str, list[list[str]]] = content["alike"] if content["format"] == FORMAT else {}
        return {key: [[first, second] for first, second in pairs] for key, pairs in found.items()}
    except UNREADABLE:
        return {}


def _compared(faces: Sequence[Face]) -> set[Pair]:
    families = [face.family for face in faces]
    found: set[Pair] = set()
    for script, letters in LETTERS.items():
        for one, other in _alike(_shapes(faces, letters), ALIKE[script]):
            if families[one] != families[other]:
                first, second = sorted((families[one], families[other]))
                found.add((first, second))
    return found


def _shapes(faces: Sequence[Face], letters: str) -> Shapes:
    """(F, letters, pixels), each of length 1 and mean 0; nothing but zeros for what a face lacks."""
    codes = np.array([ord(letter) for letter in letters], np.int32)
    shapes = np.zeros((len(faces), len(letters), SIDE * SIDE), np.float32)
    places, jobs = [], []
    for place, face in enumerate(faces):
        has = np.isin(codes, face.covered)
        if has.mean() >= COMMON:
            places.append(place)
            jobs.append(Job(str(face.path), face.number, "".join(np.array(list(letters))[has]), EM))
    parts = [jobs[start : start + TOGETHER] for start in range(0, len(jobs), TOGETHER)]
    drawn = (each for part in in_processes(draw_letters, parts, cores()) for each in part)
    for place, job, pixels in zip(places, jobs, drawn, strict=True):
        shapes[place, [letters.index(letter) for letter in job.characters]] = pixels
    shapes -= shapes.mean(axis=2, keepdims=True)
    length = np.sqrt((shapes**2).sum(axis=2, keepdims=True))
    shapes /= np.where(length > 1, length, np.inf)
    return shapes


def draw_letters(jobs: Sequence[Job]) -> list[Shapes]:
    """The letters of each, (letters, pixels)."""
    return [_draw(job) for job in jobs]


def _draw(job: Job) -> Shapes:
    from PIL import Image, ImageFont

    found = np.zeros((len(job.characters), SIDE * SIDE), np.float32)
    try:
        font = ImageFont.truetype(job.path, job.em, index=job.number, layout_engine=ImageFont.Layout.BASIC)
    except OSError:  # it is told when its glyphs are drawn to be kept
        return found
    for place, letter in enumerate(job.characters):
        try:
            mask = font.getmask(letter, mode="L")
        except (OSError, ValueError):  # an outline that FreeType refuses
            continue
        box = mask.getbbox()
        if box is not None:
            picture = Image.frombytes("L", mask.size, bytes(mask)).crop(box)
            found[place] = np.asarray(picture.resize((SIDE, SIDE), Image.Resampling.BOX), np.float32).ravel()
    return found


def _alike(shapes: Shapes, least: float) -> Iterator[tuple[int, int]]:
    has: Shapes = np.asarray(shapes.any(axis=2), np.float32)
    flat = shapes.reshape(len(shapes), shapes[0].size if len(shapes) else 0)
    for start in range(0, len(shapes), ROWS):
        rows = slice(start, start + ROWS)
        common: Shapes = has[rows] @ has.T
        enough = common >= COMMON * shapes.shape[1]
        for one, other in zip(*np.nonzero(enough & (flat[rows] @ flat.T > least * common)), strict=True):
            if start + one < other:
                yield int(start + one), int(other)
