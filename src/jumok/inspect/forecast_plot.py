"""A forecast as a picture: what was known, what the model says comes next, and what the naive guesses say.

The same input gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib.dates
import numpy as np
from matplotlib.ticker import MaxNLocator

from jumok.data.series_time import moments
from jumok.errors import BadInput
from jumok.files import disk_errors_named, replace_file
from jumok.inspect.drawing import Format, ink_and_paper, saved, sheet, short, style
from jumok.tasks.forecast_scores import ForecastScores
from jumok.tasks.series_forecaster import Outlook

date_axis: Any = matplotlib.dates  # it has no types
PICTURES, TEXTS = (".png", ".svg"), (".csv", ".json")

MOST_SHOWN = 400  # values of the history; more would be a smear
LONGEST_NAME = 60
WORDS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,:-+−×…"  # what our own labels are made of
# quiet, model, and the naive ones; told apart by their dashes too
LIGHT = ("#9aa3b0", "#1a56b0", ("#b3560a", "#6b7280"))
DARK = ("#6b7280", "#8ab4f8", ("#f5a55a", "#9aa3b0"))
DASHES = ((0, (5, 2)), (0, (1.5, 1.5)))


def check_forecast_path(path: Path) -> None:
    """Refuse a name that nothing can be written to before any work is done for it."""
    if path.suffix.lower() not in PICTURES + TEXTS:
        known = ", ".join(PICTURES + TEXTS)
        raise BadInput(f'--out {path}: the ending says what to write, and "{path.suffix}" is none of {known}')
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise BadInput(f"--out {path}: name a file in a folder that exists")


def write_forecast(outlook: Outlook, path: Path, *, history: int | None = None, dark: bool = False) -> None:
    """A picture (.png, .svg) or the numbers (.csv, .json); the ending decides."""
    check_forecast_path(path)
    kind = path.suffix.lower()
    content: bytes | str
    if kind in TEXTS:
        content = outlook.to_csv() if kind == ".csv" else outlook.to_json() + "\n"
    else:
        content = draw_forecast(outlook, "png" if kind == ".png" else "svg", history=history, dark=dark)
    with disk_errors_named("writing the forecast", path, "Choose another --out."):
        replace_file(path, content)


def draw_forecast(
    outlook: Outlook, format: Format = "png", *, history: int | None = None, dark: bool = False, title: str = ""
) -> bytes:
    """The end of the history and the forecast after it; the truth too, where it is known."""
    (ink, _), (quiet, accent, others) = ink_and_paper(dark), DARK if dark else LIGHT
    shown = min(len(outlook.history), history or _history(outlook))
    known, steps = outlook.history[-shown:], len(outlook.forecast)
    past, future, dated = _places(outlook, shown)
    with style(f"{outlook.name}{title}{WORDS}", dark):
        figure = sheet(9.0, 3.9)
        axes: Any = figure.add_subplot()
        axes.axvspan(past[-1], future[-1], color=accent, alpha=0.06, linewidth=0)
        axes.plot(past, known, color=ink, linewidth=1.4, label="known")
        # every line begins at the last known value, so that the eye can follow
        after = np.concatenate((past[-1:], future))

        def follow(values: Any, **look: Any) -> None:
            axes.plot(after, np.concatenate((known[-1:], values)), **look)

        for (name, values), colour, dashes in zip(
            outlook.naive.items(), reversed(others), reversed(DASHES), strict=False
        ):
            follow(values, color=colour, linewidth=1.3, linestyle=dashes, label=name)
        if outlook.truth is not None:
            follow(outlook.truth, color=ink, linewidth=1.4)
        marker = {"marker": "o", "markersize": 3.5} if steps <= 40 else {}
        follow(outlook.forecast, color=accent, linewidth=2.2, label="forecast", markevery=slice(1, None), **marker)
        axes.set_ylabel(short(outlook.name, LONGEST_NAME), parse_math=False)
        if dated:
            locator = date_axis.AutoDateLocator(minticks=4, maxticks=8)
            axes.xaxis.set_major_locator(locator)
            axes.xaxis.set_major_formatter(date_axis.ConciseDateFormatter(locator))
        else:
            axes.set_xlabel("value number" if not outlook.times or not outlook.future_times else "time")
        axes.margins(x=0.01)
        _finish(axes, quiet, title)
        axes.legend(loc="upper left", ncols=4, frameon=False, fontsize=9, bbox_to_anchor=(0, 1.12), borderaxespad=0)
        return saved(figure, format)


def draw_errors(scores: ForecastScores, format: Format = "png", *, dark: bool = False) -> bytes:
    """The mean absolute error of each step ahead, of the model and of the naive forecasts."""
    quiet, accent, others = DARK if dark else LIGHT
    steps = np.arange(1, scores.horizon + 1)
    looks = [(accent, "solid", 2.2), *zip(reversed(others), reversed(DASHES), (1.4, 1.4), strict=True)]
    with style(f"{scores.series}{WORDS}", dark):
        figure = sheet(9.0, 2.8)
        axes: Any = figure.add_subplot()
        for method, (colour, dashes, width) in zip(scores.methods, looks, strict=False):
            marker = "o" if scores.horizon == 1 else None
            label = "forecast" if method.name == "model" else method.name
            line = {"color": colour, "linestyle": dashes, "linewidth": width, "marker": marker}
            axes.plot(steps, method.mae_by_step, label=label, **line)
        axes.set_ylim(bottom=0)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel("steps ahead")
        axes.set_ylabel("mean absolute error")
        _finish(axes, quiet, "")
        axes.legend(loc="upper left", ncols=3, frameon=False, fontsize=9, bbox_to_anchor=(0, 1.16), borderaxespad=0)
        return saved(figure, format)


def _history(outlook: Outlook) -> int:
    """Enough to see the season and to give the forecast a fifth of the picture, about."""
    return min(max(4 * outlook.season, 4 * len(outlook.forecast), 40), max(MOST_SHOWN, 2 * len(outlook.forecast)))


def _places(outlook: Outlook, shown: int) -> tuple[Any, Any, bool]:
    """Where the values stand on the axis, and whether these are dates: by their times, else by their number."""
    times: Sequence[str] = [*outlook.times[-shown:], *outlook.future_times]
    known = moments(times) if outlook.times and outlook.future_times else None
    if known is None:
        count = len(outlook.history)
        whole = np.arange(count - shown + 1, count + len(outlook.forecast) + 1, dtype=np.float64)
        return whole[:shown], whole[shown:], False
    dated = not isinstance(known[0], float)
    places = np.asarray(date_axis.date2num(known) if dated else known, dtype=np.float64)
    return places[:shown], places[shown:], dated


def _finish(axes: Any, quiet: str, title: str) -> None:
    axes.grid(axis="y", color=quiet, alpha=0.3, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, labelsize=9)
    if title:
        axes.set_title(short(title, LONGEST_NAME), fontsize=11, loc="right", pad=10, parse_math=False)
