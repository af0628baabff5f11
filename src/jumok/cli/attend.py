"""`jumok attend`: what the model looked at."""

from __future__ import annotations

from pathlib import Path

import typer

from jumok.cli.typed import require_text
from jumok.errors import BadInput


def attend(
    sentence: str = typer.Argument(..., help="The sentence to translate."),
    run: Path | None = typer.Option(None, "--run", help="A run folder. Without it, the run that the package carries."),
    out: Path | None = typer.Option(None, "--out", help="Write a picture: .png, .svg, .html, .gif (a film) or .json."),
    target: str | None = typer.Option(None, "--target", help="Look at this translation instead of the model's own."),
    tokens: bool = typer.Option(False, "--tokens", help="By tokens instead of words."),
    layer: int | None = typer.Option(
        None, "--layer", help="Of a Transformer, counted from 0. (default: the second to last, which follows the words)"
    ),
    head: int | None = typer.Option(
        None, "--head", help="One of its heads, counted from 0. (default: their mean; --steps: 0)"
    ),
    kind: str = typer.Option(
        "cross",
        "--kind",
        help="Who looks at whom: cross (the translation at the source), self (the source at itself), causal (the "
        "translation at its own past).",
    ),
    every: bool = typer.Option(
        False,
        "--all",
        help="All layers and heads in one file: a page (.html) to look around in, or a sheet (.png, .svg).",
    ),
    steps: str | None = typer.Option(
        None,
        "--steps",
        metavar="WORD",
        help="The steps of attention for one target word, by its number (from 1) or as it is written: scores, weights, "
        "attention value … with the model's own numbers. With --out they are drawn too.",
    ),
    dark: bool = typer.Option(False, "--dark", help="A dark picture (.png, .svg, .gif)."),
    tag: str | None = typer.Option(None, "--tag", help="The language to write, where the model knows several (2de)."),
    device: str = typer.Option("auto", help="auto, cpu, cuda or mps."),
) -> None:
    """Translate a sentence and draw what the model attended to, in the terminal or into a file."""
    from jumok import api
    from jumok.inspect.pictures import check_picture_path, write_all_heads, write_picture
    from jumok.inspect.terminal import show

    require_text(sentence=sentence, target=target, steps=steps)
    if steps is not None:
        if every:
            raise BadInput("--steps is about one head, --all about all of them: leave one of the two out")
        from jumok.inspect.steps import steps_of
        from jumok.inspect.steps_picture import STEP_KINDS, show_steps, write_steps
        from jumok.inspect.view import View

        if out is not None:
            check_picture_path(out, STEP_KINDS)
        translator = api.load_translator(run, device).tagged(tag)
        found = steps_of(translator, sentence, steps, target, View(layer, head, kind), tokens)
        show_steps(found)
        if out is not None:
            write_steps(found, out, dark)
            typer.echo(f"written: {out}")
        return
    if every:
        translator = api.load_translator(run, device).tagged(tag)
        typer.echo(write_all_heads(translator, sentence, target, out, (kind, layer, head), dark))
        return
    if out is not None:
        check_picture_path(out)
    picture = (
        api.load_translator(run, device)
        .tagged(tag)
        .attend(sentence, target, words=not tokens, layer=layer, head=head, kind=kind)
    )
    if out is None:
        show(picture)
    else:
        write_picture(picture, out, dark=dark)
        translation = "" if kind == "self" else " ".join(picture.target[:-1]) + "\n"
        typer.echo(f"{translation}written: {out}")
