"""`jumok average`: one model from several checkpoints."""

from __future__ import annotations

from pathlib import Path

import typer


def average(
    run: Path = typer.Option(..., "--run", help="A run folder with several checkpoints (see training.keep)."),
    last: int = typer.Option(5, min=2, help="How many of the newest checkpoints to average."),
    out: Path | None = typer.Option(None, "--out", help="Folder for the averaged run. (default: RUN-average-N)"),
) -> None:
    """Average the weights of a run's newest checkpoints into a run folder of its own."""
    from jumok.cli.train import NEXT
    from jumok.training.averaging import average_run
    from jumok.training.run import RunFolder

    run, out = _named(run), None if out is None else _named(out)
    place = out or run.with_name(f"{run.name}-average-{last}")
    steps = average_run(RunFolder.open(run), last, place)
    following = NEXT[RunFolder(place).recipe().task].format(run=place)
    typer.echo(f"averaged: updates {', '.join(map(str, steps))} of {run}\nwritten:  {place}\nnext:     {following}")


def _named(path: Path) -> Path:
    """A folder by a name that another can be made of ("." and ".." are none)."""
    return path.resolve() if path.name in ("", "..") else path
