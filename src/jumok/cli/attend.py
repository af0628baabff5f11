"""`jumok attend`: what the model looked at."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from jumok.cli.typed import require_text
from jumok.errors import BadInput

if TYPE_CHECKING:
    from jumok.tasks.translator import Translator


def attend(
    given: list[str] | None = typer.Argument(
        None, metavar="[SENTENCE]", help="The sentence to translate; or pictures of words, for a run that reads them."
    ),
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
    drift: int | None = typer.Option(
        None, "--drift", min=1, help="Runs that read pictures: how far attention drifts, over so many rendered words."
    ),
    seed: int = typer.Option(1, "--seed", min=0, help="With --drift: other words."),
    as_json: bool = typer.Option(False, "--json", help="Runs that read pictures: print JSON."),
    dark: bool = typer.Option(False, "--dark", help="A dark picture (.png, .svg, .gif)."),
    tag: str | None = typer.Option(None, "--tag", help="The language to write, where the model knows several (2de)."),
    device: str = typer.Option("auto", help="auto, cpu, cuda or mps."),
) -> None:
    """Translate a sentence, or read a word in a picture, and draw what the model attended to, in the terminal or into a
    file."""
    from jumok import api
    from jumok.inspect.pictures import check_picture_path, write_all_heads, write_picture
    from jumok.inspect.terminal import show

    if run is not None and api.task_of(run) == "recognition":
        from jumok.cli.attend_pictures import attend_pictures

        foreign = {"--target": target, "--steps": steps, "--tag": tag, "--tokens": tokens, "--all": every}
        for option, value in {**foreign, "--kind": kind != "cross"}.items():
            if value:
                raise BadInput(f"{option} is for translations, and {run} reads words in pictures")
        attend_pictures(run, given or [], out, layer, head, dark, device, drift, seed, as_json)
        return
    if run is not None:
        api.require_translation(run)  # first: what is said below of options and sentences is of no use to other runs
    if drift is not None or as_json:
        raise BadInput(f"{'--json' if drift is None else '--drift'} is for runs that read words in pictures")
    if not given or len(given) > 1:
        raise BadInput("give one sentence, in quotes: jumok attend 'a cat sleeps'")
    (sentence,) = given
    require_text(sentence=sentence, target=target, steps=steps)
    if dark and out is not None and out.suffix.lower() in (".html", ".json"):
        raise BadInput(f"--dark is for pictures: a page ({out}) is dark where its reader's screen is")
    if steps is not None:
        if every:
            raise BadInput("--steps is about one head, --all about all of them: leave one of the two out")
        from jumok.inspect.steps import steps_of
        from jumok.inspect.steps_picture import STEP_KINDS, show_steps, write_steps
        from jumok.inspect.view import View

        if out is not None:
            check_picture_path(out, STEP_KINDS)
        translator = api.load_translator(run, device).tagged(tag)
        tell_unknown(translator, sentence)
        found = steps_of(translator, sentence, steps, target, View(layer, head, kind), tokens)
        show_steps(found)
        if out is not None:
            write_steps(found, out, dark)
            typer.echo(f"written: {out}")
        return
    if every:
        translator = api.load_translator(run, device).tagged(tag)
        tell_unknown(translator, sentence)
        typer.echo(write_all_heads(translator, sentence, target, out, (kind, layer, head), dark))
        return
    if out is not None:
        check_picture_path(out)
    reader = api.load_translator(run, device)
    tell_unknown(reader, sentence)
    tagged = reader.tagged(tag)
    picture = tagged.attend(sentence, target, words=not tokens, layer=layer, head=head, kind=kind)
    if out is None:
        show(picture)
    else:
        write_picture(picture, out, dark=dark)
        translation = "" if kind == "self" else picture.written + "\n"
        typer.echo(f"{translation}written: {out}")


def tell_unknown(translator: Translator, sentence: str) -> None:
    """A model reads all words it does not know as one and the same: who looks at its attention should know which."""
    from jumok.inspect.attention import visible

    unknown = translator.unknown_words(sentence)
    if unknown:
        typer.echo(f"unknown to this model, and read as <unk>: {visible(' '.join(unknown))}", err=True)
