"""All layers and heads of one kind of attention on one sheet, as PNG or SVG: small maps side by side."""

from __future__ import annotations

from typing import Any

import matplotlib
import numpy as np

from jumok.errors import BadInput
from jumok.inspect.all_heads import Kind, Place
from jumok.inspect.attention import Weights
from jumok.inspect.drawing import Format, ink_and_paper, saved, sheet, style
from jumok.inspect.figures import AXES, add_scale

FINEST = 150  # dots of a map in each direction: as many as are printed
GAP = 0.05


def draw_heads(kind: Kind, format: Format = "png", *, title: str = "", dark: bool = False) -> bytes:
    """Layers downwards, each layer's mean and its heads to the right; colours from 0 to 1 as everywhere."""
    if not kind.queries.tokens or not kind.keys.tokens:
        raise BadInput("there is no attention to draw: the sentence is empty")
    with style("".join((AXES, title, "layer head mean 0123456789.−attentionweight↓→")), dark):
        return saved(_figure(kind, title, dark), format)


def _figure(kind: Kind, title: str, dark: bool) -> Any:
    layers = sorted({place.layer for place in kind.places})
    heads: list[int | None] = [None, *range(kind.heads())]
    shape = len(kind.keys.tokens) / len(kind.queries.tokens)
    size = 1.15 if len(heads) <= 9 else 0.85  # inches of a map
    width, height = size * len(heads), size * len(layers) / min(max(shape, 0.5), 2.0)
    figure = sheet(width, height)
    axes = figure.add_axes((0, 0, 1, 1))
    _, paper = ink_and_paper(dark)
    colours = matplotlib.colormaps["cividis"].with_extremes(bad=paper)
    where = {place: number for number, place in enumerate(kind.places)}
    image = None
    for row, layer in enumerate(layers):
        for column, head in enumerate(heads):
            number = where.get(Place(layer, head))
            if number is None:
                continue
            extent = (column + GAP / 2, column + 1 - GAP / 2, row + 1 - GAP / 2, row + GAP / 2)
            image = axes.imshow(
                coarse(kind.weights[number]), cmap=colours, vmin=0.0, vmax=1.0, extent=extent, aspect="auto",
                interpolation="nearest",
            )  # fmt: skip
    axes.set_xlim(0, len(heads))
    axes.set_ylim(len(layers), 0)
    axes.xaxis.tick_top()
    names = ["mean" if head is None else str(head) for head in heads]
    axes.set_xticks([column + 0.5 for column in range(len(heads))], names, fontsize=9.5)
    axes.set_yticks([row + 0.5 for row in range(len(layers))], [str(layer) for layer in layers], fontsize=9.5)
    axes.tick_params(length=0, pad=3)
    axes.spines[:].set_visible(False)
    axes.set_ylabel("layer", fontsize=9.5)
    axes.xaxis.set_label_position("top")
    axes.set_xlabel("head", fontsize=9.5)
    axes.text(
        0.5, -0.12 / height, f"in each map: {AXES}", transform=axes.transAxes, ha="center", va="top", fontsize=9.5
    )
    add_scale(figure, image, width, height)
    if title:
        axes.set_title(title, fontsize=12, loc="left", pad=12, parse_math=False)
    return figure


def coarse(weights: Weights, finest: int = FINEST) -> Weights:
    """The largest weight of each patch, where there are more weights than dots: a sharp line stays visible."""
    for axis in (0, 1):
        length = weights.shape[axis]
        if length > finest:
            edges = np.arange(finest) * length // finest
            weights = np.maximum.reduceat(weights, edges, axis=axis)
    return weights
