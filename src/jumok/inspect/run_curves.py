"""Several runs in one picture: a colour for each, its validation with dots, its training loss thin behind it.

The same input gives the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.ticker import FuncFormatter, MaxNLocator

from jumok.errors import BadInput, Failure
from jumok.files import disk_errors_named, replace_file
from jumok.inspect.attention import visible
from jumok.inspect.curve import Series, score_name, series_of, short
from jumok.inspect.drawing import Format, saved, sheet, style
from jumok.inspect.html import document, escape, picture
from jumok.training.comparison import LOWER_IS_BETTER, Summary, best_of, differences, short_names

KINDS = (".png", ".svg", ".html")
LONGEST_NAME = 40
MOST_RUNS = 24
SETTLED = 0.05  # share of a run after which its loss is worth the room: the first values would squeeze the rest
# Okabe and Ito's colours, which can be told apart by the colour-blind too; the ninth run begins again with dashes
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d31")
DASHES: tuple[Any, ...] = ("solid", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)))
QUIET = {False: "#9aa3b0", True: "#6b7280"}  # on light and on dark paper
WORDS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,:-+−()_/…"  # what our own labels are made of


@dataclass(frozen=True)
class Curve:
    """What is drawn of a run."""

    name: str
    validation: Series
    training: Series
    best: float | None


def check_comparison_path(path: Path) -> None:
    """Refuse a name that cannot be drawn before any work is done for it."""
    if path.suffix.lower() not in KINDS:
        raise BadInput(f'--out {path}: the ending says what to draw, and "{path.suffix}" is none of {", ".join(KINDS)}')
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise BadInput(f"--out {path}: name a file in a folder that exists")


def write_comparison(summaries: Sequence[Summary], path: Path, metric: str | None = None, dark: bool = False) -> None:
    """A picture (.png, .svg) or a page with the tables too (.html); the ending decides."""
    check_comparison_path(path)
    drawn = metric or next((summary.metric for summary in summaries if summary.metric), "loss")
    curves = curves_of(summaries, drawn)
    if not curves:
        raise BadInput(f"--out {path}: none of these runs has a {drawn} to draw yet")
    if len(curves) > MOST_RUNS:
        raise BadInput(f"--out {path}: {len(curves)} curves are too many for one picture; name up to {MOST_RUNS} runs")
    content: bytes | str
    if path.suffix.lower() == ".html":
        content = page(summaries, curves, drawn)
    else:
        content = draw_runs(curves, drawn, "png" if path.suffix.lower() == ".png" else "svg", dark=dark)
    with disk_errors_named("writing the comparison", path, "Choose another --out."):
        replace_file(path, content)


def curves_of(summaries: Sequence[Summary], metric: str) -> list[Curve]:
    """Those runs that have something to draw."""
    curves = []
    for summary, name in zip(summaries, short_names([summary.path for summary in summaries]), strict=True):
        events = [event for event in summary.events if isinstance(event.get("step"), int)]
        held, learned = ([event for event in events if event.get("event") == kind] for kind in ("valid", "train"))
        # validation is not smoothed: beside it the plain loss of training is drawn, where it is known
        plain = "nll" if metric == "loss" and any("nll" in event for event in learned) else metric
        validation, training = series_of(name, metric, held), series_of(name, plain, learned)
        if validation.finite or training.finite:
            curves.append(Curve(name, validation, training, best_of(events, metric)[0]))
    return curves


def draw_runs(curves: Sequence[Curve], metric: str, format: Format = "png", *, dark: bool = False) -> bytes:
    """All curves by update, with a legend that says whose they are and how good each became."""
    with style("".join((WORDS, metric, *(curve.name for curve in curves))), dark):
        figure = sheet(9.0, 4.6)
        axes = figure.add_subplot()
        for number, curve in enumerate(curves):
            colour = COLOURS[number % len(COLOURS)]
            dashes = DASHES[number // len(COLOURS) % len(DASHES)]
            if curve.training.finite:
                axes.plot(*zip(*curve.training.finite, strict=True), color=colour, linewidth=0.9, alpha=0.4)
            points = curve.validation.finite or curve.training.finite
            marker = "o" if curve.validation.finite and len(points) <= 40 else None
            label = _short(curve.name) + ("" if curve.best is None else f"   {curve.best:.4g}")
            line = {"color": colour, "linestyle": dashes, "linewidth": 1.9, "marker": marker, "markersize": 4}
            axes.plot(*zip(*points, strict=True), label=label, **line)
        low, high = _limits(curves, metric)
        axes.set_ylim(low, high)
        axes.set_xlim(left=0)
        axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda step, _: short(step)))
        axes.set_xlabel("update")
        thin = " (thin: in training)" if any(curve.training.finite for curve in curves) else ""
        axes.set_ylabel(f"{_short(score_name(metric))} on held-out data{thin}", parse_math=False)
        axes.grid(axis="y", color=QUIET[dark], alpha=0.3, linewidth=0.8)
        axes.set_axisbelow(True)
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0, labelsize=9)
        better = "lowest" if metric in LOWER_IS_BETTER else "highest"
        legend = axes.legend(
            loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, fontsize=9, title=f"run, {better} value",
            title_fontsize=9, alignment="left", handlelength=2.6,
        )  # fmt: skip
        for text in legend.get_texts():
            text.set_parse_math(False)
        return saved(figure, format)


def _limits(curves: Sequence[Curve], metric: str) -> tuple[float, float]:
    """The range of what is worth looking at: a loss from where it has settled a little, a score from its lowest."""
    values: list[float] = []
    for curve in curves:
        for series in (curve.validation, curve.training):
            points = series.finite
            first = SETTLED * points[-1][0] if points and metric in LOWER_IS_BETTER else 0.0
            values += [value for step, value in points if step >= first]
    low, high = min(values), max(values)
    room = 0.06 * (high - low) or 0.06 * abs(high) or 1.0
    return low - room, high + room


def _short(name: str) -> str:
    """The end of a long path tells it from others."""
    text = visible(name)
    return text if len(text) <= LONGEST_NAME else "…" + text[1 - LONGEST_NAME :]


# ---------------------------------------------------------------- the page


def page(summaries: Sequence[Summary], curves: Sequence[Curve], metric: str) -> str:
    """Picture, runs and differing keys in one file that works offline."""
    names = short_names([summary.path for summary in summaries])
    sections = [f"<h1>{len(summaries)} runs</h1>", _picture(curves, metric)]
    sections += ["<h2>Runs</h2>", _rows(RUN_COLUMNS, [_run(*both) for both in zip(summaries, names, strict=True)])]
    differing = differences(summaries)
    if differing:
        readable = [name for summary, name in zip(summaries, names, strict=True) if summary.keys]
        rows = [[key, *map(_value, values)] for key, values in differing.items()]
        sections += ["<h2>They differ in</h2>", _rows(["key", *readable], rows)]
    body = "\n".join(sections)
    return document("jumok: runs", f"<main>\n{body}\n</main>", ["page.css", "report.css"], [])


RUN_COLUMNS = ["run", "state", "task", "model", "parameters", "updates", "best", "tokens/s", "minutes"]
UNBROKEN = {"state", "parameters", "updates", "tokens/s", "minutes"}  # short, and no words


def _run(summary: Summary, name: str) -> list[str]:
    if not summary.keys or summary.state == "damaged":
        return [name, summary.state, summary.problem]
    numbers = {
        "parameters": (summary.parameters, ",d"),
        "minutes": (summary.minutes, ",.1f"),
    }
    parameters, minutes = ("" if value is None else format(value, how) for value, how in numbers.values())
    best = "" if summary.best is None else f"{summary.metric} {summary.best:.4g}"
    updates = f"{summary.updates:,}/{'?' if summary.planned is None else format(summary.planned, ',d')}"
    return [name, summary.state, summary.task, summary.model, parameters, updates, best, summary.speed, minutes]


def _value(value: Any) -> str:
    return "–" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _rows(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; the last cell of a row that is shorter takes the rest of it."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in names)
    body = []
    for row in rows:
        cells = []
        for place, (name, cell) in enumerate(zip(names, row, strict=False)):
            whole = ' class="number"' if name in UNBROKEN else ""
            rest = f' colspan="{len(names) - place}"' if place == len(row) - 1 and len(row) < len(names) else ""
            cells.append(f'<td data-label="{escape(name)}"{whole}{rest}>{escape(cell)}</td>')
        body.append(f"<tr>{''.join(cells)}</tr>")
    table = "\n".join(body)
    return f'<table class="list"><thead><tr>{head}</tr></thead>\n<tbody>\n{table}\n</tbody></table>'


def _picture(curves: Sequence[Curve], metric: str) -> str:
    """An image for light pages and one for dark ones; without names where no font here can draw them."""
    try:
        light, dark = (draw_runs(curves, metric, "svg", dark=side) for side in (False, True))
    except Failure:
        numbered = [Curve(f"run {number}", c.validation, c.training, c.best) for number, c in enumerate(curves, 1)]
        light, dark = (draw_runs(numbered, metric, "svg", dark=side) for side in (False, True))
    told = f"{score_name(metric)} of {len(curves)} runs by update"
    return f'<figure class="picture">{picture(light, dark, told)}</figure>'
