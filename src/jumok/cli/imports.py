"""`jumok import`: other people's checkpoints as run folders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from jumok.recipe import Recipe

app = typer.Typer(help="Make a run folder of somebody else's checkpoint.", no_args_is_help=True)


@app.callback()
def group() -> None:
    """Make a run folder of somebody else's checkpoint."""


RUN = typer.Option(..., "--run", help="The run folder to make.")
VERIFY = typer.Option(False, "--verify", help="Compare with the library it comes from, if that is installed.")


@app.command("hf")
def huggingface(
    folder: Path = typer.Argument(
        ...,
        help="A folder with config.json and model.safetensors; of a BERT or Marian, with the tokenizer's files, too.",
    ),
    run: Path = RUN,
    verify: bool = VERIFY,
) -> None:
    """A BERT, a ViT or a Marian translator as Hugging Face keeps it: then use it, or start from it (--start)."""
    from jumok.interop.run_folder import import_huggingface
    from jumok.interop.verifying import verify_huggingface

    _told(run, import_huggingface(folder, run), lambda: verify_huggingface(folder, run) if verify else None)


@app.command("timm")
def timm(
    path: Path = typer.Argument(
        ..., help="A folder with model.safetensors and config.json, or a safetensors file by itself."
    ),
    run: Path = RUN,
    heads: int | None = typer.Option(None, min=1, help="How many heads it has, where nothing says so."),
    verify: bool = VERIFY,
) -> None:
    """A ViT as timm keeps it: then tell classes of images, or start from it (--start)."""
    from jumok.interop.run_folder import import_timm
    from jumok.interop.verifying import verify_timm

    _told(run, import_timm(path, run, heads), lambda: verify_timm(path, run) if verify else None)


def _told(run: Path, notes: Sequence[str], verify: Callable[[], str | None]) -> None:
    """What was read, whether it is right, and what to do with it."""
    from jumok.files import remove_folder
    from jumok.interop.run_folder import NO_CLASSIFIER
    from jumok.training.run import RunFolder

    for note in notes:
        typer.echo(note)
    try:
        verified = verify()
    except BaseException:
        remove_folder(run.resolve())  # it was made by this command, and is not what it should be
        raise
    if verified is not None:
        typer.echo(verified)
    typer.echo(f"\nimported: {run}")
    recipe = RunFolder(run).recipe()
    ways = [f"jumok train classify --start {run} --train examples.tsv {_shorter(recipe)}--run runs/labels"]
    if recipe.task == "translation":
        ways = [f"jumok translate --run {run} 'A sentence.'"]
    if recipe.task == "vision":
        ways = [f"jumok train vit-base --start {run} --train images {_sized(recipe)}--run runs/images"]
        if not any(note.startswith(NO_CLASSIFIER) for note in notes):
            ways.insert(0, f"jumok predict --run {run} image.png")
    for number, way in enumerate(ways):
        typer.echo(f"{'or:  ' if number else 'next:'}     {way}")


def _sized(recipe: Recipe) -> str:
    """The recipe that is named has a size of its own for images."""
    from jumok import recipe as recipes

    ours, usual = recipe.model, recipes.read("vit-base").model
    assert ours.kind == usual.kind == "vit"
    height, width = ours.image
    if ours.image == usual.image:
        return ""
    return f"model.image={height} " if height == width else f"'model.image=[{height},{width}]' "


def _shorter(recipe: Recipe) -> str:
    """Recipes read as many tokens as most models can; one that cannot is told so."""
    from jumok import recipe as recipes

    window, usual = recipe.data.window, recipes.read("classify").data.max_length
    return f"data.max_length={window} " if window < usual else ""
