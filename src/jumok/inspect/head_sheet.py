"""All layers and heads of one kind of attention on one sheet, as PNG or SVG: small maps side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np

from jumok.errors import BadInput
from jumok.inspect.all_heads import Kind, Place
from jumok.inspect.attention import Weights
from jumok.inspect.drawing import Format, ink_and_paper, saved, sheet, style
from jumok.inspect.figures import AXES, add_scale, label

FINEST = 150  # dots of a map in each direction: as many as are printed
GAP = 0.05  # between two maps, as a share of one
PITCH = 0.105  # inches that a word needs: smaller ones cannot be read
LARGEST_MAP, LARGEST_SHEET = 2.2, 20.0  # inches; what needs more has no words beside it
LONGEST_WORD, LONGEST_NAMED = 16, 10  # characters, beside a map and in the title
POINTS = 72  # of an inch
SMALL = 9.5


def draw_heads(kind: Kind, format: Format = "png", *, title: str = "", dark: bool = False) -> bytes:
    """Layers downwards, each layer's mean and its heads to the right; colours from 0 to 1 as everywhere.

    Where they can be read, the words stand to the left of each layer and below each column of heads; else the title
    names the first and the last of them.
    """
    if not kind.queries.tokens or not kind.keys.tokens:
        raise BadInput("there is no attention to draw: the sentence is empty")
    size = map_size(kind)
    drawn = [*kind.queries.tokens, *kind.keys.tokens] if size else [_span(kind.queries.tokens, kind.keys.tokens)]
    with style("".join((AXES, title, "layer head mean 0123456789.−attentionweight↓→…␣", *drawn)), dark):
        return saved(_figure(kind, size, title, dark), format)


def map_size(kind: Kind) -> float | None:
    """How many inches wide a map is whose words can be read; None where such maps are too large."""
    queries, keys = len(kind.queries.tokens), len(kind.keys.tokens)
    size = max(_plain_size(kind), PITCH / (1 - GAP) * max(keys, queries * _shape(kind)))
    height = size / _shape(kind)
    whole = size * (kind.heads() + 1), height * len({place.layer for place in kind.places})
    return size if max(size, height) <= LARGEST_MAP and max(whole) <= LARGEST_SHEET else None


def _plain_size(kind: Kind) -> float:
    return 1.15 if kind.heads() <= 8 else 0.85


def _shape(kind: Kind) -> float:
    """How wide a map is for its height."""
    return min(max(len(kind.keys.tokens) / len(kind.queries.tokens), 0.5), 2.0)


def _span(queries: Sequence[str], keys: Sequence[str]) -> str:
    """What rows and columns are, by their first and last word."""
    rows, columns = (
        " … ".join(dict.fromkeys(label(token, LONGEST_NAMED) for token in (side[0], side[-1])))
        for side in (queries, keys)
    )
    return f"query ↓ ({rows}) looks at key → ({columns})"


def _figure(kind: Kind, size: float | None, title: str, dark: bool) -> Any:
    layers = sorted({place.layer for place in kind.places})
    heads: list[int | None] = [None, *range(kind.heads())]
    inches = size or _plain_size(kind)
    width, height = inches * len(heads), inches * len(layers) / _shape(kind)
    figure = sheet(width, height)
    axes = figure.add_axes((0, 0, 1, 1))
    image = _maps(axes, kind, layers, heads, dark)
    axes.set_xlim(0, len(heads))
    axes.set_ylim(len(layers), 0)
    axes.tick_params(length=0, pad=3)
    axes.tick_params(which="minor", length=0, pad=3)
    axes.tick_params(axis="x", labeltop=True, labelbottom=False)
    names = ["mean" if head is None else str(head) for head in heads]
    axes.set_xticks([column + 0.5 for column in range(len(heads))], names, fontsize=SMALL)
    axes.set_yticks([row + 0.5 for row in range(len(layers))], [str(layer) for layer in layers], fontsize=SMALL)
    axes.spines[:].set_visible(False)
    axes.set_ylabel("layer", fontsize=SMALL)
    axes.xaxis.set_label_position("top")
    axes.set_xlabel("head", fontsize=SMALL)
    below = 0.12 + (_add_words(figure, axes, kind, len(layers), len(heads)) if size else 0.0)
    axes.text(
        0.5, -below / height, f"in each map: {AXES}", transform=axes.transAxes, ha="center", va="top", fontsize=SMALL
    )
    add_scale(figure, image, width, height)
    _add_title(figure, axes, title, "" if size else _span(kind.queries.tokens, kind.keys.tokens), width)
    return figure


def _maps(axes: Any, kind: Kind, layers: Sequence[int], heads: Sequence[int | None], dark: bool) -> Any:
    """All maps in their places; the last one's image, for the scale."""
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
    return image


def _add_words(figure: Any, axes: Any, kind: Kind, layers: int, heads: int) -> float:
    """Queries to the left of each layer, keys below each column of heads, as minor ticks: layers and heads are the
    major ones. How many inches the keys take."""
    for axis, side, count, inches in (
        (axes.yaxis, kind.queries.tokens, layers, figure.get_figheight()),
        (axes.xaxis, kind.keys.tokens, heads, figure.get_figwidth()),
    ):
        step = (1 - GAP) / len(side)
        places = [number + GAP / 2 + (place + 0.5) * step for number in range(count) for place in range(len(side))]
        words = [label(token, LONGEST_WORD) for token in side] * count
        points = min(0.82 * POINTS * inches / count * step, 8.5)
        axis.remove_overlapping_locs = False  # the word in the middle stands where the layer's number stands
        axis.set_ticks(places, words, minor=True, fontsize=points, parse_math=False)
    axes.tick_params(axis="x", which="minor", labeltop=False, labelbottom=True, labelrotation=90)
    renderer = figure.canvas.get_renderer()
    left = max(one.get_window_extent(renderer).width for one in axes.get_yticklabels(minor=True))
    down = max(one.get_window_extent(renderer).height for one in axes.get_xticklabels(minor=True))
    axes.tick_params(axis="y", which="major", pad=3 + left * POINTS / figure.dpi + 7)
    return float(down / figure.dpi)


def _add_title(figure: Any, axes: Any, title: str, span: str, width: float) -> None:
    """With what rows and columns are in a line of its own, where it is no wider than the sheet and its scale."""
    lines = [line for line in (title, span) if line]
    drawn = axes.set_title("\n".join(lines), fontsize=12 if not span else 10.5, loc="left", pad=12, parse_math=False)
    if span and drawn.get_window_extent(figure.canvas.get_renderer()).width / figure.dpi > width + 0.8:
        drawn.set_text(title)


def coarse(weights: Weights, finest: int = FINEST) -> Weights:
    """The largest weight of each patch, where there are more weights than dots: a sharp line stays visible."""
    for axis in (0, 1):
        length = weights.shape[axis]
        if length > finest:
            edges = np.arange(finest) * length // finest
            weights = np.maximum.reduceat(weights, edges, axis=axis)
    return weights
