"""`jumok train` and `jumok verify-resume`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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

NEXT = {  # by task: what a trained run is for
    "translation": "echo 'a sentence' | jumok translate --run {run}",
    "language": "jumok generate --run {run} --sample 'a beginning'",
    "forecasting": "jumok forecast --run {run} --out forecast.png",
    "pretraining": "jumok train classify --start {run} --train examples.tsv --run runs/labels",
    "classification": "echo 'a text' | jumok predict --run {run}",
    "regression": "printf 'a text\\tanother\\n' | jumok predict --run {run}",
    "texts": "echo 'a text' | jumok predict --run {run}",
    "pairs": "printf 'a text\\tanother\\n' | jumok predict --run {run}",
    "tagging": "echo 'words of a sentence' | jumok predict --run {run}",
    "vision": "jumok predict --run {run} image.png",
    "recognition": "jumok read --run {run} word.png",
    "answering": "jumok predict --run {run} --question 'Who?' --context 'a text'",
}


def train(
    recipe: str | None = RECIPE,
    overrides: list[str] | None = OVERRIDES,
    run: Path = typer.Option(..., "--run", help="Folder for this run: checkpoints, tokenizers, metrics, report."),
    resume: bool = typer.Option(False, "--resume", help="Go on with the run in the folder, exactly where it was."),
    minutes: float | None = typer.Option(
        None, "--minutes", help="Train for about this long instead of training.updates."
    ),
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
) -> None:
    """Train a recipe on its own data, on yours, or go on with a run that stopped."""
    from jumok import api

    files = {"train.source": source, "train.target": target, "valid.source": valid_source, "valid.target": valid_target}
    files |= {"train.text": text, "valid.text": valid_text, "series.csv": csv}
    files |= {"train.examples": examples, "valid.examples": valid_examples}
    series = {"column": column, "horizon": horizon, "window": window, "season": season}
    chosen = described(recipe, overrides or [], files, series, start)
    model = api.train(chosen, run, resume=resume, minutes=minutes)
    if model is None:  # another process tells
        return
    if isinstance(model, api.TrainedForecaster):
        typer.echo(f"\n{model.evaluate().summary()}")
    following = NEXT[_used_as(model)].format(run=run)
    typer.echo(f"\ntrained: {run}\nreport:  {run / 'report.html'}\nnext:    {following}")


def _used_as(model: Any) -> str:
    """The task, or what a run was made for that has learned from pairs of texts, or from single ones."""
    pairs = getattr(model, "pairs", None)
    if pairs is None:
        return str(model.recipe.task)
    return "pairs" if pairs else "texts"


def verify_resume(
    context: typer.Context,
    recipe: str = typer.Argument(..., help="A shipped recipe's name or a YAML file."),
    overrides: list[str] | None = OVERRIDES,
    updates: int = typer.Option(24, min=2, help="How many updates to compare."),
    kills: int = typer.Option(3, min=1, help="How many times to kill the second run."),
) -> None:
    """Prove on your own recipe that a killed and resumed run equals the undisturbed one, bit for bit."""
    from jumok import recipe as recipes
    from jumok.training.verify import verify

    result = verify(recipes.read(recipe, overrides or []), updates, kills, typer.echo, plugins=context.obj or ())
    typer.echo(result.summary())
    if not result.identical or not result.kills:
        raise typer.Exit(1)
