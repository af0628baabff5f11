"""What is known of a Vision Transformer beyond one image, as PNG or SVG: its filters, its positions, how far heads look
(Dosovitskiy et al. 2021, figure 7).

Filters are shown with grey for 0 and each as bright as it can be. Positions are a map for each place, laid out as the
places are: its cosine with all others, the place itself at 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.patheffects import withStroke
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from jumok.inspect.attention import Weights
from jumok.inspect.drawing import Format, ink_and_paper, saved, sheet, style
from jumok.inspect.vision_distance import Distances
from jumok.inspect.vision_picture import WORDS
from jumok.inspect.vision_weights import Filters

ACROSS = 7  # filters side by side
CELL, BETWEEN = 0.55, 0.06  # inches of a filter, and between two
APART = 0.7  # inches between two groups of filters
HEADS, NETWORK = "#0072b2", "#d55e00"
LARGEST_GRID = 5.4  # inches
LEAST_GRID = 1.4
NETWORK_NAME = "a CNN of 3×3 layers, if it weighed its whole receptive field alike (its width: px)"


# ---------------------------------------------------------------- filters


def draw_filters(groups: Sequence[Filters], format: Format = "png", *, dark: bool = False) -> bytes:
    """Groups of filters side by side: those of the model, and of a CNN where there is one."""
    with style(WORDS + "".join(one.name for one in groups), dark):
        return saved(_filters(groups, dark), format)


def _filters(groups: Sequence[Filters], dark: bool) -> Any:
    rows = max(-(-len(one.pictures) // ACROSS) for one in groups)
    step = CELL + BETWEEN
    wide = [ACROSS * step - BETWEEN for _ in groups]
    width, height = sum(wide) + APART * (len(groups) - 1), rows * step - BETWEEN
    figure = sheet(width, height)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.axis("off")
    left = 0.0
    for one, across in zip(groups, wide, strict=True):
        for number, filter_CHW in enumerate(one.pictures):
            row, column = divmod(number, ACROSS)
            x, y = left + column * step, row * step
            axes.imshow(
                as_picture(filter_CHW), extent=(x, x + CELL, y + CELL, y), aspect="auto", interpolation="nearest",
                cmap="gray", vmin=0, vmax=1,
            )  # fmt: skip
        figure.text(
            left / width, 1 + 0.12 / height, _filters_title(one), fontsize=9.5, ha="left", va="bottom",
            linespacing=1.4, parse_math=False,
        )  # fmt: skip
        left += across + APART
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    return figure


def _filters_title(one: Filters) -> str:
    count = len(one.pictures)
    size = f"{one.pictures.shape[2]}×{one.pictures.shape[3]} pixels"
    if not one.shares:
        return f"{one.name}\n{count} filter{'s' * (count != 1)} of {size}, the largest first"
    share = f"{100 * min(1.0, sum(one.shares)):.0f} % of the variance"
    return f"{one.name}\n{count} principal component{'s' * (count != 1)} of {size}: {share}"


def as_picture(filter_CHW: NDArray[np.float32]) -> NDArray[np.float64]:
    """0 is grey; the number farthest from it is as bright or as dark as can be."""
    reach = max(float(np.abs(filter_CHW).max()), 1e-12)
    scaled = 0.5 + 0.5 * filter_CHW.astype(np.float64) / reach
    return scaled[0] if len(scaled) == 1 else scaled.transpose(1, 2, 0)


# ---------------------------------------------------------------- positions


def draw_positions(alike: Weights, kind: str, format: Format = "png", *, dark: bool = False) -> bytes:
    """`alike` (h, w, h, w): cosines, as `position_similarity` gives them."""
    with style(WORDS + kind, dark):
        return saved(_positions(alike, kind, dark), format)


def _positions(alike: Weights, kind: str, dark: bool) -> Any:
    rows, columns = alike.shape[:2]
    mosaic = tiled(alike)
    scale = LARGEST_GRID / max(mosaic.shape)
    # of a line of text there are few rows and many columns: their places are drawn higher than wide then
    height, width = (max(LEAST_GRID, side * scale) for side in mosaic.shape)
    figure = sheet(width, height)
    axes = figure.add_axes((0, 0, 1, 1))
    _, paper = ink_and_paper(dark)
    colours = matplotlib.colormaps["cividis"].with_extremes(bad=paper)
    image = axes.imshow(mosaic, cmap=colours, vmin=-1, vmax=1, interpolation="nearest", aspect="auto")
    down, across = (np.arange(0, size, max(1, -(-size // 16))) for size in (rows, columns))
    axes.set_xticks(across * (columns + 1) + (columns - 1) / 2, [str(place) for place in across], fontsize=8)
    axes.set_yticks(down * (rows + 1) + (rows - 1) / 2, [str(place) for place in down], fontsize=8)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_xlabel("column of the patch", fontsize=9)
    axes.set_ylabel("row of the patch", fontsize=9)
    title = f"{kind} positions: how alike each of {rows}×{columns} is to all others"
    axes.set_title(title, fontsize=10.5, loc="left", pad=8)
    tall = min(height, 2.2)
    bar = figure.add_axes((1 + 0.2 / width, 1 - tall / height, 0.13 / width, tall / height))
    legend = figure.colorbar(image, cax=bar, ticks=[-1, -0.5, 0, 0.5, 1])
    legend.outline.set_visible(False)
    legend.ax.tick_params(length=0, labelsize=8)
    legend.set_label("cosine", fontsize=8)
    return figure


def tiled(alike: Weights) -> Weights:
    """One picture of all maps with a line of nothing between them: row i, column j has the map of place (i, j)."""
    rows, columns = alike.shape[:2]
    spaced = np.full((rows, rows + 1, columns, columns + 1), np.nan, dtype=np.float32)
    spaced[:, :rows, :, :columns] = alike.transpose(0, 2, 1, 3)
    return spaced.reshape(rows * (rows + 1), columns * (columns + 1))[:-1, :-1]


# ---------------------------------------------------------------- distances


def draw_distances(
    found: Distances, format: Format = "png", *, network: str = NETWORK_NAME, dark: bool = False
) -> bytes:
    with style(WORDS + network, dark):
        return saved(_distances(found, network, dark), format)


def _distances(found: Distances, network: str, dark: bool) -> Any:
    width, height = max(5.2, 0.42 * found.layers + 2.2), 3.9
    figure = sheet(width, height)
    axes = figure.add_axes((0, 0, 1, 1))
    ink, paper = ink_and_paper(dark)
    quiet = "#9aa3b0" if dark else "#5c6470"
    blue, orange = ("#6ab0e6", "#f5a55a") if dark else (HEADS, NETWORK)
    layers = np.arange(found.layers)
    values = [found.of_layer(layer) for layer in range(found.layers)]
    means = [sum(each) / len(each) for each in values]
    even = "a head that looks at all patches alike"
    axes.axhline(found.uniform, color=quiet, linewidth=1.2, linestyle=(0, (4, 3)), label=even, zorder=1)
    axes.plot(layers, found.field_distances, color=orange, linewidth=1.6, marker="s", markersize=3.5, label=network)
    axes.plot(layers, means, color=blue, linewidth=1.2, alpha=0.55)
    places = np.concatenate([np.full(len(each), layer) for layer, each in enumerate(values)])
    dots = axes.scatter(places, np.concatenate(values), s=34, color=blue, edgecolor=paper, linewidth=0.6, zorder=3)
    dots.set_label("a head of this model; the line is the mean of a layer")
    highest = max(found.uniform, *found.field_distances, *map(max, values))
    axes.set_ylim(0, highest * 1.14)
    axes.set_xlim(-0.5, found.layers - 0.2)  # to the right of the last point stands how wide its field is
    _fields(axes, found, orange, paper)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=7, steps=[1, 2, 5, 10]))
    step = max(1, found.layers // 16)
    axes.set_xticks(layers[::step])
    axes.set_xlabel("layer", fontsize=9.5)
    axes.set_ylabel("mean attention distance, pixels", fontsize=9.5)
    axes.tick_params(labelsize=8.5)
    axes.grid(axis="y", alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    share = axes.secondary_yaxis("right", functions=(_over(found.diagonal), _over(1 / found.diagonal)))
    share.set_ylabel("share of the diagonal", fontsize=9.5)
    share.tick_params(labelsize=8.5)
    share.spines[:].set_visible(False)
    axes.legend(fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(-0.02, -0.13), labelcolor=ink)
    images = f"{found.images:,} image{'s' * (found.images != 1)} of {found.image[0]}×{found.image[1]} pixels"
    axes.set_title(f"How far heads look: {images}", fontsize=10.5, loc="left", pad=10)
    return figure


def _over(divisor: float) -> Any:
    return lambda value: value / divisor


def _fields(axes: Any, found: Distances, shade: str, paper: str) -> None:
    """The receptive field in pixels, beside each of its points: the line only rises, so there is room to the right and
    below it, or, where the axis is near, to the left and above. What else passes there is kept off by a rim of the
    paper's colour."""
    top = axes.get_ylim()[1]
    rim = [withStroke(linewidth=2, foreground=paper)]
    step = max(1, found.layers // 12)
    for layer in range(0, found.layers, step):
        is_low = found.field_distances[layer] < 0.06 * top
        axes.annotate(
            f"{found.fields[layer]} px", (layer, found.field_distances[layer]), textcoords="offset points",
            xytext=(0, 5) if is_low else (2, -11), ha="right" if is_low else "left",
            fontsize=7, color=shade, path_effects=rim, zorder=4,
        )  # fmt: skip
