"""`jumok translate`: stdin → stdout, line by line, order kept."""

from __future__ import annotations

from pathlib import Path

import typer

from jumok.errors import BadInput


def translate(
    sentences: list[str] | None = typer.Argument(None, help="Sentences, each in quotes. Without them, stdin is read."),
    run: Path | None = typer.Option(None, "--run", help="A run folder. Without it, the run that the package carries."),
    beam: int | None = typer.Option(None, help="Hypotheses kept at each step; 1 is greedy. [default: the recipe's]"),
    nbest: int = typer.Option(
        1, help="Translations per sentence; above 1 each line begins with the sentence's number."
    ),
    scores: bool = typer.Option(False, "--scores", help="Add the score (log-probability by length) after a tab."),
    alignments: bool = typer.Option(False, "--alignments", help="Add word alignments (source-target) after a tab."),
    input: Path | None = typer.Option(None, "--input", help="Read this file (.gz, .xz, .zst too) instead of stdin."),
    output: Path | None = typer.Option(None, "--output", help="Write this file instead of stdout."),
    batch: int | None = typer.Option(None, help="Sentences translated at once. [default: the recipe's]"),
    too_long: str = typer.Option("error", help="Sentences over the model's limit: error, truncate or skip."),
    tag: str | None = typer.Option(None, "--tag", help="The language to write, where the model knows several (2de)."),
    device: str = typer.Option("auto", help="auto, cpu, cuda or mps."),
) -> None:
    """Translate text, one sentence a line."""
    from jumok import api
    from jumok.streaming import StreamOptions, open_output, stream, waiting_lines

    options = StreamOptions(beam, nbest, scores, alignments, batch, too_long)
    model = api.load_translator(run, device).tagged(tag)
    if sentences and input is not None:
        raise BadInput("give sentences or --input, not both")
    chunks = waiting_lines(input) if not sentences else lambda size: iter([sentences])
    with open_output(output, input) as write:
        for line in stream(model, chunks, options):
            write(line)
