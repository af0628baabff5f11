"""The glyphs of a face, each drawn once into a cell: the pen stands in one column and the baseline is one row of all
cells, so that letters are put side by side by their advances alone.

Faces differ in how large they draw at one em, so each is scaled until its capitals are equally high, or 가 where it has
none. A face some of whose glyphs would not fit is scaled down as a whole: its proportions stay.

At the size of a cell FreeType moves lines to whole pixels, for screens. Letters in photographs know nothing of that,
and thin lines vanish by it: so glyphs are drawn larger, and each pixel is the mean of what it covers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from jumok.errors import BadInput

# in ems. Of 180 faces with Latin and Hangul all but a few fit without being scaled down
HEIGHT, ABOVE = 1.5, 1.1
WIDTH, BEFORE = 1.75, 0.25
CAPITALS, HANGUL = 0.7, 0.9  # how high H and 가 are
MEASURED_AT = 256  # pixels: large enough for a height without much rounding
LARGER, LARGEST = 4, 128  # glyphs are drawn so much larger than they are kept, up to so many pixels of an em
FINE = 16  # advances are measured so much larger, for they are rounded to pixels
LEAST = 0.5  # a glyph that needs a smaller scale is left out, and does not make all others small
NO_CHARACTER = "\U0010fffe"  # never in a font: drawn as what is missing
SAME = 0.05  # a glyph that differs in less of its ink is a box: FreeType fits letters and boxes to pixels differently
PALE = 200  # the darkest pixel of most glyphs of a face
ROUNDS = 8


@dataclass(frozen=True)
class Cell:
    height: int
    width: int
    baseline: int
    pen: int

    @classmethod
    def of(cls, em: int) -> Cell:
        return cls(round(HEIGHT * em), round(WIDTH * em), round(ABOVE * em), round(BEFORE * em))


@dataclass(frozen=True)
class Job:
    """Characters to be drawn with a face, all of them in its table."""

    path: str
    number: int
    characters: str
    em: int


@dataclass(frozen=True)
class Drawn:
    kept: npt.NDArray[np.int32]  # (N,) which of the characters: the others drew nothing, a box, or something too large
    masks: npt.NDArray[np.uint8]  # (N, height, width)
    advance: npt.NDArray[np.float32]  # (N,) pixels
    boxes: npt.NDArray[np.int16]  # (N, 4) top, bottom, left, right of the ink, ends exclusive; of none: at the pen


def draw_all(jobs: Sequence[Job]) -> list[Drawn]:
    return [draw(job) for job in jobs]


def draw(job: Job) -> Drawn:
    cell = Cell.of(job.em)
    first = size = _size(job)
    for _ in range(ROUNDS):
        large = replace(job, characters=_large(job, cell, size))
        scale = _draw_at(large, cell, size, LEAST * first / size)[1]
        if scale >= 1:
            break
        size *= scale
    drawn, _ = _draw_at(job, cell, size, LEAST)
    return replace(drawn, masks=_with_ink(drawn.masks))


def _large(job: Job, cell: Cell, size: float) -> str:
    """Characters that may not fit: measured, which is quicker than drawn, but with the white around them."""
    font = _open(job, size)
    found = []
    for character in job.characters:
        left, top, right, bottom = font.getbbox(character, anchor="ls")
        across = left <= -cell.pen or right >= cell.width - cell.pen
        if across or top <= -cell.baseline or bottom >= cell.height - cell.baseline:
            found.append(character)
    return "".join(found)


def _with_ink(masks: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Lines much thinner than a pixel are a pale grey everywhere: those of a hairline face become full ink, or nobody
    could read it on any ground. All glyphs of a face change alike."""
    darkest = masks.max(axis=(1, 2), initial=0)
    usual = int(np.median(darkest[darkest > 0])) if darkest.any() else 255
    if usual >= PALE:
        return masks
    stronger = np.minimum(255, (np.arange(256) * 255 + usual // 2) // usual).astype(np.uint8)
    return stronger[masks]


def _open(job: Job, size: float) -> Any:
    from PIL import ImageFont

    try:
        return ImageFont.truetype(job.path, size, index=job.number, layout_engine=ImageFont.Layout.BASIC)
    except OSError as error:
        raise BadInput(f"{job.path}: the font cannot be opened ({error}). Was it changed or removed?") from None


def _size(job: Job) -> float:
    """Pixels of an em at which this face's capitals reach as high over the baseline as those of all others."""
    font = _open(job, MEASURED_AT)
    nothing = _heights(font, NO_CHARACTER)
    for character, share in (("H", CAPITALS), ("E", CAPITALS), ("0", CAPITALS), ("가", HANGUL)):
        found = _heights(font, character)
        if found is not None and found != nothing:
            over, below = found
            height = over + below if character == "가" else over
            return share * job.em * MEASURED_AT / max(height, MEASURED_AT // 16)
    return float(job.em)


def _heights(font: Any, character: str) -> tuple[int, int] | None:
    """How far a character's ink reaches over the baseline and below it."""
    from PIL import Image, ImageDraw

    baseline = 3 * MEASURED_AT
    picture = Image.new("L", (4 * MEASURED_AT, 4 * MEASURED_AT))
    ImageDraw.Draw(picture).text((MEASURED_AT, baseline), character, fill=255, font=font, anchor="ls")
    box = picture.getbbox()
    return None if box is None else (baseline - box[1], box[3] - baseline)


def _draw_at(job: Job, cell: Cell, size: float, least: float) -> tuple[Drawn, float]:
    """Everything at one size, and by how much it must be scaled so that all fits which needs more than `least`."""
    from PIL import Image, ImageDraw

    larger = max(1, min(LARGER, LARGEST // job.em))
    font, fine = _open(job, size * larger), _open(job, size * FINE)
    # what reaches over the picture's edge would need less than half
    picture = Image.new("L", (2 * cell.width * larger, 2 * cell.height * larger))
    drawing = ImageDraw.Draw(picture)
    pen, baseline = 2 * cell.pen * larger, 2 * cell.baseline * larger
    inside = (pen // 2, baseline // 2, pen // 2 + cell.width * larger, baseline // 2 + cell.height * larger)

    def ink(character: str) -> tuple[tuple[int, int, int, int] | None, npt.NDArray[np.uint8]]:
        try:
            drawing.text((pen, baseline), character, fill=255, font=font, anchor="ls")
        except (OSError, ValueError):  # an outline that FreeType refuses
            picture.paste(0, (0, 0, *picture.size))
        box, pixels = picture.getbbox(), picture.crop(inside).reduce(larger).tobytes()
        if box is not None:
            picture.paste(0, box)
        return box, np.frombuffer(pixels, np.uint8).reshape(cell.height, cell.width)

    frame, missing = ink(NO_CHARACTER)
    most = SAME * int(missing.sum())

    def is_missing(box: tuple[int, int, int, int], pixels: npt.NDArray[np.uint8]) -> bool:
        near = frame is not None and all(abs(one - other) <= larger for one, other in zip(box, frame, strict=True))
        return near and int(np.abs(pixels - missing.astype(np.int16)).sum()) < most

    kept: list[int] = []
    masks = np.zeros((len(job.characters), cell.height, cell.width), np.uint8)
    scale = 1.0
    for place, character in enumerate(job.characters):
        box, pixels = ink(character)
        if not character.isspace():
            if box is None or is_missing(box, pixels):
                continue
            fits = _scale(box, inside, pen, baseline)
            if fits < 1:
                scale = min(scale, fits) if fits > least else scale
                continue
            masks[len(kept)] = pixels
        kept.append(place)
    masks = masks[: len(kept)]
    advance = [max(0.0, fine.getlength(job.characters[place]) / FINE) for place in kept]
    return Drawn(np.array(kept, np.int32), masks, np.array(advance, np.float32), _boxes(masks, cell)), scale


def _boxes(masks: npt.NDArray[np.uint8], cell: Cell) -> npt.NDArray[np.int16]:
    """Top, bottom, left and right of the ink in each mask; without ink all four are where the pen stands."""
    found = []
    for axis, none in ((2, cell.baseline), (1, cell.pen)):
        lines = masks.max(axis=axis, initial=0) > 0
        some = lines.any(axis=1)
        found.append(np.where(some, lines.argmax(axis=1), none))
        found.append(np.where(some, lines.shape[1] - lines[:, ::-1].argmax(axis=1), none))
    return np.stack(found, axis=1).astype(np.int16)


def _scale(box: tuple[int, int, int, int], inside: tuple[int, int, int, int], pen: int, baseline: int) -> float:
    """1 if the ink is inside of the cell, else what would bring it there, seen from the pen on the baseline."""
    origin = (pen, baseline, pen, baseline)
    over = [
        (edge - start) / (end - start)
        for sign, end, edge, start in zip((-1, -1, 1, 1), box, inside, origin, strict=True)
        if sign * (end - edge) > 0
    ]
    return max(0.0, min(over)) if over else 1.0
