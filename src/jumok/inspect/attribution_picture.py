"""Attributions side by side: what each method holds the source words to be worth, as shares of a row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize

from jumok.errors import BadInput
from jumok.files import disk_errors_named, replace_file
from jumok.inspect.attribution import Attribution
from jumok.inspect.drawing import Format, ink_and_paper, saved, sheet, short, style
from jumok.inspect.html import ATTENTION_SCRIPTS, attention_block, document, escape
from jumok.inspect.pictures import LONGEST_TABLE, check_picture_path

KINDS = (".png", ".svg", ".html", ".json")
CELL, GAP = 0.36, 0.45  # inches
LONGEST_LABEL, MOST_WORDS = 20, 60


def write_attribution(attribution: Attribution, path: Path, dark: bool = False) -> None:
    """As .png, .svg, .html or .json; the ending decides."""
    check_picture_path(path, KINDS)
    kind = path.suffix.lower()
    with disk_errors_named("writing the picture", path, "Choose another --out."):
        if kind == ".json":
            replace_file(path, attribution.to_json())
        elif kind == ".html":
            longest = max(len(attribution.source), len(attribution.target))
            if longest > LONGEST_TABLE:
                raise BadInput(
                    f"{longest} words are too many for one page (at most {LONGEST_TABLE}); write .json instead"
                )
            replace_file(path, page(attribution))
        else:
            replace_file(path, draw(attribution, "png" if kind == ".png" else "svg", dark))


def draw(attribution: Attribution, format: Format = "png", dark: bool = False) -> bytes:
    """A heat map for each method: target words downwards, source words to the right."""
    longest = max(len(attribution.source), len(attribution.target))
    if longest > MOST_WORDS:
        raise BadInput(f"{longest} words are too many for one picture (at most {MOST_WORDS}); write .html instead")
    text = "".join(("0123456789.−shareoftherow…", *attribution.methods, *attribution.source, *attribution.target))
    with style(text, dark):
        return saved(_figure(attribution, dark), format)


def _figure(attribution: Attribution, dark: bool) -> Any:
    pictures = attribution.pictures()
    rows, columns = len(attribution.target), len(attribution.source)
    panel, height = columns * CELL, rows * CELL
    width = len(pictures) * panel + (len(pictures) - 1) * GAP
    figure = sheet(width, height)
    _, paper = ink_and_paper(dark)
    for number, picture in enumerate(pictures):
        axes = figure.add_axes((number * (panel + GAP) / width, 0, panel / width, 1))
        axes.imshow(picture.weights, cmap="cividis", vmin=0.0, vmax=1.0, aspect="auto", interpolation="nearest")
        names = [short(word, LONGEST_LABEL) for word in picture.source]
        axes.xaxis.tick_top()
        axes.set_xticks(range(columns), names, rotation=55, ha="left", rotation_mode="anchor", fontsize=8.5)
        targets = [short(word, LONGEST_LABEL) for word in picture.target] if not number else [""] * rows
        axes.set_yticks(range(rows), targets, fontsize=8.5)
        for label in (*axes.get_xticklabels(), *axes.get_yticklabels()):
            label.set_parse_math(False)
        axes.tick_params(length=0, pad=4)
        axes.spines[:].set_visible(False)
        axes.set_xlabel(picture.name, fontsize=9.5, labelpad=8)
        axes.set_xticks([edge - 0.5 for edge in range(1, columns)], minor=True)
        axes.set_yticks([edge - 0.5 for edge in range(1, rows)], minor=True)
        axes.grid(which="minor", color=paper, linewidth=0.9, alpha=0.35)
        axes.tick_params(which="minor", length=0)
    tall = min(height, 2.0)
    bar = figure.add_axes((1 + 0.22 / width, 1 - tall / height, 0.12 / width, tall / height))
    legend = figure.colorbar(ScalarMappable(Normalize(0, 1), "cividis"), cax=bar, ticks=[0, 0.25, 0.5, 0.75, 1])
    legend.outline.set_visible(False)
    legend.ax.tick_params(length=0, labelsize=8)
    legend.set_label("share of the row", fontsize=8)
    return figure


def agreement_lines(attribution: Attribution) -> list[tuple[str, str, str]]:
    """(which two, Kendall's τ, Spearman's ρ), as they are printed."""
    return [
        (
            f"{one} – {other}",
            "–" if found.kendall is None else f"{found.kendall:+.2f}".replace("-", "−"),
            "–" if found.spearman is None else f"{found.spearman:+.2f}".replace("-", "−"),
        )
        for (one, other), found in attribution.agreements().items()
    ]


def page(attribution: Attribution) -> str:
    """All methods, the numbers on hover, and how far they agree."""
    rows = "\n".join(
        f'<tr><th scope="row">{escape(pair)}</th><td>{tau}</td><td>{rho}</td></tr>'
        for pair, tau, rho in agreement_lines(attribution)
    )
    head = '<th scope="col">methods</th><th scope="col">Kendall τ</th><th scope="col">Spearman ρ</th>'
    body = (
        "<main>\n<h1>Which source words the translation depends on</h1>\n"
        "<p>Each method in a picture of its own, as shares of a row. Where they disagree, attention alone is no "
        "explanation.</p>\n<h2>Do they rank the source words alike?</h2>\n"
        "<p>Means over the target words: 1 is the same order, 0 none, −1 the reverse.</p>\n"
        f'<table class="list"><thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table>\n'
        f"{attention_block(attribution.pictures())}\n</main>"
    )
    styles = ["page.css", "attention.css", "report.css"]
    return document("Attributions", body, styles, ATTENTION_SCRIPTS)
