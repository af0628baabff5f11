"""The shapes of the generated pictures: paths of straight strokes, placed at random; how much of a pixel they cover.

The coverage of a pixel is `clip(1/2 − d, 0, 1)`, d the signed distance of its middle from the shape in pixels: negative
inside a filled shape, distance minus half a width for a line. Curves are paths of many corners. Turns are by the
half-angle, `cos = (1 − t²)/(1 + t²), sin = 2t/(1 + t²)`, and of what a computer can do with fractions only
+ − × / √ are used, for which IEEE 754 leaves no freedom: sines and sums in another order differ between machines.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jumok.data.images.drawn_dice import Dice, Floats

SIZE = (0.7, 0.95)  # of the larger side of a shape, as a share of the picture
LINE = (0.055, 0.085)  # width of a line
MARGIN = 0.5 / 32  # between the shape and the border
TURN = 0.17  # tangent of half the largest turn: 19 degrees
STRETCH, SHEAR = 0.12, 0.1
Path = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Shape:
    """Paths inside the circle of radius 1, y downwards. Only closed paths can be filled."""

    paths: tuple[Path, ...]
    closed: tuple[bool, ...] = (True,)
    filled: float = 0.75  # the share that is filled


def _arc(x: float, y: float, radius: float, first: float, last: float, corners: int) -> Path:
    """Degrees clockwise from the right. Rounded, so that the last bit of a machine's sine makes no difference."""
    angles = [math.radians(first + (last - first) * corner / (corners - 1)) for corner in range(corners)]
    return tuple((round(x + radius * math.cos(a), 4), round(y + radius * math.sin(a), 4)) for a in angles)


def _circle(x: float, y: float, radius: float, corners: int) -> Path:
    return _arc(x, y, radius, 0, 360, corners + 1)[:-1]


def _star() -> Path:
    outer, inner = _arc(0, 0.05, 1.0, -90, 198, 5), _arc(0, 0.05, 0.43, -54, 234, 5)
    return tuple(point for pair in zip(outer, inner, strict=True) for point in pair)


def _cross(arm: float) -> Path:
    a = arm
    return ((-a, -1), (a, -1), (a, -a), (1, -a), (1, a), (a, a), (a, 1), (-a, 1), (-a, a), (-1, a), (-1, -a), (-a, -a))


def _crescent() -> Path:
    """Two arcs from horn to horn: the outer one around the middle, the inner one around a point on the right."""
    horn = 50.0
    x, y = math.cos(math.radians(horn)), math.sin(math.radians(horn))
    middle = 0.42
    radius, angle = math.hypot(x - middle, y), math.degrees(math.atan2(y, x - middle))
    return _arc(0, 0, 1.0, horn, 360 - horn, 15) + _arc(middle, 0, radius, 360 - angle, angle, 13)[1:-1]


def _heart(corners: int) -> Path:
    points = []
    for corner in range(corners):
        t = 2 * math.pi * corner / corners
        y = 13 * math.cos(t) - 5 * math.cos(2 * t) - 2 * math.cos(3 * t) - math.cos(4 * t)
        points.append((round(16 * math.sin(t) ** 3 / 16.5, 4), round(-(y + 2.5) / 16.5, 4)))
    return tuple(points)


SHAPES: dict[str, Shape] = {
    "circle": Shape((_circle(0, 0, 0.9, 24),)),
    "triangle": Shape((((0, -0.95), (0.95, 0.75), (-0.95, 0.75)),)),
    "square": Shape((((-0.8, -0.8), (0.8, -0.8), (0.8, 0.8), (-0.8, 0.8)),)),
    "star": Shape((_star(),)),
    "cross": Shape((_cross(0.28),)),
    "crescent": Shape((_crescent(),)),
    "heart": Shape((_heart(26),)),
    "arrow": Shape((((-1, -0.24), (0.1, -0.24), (0.1, -0.75), (1, 0), (0.1, 0.75), (0.1, 0.24), (-1, 0.24)),)),
    "bolt": Shape((((0.35, -1), (-0.65, 0.2), (-0.02, 0.2), (-0.35, 1), (0.65, -0.25), (0.05, -0.25)),)),
    "hieut": Shape(  # ㅎ, the last letter of the Korean alphabet
        (((-0.3, -0.95), (0.3, -0.95)), ((-0.85, -0.45), (0.85, -0.45)), _circle(0, 0.4, 0.5, 16)),
        closed=(False, False, True),
        filled=0.0,
    ),
}


