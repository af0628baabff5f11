"""`jumok import`: other people's checkpoints as run folders."""

from __future__ import annotations

from pathlib import Path

import typer

app = typer.Typer(help="Make a run folder of somebody else's checkpoint.", no_args_is_help=True)


@app.callback()
def group() -> None:
    """Make a run folder of somebody else's checkpoint."""


@app.command("hf")
def huggingface(
    folder: Path = typer.Argument(..., help="A folder with config.json, model.safetensors and the tokenizer's files."),
    run: Path = typer.Option(..., "--run", help="The run folder to make."),
) -> None:
    """A BERT as Hugging Face keeps it: then embed, fill, or start a task from it (--start)."""
    from jumok.interop.run_folder import import_bert

    for note in import_bert(folder, run):
        typer.echo(note)
    typer.echo(
        f"\nimported: {run}\nnext:     jumok train classify --start {run} --train examples.tsv {_shorter(run)}--run "
        "runs/labels"
    )


def _shorter(run: Path) -> str:
    """Recipes read as many tokens as most models can; one that cannot is told so."""
    from jumok import recipe
    from jumok.training.run import RunFolder

    window, usual = RunFolder(run).recipe().data.window, recipe.read("classify").data.max_length
    return f"data.max_length={window} " if window < usual else ""
