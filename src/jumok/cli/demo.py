"""`jumok demo`: the whole way in three minutes."""

from __future__ import annotations

from pathlib import Path

import typer


def demo(
    words: list[str] | None = typer.Argument(
        None, metavar="[lstm|transformer] [fr|ko]", help="Which model, and into which language. (default: lstm fr)"
    ),
    run: Path | None = typer.Option(
        None, "--run", help="Where the run goes; an older demo there is replaced. (default: runs/demo, runs/demo-ko, …)"
    ),
    minutes: float = typer.Option(2.0, help="Training time."),
) -> None:
    """Train a translator on the embedded corpus, score it, and see what it attends to."""
    from jumok.demo import Choice, run_demo

    run_demo(Choice.of(words or ()), run, minutes)