def coverage(shape: Shape, dice: Dice, size: int) -> Floats:
    """How much of each pixel one shape covers, placed for each picture anew, (N, size, size)."""
    filled = dice.chance(shape.filled, "filled")
    width = dice.between(*LINE, "width")
    paths = _placed(shape, dice, np.where(filled, np.float32(0), width))
    squared = np.full((len(dice), size, size), np.float32(4))
    inside = np.zeros((len(dice), size, size), bool)
    middles = (np.arange(size, dtype=np.float32) + np.float32(0.5)) / np.float32(size)
    for path, closed in zip(paths, shape.closed, strict=True):
        for start, end in _edges(path, closed):
            _towards(start, end, middles, squared, inside)
    distance = np.sqrt(squared)
    distance = np.where(
        filled[:, None, None], np.where(inside, -distance, distance), distance - width[:, None, None] / 2
    )
    return np.clip(np.float32(0.5) - distance * np.float32(size), 0, 1)


def strokes(points: Floats, width: Floats, size: int) -> Floats:
    """How much of each pixel an open path (N, corners, 2) of a width (N,) covers, (N, size, size)."""
    squared = np.full((len(points), size, size), np.float32(4))
    middles = (np.arange(size, dtype=np.float32) + np.float32(0.5)) / np.float32(size)
    for start, end in _edges(points, closed=False):
        _towards(start, end, middles, squared, None)
    return np.clip(np.float32(0.5) - (np.sqrt(squared) - width[:, None, None] / 2) * np.float32(size), 0, 1)


def _placed(shape: Shape, dice: Dice, width: Floats) -> list[Floats]:
    """The corners of each path in widths of the picture, (N, corners, 2), all of them well within it."""
    corners = np.array([point for path in shape.paths for point in path], np.float32)
    stretch = 1 + dice.between(-STRETCH, STRETCH, "stretch")
    mirror = np.where(dice.chance(0.5, "mirrored"), -stretch, stretch)
    x = corners[:, 0] * mirror[:, None] + corners[:, 1] * dice.between(-SHEAR, SHEAR, "shear")[:, None]
    y = corners[:, 1] / stretch[:, None]
    t = dice.between(-TURN, TURN, "turn")[:, None]
    cosine, sine = (1 - t * t) / (1 + t * t), 2 * t / (1 + t * t)
    x, y = x * cosine - y * sine, x * sine + y * cosine
    left, top, right, bottom = (edge[:, None] for edge in (x.min(1), y.min(1), x.max(1), y.max(1)))
    margin = (np.float32(MARGIN) + width / 2)[:, None]
    room = 1 - 2 * margin
    scale = dice.between(*SIZE, "size")[:, None] * room / np.maximum(right - left, bottom - top)
    x = margin + (x - left) * scale + (room - (right - left) * scale) * dice.between(0, 1, "x")[:, None]
    y = margin + (y - top) * scale + (room - (bottom - top) * scale) * dice.between(0, 1, "y")[:, None]
    return np.split(np.stack([x, y], -1), np.cumsum([len(path) for path in shape.paths])[:-1], axis=1)


def _edges(points: Floats, closed: bool) -> Iterator[tuple[Floats, Floats]]:
    count = points.shape[1]
    for corner in range(count if closed else count - 1):
        yield points[:, corner], points[:, (corner + 1) % count]


def _towards(
    start: Floats, end: Floats, middles: Floats, squared: Floats, inside: npt.NDArray[np.bool_] | None
) -> None:
    """One edge: the squared distances become no larger than those from it, and left of it in and out change places."""
    along_x, along_y = (end - start)[:, 0, None, None], (end - start)[:, 1, None, None]
    from_x = middles[None, None, :] - start[:, 0, None, None]
    from_y = middles[None, :, None] - start[:, 1, None, None]
    length = along_x * along_x + along_y * along_y
    share = from_x * (along_x / length) + from_y * (along_y / length)
    np.clip(share, 0, 1, out=share)
    x = from_x - along_x * share
    np.multiply(x, x, out=x)
    np.multiply(share, along_y, out=share)
    np.subtract(from_y, share, out=share)
    np.multiply(share, share, out=share)
    np.add(x, share, out=x)
    np.minimum(squared, x, out=squared)
    if inside is not None:
        between = (from_y < 0) != (from_y < along_y)  # this row of pixels meets the edge
        crossing = from_x < from_y * (along_x / np.where(along_y == 0, np.float32(1), along_y))
        np.logical_and(crossing, between, out=crossing)
        np.logical_xor(inside, crossing, out=inside)
