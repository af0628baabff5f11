"""The grounds of the generated pictures: five textures, each with values in [0, 1] that mix two colours.

Cloudy noise is a sum of octaves of value noise (Perlin 1985, in its plainest form): random values at the corners of a
grid, between them the curve 3f² − 2f³, and each finer grid counts half as much as the one before.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jumok.data.images.drawn_dice import Dice, Floats

OCTAVES = (2, 4, 8, 16)  # cells across the picture
SPECKLES = 30


def texture(dice: Dice, size: int) -> Floats:
    """(N, size, size): one of the textures each, with some clouds over it."""
    kind = dice.choice(len(TEXTURES), "texture")
    cloud = _clouds(dice, size)
    values = cloud.copy()
    for index, draw in enumerate(TEXTURES):
        rows = np.flatnonzero(kind == index)
        if len(rows) and draw is not _clouds:
            share = dice.of(rows).between(0.1, 0.4, "cloudy")[:, None, None]
            values[rows] = draw(dice.of(rows), size) * (1 - share) + cloud[rows] * share
    return values


def _clouds(dice: Dice, size: int) -> Floats:
    total = np.zeros((len(dice), size, size), np.float32)
    weight = 1.0
    for cells in OCTAVES:
        corners = dice.between(-1, 1, f"clouds {cells}", cells + 1, cells + 1)
        places = (np.arange(size, dtype=np.float32) + np.float32(0.5)) * np.float32(cells) / np.float32(size)
        lower = places.astype(np.int64)
        part = places - lower.astype(np.float32)
        part = part * part * (3 - 2 * part)
        rows = corners[:, lower] + (corners[:, lower + 1] - corners[:, lower]) * part[:, None]
        total += np.float32(weight) * (rows[:, :, lower] + (rows[:, :, lower + 1] - rows[:, :, lower]) * part)
        weight /= 2
    return np.clip(np.float32(0.5) + np.float32(0.5) * total, 0, 1)


def _gradient(dice: Dice, size: int) -> Floats:
    along, _ = _slanted(dice, size)
    return np.clip(along * dice.between(0.8, 1.3, "slope")[:, None, None] + np.float32(0.5), 0, 1)


def _stripes(dice: Dice, size: int) -> Floats:
    along, _ = _slanted(dice, size)
    return _wave(dice, along, "first")


def _checks(dice: Dice, size: int) -> Floats:
    along, across = _slanted(dice, size)
    one, other = _wave(dice, along, "first"), _wave(dice, across, "second")
    return one + other - 2 * one * other


def _speckles(dice: Dice, size: int) -> Floats:
    middles = (np.arange(size, dtype=np.float32) + np.float32(0.5)) / np.float32(size)
    x, y = dice.between(0, 1, "speckles x", SPECKLES), dice.between(0, 1, "speckles y", SPECKLES)
    radius = dice.between(0.015, 0.05, "speckles radius", SPECKLES)
    shade = dice.between(0.5, 1, "speckles shade", SPECKLES)
    values = np.zeros((len(dice), size, size), np.float32)
    for one in range(SPECKLES):
        from_x, from_y = middles[None, None, :] - x[:, one, None, None], middles[None, :, None] - y[:, one, None, None]
        distance = np.sqrt(from_x * from_x + from_y * from_y) - radius[:, one, None, None]
        cover = np.clip(np.float32(0.5) - distance * np.float32(size), 0, 1)
        np.maximum(values, cover * shade[:, one, None, None], out=values)
    return values


def _slanted(dice: Dice, size: int) -> tuple[Floats, Floats]:
    """Coordinates from −1/2 to 1/2 turned by any angle, (N, size, size) each."""
    middles = (np.arange(size, dtype=np.float32) + np.float32(0.5)) / np.float32(size) - np.float32(0.5)
    t = dice.between(-1, 1, "slant")[:, None, None]  # half a circle is all directions of a stripe
    cosine, sine = (1 - t * t) / (1 + t * t), 2 * t / (1 + t * t)
    x, y = middles[None, None, :], middles[None, :, None]
    return x * cosine + y * sine, y * cosine - x * sine


def _wave(dice: Dice, places: Floats, name: str) -> Floats:
    """Up and down with soft edges."""
    count = dice.between(2.5, 6.5, "waves")[:, None, None]
    phase = places * count + dice.between(0, 1, f"phase {name}")[:, None, None]
    phase = phase - np.floor(phase)
    triangle = np.abs(phase * 2 - 1)
    return np.clip((triangle - np.float32(0.5)) * dice.between(2, 6, "edge")[:, None, None] + np.float32(0.5), 0, 1)


TEXTURES: tuple[Callable[[Dice, int], Floats], ...] = (_clouds, _gradient, _stripes, _checks, _speckles)
