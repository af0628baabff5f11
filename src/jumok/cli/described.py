"""The recipe that a command line describes: its name, keys, and the options that name data."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import typer

from jumok.errors import BadInput

if TYPE_CHECKING:
    from jumok.recipe import Recipe

RECIPE = typer.Argument(None, help="A shipped recipe's name or a YAML file (see: jumok recipes).")
OVERRIDES = typer.Argument(
    None, help="Keys to change: model.width=256 data.train.source=a.de …", metavar="[KEY=VALUE]..."
)
SOURCE = typer.Option(None, help="Training text, one sentence a line (several times for shards).")
TARGET = typer.Option(None, help="Its translations, line by line.")
VALID_SOURCE = typer.Option(None, help="Validation text.")
VALID_TARGET = typer.Option(None, help="Its translations.")
TEXT = typer.Option(None, help="Language models: training text (several times for shards).")
TRAIN = typer.Option(
    None, "--train", help="Labelled examples: TSV, CSV, JSONL, CoNLL or SQuAD JSON; images: a folder, tar or zip."
)
VALID = typer.Option(None, "--valid", help="Labelled examples (or images) to validate on.")
START = typer.Option(None, "--start", help="A pretrained run to start from (made by: jumok train bert-… or import).")
CSV = typer.Option(None, help="Forecasts: a CSV file (several times for parts that follow each other in time).")
VALID_TEXT = typer.Option(None, help="Language models: validation text.")
COLUMN = typer.Option(None, help="Forecasts: the column, by its name or its number from 0.")
HORIZON = typer.Option(None, help="Forecasts: how many values to forecast.")
WINDOW = typer.Option(None, help="Forecasts: how many values to look back at.")
SEASON = typer.Option(None, help="Forecasts: the season in values; 0: find it; 1: there is none.")


def described(
    recipe: str | None,
    overrides: Sequence[str],
    files: Mapping[str, list[str] | None],
    series: Mapping[str, str | int | None],
    start: str | None = None,
) -> Recipe | None:
    """The recipe that the arguments describe; None when only --resume is asked for."""
    from jumok import recipe as recipes

    if recipe is not None and "=" in recipe:
        raise BadInput(f'"{recipe}" is a key, but no recipe is named before it. With --resume keys cannot change.')
    if recipe is None:
        if any(files.values()) or overrides or start or any(value is not None for value in series.values()):
            raise BadInput("data options need a recipe to train: jumok train lstm-luong --source … --target …")
        return None
    for one, other in (("source", "target"), ("target", "source")):
        for kind, option in (("train", "--"), ("valid", "--valid-")):
            if files[f"{kind}.{one}"] and not files[f"{kind}.{other}"]:
                raise BadInput(f"{option}{one} is given, but {option}{other} is missing")
    if recipes.task_of(recipe) in ("vision", "recognition"):  # what it learns from are images
        files = {key.replace(".examples", ".images"): paths for key, paths in files.items()}
    named = [f"data.{key}={json.dumps(paths)}" for key, paths in files.items() if paths]
    named += [f"data.series.{key}={json.dumps(value)}" for key, value in series.items() if value is not None]
    named += [f"start={json.dumps(start)}"] if start is not None else []
    chosen = recipes.read(recipe, [*named, *overrides])
    if chosen.start is not None:
        from jumok.training.starting import refuse_named

        refuse_named(chosen, overrides)
    return chosen
