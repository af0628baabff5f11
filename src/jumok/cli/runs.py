"""`jumok runs`: what was trained, how good it is, and what the difference was."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from jumok.training.comparison import Summary

SIDE_BY_SIDE = 6  # more columns than this nobody can read
WIDEST_VALUE = 30


def runs(
    folders: Annotated[
        list[Path] | None, typer.Argument(help="Run folders, or folders that hold some. (default: runs)")
    ] = None,
    sort: Annotated[
        str, typer.Option(help="name, state, parameters, updates, best, speed, minutes or changed.")
    ] = "name",
    metric: Annotated[
        str | None, typer.Option(help="What to compare: loss, bleu, accuracy, f1 … (default: each run's own)")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Draw the curves over each other: .png, .svg or .html.")] = None,
    dark: Annotated[bool, typer.Option("--dark", help="Light on dark, for .png and .svg.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """List runs, and compare several: the keys they differ in, their curves in one picture."""
    from jumok.training import comparison

    found, others = comparison.find(folders or [Path("runs")])
    summaries = comparison.ordered([comparison.summarise(path, metric) for path in found], sort)
    if metric is not None:
        comparison.check_metric(metric, summaries)
    differing = comparison.differences(summaries)
    if out is not None:
        from jumok.inspect.run_curves import write_comparison

        write_comparison(summaries, out, metric, dark=dark)
    if as_json:
        readable = [str(summary.path) for summary in summaries if summary.keys]
        keys = {key: dict(zip(readable, values, strict=True)) for key, values in differing.items()}
        rows = [summary.to_json() for summary in summaries]
        content = {"runs": rows, "differences": keys, "others": [str(path) for path in others]}
        sys.stdout.write(json.dumps(content, indent=2, ensure_ascii=True) + "\n")
        return
    _show(summaries, others, differing, out)


def _show(
    summaries: Sequence[Summary], others: Sequence[Path], differing: dict[str, list[Any]], out: Path | None
) -> None:
    from jumok.cli.check_view import console
    from jumok.data.suspicion import visible

    screen = console()
    screen.print(_table(summaries))
    if others:
        names = ", ".join(visible(path.name) for path in others[:5]) + (", …" if len(others) > 5 else "")
        screen.print(f"no runs in: {names}", soft_wrap=True, markup=False)
    readable = [summary for summary in summaries if summary.keys]
    if 1 < len(readable) <= SIDE_BY_SIDE and differing:
        screen.print()
        screen.print(_differences(readable, differing))
    elif len(readable) > SIDE_BY_SIDE:
        screen.print(f"\nname up to {SIDE_BY_SIDE} of them to see in which keys they differ", markup=False)
    if out is not None:
        screen.print(f"\ndrawn: {out}", markup=False, soft_wrap=True)


def _table(summaries: Sequence[Summary]) -> Table:
    from rich.table import Table
    from rich.text import Text

    from jumok.data.suspicion import visible
    from jumok.training.comparison import short_names

    table = Table("run", "state", "model", box=None, pad_edge=False)
    for heading in ("parameters", "updates", "best", "tokens/s", "minutes"):
        table.add_column(heading, justify="right")
    table.add_column("changed")
    now = time.time()
    for summary, name in zip(summaries, short_names([summary.path for summary in summaries]), strict=True):
        if not summary.keys:
            told = f"{'damaged' if summary.state == 'damaged' else '–'}  {visible(summary.problem, 120)}"
            state, *cells = told.split("  ", 1)
            changed = "" if summary.changed is None else _ago(now - summary.changed)
            table.add_row(Text(visible(name)), state, Text(cells[0]), *[""] * 5, changed)
            continue
        planned = "?" if summary.planned is None else f"{summary.planned:,}"
        table.add_row(
            Text(visible(name)),
            summary.state,
            summary.model,
            "" if summary.parameters is None else f"{summary.parameters:,}",
            f"{summary.updates:,}/{planned}",
            "" if summary.best is None else f"{summary.metric} {summary.best:.4g}",
            summary.speed,
            "" if summary.minutes is None else f"{summary.minutes:,.1f}",
            "" if summary.changed is None else _ago(now - summary.changed),
        )
        if summary.problem:
            table.add_row("", "", Text(visible(summary.problem, 120)))
    return table


def _differences(summaries: Sequence[Summary], differing: dict[str, list[Any]]) -> Table:
    from rich.table import Table
    from rich.text import Text

    from jumok.data.suspicion import visible
    from jumok.training.comparison import short_names

    table = Table("they differ in", box=None, pad_edge=False)
    for name in short_names([summary.path for summary in summaries]):
        table.add_column(Text(visible(name)))
    for key, values in differing.items():
        table.add_row(key, *(Text(_value(value)) for value in values))
    return table


def _value(value: Any) -> str:
    """A recipe's value; of a long one (a path) the end says more than the beginning."""
    from jumok.data.suspicion import visible

    text = "–" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return visible(text if len(text) <= WIDEST_VALUE else "…" + text[1 - WIDEST_VALUE :], WIDEST_VALUE)


def _ago(seconds: float) -> str:
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit} ago"
    return "now"
