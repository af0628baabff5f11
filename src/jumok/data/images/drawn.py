"""The embedded picture set: ten shapes on textured grounds, drawn on demand. Nothing is stored, nothing is fetched.

A picture follows from its split and its number alone, to the last bit and on every machine (drawn_dice.py and
drawn_shapes.py say how). It is, from back to front: a ground of two colours (drawn_grounds.py), stray strokes, the
shape in a colour that differs from all of the ground's by about `CONTRAST` or more, perhaps one more stray stroke, and
grain. Mirrored, it shows the same class. The strength of a difference is as the eye takes it:
√(0.30 red² + 0.59 green² + 0.11 blue²).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from jumok.data.images.drawn_dice import Dice, Floats, Integers, mix
from jumok.data.images.drawn_grounds import texture
from jumok.data.images.drawn_shapes import SHAPES, coverage, strokes
from jumok.data.images.raw import RawImage
from jumok.errors import BadInput, did_you_mean

CLASSES: tuple[str, ...] = tuple(SHAPES)
SPLITS = ("train", "valid", "test")
VERSION = 1  # of the pictures: another number, another key
CONTRAST = (0.3, 0.6)  # between the shape and the nearest colour of its ground, at least
GROUND = 0.16  # between each colour of the ground and the middle of the two, in every channel, at most
STRAY = 3  # strokes behind the shape, at most
GRAIN = 0.05
_PIXELS = 250 * 32 * 32  # that are drawn at once: few enough for the processor's cache
_EYE = np.array([0.30, 0.59, 0.11], np.float32)


class Drawn:
    """The first `count` pictures of a split, as a source of images."""

    def __init__(self, count: int, split: str, size: int = 32) -> None:
        self.count, self.split, self.size = count, split, size
        self.key = f"shapes-{VERSION}-{split}-{count}-{size}"

    def __iter__(self) -> Iterator[RawImage]:
        together = _together(self.size)
        for start in range(0, self.count, together):
            numbers = np.arange(start, min(start + together, self.count))
            pictures = draw(numbers, self.split, self.size)
            for number, label, pixels in zip(numbers, labels_of(numbers), pictures, strict=True):
                yield RawImage(f"shapes ({self.split}): picture {number}", CLASSES[label], pixels)


def label_of(number: int) -> int:
    """Which of the classes a picture shows, in every split."""
    return int(labels_of([number])[0])


def labels_of(numbers: Sequence[int] | npt.NDArray[np.integer]) -> Integers:
    """Each ten pictures in a row show the ten classes, in an order of their own."""
    block, place = np.divmod(_checked(numbers), len(CLASSES))
    first = block.astype(np.uint64)[:, None] * np.uint64(len(CLASSES))
    words = (first + np.arange(len(CLASSES), dtype=np.uint64)).astype(np.uint64)
    order = np.argsort(mix(mix(words)), axis=1)
    return order[np.arange(len(place)), place]


def draw(numbers: Sequence[int] | npt.NDArray[np.integer], split: str, size: int = 32) -> npt.NDArray[np.uint8]:
    """The pictures of these numbers, (N, size, size, 3)."""
    checked = _checked(numbers)
    pictures = np.empty((len(checked), size, size, 3), np.uint8)
    together = _together(size)
    for start in range(0, len(checked), together):
        some = checked[start : start + together]
        pictures[start : start + len(some)] = _draw(_dice(some, split), labels_of(some), size)
    return pictures


def masks(numbers: Sequence[int] | npt.NDArray[np.integer], split: str, size: int = 32) -> Floats:
    """How much of each pixel the shape covers, (N, size, size): where a model should look."""
    checked = _checked(numbers)
    return _shapes(_dice(checked, split), labels_of(checked), size)


def _checked(numbers: Sequence[int] | npt.NDArray[np.integer]) -> Integers:
    checked = np.asarray(numbers, np.int64)
    if checked.ndim != 1 or (checked < 0).any():
        raise ValueError("the numbers of pictures are a list and begin at 0")
    return checked


def _together(size: int) -> int:
    """How many pictures are drawn at once."""
    return max(1, _PIXELS // (size * size))


def _dice(numbers: Integers, split: str) -> Dice:
    """Every number of every split has dice of its own."""
    if split not in SPLITS:
        raise BadInput(f'The generated pictures have no split "{split}".{did_you_mean(split, SPLITS)}')
    return Dice(numbers.astype(np.uint64) * np.uint64(len(SPLITS)) + np.uint64(SPLITS.index(split)))


def _shapes(dice: Dice, labels: Integers, size: int) -> Floats:
    covered = np.empty((len(dice), size, size), np.float32)
    for label, shape in enumerate(SHAPES.values()):
        rows = np.flatnonzero(labels == label)
        if len(rows):
            covered[rows] = coverage(shape, dice.of(rows), size)
    return covered


def _draw(dice: Dice, labels: Integers, size: int) -> npt.NDArray[np.uint8]:
    middle, offset, colour = _colours(dice)
    value = texture(dice, size)[:, None] * 2 - 1
    picture = middle[:, :, None, None] + offset[:, :, None, None] * value  # channels first: rows of pixels stay whole
    corners = dice.between(-0.1, 1.1, "stray corners", STRAY, 3, 2)
    width = dice.between(0.02, 0.045, "stray width", STRAY)
    width[:, -1] *= np.float32(0.75)  # the one in front hides less
    shade = middle[:, None] + (dice.between(0, 1, "stray colour", STRAY, 3) - middle[:, None]) * np.float32(0.7)
    count = dice.choice(STRAY + 1, "stray count")
    over = dice.chance(0.25, "stray over")
    for stroke in range(STRAY):
        if stroke == STRAY - 1:
            picture = _over(picture, colour, _shapes(dice, labels, size))
            count = np.where(over, STRAY, 0)
        rows = np.flatnonzero(count > stroke)
        picture[rows] = _over(
            picture[rows], shade[rows, stroke], strokes(corners[rows, stroke], width[rows, stroke], size)
        )
    grain = dice.words("grain", size, size)
    for channel in range(3):
        unit = ((grain >> np.uint64(16 * channel)) & np.uint64(0xFFFF)).astype(np.float32) * np.float32(2.0**-16)
        picture[:, channel] += (unit - np.float32(0.5)) * np.float32(2 * GRAIN)
    return (np.clip(picture, 0, 1) * np.float32(255) + np.float32(0.5)).astype(np.uint8).transpose(0, 2, 3, 1)


def _over(picture: Floats, colour: Floats, covered: Floats) -> Floats:
    return picture + (colour[:, :, None, None] - picture) * covered[:, None]


def _colours(dice: Dice) -> tuple[Floats, Floats, Floats]:
    """The middle of the ground's two colours, how far they are from it, and the colour of the shape, (N, 3) each."""
    middle = dice.between(0.05, 0.95, "ground", 3)
    offset = dice.between(-GROUND, GROUND, "ground offset", 3)
    offset = np.clip(middle + offset, 0, 1) - middle
    wanted = dice.between(*CONTRAST, "contrast")
    # the corner of all colours that is farthest away always differs enough; a random colour that does comes first
    colour = np.where(middle < np.float32(0.5), np.float32(1), np.float32(0))
    for candidate in np.moveaxis(dice.between(0, 1, "colour", 16, 3), 1, 0):
        colour = np.where((_contrast(candidate, middle, offset) >= wanted)[:, None], candidate, colour)
    return middle, offset, colour


def _contrast(colour: Floats, middle: Floats, offset: Floats) -> Floats:
    """Between a colour and the nearest one on the line from middle − offset to middle + offset."""
    away = colour - middle
    length = np.maximum(_dot(offset, offset), np.float32(1e-6))
    rest: Floats = away - offset * np.clip(_dot(away, offset) / length, -1, 1).astype(np.float32)[:, None]
    return np.sqrt(_dot(rest, rest))


def _dot(one: Floats, other: Floats) -> Floats:
    terms = one * other * _EYE
    return terms[:, 0] + terms[:, 1] + terms[:, 2]  # written out: a sum's order is numpy's own affair
