"""The most confident mistakes on one sheet, as PNG: each image, below it what it is and what it was taken for.

A list of scores does not say whether an image is hard, its label wrong, or the model blind to something: a look does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jumok.files import disk_errors_named, replace_file
from jumok.inspect.attention import visible
from jumok.inspect.drawing import ink_and_paper, saved, sheet, short, style
from jumok.inspect.image_mistakes import LARGEST, ON_SHEET, Mistake, resized, shape_of
from jumok.tasks.label_scores import LabelScores

COLUMNS = 8
AREA = 1.28  # square root of what an image takes, in inches; its shape is its own
FLATTEST = 4.0  # how much wider than high (or the other way round) its place may be
GAP, LINE = 0.16, 0.165  # inches between two images, and for a line of text
POINTS = 8.0
LONGEST = 80  # characters of the title
SIGNS = "0123456789.,–% ()→…mostconfidentmistakesof"
GOLD, SAID = ("#1a56b0", "#8ab4f8"), ("#b3560a", "#f5a55a")  # as on the pages, light and dark


def write_contact_sheet(
    path: str | Path, mistakes: Sequence[Mistake], scores: LabelScores, title: str = "", dark: bool = False
) -> None:
    path = Path(path)
    picture = contact_sheet(mistakes, scores, title, dark)
    with disk_errors_named("writing the sheet", path, "Choose another place."):
        replace_file(path, picture)


def contact_sheet(mistakes: Sequence[Mistake], scores: LabelScores, title: str = "", dark: bool = False) -> bytes:
    """At most 48 of them, in the order given."""
    shown = mistakes[:ON_SHEET]
    title = "\n".join(line for line in (short(title, LONGEST), headline(len(shown), scores)) if line)
    with style("".join((SIGNS, title, *(one.gold + one.said for one in shown))), dark):
        return saved(_figure(shown, title, dark), "png")


def headline(shown: int, scores: LabelScores) -> str:
    wrong = scores.count - int(scores.confusion.trace())
    share = f"{scores.accuracy.percent()} right ({scores.accuracy.percent_interval()})"
    about = f"{scores.count:,} image{'s' * (scores.count != 1)}, {share}"
    if not wrong:
        return f"{about}\nno mistakes"
    if wrong == 1:
        return f"{about}\nthe only mistake"
    which = f"all {wrong:,} mistakes, the most confident first" if shown == wrong else ""
    return f"{about}\n{which or f'the {shown} most confident of {wrong:,} mistakes'}"


def _figure(mistakes: Sequence[Mistake], title: str, dark: bool) -> Any:
    shape = min(max(shape_of(mistakes), 1 / FLATTEST), FLATTEST)
    wide, tall = AREA * math.sqrt(shape), AREA / math.sqrt(shape)
    most = max(2, round(COLUMNS * AREA / wide))
    columns = max(1, min(most, math.ceil(math.sqrt(len(mistakes) * 1.4 / shape))))
    rows = math.ceil(len(mistakes) / columns)
    across, down = wide + GAP, tall + GAP + 2 * LINE
    width, height = max(columns * across - GAP, 3.2), max(rows * down - GAP, 0.01)
    figure = sheet(width, height)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    for place, mistake in enumerate(mistakes):
        row, column = divmod(place, columns)
        left, top = column * across, row * down
        _image(axes, mistake, (left, top, wide, tall))
        _words(figure, axes, mistake, (left, top + tall, wide), dark)
    axes.set_xlim(0, width)  # what was drawn has moved them
    axes.set_ylim(height, 0)
    axes.text(0, -0.14, title, fontsize=10, va="bottom", linespacing=1.4, parse_math=False)
    return figure


def _image(axes: Any, mistake: Mistake, place: tuple[float, float, float, float]) -> None:
    left, top, wide, tall = place
    pixels = resized(mistake.pixels, LARGEST)
    if pixels.shape[2] == 1:
        pixels = pixels.repeat(3, axis=2)
    height = min(tall, wide * pixels.shape[0] / pixels.shape[1])
    width = height * pixels.shape[1] / pixels.shape[0]
    x, y = left + (wide - width) / 2, top + (tall - height)
    axes.imshow(pixels, extent=(x, x + width, y + height, y), aspect="auto", interpolation="nearest")


def _words(figure: Any, axes: Any, mistake: Mistake, place: tuple[float, float, float], dark: bool) -> None:
    """Two lines, each as wide as its image: what it is; what was said, and how surely."""
    left, top, wide = place
    ink, _ = ink_and_paper(dark)
    sure = axes.text(left + wide, top + 0.05 + LINE, f" {percent(mistake.probability)}", color=ink, **_at("right"))
    room = wide - _width(figure, sure)
    _cut(figure, axes.text(left, top + 0.05, "", color=GOLD[dark], **_at("left")), visible(mistake.gold), wide)
    said = axes.text(left, top + 0.05 + LINE, "", color=SAID[dark], **_at("left"))
    _cut(figure, said, f"→ {visible(mistake.said)}", room)


def _at(side: str) -> dict[str, Any]:
    return {"ha": side, "va": "top", "fontsize": POINTS, "parse_math": False}


def percent(share: float) -> str:
    """Never 100 % of what is not quite sure."""
    return f"{100 * share:.0f} %" if share <= 0.99 else f"{math.floor(1000 * share) / 10:.1f} %"


def _cut(figure: Any, drawn: Any, text: str, room: float) -> None:
    """As much of the text as there is room for: letters of different scripts are of different widths."""
    drawn.set_text(text)
    length = len(text)
    while length > 1 and _width(figure, drawn) > room:
        length -= 1
        drawn.set_text(text[:length].rstrip() + "…")


def _width(figure: Any, drawn: Any) -> float:
    return float(drawn.get_window_extent(figure.canvas.get_renderer()).width / figure.dpi)
