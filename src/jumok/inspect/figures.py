"""Attention as a picture: a heat map, as PNG or SVG.

Colours are cividis (readable for colour-blind people and in grey) and always mean the same, 0 to 1. The same input
gives the same bytes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

from jumok.errors import BadInput
from jumok.files import disk_errors_named, replace_file
from jumok.inspect.attention import Attention, visible
from jumok.inspect.drawing import Format, ink_and_paper, saved, sheet, short, style

AXES = "query ↓ looks at key →"
LONGEST_LABEL = 24
MOST_TOKENS = 250  # beyond this no cell could be told from the next


def draw(attention: Attention, format: Format = "png", *, title: str = "", dark: bool = False) -> bytes:
    """The heat map of one sentence: target tokens downwards, source tokens to the right."""
    if not attention.source or not attention.target:
        raise BadInput("there is no attention to draw: the sentence is empty")
    longest = max(len(attention.source), len(attention.target))
    if longest > MOST_TOKENS:
        raise BadInput(f"{longest} tokens are too many for one picture (at most {MOST_TOKENS}); write .html instead")
    text = "".join((AXES, title, "0123456789.−attentionweight…", *attention.source, *attention.target))
    with style(text, dark):
        return saved(heat_map(attention, title, dark), format)


def write_figure(path: str | Path, attention: Attention, *, title: str = "", dark: bool = False) -> None:
    """Write `x.png` or `x.svg`; the ending decides."""
    path = Path(path)
    kind = path.suffix.lower().removeprefix(".")
    if kind not in ("png", "svg"):
        raise BadInput(f'{path}: pictures are written as .png or .svg, not "{path.suffix}"')
    picture = draw(attention, "png" if kind == "png" else "svg", title=title, dark=dark)
    with disk_errors_named("writing the picture", path, "Choose another place."):
        replace_file(path, picture)


def heat_map(attention: Attention, title: str, dark: bool) -> Any:
    rows, columns = attention.weights.shape
    cell = 0.42 if max(rows, columns) <= 16 else 0.32  # inches
    width, height = max(columns * cell, 1.7), max(rows * cell, 1.3)
    figure = sheet(width, height)
    axes = figure.add_axes((0, 0, 1, 1))
    _, paper = ink_and_paper(dark)
    colours = matplotlib.colormaps["cividis"].with_extremes(bad=paper)
    image = axes.imshow(attention.weights, cmap=colours, vmin=0.0, vmax=1.0, aspect="auto", interpolation="nearest")
    size = 11 if cell > 0.4 else 9.5
    axes.xaxis.tick_top()
    upright = all(len(label(token)) <= 3 for token in attention.source)
    axes.set_xticks(
        range(columns),
        [label(token) for token in attention.source],
        rotation=0 if upright else 55,
        ha="center" if upright else "left",
        rotation_mode="anchor",
        fontsize=size,
        parse_math=False,
    )
    axes.set_yticks(range(rows), [label(token) for token in attention.target], fontsize=size, parse_math=False)
    axes.tick_params(length=0, pad=5)
    axes.spines[:].set_visible(False)
    axes.set_xticks([edge - 0.5 for edge in range(1, columns)], minor=True)
    axes.set_yticks([edge - 0.5 for edge in range(1, rows)], minor=True)
    axes.grid(which="minor", color=paper, linewidth=1.0, alpha=0.35)
    axes.tick_params(which="minor", length=0)
    add_scale(figure, image, width, height)
    axes.set_xlabel(AXES, fontsize=9.5, labelpad=8)
    if title:
        axes.set_title(visible(title), fontsize=12, loc="left", pad=12, parse_math=False)
    return figure


def add_scale(figure: Any, image: Any, width: float, height: float) -> None:
    """The bar beside a picture of this size. Its own size is fixed, in inches: it is a legend, not part of the data."""
    tall = min(height, 2.2)
    bar = figure.add_axes((1 + 0.22 / width, 1 - tall / height, 0.13 / width, tall / height))
    legend = figure.colorbar(image, cax=bar, ticks=[0, 0.25, 0.5, 0.75, 1])
    legend.outline.set_visible(False)
    legend.ax.tick_params(length=0, labelsize=9)
    legend.set_label("attention weight", fontsize=9)


def label(token: str, longest: int = LONGEST_LABEL) -> str:
    """A token as it stands beside a map; blanks can be seen."""
    text = short(token, longest)
    return text if text.strip() else "␣" * max(1, len(text))
