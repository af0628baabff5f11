"""`jumok train` and `jumok verify-resume`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from jumok.errors import BadInput

if TYPE_CHECKING:
    from jumok.recipe import Recipe

_RECIPE = typer.Argument(None, help="A shipped recipe's name or a YAML file (see: jumok recipes).")
_OVERRIDES = typer.Argument(
    None, help="Keys to change: model.width=256 data.train.source=a.de …", metavar="[KEY=VALUE]..."
)
_SOURCE = typer.Option(None, help="Training text, one sentence a line (several times for shards).")
_TARGET = typer.Option(None, help="Its translations, line by line.")
_VALID_SOURCE = typer.Option(None, help="Validation text.")
_VALID_TARGET = typer.Option(None, help="Its translations.")
_TEXT = typer.Option(None, help="Language models: training text (several times for shards).")
_CSV = typer.Option(None, help="Forecasts: a CSV file (several times for parts that follow each other in time).")
_VALID_TEXT = typer.Option(None, help="Language models: validation text.")


NEXT = {  # by task: what a trained run is for
    "translation": "echo 'a sentence' | jumok translate --run {run}",
    "language": "jumok generate --run {run} --sample 'a beginning'",
    "forecasting": "jumok forecast --run {run} --out forecast.png",
}


def train(
    recipe: str | None = _RECIPE,
    overrides: list[str] | None = _OVERRIDES,
    run: Path = typer.Option(..., "--run", help="Folder for this run: checkpoints, tokenizers, metrics, report."),
    resume: bool = typer.Option(False, "--resume", help="Go on with the run in the folder, exactly where it was."),
    minutes: float | None = typer.Option(
        None, "--minutes", help="Train for about this long instead of training.updates."
    ),
    source: list[str] | None = _SOURCE,
    target: list[str] | None = _TARGET,
    valid_source: list[str] | None = _VALID_SOURCE,
    valid_target: list[str] | None = _VALID_TARGET,
    text: list[str] | None = _TEXT,
    valid_text: list[str] | None = _VALID_TEXT,
    csv: list[str] | None = _CSV,
    column: str | None = typer.Option(None, help="Forecasts: the column, by its name or its number from 0."),
    horizon: int | None = typer.Option(None, help="Forecasts: how many values to forecast."),
    window: int | None = typer.Option(None, help="Forecasts: how many values to look back at."),
    season: int | None = typer.Option(None, help="Forecasts: the season in values; 0: find it; 1: there is none."),
) -> None:
    """Train a recipe on its own data, on yours, or go on with a run that stopped."""
    from jumok import api

    files = {"train.source": source, "train.target": target, "valid.source": valid_source, "valid.target": valid_target}
    files |= {"train.text": text, "valid.text": valid_text, "series.csv": csv}
    series = {"column": column, "horizon": horizon, "window": window, "season": season}
    named = [f"data.series.{key}={json.dumps(value)}" for key, value in series.items() if value is not None]
    chosen = _chosen(recipe, [*named, *(overrides or [])], files)
    model = api.train(chosen, run, resume=resume, minutes=minutes)
    if isinstance(model, api.TrainedForecaster):
        typer.echo(f"\n{model.evaluate().summary()}")
    following = NEXT[model.recipe.task].format(run=run)
    typer.echo(f"\ntrained: {run}\nreport:  {run / 'report.html'}\nnext:    {following}")


def _chosen(recipe: str | None, overrides: list[str], files: dict[str, list[str] | None]) -> Recipe | None:
    """The recipe that the arguments describe; None when only --resume is asked for."""
    from jumok import recipe as recipes

    if recipe is not None and "=" in recipe:
        raise BadInput(f'"{recipe}" is a key, but no recipe is named before it. With --resume keys cannot change.')
    if recipe is None:
        if any(files.values()) or overrides:
            raise BadInput("data options need a recipe to train: jumok train lstm-luong --source … --target …")
        return None
    for one, other in (("source", "target"), ("target", "source")):
        for kind, option in (("train", "--"), ("valid", "--valid-")):
            if files[f"{kind}.{one}"] and not files[f"{kind}.{other}"]:
                raise BadInput(f"{option}{one} is given, but {option}{other} is missing")
    named = [f"data.{key}={json.dumps(paths)}" for key, paths in files.items() if paths]
    return recipes.read(recipe, [*named, *overrides])


def verify_resume(
    context: typer.Context,
    recipe: str = typer.Argument(..., help="A shipped recipe's name or a YAML file."),
    overrides: list[str] | None = _OVERRIDES,
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
