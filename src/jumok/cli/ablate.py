"""`jumok ablate`: what a model loses without each of its heads."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import typer

from jumok.errors import BadInput


def ablate(
    source: Path = typer.Option(..., "--source", help="Sentences, one a line."),
    target: Path = typer.Option(..., "--target", help="Their true translations."),
    run: Path | None = typer.Option(None, "--run", help="A run folder. (default: the run in the package)"),
    kind: list[str] = typer.Option(
        [], "--kind", help="Only these: self (the encoder's), causal (the decoder's own), cross (at the source)."
    ),
    way: str = typer.Option("zero", "--instead", help="What stands in the head's place: zero, or its mean output."),
    sentences: int = typer.Option(500, "--sentences", help="The loss is measured on so many, from the first on."),
    bleu_sentences: int = typer.Option(
        200, "--bleu-sentences", help="BLEU (greedy) on so many of them: each head translates them. 0: no BLEU."
    ),
    out: Path | None = typer.Option(None, "--out", help="Write a picture: .png, .svg, .html or .json."),
    dark: bool = typer.Option(False, "--dark", help="A dark picture (.png, .svg)."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
    tag: str | None = typer.Option(None, "--tag", help="The language to write, where the model knows several (2de)."),
    device: str = typer.Option("auto", help="auto, cpu, cuda or mps."),
) -> None:
    """Take away one attention head at a time and see loss and BLEU move: a table, the most important head first."""
    from rich.console import Console
    from rich.progress import track
    from rich.table import Table

    from jumok import api
    from jumok.inspect.ablation import Ablating, usable_pairs
    from jumok.inspect.ablation_picture import KINDS, signed, summary, write_ablation
    from jumok.inspect.pictures import check_picture_path

    if out is not None:
        check_picture_path(out, KINDS)
    if sentences < 1 or bleu_sentences < 0:
        raise BadInput("--sentences must be 1 or more, --bleu-sentences 0 or more")
    model = api.load_translator(run, device).tagged(tag)
    sources, targets, left_out = usable_pairs(model, source, target, sentences)
    ablating = Ablating(model, sources, targets, kind or None, way, bleu_sentences)
    errors = Console(stderr=True)
    quiet = not errors.is_terminal
    steps = track(ablating.steps(), "heads", len(ablating.heads), console=errors, transient=True, disable=quiet)
    result = ablating.result(list(steps))
    if out is not None:
        write_ablation(result, out, dark)
    if as_json:
        typer.echo(json.dumps(result.to_json(), ensure_ascii=False, indent=1))
        return
    screen = Console(highlight=False)
    screen.print(summary(result))
    table = Table("without", "loss", "BLEU", "spread")
    for column in table.columns[1:]:
        column.justify = "right"
    for one in result.heads:
        bleu = "" if one.bleu_change is None else signed(one.bleu_change, 2)
        table.add_row(one.name, signed(one.loss_change, 4), bleu, f"{one.spread:.2f}")
    screen.print(table)
    if left_out:
        print(f"left out: {left_out} pairs that are blank or longer than the model reads", file=sys.stderr)
    if out is not None:
        typer.echo(f"written: {out}")
