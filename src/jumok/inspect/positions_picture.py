"""Positions to look at: characters for the terminal, a picture (.png, .svg), a page (.html), or the numbers (.json).

Three panels for each kind: the vectors (position ↓, dimension →), how alike any two positions are, and how alike they
are by their distance, with all pairs between the palest edges. What lies beyond the length of training is marked.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from jumok.files import disk_errors_named, replace_file
from jumok.inspect.html import document, embed, escape
from jumok.inspect.pictures import check_picture_path
from jumok.inspect.positions import Floats, Positions, to_json

ROWS, BAR = 16, 30  # of the terminal's picture
BLOCKS, ASCII = " ░▒▓█", " .:*#"
FILES = (".png", ".svg", ".html", ".json")
WITHIN, BEYOND = "#0072b2", "#d55e00"
WORDS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,:;()−-+→↓…"


def write_positions(found: Sequence[Positions], path: Path, dark: bool = False) -> None:
    """Into a file; its ending decides."""
    check_picture_path(path, FILES)
    kind = path.suffix.lower()
    content: str | bytes
    if kind == ".html":
        content = page(found)
    elif kind == ".json":
        content = to_json(found)
    else:
        content = draw(found, "png" if kind == ".png" else "svg", dark=dark)
    with disk_errors_named("writing the picture", path, "Choose another --out."):
        replace_file(path, content)


# ---------------------------------------------------------------- the terminal


def show(found: Sequence[Positions], console: Console | None = None) -> None:
    console = console or Console()
    ascii_only = console.options.ascii_only
    console.file.write("\n".join(text(one, console.width, ascii_only) for one in found))
    console.file.flush()


def text(positions: Positions, width: int = 80, ascii_only: bool = False) -> str:
    """The table in shades, then bars of how alike positions are, by offset."""
    shades = ASCII if ascii_only else BLOCKS
    table = positions.table
    rows = np.unique(np.linspace(0, len(table) - 1, ROWS).round().astype(int))
    columns = np.unique(np.linspace(0, table.shape[1] - 1, max(8, min(64, width - 10))).round().astype(int))
    reach = _reach(table)
    what = "distance" if positions.kind == "relative" else "position"
    of = "heads" if positions.kind == "relative" else "dimensions"
    lines = [f"{positions.name}: {table.shape[1]} {of}, from {-reach:.2g} ({shades[1]}) to {reach:.2g} ({shades[-1]})"]
    beyond = False
    for row in rows:
        place = positions.first + int(row)
        if _unseen(positions, place) != beyond:
            beyond = not beyond
            said = f"longer than in training ({positions.trained})" if beyond else "as in training"
            lines.append(f"{'':>9}{'-' * 6 if ascii_only else '─' * 6} {said}")
        there = bool(np.isfinite(table[row, 0]))
        shown = "".join(_shade(float(value), reach, shades) for value in table[row, columns]) if there else ""
        lines.append(f"{place:>8} {shown or f'(no such {what})'}")
    lines += ["", "offset: how alike two positions are that lie so far apart (least to most)"]
    if positions.kind == "relative":
        lines[-1] = "offset: what is added to the score (least to most, mean over the heads)"
    for name, beyond in (("", False), ("beyond training", True)):
        alike = {each.offset: each for each in positions.by_offset(beyond)}
        picked = [k for k in (-64, -16, -8, -4, -2, -1, 0, 1, 2, 4, 8, 16, 32, 64, 128, 256) if k in alike]
        if name and picked and positions.trained is not None:
            lines.append(f"  {name}:")
        largest = max((abs(alike[k].mean) for k in picked), default=0.0) if positions.kind == "relative" else 1.0
        for k in picked:
            bar = shades[-1] * round(BAR * min(abs(alike[k].mean) / (largest or 1.0), 1.0))
            numbers = f"{alike[k].mean:+.3f}  ({alike[k].low:+.3f} to {alike[k].high:+.3f})"
            lines.append(f"{k:>8} {numbers} {bar if alike[k].mean >= 0 else '-' + bar}"[: max(width, 40)])
    return "\n".join(lines) + "\n"


def _unseen(positions: Positions, place: int) -> bool:
    """Whether training cannot have seen it: a position by its number, a distance in either direction."""
    distance = abs(place) if positions.kind == "relative" else place
    return positions.trained is not None and distance >= positions.trained


def _shade(value: float, reach: float, shades: str) -> str:
    share = (value / reach + 1) / 2
    return shades[1 + min(int(share * (len(shades) - 1)), len(shades) - 2)]


def _reach(values: Floats) -> float:
    """The largest number, so that colours run from minus to plus it."""
    return max(float(np.nanmax(np.abs(values))), 1e-6) if np.isfinite(values).any() else 1.0


# ---------------------------------------------------------------- PNG and SVG


def draw(found: Sequence[Positions], format: Any = "png", *, dark: bool = False) -> bytes:
    from jumok.inspect.drawing import saved, sheet, style

    with style(WORDS + "".join(one.name for one in found), dark):
        figure = sheet(12.0, 3.9 * len(found))
        panels = figure.subplots(len(found), 3, squeeze=False, width_ratios=(1, 1, 1.15))
        for row, one in zip(panels, found, strict=True):
            _row(row, one, dark)
        figure.tight_layout(w_pad=2.0, h_pad=1.8)
        return saved(figure, format)


def _row(panels: Sequence[Any], positions: Positions, dark: bool) -> None:
    from jumok.inspect.drawing import short

    vectors, alike, curve = panels
    relative, table, length = positions.kind == "relative", positions.table, positions.length
    last = positions.first + len(table) - 1
    _map(
        vectors, table, _reach(table), (-0.5, table.shape[1] - 0.5, last + 0.5, positions.first - 0.5), dark,
        "added to the score" if relative else "value",
    )  # fmt: skip
    vectors.set_title(short(positions.name, 40), fontsize=10, loc="left", parse_math=False)
    vectors.set_xlabel("head →" if relative else "dimension →")
    vectors.set_ylabel("distance, key − query ↓" if relative else "position ↓")
    reach = _reach(positions.similarity) if relative else 1.0
    legend = "added to the score, mean of heads" if relative else "cosine"
    _map(alike, positions.similarity, reach, (-0.5, length - 0.5, length - 0.5, -0.5), dark, legend)
    alike.set_title("query and key" if relative else "how alike two positions are", fontsize=10, loc="left")
    alike.set_xlabel("position of the key →" if relative else "position →")
    alike.set_ylabel("position of the query ↓" if relative else "position ↓")
    trained = positions.trained
    if trained is not None and trained < length:
        edge = trained - 0.5
        edges = [edge, -edge] if relative else [edge]  # a distance has two directions, of which some know one
        edges = [one for one in edges if positions.first - 0.5 < one < last + 0.5]
        drawn = [(alike.axhline, edge), (alike.axvline, edge), *((vectors.axhline, one) for one in edges)]
        for line, place in drawn:
            line(place, color="white", linewidth=2.2)
            line(place, color=BEYOND, linewidth=1.4, linestyle=(0, (4, 2)))
        vectors.text(
            table.shape[1] - 1, edges[0] if edges else last, f"trained on {trained} ",
            color="white", fontsize=8, ha="right", va="bottom",
            bbox={"facecolor": "#1d2129", "edgecolor": "none", "alpha": 0.75, "pad": 1.5},
        )  # fmt: skip
    if positions.reach < length:
        middle = (positions.reach + length) / 2
        vectors.text(table.shape[1] / 2, middle, "no such position", fontsize=9, ha="center", va="center")
    _curve(curve, positions)


def _map(axes: Any, values: Floats, reach: float, extent: tuple[float, ...], dark: bool, legend: str) -> None:
    import matplotlib

    from jumok.inspect.drawing import ink_and_paper

    _, paper = ink_and_paper(dark)
    colours = matplotlib.colormaps["cividis"].with_extremes(bad=paper)
    shown = axes.imshow(
        values, cmap=colours, vmin=-reach, vmax=reach, aspect="auto", interpolation="nearest", extent=extent
    )
    bar = axes.figure.colorbar(shown, ax=axes, fraction=0.05, pad=0.03)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0, labelsize=7)
    bar.set_label(legend, fontsize=8)
    axes.tick_params(labelsize=8)


def _curve(axes: Any, positions: Positions) -> None:
    known = positions.trained is not None and positions.trained < positions.length
    sides = (("positions seen in training" if known else "all pairs", False, WITHIN), ("beyond training", True, BEYOND))
    for label, beyond, colour in sides:
        alike = positions.by_offset(beyond)
        if not alike:
            continue
        offsets, means, lows, highs = zip(*alike, strict=True)
        axes.fill_between(offsets, lows, highs, color=colour, alpha=0.2, linewidth=0)
        axes.plot(
            offsets, means, color=colour, linewidth=1.5, linestyle=(0, (4, 2)) if beyond else "solid", label=label
        )
    axes.set_title("by distance: mean, and all pairs", fontsize=10, loc="left")
    relative = positions.kind == "relative"
    axes.set_xlabel("distance, key − query" if relative else "offset k of positions t and t + k")
    axes.set_ylabel("added to the score" if relative else "cosine")
    axes.grid(alpha=0.25)
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=8, frameon=False)


# ---------------------------------------------------------------- the page


def page(found: Sequence[Positions]) -> str:
    """One offline file: hover over the table or the pairs for numbers."""
    intro = (
        "<p>Left: a row is a position, a column one of its numbers. Right: how alike any two positions are (cosine; of "
        "relative positions what is added to the score). Below: the same by distance, the mean over all pairs and, "
        'pale, from the least to the most. <span class="quiet">Hover, or use the arrow keys, for numbers; click or '
        "<kbd>Enter</kbd> to pin one.</span></p>"
    )
    noscript = "<noscript><p>The pictures are drawn by a script inside this file; please allow it.</p></noscript>"
    sections = [
        f'<section class="positions" data-index="{index}"><h2>{escape(one.name)}</h2>{_told(one)}</section>'
        for index, one in enumerate(found)
    ]
    data = embed("positions-data", [_for_script(one) for one in found])
    body = "\n".join(["<main>", "<h1>Positions</h1>", intro, noscript, *sections, data, "</main>"])
    return document("Positions", body, ["page.css", "positions.css"], ["cividis.js", "positions.js"])


def _told(positions: Positions) -> str:
    told = f"{positions.length} positions"
    if positions.trained is not None and positions.trained < positions.length:
        told += f"; training saw {positions.trained} at most, the rest is marked"
    if positions.reach < positions.length:
        told += f"; there are {positions.reach} and no more"
    return f'<p class="quiet">{told}.</p>'


def _for_script(positions: Positions) -> dict[str, Any]:
    relative = positions.kind == "relative"
    return {
        "relative": relative,
        "trained": positions.trained,
        "first": positions.first,
        "table": _packed(positions.table, _reach(positions.table)),
        "pairs": _packed(positions.similarity, _reach(positions.similarity) if relative else 1.0),
        "alike": [
            [[a.offset, *(round(value, 5) for value in a[1:])] for a in positions.by_offset(beyond)]
            for beyond in (False, True)
        ],
    }


def _packed(values: Floats, reach: float) -> dict[str, Any]:
    """A byte for each number, 0 for one that is not there: finer than colours show, and the page says how fine."""
    scaled = np.rint((values.astype(np.float64) / reach + 1) / 2 * 254) + 1
    bytes_ = np.where(np.isfinite(values), np.clip(scaled, 1, 255), 0).astype(np.uint8)
    content = base64.b64encode(bytes_.tobytes()).decode()
    return {"reach": reach, "rows": values.shape[0], "columns": values.shape[1], "bytes": content}
