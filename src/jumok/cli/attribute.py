"""`jumok attribute`: which source words a translation depends on, asked in several ways."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from jumok.cli.typed import require_text

if TYPE_CHECKING:
    from jumok.inspect.attribution import Attribution

SHOWN = 3  # words of each ranking


def attribute(
    sentence: str = typer.Argument(..., help="The sentence that is translated."),
    run: Path | None = typer.Option(None, "--run", help="A run folder. Without it, the run that the package carries."),
    target: str | None = typer.Option(None, "--target", help="Ask about this translation instead of the model's own."),
    layer: int | None = typer.Option(
        None, "--layer", help="Of a Transformer's attention, counted from 0. (default: the second to last)"
    ),
    head: int | None = typer.Option(None, "--head", help="One of its heads, counted from 0. (default: their mean)"),
    absent: str = typer.Option("unknown", "--absent", help="What stands where a word is taken away: unknown, padding."),
    steps: int = typer.Option(64, "--steps", help="Points at which integrated gradients are taken."),
    out: Path | None = typer.Option(None, "--out", help="Write a picture: .png, .svg, .html or .json."),
    dark: bool = typer.Option(False, "--dark", help="A dark picture (.png, .svg)."),
    tag: str | None = typer.Option(None, "--tag", help="The language to write, where the model knows several (2de)."),
    device: str = typer.Option("auto", help="auto, cpu, cuda or mps."),
) -> None:
    """Rank the source words for each target word by attention, integrated gradients and occlusion, and say how far the
    rankings agree: attention shows where a model looked, which need not be what its answer hangs on."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from jumok import api
    from jumok.inspect.attention import visible
    from jumok.inspect.attribution import attribute as attributed
    from jumok.inspect.attribution_picture import KINDS, agreement_lines, write_attribution
    from jumok.inspect.pictures import check_picture_path
    from jumok.inspect.view import View

    require_text(sentence=sentence, target=target)
    if out is not None:
        check_picture_path(out, KINDS)
    model = api.load_translator(run, device).tagged(tag)
    found = attributed(model, sentence, target, View(layer, head), absent, steps)
    screen = Console(highlight=False)
    table = Table("target word", "log p", *found.methods)
    table.columns[1].justify = "right"
    for row, word in enumerate(found.target):
        ranked = [_ranked(found, one, row) for one in found.methods]
        cells = [word, f"{found.log_probabilities[row]:.2f}".replace("-", "−"), *ranked]
        table.add_row(*(escape(visible(cell)) for cell in cells))
    screen.print(f"The {SHOWN} source words that matter most to each target word, the first one most:")
    screen.print(table)
    agreement = Table("rank agreement", "Kendall τ", "Spearman ρ")
    for line in agreement_lines(found):
        agreement.add_row(*line)
    screen.print("Do they rank the source words alike? (1: the same order, 0: none, −1: the reverse)")
    screen.print(agreement)
    screen.print(f"Integrated gradients miss what they should add up to by {found.gap:.3f} at most.")
    if out is not None:
        write_attribution(found, out, dark)
        typer.echo(f"written: {out}")


def _ranked(found: Attribution, method: str, row: int) -> str:
    """The words that matter most; a dash where none matters more than another."""
    values = abs(found.values[method][row])
    if values.max() == values.min():
        return "–"
    return ", ".join(found.source[place] for place in found.ranking(method, row)[:SHOWN])
