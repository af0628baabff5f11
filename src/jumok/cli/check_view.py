"""A corpus report for the terminal. Text from the data is escaped: a line must not be able to steer the terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from jumok.data.check import CheckReport, Example, Side
from jumok.data.suspicion import visible

BLOCKS = " ▏▎▍▌▋▊▉█"
BAR = 24


def console() -> Console:
    """Plain and unwrapped when it is not a terminal, so that the output can be searched and cut."""
    if sys.stdout.isatty():
        return Console(highlight=False)
    return Console(highlight=False, width=200, no_color=True)


def show(report: CheckReport, files: Sequence[str]) -> None:
    out = console()
    names = [visible(name, 200) for name in (files if len(files) == 2 else [f"{files[0]} ({side})" for side in SIDES])]
    out.print(_counts(report, names))
    out.print()
    out.print(_lengths(report))
    out.print()
    if not report.findings:
        out.print("nothing suspicious")
    for finding in report.findings:
        out.print(Text(f"{finding.count:>9,}  {finding.about}", style="bold"))
        for example in finding.examples:
            for line in _example(example):
                out.print(Text(line), soft_wrap=True)


SIDES = ("source", "target")


def _counts(report: CheckReport, names: Sequence[str]) -> Table:
    table = Table("side", box=None, pad_edge=False)
    for heading in ("lines", "blank", "words", "characters", "words a line", "longest line"):
        table.add_column(heading, justify="right")
    table.add_column("script")
    for name, side in zip(names, (report.source, report.target), strict=True):
        table.add_row(Text(name), *_row(side))
    return table


def _row(side: Side) -> list[str]:
    mean = side.words / max(1, side.lines - side.blank)
    longest = f"{side.longest:,} characters (line {side.longest_line})"
    counts = [f"{count:,}" for count in (side.lines, side.blank, side.words, side.characters)]
    return [*counts, f"{mean:.1f}", longest, side.script or "-"]


def _lengths(report: CheckReport) -> Table:
    histogram = report.histogram
    table = Table(box=None, pad_edge=False)
    table.add_column(histogram.unit, justify="right")
    largest = max(1, *histogram.source, *histogram.target)
    for side in SIDES:
        table.add_column(side, min_width=BAR)
        table.add_column("lines", justify="right")
    ends = [start - 1 for start in histogram.starts[1:]]
    for index, start in enumerate(histogram.starts):
        label = f"{start}–{ends[index]}" if index < len(ends) else f"{start}–"
        if index < len(ends) and ends[index] == start:
            label = str(start)
        left, right = histogram.source[index], histogram.target[index]
        table.add_row(label, bar(left / largest), f"{left:,}", bar(right / largest), f"{right:,}")
    return table


def bar(share: float, width: int = BAR) -> str:
    """A bar of eighths of a character; what is there is never drawn as nothing."""
    eighths = max(1, round(share * width * 8)) if share > 0 else 0
    return "█" * (eighths // 8) + (BLOCKS[eighths % 8] if eighths % 8 else "")


def _example(example: Example) -> list[str]:
    lines = [f"           line {example.line}" + (f"  {visible(example.note, 120)}" if example.note else "")]
    if example.source or example.target:
        lines += [f"             {visible(text)}" for text in (example.source, example.target)]
    return lines
