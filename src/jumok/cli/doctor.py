"""`jumok doctor`: will this run work, how long will it take, and what is wrong with it?"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from jumok.cli.described import (
    COLUMN,
    CSV,
    HORIZON,
    OVERRIDES,
    RECIPE,
    SEASON,
    SOURCE,
    START,
    TARGET,
    TEXT,
    TRAIN,
    VALID,
    VALID_SOURCE,
    VALID_TARGET,
    VALID_TEXT,
    WINDOW,
    described,
)
from jumok.errors import BadInput

if TYPE_CHECKING:
    from jumok.training.doctor.findings import Report

SIGNS = {"error": "✗", "warning": "!", "note": "·"}


def doctor(
    context: typer.Context,
    recipe: str | None = RECIPE,
    overrides: list[str] | None = OVERRIDES,
    run: Path | None = typer.Option(None, "--run", help="Where the run will be: is there room? Nothing is written."),
    source: list[str] | None = SOURCE,
    target: list[str] | None = TARGET,
    valid_source: list[str] | None = VALID_SOURCE,
    valid_target: list[str] | None = VALID_TARGET,
    examples: list[str] | None = TRAIN,
    valid_examples: list[str] | None = VALID,
    start: str | None = START,
    text: list[str] | None = TEXT,
    valid_text: list[str] | None = VALID_TEXT,
    csv: list[str] | None = CSV,
    column: str | None = COLUMN,
    horizon: int | None = HORIZON,
    window: int | None = WINDOW,
    season: int | None = SEASON,
    trial: bool = typer.Option(True, "--trial/--no-trial", help="Try the worst batch, and time updates."),
    memory: float | None = typer.Option(None, help="Gigabytes that the run may use, instead of what is free here."),
    as_json: bool = typer.Option(False, "--json", help="Print as JSON."),
) -> None:
    """Examine a run before it begins: data, vocabulary, disk, memory, time. Exit code 2 when it would fail."""
    files = {"train.source": source, "train.target": target, "valid.source": valid_source, "valid.target": valid_target}
    files |= {"train.text": text, "valid.text": valid_text, "series.csv": csv}
    files |= {"train.examples": examples, "valid.examples": valid_examples}
    series = {"column": column, "horizon": horizon, "window": window, "season": season}
    chosen = described(recipe, overrides or [], files, series, start)
    if chosen is None:
        raise BadInput("name a recipe to examine: jumok doctor lstm-luong --source … --target …")
    from jumok.training.doctor.examine import examine

    def say(message: str) -> None:
        print(message, file=sys.stderr)

    if memory is not None and not memory > 0:
        raise BadInput(f"--memory {memory:g}: give a number of gigabytes above zero")
    limit = None if memory is None else int(memory * 1e9)
    report = examine(chosen, run, say, trial=trial, plugins=context.obj or (), memory=limit)
    if as_json:
        sys.stdout.write(json.dumps(report.to_json(), indent=2, ensure_ascii=True) + "\n")
    else:
        _show(report)
    if report.would_fail:
        raise typer.Exit(2)


def _show(report: Report) -> None:
    from rich.text import Text

    from jumok.cli.check_view import console
    from jumok.data.suspicion import visible

    screen = console()
    for topic, told in _facts(report.facts):
        screen.print(Text(f"{topic:<12}{visible(told, 400)}"), soft_wrap=True)
    for finding in report.ordered():
        style = {"error": "bold red", "warning": "bold"}.get(finding.level, "")
        screen.print()
        what = "\n  ".join(visible(line, 2000) for line in finding.what.splitlines())
        screen.print(Text(f"{SIGNS[finding.level]} {finding.topic}: {what}", style=style), soft_wrap=True)
        screen.print(Text(f"  where:      {visible(finding.where, 400)}"), soft_wrap=True)
        screen.print(Text(f"  what to do: {visible(finding.todo, 400)}"), soft_wrap=True)
    counts = {level: sum(finding.level == level for finding in report.findings) for level in SIGNS}
    verdict = "this run would fail" if report.would_fail else "nothing stands in the way of this run"
    shown = ", ".join(f"{count} {level}{'s' * (count != 1)}" for level, count in counts.items() if count)
    screen.print(f"\n{verdict}{f' ({shown})' if shown else ''}", markup=False)


def _facts(facts: dict[str, dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """Each topic in a line."""
    from jumok.training.doctor.speed import duration
    from jumok.training.memory import in_words

    if "machine" in facts:
        machine = facts["machine"]
        threads = (
            f", {machine['threads']} thread{'s' * (machine['threads'] != 1)}" if machine["device"] == "cpu" else ""
        )
        yield "machine", f"{machine['device']}{threads}, {machine['precision']}"
    if "data" in facts:
        data = facts["data"]
        many = data["epochs"] or 0.0
        epochs = f"; {data['updates']:,} updates are {many:,.{0 if many >= 10 else 2}f} epochs" if many else ""
        yield "data", f"{data['sizes']}{epochs}"
    for side, known in facts.get("vocabulary", {}).items():
        shares = f"{known['unknown']:.2%} unknown, {known['single_letters']:.0%} single letters"
        yield "vocabulary", f"{side}: {known['size']:,} entries ({known['kind']}), {shares}"
    for place, known in facts.get("lengths", {}).items():
        spread = f"median {known['median']}, 99 of 100 up to {known['p99']}, longest {known['longest']} tokens"
        rest = f"{known['cut']:,} cut off" if "cut" in known else f"{known['left_out']:,} left out"
        yield "lengths", f"{place}: {spread}; {rest}"
    if "model" in facts:
        yield "model", f"{facts['model']['kind']}, {facts['model']['parameters']:,} parameters"
    if "disk" in facts:
        disk = facts["disk"]
        stores = f"; encoded data {in_words(disk['token_stores'])} in {disk['cache']}" if disk["token_stores"] else ""
        needed, free = in_words(disk["needed"]), in_words(disk["free"])
        yield "disk", f"{needed} for {disk['copies']} checkpoints, {free} free in {disk['place']}{stores}"
    if "memory" in facts:
        yield from _memory(facts["memory"])
    if "time" in facts:
        timed = facts["time"]
        mfu = "" if timed["mfu"] is None else f", MFU {timed['mfu']:.1%}"
        often = f"{timed['validations']:,} validation{'s' * (timed['validations'] != 1)}"
        each = "more than a minute" if timed["validation"] is None else f"at most {duration(timed['validation'])}"
        update = f"{duration(timed['update'])} an update ({timed['tokens_per_second']:,.0f} {timed['counted']}/s{mfu})"
        yield "time", f"{duration(timed['total'])} in all: {update}, {often} of {each}"


def _memory(memory: dict[str, Any]) -> Iterator[tuple[str, str]]:
    from jumok.training.memory import in_words

    parts = " + ".join(f"{name} {in_words(size)}" for name, size in memory["parts"].items() if size)
    batch = f"{memory['rows']:,} rows, {memory['tokens']:,} tokens"
    yield "memory", f"predicted for the worst batch ({batch}): {in_words(memory['predicted'])} = {parts}"
    if "fits" not in memory:
        return
    limit = "" if memory["limit"] is None else f" of {in_words(memory['limit'])} that may be used"
    if memory["measured"] is not None:
        yield "", f"measured: {in_words(memory['measured'])}{limit}"
    if memory["largest"] is not None:
        why = {"memory": "", "time": " at least (more would take too long to try)", "data": " (all data in one batch)"}
        yield "", f"{memory['key']} up to {memory['largest']:,} fit{why[memory['bound']]}"
