"""The pictures of a ladder: how each rung learned, and how each does by the length of sentences.

A rung has its colour in both. The same input gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.ticker import FuncFormatter, MaxNLocator

from jumok.inspect.curve import Series, series_of, short
from jumok.inspect.drawing import Format, saved, sheet, style
from jumok.inspect.run_curves import COLOURS, QUIET, SETTLED
from jumok.ladder.results import Results

WORDS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,:-–+−()/ "
PANELS = {"bleu": "BLEU on held-out data, greedy", "loss": "loss on held-out data"}


def draw_curves(results: Results, format: Format = "svg", *, dark: bool = False) -> bytes:
    """BLEU and loss on held-out data by update; a line for each seed, a colour for each rung."""
    with style(WORDS, dark):
        figure = sheet(10.5, 4.2)
        for place, (metric, title) in enumerate(PANELS.items(), 1):
            axes = figure.add_subplot(1, 2, place)
            curves = _curves(results, metric)
            for colour, runs in zip(COLOURS, curves.items(), strict=False):
                for number, series in enumerate(runs[1]):
                    steps, values = zip(*series.finite, strict=True)
                    marker = "o" if len(steps) <= 30 else None
                    label = runs[0] if number == 0 else None
                    axes.plot(
                        steps, values, color=colour, linewidth=1.8, alpha=1.0 if number == 0 else 0.45, label=label,
                        marker=marker, markersize=3,
                    )  # fmt: skip
            _trim(axes, [series for runs in curves.values() for series in runs], metric)
            axes.set_xlim(left=0)
            axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
            axes.xaxis.set_major_formatter(FuncFormatter(lambda step, _: short(step)))
            axes.set_xlabel("update")
            axes.set_ylabel(title)
            _plain(axes, dark)
        _legend(figure)
        figure.subplots_adjust(wspace=0.28)
        return saved(figure, format)


def _curves(results: Results, metric: str) -> dict[str, list[Series]]:
    """By rung, one for each seed that has any."""
    found: dict[str, list[Series]] = {row.rung.title: [] for row in results.rows}
    for one in results.scored:
        events = [
            event
            for event in one.summary.events
            if event.get("event") == "valid" and isinstance(event.get("step"), int) and not event.get("averaged")
        ]
        series = series_of(one.attempt.rung.title, metric, events)
        if series.finite:
            found[series.name].append(series)
    return found


def _trim(axes: Any, curves: Sequence[Series], metric: str) -> None:
    """The first losses would squeeze all that matters."""
    if metric != "loss":
        axes.set_ylim(bottom=0)
        return
    settled = [value for one in curves for step, value in one.finite if step >= SETTLED * 2 * one.finite[-1][0]]
    if settled:
        room = 0.06 * (max(settled) - min(settled)) or 0.1
        axes.set_ylim(min(settled) - room, max(settled) + room)


def draw_lengths(results: Results, format: Format = "svg", *, dark: bool = False) -> bytes:
    """BLEU on the test set by the length of the source sentence (Bahdanau et al. 2015, Figure 2)."""
    with style(WORDS, dark):
        figure = sheet(10.5, 3.6)
        axes = figure.add_subplot()
        places = range(len(results.groups))
        for colour, row in zip(COLOURS, results.rows, strict=False):
            values = [group.bleu[row.rung.name] for group in results.groups]
            axes.plot(places, values, color=colour, linewidth=1.8, marker="o", markersize=4, label=row.rung.title)
        labels = [f"{group.label}\n({group.sentences:,})" for group in results.groups]
        axes.set_xticks(places, labels)
        axes.set_xlabel("words of the source sentence (and how many such sentences)")
        axes.set_ylabel("BLEU on the test set")
        axes.set_ylim(bottom=0)
        _plain(axes, dark)
        _legend(figure)
        return saved(figure, format)


def _plain(axes: Any, dark: bool) -> None:
    axes.grid(axis="y", color=QUIET[dark], alpha=0.3, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, labelsize=9)


def _legend(figure: Any) -> None:
    """One for the whole picture, above it."""
    handles, labels = figure.axes[0].get_legend_handles_labels()
    if handles:
        figure.legend(
            handles, labels, loc="lower center", bbox_to_anchor=(0.5, 0.9), ncols=len(labels), frameon=False, fontsize=9
        )
