"""Maps over images, as PNG or SVG: the image, then each map laid over it, patch by patch.

Colours are cividis, from 0 to the largest value of each map: a weight that is shared by many patches is small, and what
matters is which have more than others. How large the largest is stands under each map, also as a multiple of what each
patch would have if all had the same. Patches keep their edges: nothing is known about what lies within one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from jumok.errors import BadInput
from jumok.inspect.drawing import Format, saved, sheet, short, style
from jumok.inspect.vision import Map

Pixels = NDArray[np.uint8]
COLUMNS = 7  # maps side by side, the image too
LARGE, SMALL = 2.5, 1.65  # inches of a tile, where there are few and where there are many
FEW = 4
GAP, CAPTION, BELOW = 0.14, 0.26, 0.30  # inches: between tiles, above them, under them
MOST_IMAGES = 40
SHADES = (88, 168)  # of an image below a map: what is dark there must not look like what nobody looked at
FAINT, STRONG = 0.66, 0.9  # how much of the image is covered where a value is 0, and where it is the largest
MARK = "#ff5a36"
LONGEST_TITLE = 90
WORDS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,:;()−-+×%·→↓…|Δ"


@dataclass(frozen=True, eq=False)
class Shown:
    """An image, what is said about it, and the maps that are laid over it."""

    image: Pixels  # (C, H, W)
    name: str
    maps: Sequence[Map]
    told: str = ""  # as in "circle 93 %"


def draw_maps(
    shown: Sequence[Shown], heading: str = "", format: Format = "png", *, legend: str = "attention", dark: bool = False
) -> bytes:
    """Each image begins a row; `legend` says what the colours are."""
    if not shown:
        raise BadInput("there is no image to draw: give one at least")
    if len(shown) > MOST_IMAGES:
        raise BadInput(f"{len(shown)} images are too many for one picture (at most {MOST_IMAGES}): draw fewer at once")
    names = "".join(one.name + one.told + "".join(each.name for each in one.maps) for one in shown)
    with style(WORDS + heading + legend + names, dark):
        return saved(_figure(shown, heading, legend, dark), format)


def _figure(shown: Sequence[Shown], heading: str, legend: str, dark: bool) -> Any:
    most = max(1 + len(one.maps) for one in shown)
    columns = min(most, COLUMNS)
    size = LARGE if columns <= FEW else SMALL
    tall = [size * one.image.shape[1] / one.image.shape[2] for one in shown]
    rows = [-(-(1 + len(one.maps)) // columns) for one in shown]
    width = columns * (size + GAP) - GAP
    height = sum(count * (CAPTION + each + BELOW) for count, each in zip(rows, tall, strict=True))
    figure = sheet(width, height)
    top = 0.0
    for one, each, count in zip(shown, tall, rows, strict=True):
        down = CAPTION + each + BELOW
        for number, seen in enumerate([None, *one.maps]):
            row, column = divmod(number, columns)
            left, upper = column * (size + GAP), top + row * down + CAPTION
            axes = figure.add_axes((left / width, 1 - (upper + each) / height, size / width, each / height))
            if seen is None:
                picture(axes, one.image, one.maps)
                _captions(axes, short(one.name, 26 if size == LARGE else 18), short(one.told, 40), dark)
            else:
                overlay(axes, one.image, seen)
                _captions(axes, seen.name, most_of(seen), dark)
        top += down * count
    _scale(figure, width, height, legend, dark)
    if heading:
        above = 1 + 0.16 / height
        figure.text(0, above, short(heading, LONGEST_TITLE), fontsize=12, ha="left", va="bottom", parse_math=False)
    return figure


def picture(axes: Any, image: Pixels, maps: Sequence[Map] = ()) -> None:
    """The image itself, with the patch marked that the maps are seen from."""
    rgb = colour(image)
    height, width = rgb.shape[:2]
    axes.imshow(rgb, interpolation="nearest", extent=(0, width, height, 0), aspect="auto")
    axes.axis("off")
    for place, grid in {(seen.place, seen.values.shape) for seen in maps}:
        mark(axes, place, grid, (height, width))


def overlay(axes: Any, image: Pixels, seen: Map, top: float | None = None) -> None:
    """The map over the image in grey; `top` is the value of the brightest colour, else the largest of the map."""
    grey = told_apart(colour(image))
    height, width = grey.shape
    box = (0, width, height, 0)
    axes.imshow(grey, cmap="gray", vmin=0, vmax=255, interpolation="nearest", extent=box, aspect="auto")
    highest = float(seen.values.max()) if top is None else top
    share = np.clip(seen.values / highest, 0, 1) if highest > 0 else np.zeros_like(seen.values)
    heat = matplotlib.colormaps["cividis"](share)
    heat[..., 3] = FAINT + (STRONG - FAINT) * share
    axes.imshow(heat, interpolation="nearest", extent=box, aspect="auto")
    axes.axis("off")
    mark(axes, seen.place, seen.values.shape, (height, width))


def told_apart(image: Pixels) -> Pixels:
    """An image in the shades of grey that show most of it, (H, W, 3) → (H, W): along the direction of its colours'
    first principal component, light stays light. Red on green of the same lightness would be nothing but grey."""
    values = image.reshape(-1, 3).astype(np.float64)
    centred = values - values.mean(axis=0)
    direction = np.linalg.eigh(centred.T @ centred)[1][:, -1]
    shades = centred @ (direction * (1 if direction.sum() >= 0 else -1))
    low, high = np.percentile(shades, (1, 99))
    darkest, lightest = SHADES
    if high - low < 1:  # of one colour, but for what is small
        low, high = shades.min(), shades.max()
    if high - low < 1:
        return np.full(image.shape[:2], (darkest + lightest) / 2)
    shades = darkest + (lightest - darkest) * ((shades - low) / (high - low)).clip(0, 1)
    shown: Pixels = shades.reshape(image.shape[:2])
    return shown


def mark(axes: Any, place: int | None, grid: Sequence[int], image: tuple[int, int]) -> None:
    """A frame around the patch that looks."""
    if place is None:
        return
    down, across = image[0] / grid[0], image[1] / grid[1]
    corner = place % grid[1] * across, place // grid[1] * down
    thick = 1.5 if max(grid) <= 10 else 1.0
    for shade, line in (("white", thick + 1.1), (MARK, thick)):
        axes.add_patch(Rectangle(corner, across, down, fill=False, edgecolor=shade, linewidth=line, clip_on=False))


def colour(image: Pixels) -> Pixels:
    """(H, W, 3) of (C, H, W)."""
    found: Pixels = np.repeat(image, 3, axis=0) if len(image) == 1 else image
    return found.transpose(1, 2, 0)


def most_of(seen: Map) -> str:
    """The largest value, beside an even one."""
    highest, even = float(seen.values.max()), seen.uniform
    if highest <= 0:
        return "nothing above 0"
    times = highest / even
    return f"up to {_number(highest)}, {times:.{1 if times < 10 else 0}f}× the mean"


def _number(value: float) -> str:
    return f"{value:.2g}" if value >= 0.001 else f"{value:.0e}"


def _captions(axes: Any, above: str, below: str, dark: bool) -> None:
    quiet = "#9aa3b0" if dark else "#5c6470"
    axes.text(0, 1.02, above, transform=axes.transAxes, fontsize=9, ha="left", va="bottom", parse_math=False)
    axes.text(
        0, -0.02, below, transform=axes.transAxes, fontsize=7.5, ha="left", va="top", color=quiet, parse_math=False
    )


def _scale(figure: Any, width: float, height: float, legend: str, dark: bool) -> None:
    """The colours as they look over a middle grey. Its size is fixed, in inches: it is no part of the data."""
    tall = min(height - CAPTION - BELOW, 1.5)
    bar = figure.add_axes((1 + 0.2 / width, 1 - (CAPTION + tall) / height, 0.12 / width, tall / height))
    share = np.linspace(0, 1, 256)[:, None]
    cover = FAINT + (STRONG - FAINT) * share
    shades = cover * matplotlib.colormaps["cividis"](share[:, 0])[:, :3] + (1 - cover) * 0.5
    scale = LinearSegmentedColormap.from_list("over grey", shades)
    bar.imshow(np.linspace(1, 0, 256)[:, None], cmap=scale, aspect="auto", extent=(0, 1, 0, 1))
    bar.yaxis.tick_right()
    bar.set_yticks([0, 1], ["0", "most"], fontsize=8)
    bar.set_xticks([])
    bar.tick_params(length=0)
    bar.spines[:].set_visible(False)
    bar.yaxis.set_label_position("right")
    bar.set_ylabel(legend, fontsize=8, labelpad=-12, parse_math=False)
