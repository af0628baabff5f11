"""The architecture as a drawing: boxes from the input upwards, as the papers draw them; PNG and SVG by matplotlib.

`laid_out` decides where everything is, in inches; who draws it (here matplotlib, architecture_page.py the browser)
only draws.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from typing import Any

from matplotlib.patches import Circle, FancyBboxPatch

from jumok.inspect.architecture import Architecture, Column, Part
from jumok.inspect.drawing import Format, ink_and_paper, saved, sheet, style

WIDTH = 3.5  # of a box
LINE, PAD = 0.17, 0.11  # of small text; above and below it
GAP, INNER_GAP = 0.36, 0.17
LETTERS = 50  # of small text in a box
SIDE, LANE, LABEL = 0.5, 0.26, 17  # room around a block; between two ways; letters of a way's name
NARROW = {"norm": 0.27, "add": 0.24}

Point = tuple[float, float]


@dataclass(frozen=True)
class Box:
    x: float
    y: float
    width: float
    height: float
    part: Part

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


@dataclass(frozen=True)
class Way:
    """A line through these points with an arrow at its end; `kind` "flow", "residual", "link" or "back"."""

    points: tuple[Point, ...]
    kind: str = "flow"
    arrow: bool = True


@dataclass(frozen=True)
class Word:
    x: float
    y: float
    text: str
    size: float = 8.0
    place: str = "left"  # left, center or right of the text is at x; its middle at y
    quiet: bool = True


@dataclass
class Plan:
    width: float = 0.0
    height: float = 0.0
    boxes: list[Box] = field(default_factory=list)
    frames: list[Box] = field(default_factory=list)
    ways: list[Way] = field(default_factory=list)
    words: list[Word] = field(default_factory=list)

    def box_of(self, part: Part) -> Box:
        return next(box for box in (*self.boxes, *self.frames) if box.part is part)


def laid_out(described: Architecture) -> Plan:
    plan = Plan()
    between = SIDE * 2 + 1.75
    lefts = [0.75 + number * (WIDTH + between) for number in range(len(described.columns))]
    tops = [_column(plan, column, left) for column, left in zip(described.columns, lefts, strict=True)]
    _links(plan, described, lefts)
    right = max(
        [left + WIDTH + SIDE for left in lefts]
        + [word.x + 0.075 * len(word.text) for word in plan.words if word.place == "left"]
    )
    plan.width, plan.height = right + 0.3, max(tops) + 0.75
    plan.words.append(Word(0.2, plan.height - 0.2, described.title, 12, quiet=False))
    plan.words.append(Word(0.2, plan.height - 0.45, f"{described.parameters:,} parameters", 9.5))
    for number, note in enumerate((*described.symbols, *described.notes)):
        plan.words.append(Word(0.2, -0.2 - 0.19 * number, note))
    return plan


# ---------------------------------------------------------------- columns


def _column(plan: Plan, column: Column, left: float) -> float:
    """Lay a column out from the bottom; its upper end."""
    middle = left + WIDTH / 2
    plan.words.append(Word(middle, 0.1, f"{column.name}: {column.input}   {column.shape}", 9, "center", quiet=False))
    y, below = 0.55, 0.24
    for part in column.parts:
        plan.ways.append(Way(((middle, below), (middle, y)), arrow=not part.parts))
        top = _block(plan, part, left, y) if part.parts else _box(plan, part, left, y)
        if part.shape:
            plan.words.append(Word(middle + 0.1, top + GAP / 2 + 0.02, part.shape))
        y, below = top + GAP, top
    if column.output:
        plan.ways.append(Way(((middle, below), (middle, below + GAP))))
        plan.words.append(Word(middle, below + GAP + 0.16, column.output, 9, "center", quiet=False))
    return below + 0.65


def about_lines(part: Part) -> list[str]:
    """What stands below its name; an arrow stays with the numbers beside it."""
    return textwrap.wrap(part.about.replace(" → ", "\u00a0→\u00a0"), LETTERS)


def _box(plan: Plan, part: Part, left: float, y: float) -> float:
    lines = about_lines(part)
    height = NARROW.get(part.kind, 2 * PAD + 0.2 + LINE * len(lines))
    plan.boxes.append(Box(left, y, WIDTH, height, part))
    if part.kind == "recurrent":  # what it says goes into its next step; where ways come from the left, on the right
        first = all(box.x >= left for box in plan.boxes)
        edge, out = (left, left - 0.17) if first else (left + WIDTH, left + WIDTH + 0.17)
        high, low = (y + height * share for share in ((0.75, 0.25) if first else (0.88, 0.58)))
        plan.ways.append(Way(((edge, high), (out, high), (out, low), (edge, low)), "back"))
    return y + height


def _block(plan: Plan, part: Part, left: float, y: float) -> float:
    """Parts within a frame; or, where what goes in also goes around, without one."""
    middle, start = left + WIDTH / 2, y
    y += 0 if part.residual else 0.2
    below, add = y - (GAP if part.residual else 0), None
    for number, inner in enumerate(part.parts):
        if number or part.residual:
            plan.ways.append(Way(((middle, below if number else start - INNER_GAP), (middle, y))))
        y_before = y
        top = _block(plan, inner, left, y) if inner.parts else _box(plan, inner, left, y)
        add = (y_before + top) / 2 if inner.kind == "add" else add
        below, y = top, top + (INNER_GAP if part.residual else GAP * 0.75)
    if part.residual and add is not None:
        around = left - 0.24
        turn = start - INNER_GAP * 0.6
        plan.ways.append(Way(((middle, turn), (around, turn), (around, add), (middle - 0.13, add)), "residual"))
        return below
    top = below + 0.34
    plan.frames.append(Box(left - SIDE + 0.1, start, WIDTH + 2 * SIDE - 0.2, top - start, part))
    plan.ways.append(Way(((middle, start), (middle, start + 0.2))))
    said = (
        f"× {part.times}, {part.parameters:,} parameters each" if part.times > 1 else f"{part.parameters:,} parameters"
    )
    plan.words.append(Word(left + WIDTH + SIDE - 0.2, top - 0.14, said, 8.5, "right", quiet=part.times == 1))
    plan.words.append(Word(left - SIDE + 0.22, top - 0.14, part.name, 8.5))
    plan.ways.append(Way(((middle, below), (middle, top)), arrow=False))
    return top


# ---------------------------------------------------------------- links


def _links(plan: Plan, described: Architecture, lefts: list[float]) -> None:
    """From column to column to the right; within a column around its right side. Each has a lane of its own."""
    around = 0
    lanes = [0] * len(lefts)  # that are taken, to the right of each column
    crossing = [link for link in described.links if plan.box_of(link.start).x < plan.box_of(link.end).x - WIDTH]
    for link in described.links:
        start, end = plan.box_of(link.start), plan.box_of(link.end)
        edge = start.x + start.width
        names = textwrap.wrap(link.name, LABEL)
        if link in crossing:  # from one column to another
            column = _column_of(start, lefts)
            beside = sum(_column_of(plan.box_of(other.start), lefts) == column for other in crossing)
            first = lefts[column] + WIDTH + SIDE + 0.1
            lane = first + lanes[column] * LANE
            straight = start.y < end.middle < start.y + start.height
            y = end.middle if straight else start.y + start.height * (0.75 if lanes[column] else 0.5)
            plan.ways.append(Way(((edge, y), (lane, y), (lane, end.middle), (end.x, end.middle)), "link"))
            for number, name in enumerate(reversed(names)):
                plan.words.append(Word(first + (beside - 1) * LANE + 0.1, end.middle + 0.13 + LINE * number, name))
            lanes[column] += 1
        else:
            lane = start.x + WIDTH + SIDE + 0.05 + around * LANE
            y = start.y + start.height * (0.3 if link.back else 0.5)
            points = ((edge, y), (lane, y), (lane, end.middle), (end.x + end.width, end.middle))
            plan.ways.append(Way(points, "back" if link.back else "link"))
            for number, name in enumerate(names):
                plan.words.append(Word(lane + 0.08, (start.middle + end.middle) / 2 - LINE * number, name))
            around += 1


def _column_of(box: Box, lefts: list[float]) -> int:
    """A frame is a little wider than its boxes."""
    return max(number for number, left in enumerate(lefts) if left - SIDE <= box.x)


# ---------------------------------------------------------------- colours and matplotlib

FILLS = {  # light, dark
    "embedding": ("#fbe0dd", "#4b2f31"), "recurrent": ("#d9efdc", "#25412e"), "attention": ("#fde6cb", "#4d3a20"),
    "feed": ("#d8e8fb", "#22364f"), "norm": ("#f6f1c9", "#403c1d"), "output": ("#e6dff7", "#382f50"),
    "plain": ("#eef0f3", "#2a2f38"), "add": ("#ffffff", "#14171c"),
}  # fmt: skip
ACCENTS = {"flow": 0, "residual": 1, "link": 2, "back": 3}
STROKES = {False: ("#5c6470", "#8a929d", "#1a56b0", "#b3560a"), True: ("#9aa3b0", "#7d8794", "#8ab4f8", "#f5a55a")}


def draw_architecture(described: Architecture, format: Format = "svg", *, dark: bool = False) -> bytes:
    plan = laid_out(described)
    text = "".join([word.text for word in plan.words] + [box.part.name + box.part.about for box in plan.boxes])
    with style(text + "0123456789,+×…", dark):
        return saved(_figure(plan, dark), format)


def _figure(plan: Plan, dark: bool) -> Any:
    ink, paper = ink_and_paper(dark)
    quiet = STROKES[dark][0]
    lowest = min(word.y for word in plan.words) - 0.15
    figure = sheet(plan.width, plan.height - lowest)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, plan.width)
    axes.set_ylim(lowest, plan.height)
    axes.set_axis_off()
    for frame in plan.frames:
        _rounded(axes, frame, paper, quiet, dashed=True)
    for way in plan.ways:
        colour = STROKES[dark][ACCENTS[way.kind]]
        *before, last = way.points
        if not way.arrow:
            axes.plot(*zip(*way.points, strict=True), color=colour, linewidth=1.2, snap=False)
            continue
        axes.plot(*zip(*way.points[:-1], before[-1], strict=True), color=colour, linewidth=1.2, snap=False)
        arrow = {
            "arrowstyle": "-|>",
            "color": colour,
            "linewidth": 1.2,
            "shrinkA": 0,
            "shrinkB": 0,
            "mutation_scale": 9,
        }
        axes.annotate("", last, before[-1], arrowprops=arrow)
    for box in plan.boxes:
        _draw_box(axes, box, FILLS[box.part.kind][dark], ink, quiet)
    for word in plan.words:
        axes.text(
            word.x, word.y, word.text, fontsize=word.size, ha=word.place, va="center", parse_math=False,
            color=quiet if word.quiet else ink,
        )  # fmt: skip
    return figure


def _draw_box(axes: Any, box: Box, fill: str, ink: str, quiet: str) -> None:
    part = box.part
    if part.kind == "add":
        axes.add_patch(Circle((box.x + box.width / 2, box.middle), 0.12, facecolor=fill, edgecolor=ink, linewidth=1.1))
        axes.text(box.x + box.width / 2, box.middle, "+", fontsize=11, ha="center", va="center_baseline")
        return
    _rounded(axes, box, fill, quiet)
    lines = about_lines(part)
    top = box.middle if part.kind in NARROW else box.y + box.height - PAD - 0.1
    axes.text(box.x + 0.12, top, part.name, fontsize=10, va="center", parse_math=False)
    if part.parameters:
        axes.text(
            box.x + box.width - 0.12, top, f"{part.parameters:,}", fontsize=8.5, ha="right", va="center", color=ink
        )
    for number, line in enumerate(lines):
        y = top - 0.12 - LINE * (number + 0.5)
        axes.text(box.x + 0.12, y, line, fontsize=8, va="center", color=quiet, parse_math=False)


def _rounded(axes: Any, box: Box, fill: str, edge: str, dashed: bool = False) -> None:
    axes.add_patch(
        FancyBboxPatch(
            (box.x, box.y), box.width, box.height, boxstyle="round,pad=0,rounding_size=0.08", facecolor=fill,
            edgecolor=edge, linewidth=0.9, linestyle=(0, (4, 3)) if dashed else "solid",
        )
    )  # fmt: skip
