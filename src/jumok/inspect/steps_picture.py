"""The steps of attention as lines in a terminal, as a picture, as a page, as JSON: the same numbers in all of them."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from rich.cells import cell_len
from rich.console import Console

from jumok.files import disk_errors_named, replace_file
from jumok.inspect.attention import visible
from jumok.inspect.drawing import Format, ink_and_paper, saved, sheet, short, style
from jumok.inspect.html import document, escape
from jumok.inspect.pictures import check_picture_path
from jumok.inspect.steps import Numbers, Step, Steps

STEP_KINDS = (".png", ".svg", ".html", ".json")
SHOWN = 8  # numbers of a vector in a line
MOST_KEYS = 40  # rows of a matrix and columns of a strip in a picture
LONGEST_LABEL = 14


def number(value: float) -> str:
    """Three digits that count, and minus signs that are some."""
    if not math.isfinite(value):
        return "−∞" if value < 0 else "?"
    size = abs(value)
    text = f"{value:.3f}" if size < 10 else f"{value:.2f}" if size < 100 else f"{value:.4g}"
    return text.replace("-", "−")


def length(values: Numbers) -> str:
    return f"‖·‖ = {number(float(np.linalg.norm(values)))}"


# ---------------------------------------------------------------- in a terminal


def show_steps(steps: Steps) -> None:
    """To the terminal, as wide as it is; what it cannot write becomes escapes."""
    console = Console()
    text = printed(steps, console.width)
    encoding = console.encoding or "utf-8"
    console.file.write(text.encode(encoding, "backslashreplace").decode(encoding))
    console.file.flush()


def printed(steps: Steps, width: int = 80) -> str:
    """Every step with its formula and its numbers; long vectors by their first numbers and their length."""
    written = " ".join(
        f"[{visible(token)}]" if place == steps.place else visible(token) for place, token in enumerate(steps.written)
    )
    lines = [visible(steps.sentence), written, visible(steps.title), ""]
    for count, step in enumerate(steps.steps, 1):
        lines.append(f"{count}  {step.symbol}   {step.name}: {step.formula}")
        lines += [f"   {line}" for line in _values(step, width - 3)]
        lines.append("")
    if steps.best and steps.steps[-1].symbol != "ŷ_t":
        lines.append("the model's prediction here: " + "  ".join(f"{visible(w)} {number(p)}" for w, p in steps.best))
    return "".join(line.rstrip() + "\n" for line in lines)


def _values(step: Step, width: int) -> Iterator[str]:
    if step.values.ndim == 2:
        labels = [short(label, LONGEST_LABEL) for label in step.labels]
        margin = max(map(cell_len, labels), default=0)
        for label, row in zip(labels, step.values, strict=True):
            yield " " * (margin - cell_len(label)) + label + "  " + _vector(row, width - margin - 2)
    elif step.labels:
        labels = [short(label, LONGEST_LABEL) for label in step.labels]
        cells = [number(float(value)) for value in step.values]
        widths = [max(cell_len(label), len(cell)) for label, cell in zip(labels, cells, strict=True)]
        for first, last in _folded(widths, width):
            yield "  ".join(" " * (w - cell_len(x)) + x for w, x in _part(widths, labels, first, last))
            yield "  ".join(" " * (w - len(x)) + x for w, x in _part(widths, cells, first, last))
    else:
        yield _vector(step.values, width - 24) + f"   ({len(step.values)} numbers, {length(step.values)})"


def _part(widths: list[int], texts: list[str], first: int, last: int) -> Iterator[tuple[int, str]]:
    return zip(widths[first:last], texts[first:last], strict=True)


def _vector(values: Numbers, width: int) -> str:
    count = max(1, min(SHOWN, (width - 2) // 8, len(values)))
    return " ".join(f"{number(float(value)):>7}" for value in values[:count]) + (" …" if count < len(values) else "")


def _folded(widths: Sequence[int], room: int) -> Iterator[tuple[int, int]]:
    """As many columns in a line as fit, at least one."""
    first, used = 0, 0
    for index, size in enumerate(widths):
        if index > first and used + size + 2 > room:
            yield first, index
            first, used = index, 0
        used += size + 2
    yield first, len(widths)


# ---------------------------------------------------------------- as a picture

LEFT, RIGHT = 3.7, 7.2  # inches: for words, for numbers
CELL = 0.62


def draw_steps(steps: Steps, format: Format = "png", dark: bool = False) -> bytes:
    """One band for each step, from the scores down to the word."""
    text = "".join((steps.sentence, steps.title, *steps.written, *(w for w, _ in steps.best), MARKS, COLOURS))
    text += "".join(label for step in steps.steps for label in (*step.labels, step.formula, step.name, step.symbol))
    with style(text, dark):
        return saved(_figure(steps, dark), format)


MARKS = "0123456789.−∞…‖·=[]keysnumbers,more→"
COLOURS = "Orange: above 0, purple: below; the darkest is the largest of its band. Weights: dark blue 0, yellow 1."


def _figure(steps: Steps, dark: bool) -> Any:
    heights, gaps = [_height(step) for step in steps.steps], [_gap(step) for step in steps.steps]
    top, bottom = 0.6, 0.5
    total = top + sum(heights) + sum(gaps) + bottom
    figure = sheet(LEFT + RIGHT, total)
    ink, _ = ink_and_paper(dark)
    quiet = "#9aa3b0" if dark else "#5c6470"
    figure.text(0, 1 - 0.12 / total, short(steps.title, 110), fontsize=13, va="top", parse_math=False)
    figure.text(0, 1 - 0.42 / total, _sentences(steps), fontsize=9.5, va="top", color=quiet, parse_math=False)
    figure.text(0, 0, COLOURS, fontsize=8, va="bottom", color=quiet)
    at = top
    for count, (step, height, gap) in enumerate(zip(steps.steps, heights, gaps, strict=True), 1):
        at += gap
        low = 1 - (at + height) / total
        middle = low + height / total
        figure.text(0, middle, f"{count}  {step.symbol}", fontsize=13, va="top", color=ink, parse_math=False)
        figure.text(0.25 / (LEFT + RIGHT), middle - 0.26 / total, step.name, fontsize=9.5, va="top", color=ink)
        for line, words in enumerate(_wrapped(step.formula)):
            place = middle - (0.46 + 0.16 * line) / total
            figure.text(0.25 / (LEFT + RIGHT), place, words, fontsize=9, va="top", color=quiet, parse_math=False)
        width = _width(step)
        axes = figure.add_axes((LEFT / (LEFT + RIGHT), low, width / (LEFT + RIGHT), height / total))
        _band(axes, step, dark)
        at += height
    return figure


def _sentences(steps: Steps) -> str:
    written = " ".join(f"[{t}]" if place == steps.place else t for place, t in enumerate(steps.written))
    return short(f"{steps.sentence}   →   {written}", 140)


def _wrapped(formula: str) -> list[str]:
    """In lines that fit beside the numbers."""
    lines = [""]
    for word in formula.split(" "):
        if lines[-1] and len(lines[-1]) + len(word) > 34:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + word
    return lines


def _height(step: Step) -> float:
    if step.values.ndim == 2:
        return max(0.8, 0.2 * min(len(step.values), MOST_KEYS))
    if step.symbol == "ŷ_t":
        return 0.26 * len(step.values)
    return 0.5 + 0.16 * (len(_wrapped(step.formula)) > 1)


def _gap(step: Step) -> float:
    """Room above a band: names of keys stand there, slanted where they are long."""
    strip = step.values.ndim == 1 and step.labels and step.symbol != "ŷ_t"
    longest = max(map(len, _labels(step)), default=0)
    return 0.45 if not strip else 0.5 + (0.045 * longest if _slanted(step) else 0.0)


def _labels(step: Step) -> list[str]:
    return [short(label, LONGEST_LABEL) for label in step.labels[:MOST_KEYS]]


def _slanted(step: Step) -> bool:
    labels = _labels(step)
    return any(len(label) > 7 for label in labels) or len(labels) > 11


def _width(step: Step) -> float:
    if step.values.ndim == 1 and step.labels and step.symbol != "ŷ_t":
        return min(RIGHT, CELL * min(len(step.values), MOST_KEYS))
    return RIGHT


def _band(axes: Any, step: Step, dark: bool) -> None:
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, pad=3)
    if step.symbol == "ŷ_t":
        _bars(axes, step, dark)
        return
    table = step.values[:MOST_KEYS] if step.labels else step.values[None]
    table = table[None] if table.ndim == 1 else table
    shown = np.where(np.isfinite(table), table, np.nan)
    largest = float(np.nanmax(np.abs(shown))) if np.isfinite(shown).any() else 1.0
    share = step.name in ("attention distribution", "attention weights")
    # weights are 0 to 1 as everywhere; other numbers have a sign, and white is 0
    _, paper = ink_and_paper(dark)
    colours = matplotlib.colormaps["cividis" if share else "PuOr_r"].with_extremes(bad=paper)
    limits = (0.0, 1.0) if share else (-(largest or 1.0), largest or 1.0)
    axes.imshow(shown, cmap=colours, vmin=limits[0], vmax=limits[1], aspect="auto", interpolation="nearest")
    labels = _labels(step)
    hidden = f" …, {len(step.labels) - len(labels)} more keys" if len(step.labels) > len(labels) else ""
    if step.values.ndim == 2:
        axes.set_yticks(range(len(labels)), labels, fontsize=8, parse_math=False)
        axes.set_xticks([])
        axes.set_xlabel(f"{step.values.shape[1]} numbers each{hidden}", fontsize=8, loc="right", labelpad=2)
    elif step.labels:
        axes.set_yticks([])
        axes.xaxis.tick_top()
        turned = {"rotation": 40, "ha": "left", "rotation_mode": "anchor"} if _slanted(step) else {}
        axes.set_xticks(range(len(labels)), labels, fontsize=8, parse_math=False, **turned)
        axes.set_xlabel(hidden, fontsize=8, loc="right")
        if len(labels) <= 24:
            for place, value in enumerate(step.values[: len(labels)].tolist()):
                dark_cell = limits[0] <= value < 0.5 * limits[1] if share else abs(value) > 0.6 * limits[1]
                colour = "#ffffff" if dark_cell and math.isfinite(value) else "#14171c"
                colour = ink_and_paper(dark)[0] if not math.isfinite(value) else colour
                size = 8 if len(labels) <= 14 else 6
                axes.text(place, 0, number(value), ha="center", va="center", fontsize=size, color=colour)
    else:
        axes.set_yticks([])
        axes.set_xticks([])
        head = "  ".join(number(value) for value in step.values[:6].tolist())
        axes.set_xlabel(f"{head} …   {len(step.values)} numbers, {length(step.values)}", fontsize=8, loc="left")


def _bars(axes: Any, step: Step, dark: bool) -> None:
    colour = "#8ab4f8" if dark else "#1a56b0"
    places = range(len(step.values))
    axes.barh(places, step.values, color=colour, height=0.7)
    axes.set_yticks(places, [short(label, LONGEST_LABEL) for label in step.labels], fontsize=9, parse_math=False)
    axes.invert_yaxis()
    axes.set_xlim(0, 1.12)
    axes.set_xticks([])
    for place, value in enumerate(step.values.tolist()):
        axes.text(value + 0.01, place, number(value), va="center", fontsize=8.5)


# ---------------------------------------------------------------- as a page, and into files


def steps_page(steps: Steps) -> str:
    """The picture and every number of it, in one file that opens without a network."""
    picture = base64.b64encode(draw_steps(steps, "svg")).decode()
    title = "Attention, step by step"
    written = " ".join(
        f"<b>{escape(token)}</b>" if place == steps.place else escape(token)
        for place, token in enumerate(steps.written)
    )
    parts = [
        f"<h1>{title}</h1>",
        f'<p>{escape(steps.title)}</p><p class="quiet">{escape(steps.sentence)} → {written}</p>',
        f'<img alt="{escape(steps.title)}" src="data:image/svg+xml;base64,{picture}">',
        *(_section(count, step) for count, step in enumerate(steps.steps, 1)),
    ]
    if steps.best:
        words = ", ".join(f"{escape(word)} {number(probability)}" for word, probability in steps.best)
        parts.append(f"<p>The model's prediction here: {words}</p>")
    return document(title, "<main>\n" + "\n".join(parts) + "\n</main>", ["page.css", "steps.css"], [])


def _section(count: int, step: Step) -> str:
    table = step.values if step.values.ndim == 2 else step.values[None]
    head, names = "", step.labels if step.values.ndim == 2 else ("",)
    if step.values.ndim == 1 and step.labels:
        head = f"<tr><th></th>{''.join(f'<th>{escape(label)}</th>' for label in step.labels)}</tr>"
    rows = "".join(
        f"<tr><th>{escape(name)}</th>{''.join(f'<td>{number(value)}</td>' for value in row)}</tr>"
        for name, row in zip(names, table.tolist(), strict=True)
    )
    return (
        f'<section class="step"><h2>{count} {escape(step.symbol)} <span>{escape(step.name)}</span></h2>'
        f'<p><code>{escape(step.formula)}</code></p><div class="wide"><table class="numbers">{head}{rows}</table></div>'
        "</section>"
    )


def write_steps(steps: Steps, path: Path, dark: bool = False) -> None:
    """Into a file of the kind that its name says: .png, .svg, .html or .json."""
    check_picture_path(path, STEP_KINDS)
    kind = path.suffix.lower()
    with disk_errors_named("writing the picture", path, "Choose another --out."):
        if kind == ".json":
            replace_file(path, json.dumps(steps.as_dictionary(), ensure_ascii=False, allow_nan=False) + "\n")
        elif kind == ".html":
            replace_file(path, steps_page(steps))
        else:
            replace_file(path, draw_steps(steps, "png" if kind == ".png" else "svg", dark))
