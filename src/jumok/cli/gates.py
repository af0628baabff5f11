"""`jumok gates`: what a recurrent network let in, kept and let out."""

from __future__ import annotations

from pathlib import Path

import typer


def gates(
    sentence: str = typer.Argument(..., help="The sentence to read."),
    run: Path | None = typer.Option(None, "--run", help="A run folder. Without it, the run that the package carries."),
    out: Path | None = typer.Option(None, "--out", help="Write a picture: .png, .svg, .html or .json."),
    layer: int | None = typer.Option(None, "--layer", help="One layer, counted from 0. (default: all)"),
    dark: bool = typer.Option(False, "--dark", help="A dark picture (.png, .svg)."),
    tag: str | None = typer.Option(None, "--tag", help="The language to write, where the model knows several (2de)."),
    device: str = typer.Option("auto", help="auto, cpu, cuda or mps."),
) -> None:
    """Read a sentence with a recurrent run (RNN, LSTM, GRU) and show its gates over time, its cell state, and how far
    back the state at the end still feels: the norm of its gradient by each word, in the terminal or into a file."""
    from jumok import api
    from jumok.inspect.gates import gates_of
    from jumok.inspect.gates_picture import KINDS, show, write_gates
    from jumok.inspect.pictures import check_picture_path
    from jumok.tasks.translator import Translator

    if out is not None:
        check_picture_path(out, KINDS)
    loaded = api.load(run, device)
    if isinstance(loaded, Translator):
        loaded = loaded.tagged(tag)
    found = gates_of(loaded, sentence, layer)
    if out is None:
        show(found)
    else:
        write_gates(found, out, dark=dark)
        typer.echo(f"fused layer and written-out equations differ by {found.difference:.1e} at most\nwritten: {out}")
