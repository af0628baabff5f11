"""`jumok ladder`: the whole line of models under one budget, in one table."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import typer

from jumok.cli.described import SOURCE, TARGET, VALID_SOURCE, VALID_TARGET
from jumok.errors import BadInput, Failure, did_you_mean

DIRECTIONS = {"grammar": "en-fr", "en-fr": "en-fr", "en-ko": "en-ko", "fr-en": "fr-en", "ko-en": "ko-en"}


def ladder(
    context: typer.Context,
    overrides: list[str] | None = typer.Argument(
        None,
        metavar="[KEY=VALUE]...",
        help="Keys to change on all rungs (data.max_length=100), or on one (lstm:model.width=1024).",
    ),
    data: str | None = typer.Option(
        None, "--data", help="The embedded corpus: grammar, or its en-fr, en-ko, fr-en, ko-en. (default: grammar)"
    ),
    source: list[str] | None = SOURCE,
    target: list[str] | None = TARGET,
    valid_source: list[str] | None = VALID_SOURCE,
    valid_target: list[str] | None = VALID_TARGET,
    test_source: list[str] | None = typer.Option(None, help="Test text: what the rungs are compared on."),
    test_target: list[str] | None = typer.Option(None, help="Its translations."),
    rungs: str | None = typer.Option(
        None, help="Some of rnn, lstm, gru, bahdanau, luong, transformer, with commas between. (default: all)"
    ),
    seeds: int = typer.Option(1, help="Train every rung with so many seeds."),
    minutes: float | None = typer.Option(None, help="The budget: minutes of training for each run. (default: 2)"),
    updates: int | None = typer.Option(None, help="The budget in updates instead."),
    size: str | None = typer.Option(
        None, help="small: for minutes on a CPU; full: the recipes as shipped. (default: small with --data, else full)"
    ),
    beam: int | None = typer.Option(None, help="Hypotheses kept at each step, on all rungs. (default: the recipes' 5)"),
    out: Path = typer.Option(Path("runs/ladder"), "--out", help="Folder of the ladder; one that was stopped goes on."),
    jobs: int = typer.Option(1, help="Runs that train side by side (for a GPU with room)."),
    tutorial: bool = typer.Option(
        False, "--lowercase-tokenized", "--tutorial", help="BLEU lower-cased and tokenised too, as tutorials score."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print the results as JSON."),
    device: str = typer.Option("auto", help="auto, cpu, cuda or mps."),
) -> None:
    """Train RNN, LSTM, GRU, Bahdanau, Luong and Transformer on the same data under the same budget, and compare them:
    BLEU and chrF with confidence intervals, significance, parameters, speed. Killed, the same command goes on."""
    from jumok.ladder.plan import Budget, Files, plan

    files = [tuple(each or ()) for each in (source, target, valid_source, valid_target, test_source, test_target)]
    if data is not None and data not in DIRECTIONS:
        raise BadInput(f"--data {data}: no such corpus is embedded.{did_you_mean(data, DIRECTIONS)}")
    grammar = DIRECTIONS[data or "grammar"] if data is not None or not any(files) else None
    names = None if rungs is None else [name.strip().lower() for name in rungs.split(",") if name.strip()]
    chosen = plan(Files(grammar, *files), names, seeds, Budget(minutes, updates), size, overrides or [], beam, device)

    from jumok.cli.check_view import console
    from jumok.ladder.climb import climb, told
    from jumok.ladder.folder import LadderFolder
    from jumok.ladder.table import as_rich, caption

    def say(message: str) -> None:
        print(message, file=sys.stderr, flush=True)

    found, failed = climb(chosen, out, say, jobs=jobs, tutorial=tutorial, device=device, plugins=context.obj or ())
    folder = LadderFolder(out)
    if as_json:
        typer.echo(json.dumps(found.to_json(), indent=1, ensure_ascii=False))
    else:
        screen = console()
        screen.print()
        screen.print(as_rich(found, tutorial))
        for line in caption(chosen, found):
            screen.print(f"\n{line}", markup=False, soft_wrap=not sys.stdout.isatty())
        typer.echo(f"\ntable:  {folder.table}\nreport: {folder.report}\nruns:   jumok runs {out}")
    if failed:
        raise Failure(told(failed, folder))
