"""Which of the images that were taken for something else are kept, to be looked at.

Of a large test set not all pixels can be held. Two choices are made while it passes by: the most confident mistakes of
all (a sheet shows them), and of each confusion its most confident ones, taken in turns (a page lets one choose a
confusion, and there should be something to see). Both are exact: what has enough better ones before it at some time has
as many at the end, since another mistake can only move it further back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image

from jumok.data.images.raw import Pixels

ON_SHEET, ON_PAGE = 48, 300  # at most
LARGEST = 192  # pixels of the longer side of what is kept: more than is shown
PRUNED = 2  # times as many as wanted are held before the others are let go


@dataclass(frozen=True, slots=True)
class Mistake:
    number: int  # of the image among all, from 1
    name: str  # where it comes from
    gold: str
    said: str
    probability: float  # of what was said
    loss: float  # −log p(gold)
    pixels: Pixels  # (H, W, C)


class Mistakes:
    """Takes mistakes as they come; gives the `sheet` most confident ones, and `page` of all confusions."""

    def __init__(self, sheet: int, page: int) -> None:
        self.sheet, self.page = sheet, page
        self.count = 0  # of all that came
        self._held: list[Mistake] = []

    def add(self, mistake: Mistake) -> None:
        self.count += 1
        if self.sheet or self.page:
            self._held.append(mistake)
        if len(self._held) > PRUNED * (self.sheet + self.page):
            both = {one.number: one for one in (*self.worst(), *self.of_each())}
            self._held = list(both.values())

    def worst(self) -> list[Mistake]:
        """The most confident first."""
        return worst(self._held, self.sheet)

    def of_each(self) -> list[Mistake]:
        """The most confident of each confusion, then its second one, as many as there is room for; again the most
        confident first."""
        turns: dict[tuple[str, str], int] = {}
        ranked = []
        for one in worst(self._held, len(self._held)):
            turn = turns[one.gold, one.said] = turns.get((one.gold, one.said), -1) + 1
            ranked.append((turn, one))
        chosen = sorted(ranked, key=lambda each: (each[0], -each[1].probability, each[1].number))[: self.page]
        return worst([one for _, one in chosen], self.page)


def worst(mistakes: Iterable[Mistake], most: int) -> list[Mistake]:
    return sorted(mistakes, key=lambda one: (-one.probability, one.number))[:most]


# ---------------------------------------------------------------- sizes


def kept_pixels(pixels: Pixels) -> Pixels:
    """Not larger than what is shown of it."""
    return resized(pixels, min(LARGEST, max(pixels.shape[:2])))


def resized(pixels: Pixels, side: int) -> Pixels:
    """(H, W, C) with `side` as its longer side. What is at least doubled keeps its pixels to be seen as squares."""
    height, width = pixels.shape[:2]
    if side == max(height, width):
        return pixels
    size = tuple(max(1, round(each * side / max(height, width))) for each in (width, height))
    how = Image.Resampling.NEAREST if side >= 2 * max(height, width) else Image.Resampling.LANCZOS
    made = np.asarray(as_image(pixels).resize((size[0], size[1]), how))
    return made if made.ndim == 3 else made[:, :, None]


def as_image(pixels: Pixels) -> Image.Image:
    return Image.fromarray(np.ascontiguousarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels))


def shape_of(mistakes: Sequence[Mistake]) -> float:
    """How wide the images are for their height: all have the size that the model looks at."""
    return mistakes[0].pixels.shape[1] / mistakes[0].pixels.shape[0] if mistakes else 1.0
