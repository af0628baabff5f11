"""The glyphs of many faces as masks of one size, drawn once and read through a memory map.

    masks.u8      (N, height, width): how far each pixel is ink; glyph 0 is empty, for what a face lacks
    advance.f32   (N,): pixels from this pen position to the next
    boxes.i16     (4, N): top, bottom, left and right of the ink in the cell, ends exclusive
    index.i32     (F, C): the glyph of a character in a face

Drawing takes longer than putting letters together, which the training device does: so it is done once, by all cores,
into the cache. The bytes do not depend on how many there are. Kerning is left out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import numpy as np
import numpy.typing as npt

from jumok.data.folders import META, clear_abandoned, default_cache, make_whole
from jumok.data.rendering.face import Face
from jumok.data.rendering.glyphs import Cell, Drawn, Job, draw_all
from jumok.data.rendering.processes import cores, in_processes
from jumok.data.stored import Stored
from jumok.errors import BadInput

Say = Callable[[str], None]
FORMAT = 2
MASKS, ADVANCE, BOXES, INDEX = "masks.u8", "advance.f32", "boxes.i16", "index.i32"
TOGETHER = 6000  # glyphs that are worth another process: about half a second
WORTH_A_WORD = 50_000  # glyphs that one waits for
SHOWN = 5  # faces that are named


class Atlas(Stored):
    formats: ClassVar[tuple[int, ...]] = (FORMAT,)

    def __init__(self, folder: Path, meta: dict[str, Any]) -> None:
        super().__init__(folder, meta)
        self.names: list[str] = list(meta["names"])
        self.em, self.pen, self.baseline = int(meta["em"]), int(meta["pen"]), int(meta["baseline"])
        self.masks: npt.NDArray[np.uint8] = self.map(MASKS, np.uint8).reshape(-1, *meta["cell"])
        self.advance: npt.NDArray[np.float32] = self.map(ADVANCE, np.float32)
        boxes: npt.NDArray[np.int16] = self.map(BOXES, np.int16).reshape(4, -1)
        self.top, self.bottom, self.left, self.right = boxes
        self.index: npt.NDArray[np.int32] = self.map(INDEX, np.int32).reshape(len(self.names), meta["characters"])

    def __len__(self) -> int:
        return len(self.masks)

    def notes(self) -> list[str]:
        lost: dict[str, int] = self.meta["lost"]
        if not lost:
            return []
        named = ", ".join(f"{name} ({count:,})" for name, count in list(lost.items())[:SHOWN])
        more = f", and {len(lost) - SHOWN} more faces" if len(lost) > SHOWN else ""
        return [f"glyphs that draw nothing, a box, or far too much are left out: {named}{more}"]


def open_atlas(faces: Sequence[Face], characters: Sequence[str], em: int, say: Say, cache: Path | None = None) -> Atlas:
    """The characters of all faces, drawn now unless they are in the cache. `em`: pixels; capitals are 0.7 of it."""
    if any(len(character) != 1 for character in characters) or len(set(characters)) != len(characters):
        raise ValueError("an atlas is of different characters, one each")
    folder = (cache or default_cache()) / f"glyphs-{_key(faces, characters, em)}"

    def make() -> None:
        count = sum(len(job.characters) for job in _jobs(faces, characters, em))
        if count > WORTH_A_WORD:
            say(f"drawing {count:,} glyphs of {len(faces)} faces; they are kept in {folder.parent}")
        clear_abandoned(folder.parent)
        make_whole(folder, (MASKS, ADVANCE, BOXES, INDEX), lambda files: _write(files, faces, characters, em))

    known = (folder / META).exists()
    atlas = Atlas.open_or_make(folder, make, say)
    for note in atlas.notes() if known else ():  # what is left out is left out of every run
        say(note)
    return atlas


def _key(faces: Sequence[Face], characters: Sequence[str], em: int) -> str:
    """Whatever changes what is drawn makes another atlas, a newer FreeType too."""
    from PIL import features

    files = []
    for face in faces:
        try:
            found = face.path.stat()
        except OSError as error:
            raise BadInput(f"{face.path}: the font is gone ({error.strerror}). Run again to look for fonts") from None
        files.append([str(face.path), found.st_size, found.st_mtime_ns, face.number])
    about = json.dumps([FORMAT, features.version("freetype2"), em, files, "".join(characters)])
    return hashlib.sha256(about.encode()).hexdigest()[:32]


def _jobs(faces: Sequence[Face], characters: Sequence[str], em: int) -> list[Job]:
    codes = np.array([ord(character) for character in characters], np.int32)
    every = np.array(list(characters), object)
    return [Job(str(face.path), face.number, "".join(every[np.isin(codes, face.covered)]), em) for face in faces]


def _batches(jobs: Sequence[Job]) -> Iterator[list[Job]]:
    """Jobs that follow each other, as many as are worth a process."""
    batch: list[Job] = []
    for job in jobs:
        batch.append(job)
        if sum(len(each.characters) for each in batch) >= TOGETHER:
            yield batch
            batch = []
    if batch:
        yield batch


def _drawn(jobs: Sequence[Job]) -> Iterator[Drawn]:
    for found in in_processes(draw_all, list(_batches(jobs)), cores()):
        yield from found


def _write(files: Mapping[str, BinaryIO], faces: Sequence[Face], characters: Sequence[str], em: int) -> dict[str, Any]:
    cell = Cell.of(em)
    jobs = _jobs(faces, characters, em)
    column = {character: number for number, character in enumerate(characters)}
    index = np.zeros((len(faces), len(characters)), np.int32)
    files[MASKS].write(bytes(cell.height * cell.width))
    advance, boxes = [np.zeros(1, np.float32)], [np.zeros((1, 4), np.int16)]
    count, lost = 1, {}
    for row, (face, job, drawn) in enumerate(zip(faces, jobs, _drawn(jobs), strict=True)):
        columns = [column[job.characters[place]] for place in drawn.kept.tolist()]
        index[row, columns] = np.arange(count, count + len(columns))
        count += len(columns)
        files[MASKS].write(drawn.masks.tobytes())
        advance.append(drawn.advance)
        boxes.append(drawn.boxes)
        if len(columns) < len(job.characters):
            lost[face.name] = len(job.characters) - len(columns)
    files[ADVANCE].write(np.concatenate(advance).tobytes())
    files[BOXES].write(np.ascontiguousarray(np.concatenate(boxes).T).tobytes())
    files[INDEX].write(index.tobytes())
    return {
        "format": FORMAT,
        "cell": [cell.height, cell.width],
        "em": em,
        "pen": cell.pen,
        "baseline": cell.baseline,
        "names": [face.name for face in faces],
        "characters": len(characters),
        "lost": lost,
    }
