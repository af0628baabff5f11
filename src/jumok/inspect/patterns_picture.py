"""What heads look at, as a picture: for each pattern a small map of layers and heads, all in the same colours.

A frame marks the heads that are named after the pattern (inspect/patterns.py says when). Above each map stands what a
head would have that looks everywhere alike.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.patches import Rectangle

from jumok.files import disk_errors_named, replace_file
from jumok.inspect.drawing import Format, ink_and_paper, saved, sheet, style
from jumok.inspect.patterns import PATTERNS, Patterns
from jumok.inspect.pictures import check_picture_path

KINDS = (".png", ".svg", ".json")
TITLES = {
    "next": "the next token",
    "previous": "the previous token",
    "self": "itself",
    "first": "the first token, [CLS]",
    "separators": "separators, [SEP]",
    "same": "the same word elsewhere",
    "rest": "the rest",
}
SPREAD = "how widely (entropy)"
COLUMNS = 4
CELL, SMALL_CELL, MOST_NUMBERED = 0.46, 0.2, 8  # inches; with more heads or layers cells have no numbers
NARROWEST = 1.9  # inches that a title needs
FRAME = "#e4572e"


def draw(patterns: Patterns, path: str | Path, dark: bool = False) -> None:
    """Written as .png, .svg or .json; the ending decides."""
    path = Path(path)
    check_picture_path(path, KINDS)
    kind = path.suffix.lower()
    with disk_errors_named("writing the picture", path, "Choose another --out."):
        if kind == ".json":
            replace_file(path, json.dumps(patterns.to_json(), ensure_ascii=False, indent=1) + "\n")
        else:
            replace_file(path, picture(patterns, "png" if kind == ".png" else "svg", dark))


def picture(patterns: Patterns, format: Format = "png", dark: bool = False) -> bytes:
    text = (
        "0123456789.–:;,()attentionweightuniformnotokenhassuchplaceframeheadlayer" + "".join(TITLES.values()) + SPREAD
    )
    with style(text, dark):
        return saved(_figure(patterns, dark), format)


def _figure(patterns: Patterns, dark: bool) -> Any:
    layers = sorted({one.layer for one in patterns.heads})
    heads = max(one.head for one in patterns.heads) + 1
    numbered = max(heads, len(layers)) <= MOST_NUMBERED
    cell = CELL if numbered else SMALL_CELL
    wide, tall = heads * cell, len(layers) * cell
    across, down = max(wide, NARROWEST) + 0.45, tall + 0.85  # from one map to the next
    width, height = COLUMNS * across - 0.45, 2 * down - 0.85
    figure = sheet(width, height)
    image = None
    for number, pattern in enumerate((*PATTERNS, SPREAD)):
        row, column = divmod(number, COLUMNS)
        box = column * across / width, 1 - (row * down + tall) / height, wide / width, tall / height
        axes = figure.add_axes(box)
        values = _values(patterns, pattern, layers, heads)
        image = _map(axes, values, numbered, dark)
        axes.set_title(_title(patterns, pattern), fontsize=8.5, loc="left", pad=5, linespacing=1.35)
        _frame(axes, patterns, pattern, layers)
        step = 1 if numbered else 2
        axes.set_xticks(range(0, heads, step), [str(head) for head in range(0, heads, step)], fontsize=7)
        axes.set_yticks(range(0, len(layers), step), [str(layer) for layer in layers[::step]], fontsize=7)
        if column == 0:
            axes.set_ylabel("layer", fontsize=8)
        if row == 1:
            axes.set_xlabel("head", fontsize=8)
    _legend(figure, image, width, height)
    return figure


def _values(patterns: Patterns, pattern: str, layers: list[int], heads: int) -> list[list[float]]:
    """Rows are layers, columns heads; not a number where nothing was measured."""
    nothing = float("nan")
    known = {(one.layer, one.head): one.spread if pattern == SPREAD else one.weights[pattern] for one in patterns.heads}
    found = [[known.get((layer, head)) for head in range(heads)] for layer in layers]
    return [[nothing if value is None else value for value in row] for row in found]


def _map(axes: Any, values: list[list[float]], numbered: bool, dark: bool) -> Any:
    _, paper = ink_and_paper(dark)
    colours = matplotlib.colormaps["cividis"].with_extremes(bad=paper)
    image = axes.imshow(values, cmap=colours, vmin=0.0, vmax=1.0, aspect="auto", interpolation="nearest")
    for row, line in enumerate(values if numbered else []):
        for column, value in enumerate(line):
            ink = "#1d2129" if value > 0.55 else "#ffffff"
            if value == value:  # a number
                axes.text(column, row, f"{value:.2f}", ha="center", va="center", color=ink, fontsize=7)
    axes.tick_params(length=0, pad=3)
    axes.spines[:].set_visible(False)
    axes.set_xticks([edge - 0.5 for edge in range(1, len(values[0]))], minor=True)
    axes.set_yticks([edge - 0.5 for edge in range(1, len(values))], minor=True)
    axes.grid(which="minor", color=paper, linewidth=1.0 if numbered else 0.5)
    axes.tick_params(which="minor", length=0)
    return image


def _title(patterns: Patterns, pattern: str) -> str:
    if pattern == SPREAD:
        return f"{SPREAD}\nuniform: 1.00"
    uniform = patterns.uniform[pattern]
    return f"{TITLES[pattern]}\n" + ("no token has one" if uniform is None else f"uniform: {uniform:.2f}")


def _frame(axes: Any, patterns: Patterns, pattern: str, layers: list[int]) -> None:
    """Around the heads that are named after the pattern, inside their cells so that neighbours can be told apart."""
    for one in patterns.heads:
        if one.name == pattern:
            corner = one.head - 0.43, layers.index(one.layer) - 0.43
            axes.add_patch(Rectangle(corner, 0.86, 0.86, fill=False, edgecolor=FRAME, linewidth=1.5))


def _legend(figure: Any, image: Any, width: float, height: float) -> None:
    """A fixed size in inches: it is a legend, not a part of the data."""
    tall = min(height, 2.2)
    bar = figure.add_axes((1 + 0.25 / width, 1 - tall / height, 0.13 / width, tall / height))
    legend = figure.colorbar(image, cax=bar, ticks=[0, 0.25, 0.5, 0.75, 1])
    legend.outline.set_visible(False)
    legend.ax.tick_params(length=0, labelsize=8)
    legend.set_label("mean attention weight", fontsize=8)
    told = "framed: heads that are named after the pattern.  uniform: what a head has that looks everywhere alike."
    figure.text(0.0, -0.5 / height, told, fontsize=8, ha="left", va="top")
