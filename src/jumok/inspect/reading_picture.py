"""Where each character of a word looked, as PNG or SVG: the picture, then all frames side by side, map over picture.

Colours are cividis, from 0 to the largest weight of each frame. A ring marks the centre of the map, two small triangles
at the rim where the character is; under a frame stands how far the one is from the other, in character widths.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

from jumok.data.images.picture import fit
from jumok.data.images.raw import Pixels
from jumok.errors import BadInput
from jumok.inspect.attention import Weights
from jumok.inspect.drawing import Format, saved, sheet, short, style
from jumok.inspect.reading_attention import MOST_PICTURES, Frames
from jumok.inspect.reading_drift import WordDrift, drift_of
from jumok.inspect.reading_overlay import spread
from jumok.tasks.intervals import signed

COLUMNS = 6  # tiles side by side, the picture too
WIDE, HIGH, NARROW = 1.7, 1.6, 0.95  # inches: a tile is not larger than that, and has as much room as its words need
GAP, ABOVE, BELOW, TITLE = 0.14, 0.25, 0.24, 0.44  # inches
DOTS = 360  # pixels of a tile's longer side: what is smaller is enlarged, what is larger made smaller
FAINT, STRONG = 0.5, 0.85  # how much of the picture is covered where a map is 0, and where it is the largest
MARK = "#ff5a36"
LONGEST = 60
WORDS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,:;()[]+−-–…%·“”␣×/<>"


def draw_frames(shown: Sequence[Frames], format: Format = "png", *, dark: bool = False) -> bytes:
    """Each picture begins a row."""
    if not shown:
        raise BadInput("there is no picture to draw: give one at least")
    if len(shown) > MOST_PICTURES:
        raise BadInput(
            f"{len(shown)} pictures are too many for one sheet (at most {MOST_PICTURES}): draw fewer at once"
        )
    text = WORDS + "".join(one.name + one.text + one.about for one in shown)
    with style(text, dark):
        return saved(_figure(shown, dark), format)


def _figure(shown: Sequence[Frames], dark: bool) -> Any:
    columns = min(COLUMNS, max(1 + len(one.characters) for one in shown))
    tiles = [_tile(one.picture) for one in shown]
    room = max(NARROW, *(wide for _, wide in tiles))
    rows = [-(-(1 + len(one.characters)) // columns) for one in shown]
    downs = [ABOVE + high + BELOW for high, _ in tiles]
    width = max(columns * (room + GAP) - GAP, 3.2)
    height = sum(TITLE + count * down + GAP for count, down in zip(rows, downs, strict=True)) + 0.36
    figure = sheet(width, height)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    top = 0.0
    for one, (high, wide), count, down in zip(shown, tiles, rows, downs, strict=True):
        _title(axes, one, top, dark)
        drift, picture = drift_of(one), _scaled(one.picture)
        for number in range(1 + len(one.characters)):
            row, column = divmod(number, columns)
            left, upper = column * (room + GAP), top + TITLE + row * down + ABOVE
            _draw_tile(axes, one, drift, picture, number - 1, (left, upper, wide, high), dark)
        top += TITLE + count * down + GAP
    _legend(axes, shown, height, dark)
    return figure


def _tile(picture: Pixels) -> tuple[float, float]:
    """Inches down and across."""
    height, width = picture.shape[:2]
    scale = min(WIDE / width, HIGH / height)
    return max(height * scale, 0.05), max(width * scale, 0.05)


def _scaled(picture: Pixels) -> Pixels:
    """Of about DOTS pixels, with edges between pixels where there were few."""
    height, width = picture.shape[:2]
    scale = DOTS / max(height, width)
    if scale >= 1:
        times = max(1, round(scale))
        return picture.repeat(times, axis=0).repeat(times, axis=1)
    return fit(picture, (max(1, round(height * scale)), max(1, round(width * scale))), "squash")


def laid_over(picture: Pixels, map_HW: Weights, most: float) -> Pixels:
    """The map in colours over the picture in grey; `most` is the brightest."""
    share_HW1 = (map_HW / most if most > 0 else map_HW).clip(0, 1)[..., None]
    cover = FAINT + (STRONG - FAINT) * share_HW1
    heat = 255 * matplotlib.colormaps["cividis"](share_HW1[..., 0])[..., :3]
    grey = picture.mean(axis=2, keepdims=True)
    found: Pixels = (cover * heat + (1 - cover) * grey).round().astype(np.uint8)
    return found


def _draw_tile(
    axes: Any,
    one: Frames,
    drift: WordDrift,
    picture: Pixels,
    number: int,
    area: tuple[float, float, float, float],
    dark: bool,
) -> None:
    """The picture itself (-1), or the frame of a character."""
    left, upper, wide, high = area
    box = (left, left + wide, upper + high, upper)
    quiet = _quiet(dark)
    if number < 0:
        axes.imshow(picture, extent=box, aspect="auto", interpolation="nearest")
        said, below = "picture", "×".join(map(str, one.size[::-1]))
    else:
        seen = one.maps[number]
        image = laid_over(picture, spread(seen, one.box, picture.shape[:2]), float(seen.max()))
        axes.imshow(image, extent=box, aspect="auto", interpolation="nearest")
        x, y = one.centres[number]
        _marks(axes, area, (float(x), float(y)), float(drift.places[number]))
        said = f"{written(one.characters[number])}   {100 * one.confidences[number]:.0f} %"
        below = f"drift {signed(float(drift.widths[number]), 2)}"
    size = 8.5 if number < 0 else 10.5
    axes.text(left, upper - 0.05, said, fontsize=size, ha="left", va="bottom", parse_math=False)
    axes.text(left, upper + high + 0.04, below, fontsize=7.5, ha="left", va="top", color=quiet, parse_math=False)


def _marks(axes: Any, area: tuple[float, float, float, float], centre: tuple[float, float], place: float) -> None:
    left, upper, wide, high = area
    x, y = (min(max(value, 0.0), 1.0) for value in centre)
    at = left + wide * min(max(place, 0.0), 1.0)
    for colour, thick in (("white", 2.4), (MARK, 1.2)):
        axes.plot(
            left + wide * x, upper + high * y, "o", markersize=6, markerfacecolor="none", markeredgecolor=colour,
            markeredgewidth=thick,
        )  # fmt: skip
    for down, sign in ((upper, "v"), (upper + high, "^")):
        axes.plot(at, down, sign, markersize=4, color=MARK, markeredgecolor="white", markeredgewidth=0.5, clip_on=False)


def _title(axes: Any, one: Frames, top: float, dark: bool) -> None:
    said = f"“{short(one.text, LONGEST)}”" if one.text else "nothing was read"
    parts = [short(Path(one.name).name, LONGEST), f"{100 * one.confidence:.0f} % sure"]
    if one.characters:
        parts.append(f"mean drift {signed(drift_of(one).mean, 2)}")
    axes.text(0, top, said, fontsize=12, ha="left", va="top", parse_math=False)
    below = " · ".join(parts)
    axes.text(0, top + 0.22, below, fontsize=8, ha="left", va="top", color=_quiet(dark), parse_math=False)


def _legend(axes: Any, shown: Sequence[Frames], height: float, dark: bool) -> None:
    maps = "; ".join(dict.fromkeys(one.about for one in shown))
    even = ", taken to stand evenly" * any(one.places is None for one in shown)
    lines = [maps, f"ring: centre of the map; triangles: the character{even}; drift in character widths"]
    for number, line in enumerate(reversed(lines)):
        upper = height - 0.16 * number
        axes.text(0, upper, line, fontsize=7.5, ha="left", va="bottom", color=_quiet(dark), parse_math=False)


def written(character: str) -> str:
    """A blank can be seen."""
    return "␣" if character.isspace() else short(character, 8)


def _quiet(dark: bool) -> str:
    return "#9aa3b0" if dark else "#5c6470"
