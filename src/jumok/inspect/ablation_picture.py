"""What a model loses without each head: a grid of layers and heads, and a page with the table beside it."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize

from jumok.files import disk_errors_named, replace_file
from jumok.inspect.ablation import Ablation, Importance
from jumok.inspect.drawing import Format, ink_and_paper, saved, sheet, style
from jumok.inspect.html import document, escape
from jumok.inspect.pictures import check_picture_path

KINDS = (".png", ".svg", ".html", ".json")
ORDER = ("self", "causal", "cross")
TITLES = {
    "self": "encoder: self-attention",
    "causal": "decoder: causal self-attention",
    "cross": "decoder: attention to the source",
}
CELL = 0.62  # inches


def write_ablation(ablation: Ablation, path: Path, dark: bool = False) -> None:
    """As .png, .svg, .html or .json; the ending decides."""
    check_picture_path(path, KINDS)
    kind = path.suffix.lower()
    with disk_errors_named("writing the picture", path, "Choose another --out."):
        if kind == ".json":
            replace_file(path, json.dumps({"format": 1, **ablation.to_json()}, ensure_ascii=False, indent=1) + "\n")
        elif kind == ".html":
            replace_file(path, page(ablation))
        else:
            replace_file(path, draw(ablation, "png" if kind == ".png" else "svg", dark))


def draw(ablation: Ablation, format: Format = "png", dark: bool = False) -> bytes:
    """A panel for each kind of attention; a cell's colour and number say how much the loss rises without that head."""
    text = "0123456789.+−headlayerwhole:lossriseswithout()BLEU" + "".join(TITLES.values())
    with style(text, dark):
        return saved(_figure(ablation, dark), format)


def _figure(ablation: Ablation, dark: bool) -> Any:
    kinds = [kind for kind in ORDER if any(one.kind == kind for one in ablation.heads)]
    grids = {kind: _grid(ablation, kind) for kind in kinds}
    heights = [len(grids[kind]) * CELL for kind in kinds]
    gap = 0.8
    # at least so large that titles and legend fit beside each other
    width = max(2.9, max(len(row) for grid in grids.values() for row in grid) * CELL)
    whole = max(2.2, sum(heights) + gap * (len(kinds) - 1))
    figure = sheet(width, whole)
    most = max([one.loss_change for one in ablation.heads] + [1e-9])
    scale = Normalize(0.0, most)
    colours = matplotlib.colormaps["cividis"]
    top = whole
    for kind, height in zip(kinds, heights, strict=True):
        grid = grids[kind]
        columns = max(map(len, grid))
        axes = figure.add_axes((0, (top - height) / whole, columns * CELL / width, height / whole))
        top -= height + gap
        numbers = [[one.loss_change if one else float("nan") for one in row] for row in grid]
        axes.imshow(numbers, cmap=colours, norm=scale, aspect="auto", interpolation="nearest")
        for place, row in enumerate(grid):
            for column, one in enumerate(row):
                if one is not None:
                    light = scale(one.loss_change) > 0.55
                    ink = "#1d2129" if light else "#ffffff"
                    axes.text(column, place, _cell(one), ha="center", va="center", color=ink, fontsize=7.5)
        has_heads = any(one is not None and one.head is not None for row in grid for one in row)
        axes.set_xticks(range(columns), [f"head {n}" for n in range(columns)] if has_heads else ["whole"], fontsize=8)
        axes.set_yticks(range(len(grid)), [f"layer {n}" for n in range(len(grid))], fontsize=8)
        axes.set_title(TITLES[kind], fontsize=9.5, loc="left", pad=6)
        axes.tick_params(length=0, pad=4)
        axes.spines[:].set_visible(False)
        _, paper = ink_and_paper(dark)
        axes.set_xticks([edge - 0.5 for edge in range(1, columns)], minor=True)
        axes.set_yticks([edge - 0.5 for edge in range(1, len(grid))], minor=True)
        axes.grid(which="minor", color=paper, linewidth=1.2)
        axes.tick_params(which="minor", length=0)
    # a fixed size in inches: it is a legend, not a part of the data
    tall = 2.2
    bar = figure.add_axes((1 + 0.25 / width, 1 - tall / whole, 0.13 / width, tall / whole))
    legend = figure.colorbar(ScalarMappable(scale, colours), cax=bar)
    legend.outline.set_visible(False)
    legend.ax.tick_params(length=0, labelsize=8)
    below = "" if ablation.bleu is None else " (below: BLEU)"
    legend.set_label(f"loss rises without the head{below}", fontsize=8)
    return figure


def _grid(ablation: Ablation, kind: str) -> list[list[Importance | None]]:
    """Rows are layers, columns heads."""
    members = [one for one in ablation.heads if one.kind == kind]
    layers, heads = max(one.layer for one in members) + 1, max(one.head or 0 for one in members) + 1
    known = {(one.layer, one.head or 0): one for one in members}
    return [[known.get((layer, head)) for head in range(heads)] for layer in range(layers)]


def _cell(one: Importance) -> str:
    bleu = "" if one.bleu_change is None else f"\n({signed(one.bleu_change, 1)})"
    return f"{signed(one.loss_change, 3)}{bleu}"


def signed(number: float, digits: int) -> str:
    """With its sign, as it is printed: +0.012, −3.4."""
    return f"{number:+.{digits}f}".replace("-", "−")


def summary(ablation: Ablation) -> str:
    """What was measured, in one sentence."""
    bleu = (
        "" if ablation.bleu is None else f", BLEU {ablation.bleu:.2f} on the first {ablation.bleu_sentences} (greedy)"
    )
    instead = "nothing" if ablation.way == "zero" else "its mean output"
    return (
        f"With all heads: loss {ablation.loss:.4f} a token on {ablation.sentences} sentences{bleu}. "
        f"Below, {instead} in the place of one head at a time."
    )


def page(ablation: Ablation) -> str:
    """The grid and the table, the most important head first."""
    picture = base64.b64encode(draw(ablation, "svg")).decode()
    rows = "\n".join(
        f'<tr><th scope="row">{escape(one.name)}</th><td>{signed(one.loss_change, 4)}</td>'
        f"<td>{'' if one.bleu_change is None else signed(one.bleu_change, 2)}</td><td>{one.spread:.2f}</td></tr>"
        for one in ablation.heads
    )
    head = "".join(f'<th scope="col">{name}</th>' for name in ("without", "loss", "BLEU", "spread"))
    body = (
        f"<main>\n<h1>What each head is worth</h1>\n<p>{escape(summary(ablation))}</p>\n"
        f'<p><img alt="Loss without each head, by layer and head" src="data:image/svg+xml;base64,{picture}"></p>\n'
        '<p class="quiet">Spread: the entropy of what the head looks at, from 0 (one word) to 1 (all alike).</p>\n'
        f'<table class="list"><thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table>\n</main>'
    )
    return document("What each head is worth", body, ["page.css", "report.css"], [])
