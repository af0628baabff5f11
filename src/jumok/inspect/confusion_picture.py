"""What was taken for what, as a picture: gold classes downwards, predicted ones to the right, as PNG or SVG.

The colour of a cell is its share of the row, so that rare classes are seen as well as frequent ones: blue where the two
are the same, orange elsewhere. Its strength is the square root of the share: most confusions are a few percent, and
must be told apart. Up to 30 classes have their numbers written in the cells; of more the colours are left, and beside
them stand the largest confusions by name.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.colors import to_rgb
from numpy.typing import NDArray

from jumok.files import disk_errors_named, replace_file
from jumok.inspect.drawing import Format, ink_and_paper, saved, sheet, short, style
from jumok.inspect.head_sheet import coarse
from jumok.tasks.label_scores import LabelScores

MOST_NUMBERED = 30  # classes
MOST_LARGE = 12  # classes whose cells are large ones
LARGE, SMALL = 0.5, 0.36  # inches of a cell with a number
SIDE = 6.4  # inches of the whole matrix where cells have none
PITCH = 0.085  # inches that a name beside it needs; where there are more, some are left out
FINEST = 320  # dots in each direction: smaller ones would not be seen
LEAST = 0.08  # of the colour: what is there can be seen
LISTED = 24  # confusions named beside a matrix without numbers
LONGEST = 22  # characters of a class
AXES = "gold ↓ taken for →"
RIGHT, WRONG = ("#1a56b0", "#8ab4f8"), ("#b3560a", "#f5a55a")  # as on the pages, light and dark
INKS = ("#000000", "#ffffff")  # of the numbers: one of the two can be read on any ground
TICKS = (0.01, 0.1, 0.5, 1.0)  # of the legend


def write_confusion_picture(
    path: str | Path, scores: LabelScores, title: str = "", counted: str = "images", dark: bool = False
) -> None:
    """Write `x.png` or `x.svg`; the ending decides."""
    path = Path(path)
    picture = draw_confusions(scores, "svg" if path.suffix.lower() == ".svg" else "png", title, counted, dark)
    with disk_errors_named("writing the picture", path, "Choose another place."):
        replace_file(path, picture)


def draw_confusions(
    scores: LabelScores, format: Format = "png", title: str = "", counted: str = "images", dark: bool = False
) -> bytes:
    signs = "0123456789.,%kM–():→… (empty), rightshareoftherowthelargestconfusions"
    text = "".join((AXES, _told(scores, title, counted), signs, *scores.labels))
    with style(text, dark):
        return saved(_figure(scores, _told(scores, title, counted), dark), format)


def _figure(scores: LabelScores, title: str, dark: bool) -> Any:
    size = len(scores.labels)
    numbered = size <= MOST_NUMBERED
    cell = (LARGE if size <= MOST_LARGE else SMALL) if numbered else SIDE / size
    side = max(cell * size, 1.2)
    figure = sheet(side, side)
    axes = figure.add_axes((0, 0, 1, 1))
    shares = _shares(scores.confusion)
    axes.imshow(
        colours(shares, dark), extent=(-0.5, size - 0.5, size - 0.5, -0.5), aspect="auto", interpolation="nearest"
    )
    _names(axes, scores, side / size)
    _, paper = ink_and_paper(dark)
    if numbered:
        _numbers(axes, scores.confusion, cell, dark)
        axes.set_xticks([edge - 0.5 for edge in range(1, size)], minor=True)
        axes.set_yticks([edge - 0.5 for edge in range(1, size)], minor=True)
        axes.grid(which="minor", color=paper, linewidth=1.2)
    axes.tick_params(which="minor", length=0)
    axes.spines[:].set(linewidth=0.6, alpha=0.4)
    axes.set_xlabel(AXES, fontsize=9, labelpad=7)
    axes.xaxis.set_label_position("bottom")
    _legend(figure, side, dark)
    if not numbered:
        _largest(figure, scores, side, dark)
    axes.set_title(title, fontsize=10, loc="left", pad=10, linespacing=1.4, parse_math=False)
    return figure


def _told(scores: LabelScores, title: str, counted: str) -> str:
    accuracy = scores.accuracy
    told = f"{scores.count:,} {counted}, {accuracy.percent()} right ({accuracy.percent_interval()})"
    return f"{short(title, 80)}\n{told}" if title else told


def _shares(confusion: NDArray[np.int64]) -> NDArray[np.float64]:
    """Of each row; nothing where a class has no example."""
    shares: NDArray[np.float64] = confusion / np.maximum(1, confusion.sum(axis=1, keepdims=True))
    return shares


def colours(shares: NDArray[np.float64], dark: bool) -> NDArray[np.float64]:
    """(rows, columns, 3); of more classes than dots, a dot has the strongest colour of its classes."""
    own = np.eye(len(shares), dtype=bool)
    right, wrong = (coarse(np.where(which, strength(shares), 0.0).astype(np.float32), FINEST) for which in (own, ~own))
    same = (right >= wrong)[:, :, None]
    return np.where(same, _mixed(RIGHT[dark], right, dark), _mixed(WRONG[dark], wrong, dark))


def strength(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """From 0 to 1."""
    return np.where(shares > 0, LEAST + (1 - LEAST) * np.sqrt(shares), 0.0)


def _mixed(colour: str, share: NDArray[np.floating[Any]], dark: bool) -> NDArray[np.float64]:
    """(…, 3): as much of the colour on the paper."""
    paper = np.array(to_rgb(ink_and_paper(dark)[1]))
    mixed: NDArray[np.float64] = paper + (np.array(to_rgb(colour)) - paper) * share[..., None]
    return mixed


def _names(axes: Any, scores: LabelScores, pitch: float) -> None:
    """Beside each row and above each column, as far as they can be read."""
    step = max(1, math.ceil(PITCH / pitch))
    places = range(0, len(scores.labels), step)
    names = [named(scores.labels[place]) for place in places]
    points = 9.0 if pitch >= SMALL else min(8.0, max(5.0, 0.8 * 72 * pitch * step))
    upright = pitch >= SMALL and all(len(name) <= (4 if pitch >= LARGE else 2) for name in names)
    axes.xaxis.tick_top()
    axes.set_xticks(
        places, names, rotation=0 if upright else 90, ha="center", va="bottom", fontsize=points, parse_math=False
    )
    axes.set_yticks(places, names, fontsize=points, parse_math=False)
    axes.tick_params(length=0 if step == 1 else 2, pad=4 if step == 1 else 2)


def named(label: str) -> str:
    return short(label, LONGEST) or "(empty)"


def _numbers(axes: Any, confusion: NDArray[np.int64], cell: float, dark: bool) -> None:
    grounds = colours(_shares(confusion), dark)
    largest = max(len(brief(int(count))) for count in confusion.flat)
    points = min(9.0, 72 * cell * 0.85 / (0.62 * max(3, largest)))
    for (row, column), count in np.ndenumerate(confusion):
        if count:
            ground = grounds[row, column].tolist()
            ink = max(INKS, key=lambda each: contrast(to_rgb(each), ground))
            axes.text(column, row, brief(int(count)), ha="center", va="center", fontsize=points, color=ink)


def contrast(one: Sequence[float], other: Sequence[float]) -> float:
    """Of two colours, as WCAG has it: from 1 to 21."""
    dark, bright = sorted(_brightness(each) for each in (one, other))
    return (bright + 0.05) / (dark + 0.05)


def _brightness(colour: Sequence[float]) -> float:
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in colour]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def brief(count: int) -> str:
    """With at most five signs."""
    return f"{count:,}" if count < 10_000 else f"{count / 1000:.0f}k" if count < 1_000_000 else f"{count / 1e6:.1f}M"


def _legend(figure: Any, side: float, dark: bool) -> None:
    """Below the matrix: which colour means what, and which strength how much of the row."""
    steps = np.linspace(0, 1, 128)[None, :]
    left, wide, tall = 0.0, 1.5, 0.1
    for number, (colour, name) in enumerate(((RIGHT, "right"), (WRONG, "taken for another"))):
        bar = figure.add_axes((left, (-0.6 - 0.16 * number) / side, wide / side, tall / side))
        bar.imshow(_mixed(colour[dark], LEAST + (1 - LEAST) * steps, dark), aspect="auto", extent=(0, 1, 0, 1))
        bar.spines[:].set_visible(False)
        bar.set_xticks([math.sqrt(share) for share in TICKS], [])
        bar.tick_params(length=0)
        bar.set_yticks([])
        bar.text(1.07, 0.45, name, fontsize=8, va="center", transform=bar.transAxes)
    bar.set_xticks([math.sqrt(share) for share in TICKS], [f"{100 * share:.0f} %" for share in TICKS], fontsize=7)
    bar.tick_params(axis="x", length=2, pad=2)
    bar.text(1.17, -1.02, "of the row", fontsize=7, va="center", transform=bar.transAxes)


def _largest(figure: Any, scores: LabelScores, side: float, dark: bool) -> None:
    """The largest confusions, by name, to the right of the matrix."""
    found = scores.confusions()
    left, top, line = 1 + 0.35 / side, 1.0, 0.21 / side
    head = f"the largest of {len(found):,} confusions" if len(found) > LISTED else "all confusions"
    figure.text(left, top, head if found else "no confusions", fontsize=9, va="top")
    for number, one in enumerate(found[:LISTED], start=1):
        y = top - 0.06 / side - number * line
        figure.text(left + 0.42 / side, y, brief(one.count), fontsize=8.5, va="top", ha="right", color=WRONG[dark])
        told = f"{named(one.gold)} → {named(one.predicted)}"
        figure.text(left + 0.52 / side, y, told, fontsize=8.5, va="top", parse_math=False)
