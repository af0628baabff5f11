"""Places of words on a page, found by somebody else (a detector, a person), and the pictures cut out of them.

A JSON file with a list, whose boxes may each be

    [x, y, width, height]
    {"x": …, "y": …, "width": …, "height": …}
    [[x, y], [x, y], [x, y], [x, y]]        the corners as one reads: the word's top left, then its top right, …
    {"box": any of these, …}                whatever else it says is left as it is

in pixels from the page's top left corner, the page held upright. What reaches over the edge of the page is cut off
(of corners: filled with the mean colour).

A box with corners is rectified: with (u, v) a place in the picture that comes out, the place on the page is

    x = (a u + b v + c) / (g u + h v + 1)        y = (d u + e v + f) / (g u + h v + 1)

where a … h are such that corner lands on corner: eight equations with eight unknowns.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from jumok.data.compression import open_file
from jumok.data.images.picture import pixels_of
from jumok.data.images.raw import Pixels, RawImage, shown
from jumok.errors import BadInput

Point = tuple[float, float]
KEYS = ("x", "y", "width", "height")
KINDS = "[x, y, width, height], the same with names, or four corners [[x, y], …]"
LEAST = 1.0  # square pixels of a box
FARTHEST = 1e6  # pixels
DEEPEST = 100  # lists and objects in each other in a box: it is written again beside what was read


@dataclass(frozen=True)
class Box:
    number: int  # in the file, from 1
    given: Any  # as it stands there
    corners: tuple[Point, Point, Point, Point]  # top left, top right, bottom right, bottom left of the word
    upright: bool  # whether it is a rectangle that needs only to be cut out


class BadBox(BadInput):
    """A box that cannot be cut out."""


def read_boxes(path: str | Path) -> list[Box | BadBox]:
    """All boxes of a file; those that are none say why."""
    where = shown(path)
    try:
        with open_file(Path(path)) as file:
            raw = json.loads(file.read().decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise BadInput(f"{where}: not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise BadInput(f"{where}, line {error.lineno}: not JSON: {error.msg}") from None
    except ValueError as error:  # a number of thousands of digits
        raise BadInput(f"{where}: not to be read: {str(error).partition(';')[0]}") from None
    except RecursionError:
        raise BadInput(f"{where}: lists in lists in lists. Each box is {KINDS}") from None
    if not isinstance(raw, list):
        raise BadInput(f"{where}: a list of boxes is needed, each {KINDS}")
    if len(raw) == 4 and all(map(_is_number, raw)):
        raise BadInput(f"{where}: a box by itself: put it into a list, [{json.dumps(raw)}]")
    found: list[Box | BadBox] = []
    for number, given in enumerate(raw, 1):
        place = f"{where}: box {number}"
        try:
            if not _is_flat(given, DEEPEST):
                raise BadBox(f"{place}: lists in lists in lists. A box is {KINDS}")
            box = box_of(given, number, place)
            _check_told(given, place)
            found.append(box)
        except BadBox as error:
            found.append(error)
    return found


def box_of(given: Any, number: int, where: str) -> Box:
    """A box as it may be written; `where` is said of one that is none."""
    inner = given["box"] if isinstance(given, dict) and "box" in given else given
    if isinstance(inner, dict):
        missing = [key for key in KEYS if key not in inner]
        if missing:
            raise BadBox(f"{where}: {', '.join(missing)} is missing. A box is {KINDS}")
        inner = [inner[key] for key in KEYS]
    if not isinstance(inner, list) or len(inner) != 4:
        raise BadBox(f"{where}: {_written(inner)} is no box: it is {KINDS}")
    is_rectangle = all(map(_is_number, inner))
    if not is_rectangle and not all(
        isinstance(one, list) and len(one) == 2 and all(map(_is_number, one)) for one in inner
    ):
        raise BadBox(f"{where}: {_written(inner)} is no box: it is {KINDS}, all in numbers")
    numbers = inner if is_rectangle else [number for point in inner for number in point]
    if not all(abs(number) <= FARTHEST for number in numbers):  # nor is this one that is not a number
        raise BadBox(f"{where}: {_written(inner)}: not all of it are numbers that a page can have")
    if is_rectangle:
        x, y, width, height = map(float, inner)
        if width <= 0 or height <= 0:
            raise BadBox(f"{where}: {_written(inner)}: its width and height must be above 0")
        return Box(number, given, ((x, y), (x + width, y), (x + width, y + height), (x, y + height)), upright=True)
    return Box(number, given, _corners(inner, where), upright=False)


def _corners(points: Sequence[Sequence[float]], where: str) -> tuple[Point, Point, Point, Point]:
    """Clockwise, as one sees it, from the first one on: the other way round the word would be in a mirror."""
    first, second, third, fourth = ((float(x), float(y)) for x, y in points)
    area = _turn(first, second, third) + _turn(first, third, fourth)
    found = (first, second, third, fourth) if area > 0 else (first, fourth, third, second)
    if abs(area) / 2 < LEAST or any(_turn(found[one], found[one - 3], found[one - 2]) <= 0 for one in range(4)):
        raise BadBox(
            f"{where}: {_written(list(points))}: nothing lies between these corners, or the sides cross or bend "
            "inwards. Name the four corners around the word"
        )
    return found


def _turn(first: Point, second: Point, third: Point) -> float:
    """Twice the area of a triangle, above 0 where it goes clockwise (y points downwards)."""
    return (second[0] - first[0]) * (third[1] - first[1]) - (second[1] - first[1]) * (third[0] - first[0])


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_flat(value: object, left: int) -> bool:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return left > 0 and all(_is_flat(one, left - 1) for one in inside)


def _check_told(given: object, where: str) -> None:
    """All that is said about a box is written beside what was read there: it must be possible to write it."""
    try:
        json.dumps(given, ensure_ascii=False, allow_nan=False).encode("utf-8")
    except UnicodeEncodeError as error:
        letter = f"\\u{ord(error.object[error.start]):04x}"
        raise BadBox(f"{where}: {letter} is half a character, which cannot be written. Take it out") from None
    except ValueError:
        raise BadBox(f"{where}: NaN or Infinity in it, which is no JSON. Write null, or leave it out") from None


def _written(value: object) -> str:
    text = json.dumps(value, ensure_ascii=True)
    return text if len(text) <= 80 else f"{text[:79]}…"


# ---------------------------------------------------------------- cutting out


def boxed(
    page: RawImage, boxes: Sequence[Box | BadBox], channels: int, where: str
) -> Iterator[tuple[Box, RawImage] | BadBox]:
    """Each box cut out of a page, named `page#number`; or why it cannot be."""
    pixels = pixels_of(page, channels)
    for box in boxes:
        if isinstance(box, BadBox):
            yield box
            continue
        try:
            yield box, RawImage(f"{page.name}#{box.number}", None, cut(pixels, box, f"{where}: box {box.number}"))
        except BadBox as error:
            yield error


def cut(page: Pixels, box: Box, where: str) -> Pixels:
    """(H, W, C) of a page, as large as it is on it."""
    height, width = page.shape[:2]
    left, top = (min(corner[axis] for corner in box.corners) for axis in range(2))
    right, bottom = (max(corner[axis] for corner in box.corners) for axis in range(2))
    if right <= 0 or bottom <= 0 or left >= width or top >= height:
        raise BadBox(f"{where}: {_written(box.given)} lies outside of the page, which has {width} × {height} pixels")
    across, down = _touched(left, right, width), _touched(top, bottom, height)
    part = np.ascontiguousarray(page[down, across])
    if box.upright:
        return part
    most = math.hypot(height, width)  # a corner far outside of the page makes no larger picture
    return _rectified(part, [(x - across.start, y - down.start) for x, y in box.corners], most)


def _touched(start: float, end: float, most: int) -> slice:
    """Whole pixels of so many, at least one; not those that are touched by rounding alone."""
    first = min(max(0, math.floor(start + 0.01)), most - 1)
    return slice(first, max(first + 1, min(most, math.ceil(end - 0.01))))


def _rectified(part: Pixels, corners: Sequence[Point], most: float) -> Pixels:
    """What lies between the corners, as a rectangle whose sides have at most so many pixels."""
    first, second, third, fourth = corners
    wide = round(min(most, max(math.dist(first, second), math.dist(fourth, third))))
    tall = round(min(most, max(math.dist(first, fourth), math.dist(second, third))))
    size = (max(1, wide), max(1, tall))
    ground = tuple(int(value) for value in part.reshape(-1, part.shape[2]).mean(axis=0).round())
    made = Image.fromarray(part[:, :, 0] if part.shape[2] == 1 else part).transform(
        size,
        Image.Transform.PERSPECTIVE,
        _perspective(size, corners),
        Image.Resampling.BICUBIC,
        fillcolor=ground[0] if len(ground) == 1 else ground,
    )
    pixels = np.array(made)
    return pixels if pixels.ndim == 3 else pixels[:, :, None]


def _perspective(size: tuple[int, int], corners: Sequence[Point]) -> list[float]:
    """a … h of the equations above."""
    rows, wanted = [], []
    for (u, v), (x, y) in zip(((0, 0), (size[0], 0), size, (0, size[1])), corners, strict=True):
        rows += [[u, v, 1, 0, 0, 0, -u * x, -v * x], [0, 0, 0, u, v, 1, -u * y, -v * y]]
        wanted += [x, y]
    found: list[float] = np.linalg.solve(np.array(rows, np.float64), np.array(wanted, np.float64)).tolist()
    return found
