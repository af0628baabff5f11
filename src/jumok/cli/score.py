"""`jumok score`: the log-probability of given translations."""

from __future__ import annotations

from itertools import chain, islice
from pathlib import Path

import typer


def score(
    run: list[Path] = typer.Option(
        [], "--run", help="A run folder; several score together (ensemble). (default: the run in the package)"
    ),
    source: Path | None = typer.Option(None, "--source", help="Sentences, one a line (.gz, .xz, .zst too)."),
    target: Path | None = typer.Option(None, "--target", help="Their translations, line by line."),
    file: Path | None = typer.Option(None, "--file", help="Both sides in one file instead: TSV or JSONL."),
    words: bool = typer.Option(False, "--words", help="Add each token's own log-probability."),
    skip: bool = typer.Option(
        False, "--skip", help="Pass over pairs that cannot be scored (empty, too long): an empty line."
    ),
    output: Path | None = typer.Option(None, "--output", help="Write this file instead of stdout."),
    tag: str | None = typer.Option(None, "--tag", help="The language of the targets, where the model knows several."),
    device: str = typer.Option("auto", help="auto, cpu, cuda or mps."),
) -> None:
    """Print how likely a model finds translations: log-probability, the same per token, and tokens (with <eos>)."""
    from jumok import api
    from jumok.streaming import open_output, refuse_sources
    from jumok.streaming.scores import Scores, corpus_of, line_of

    corpus = corpus_of(source, target, file)
    scores = Scores(api.load_translator(run, device).tagged(tag), corpus, skip)
    refuse_sources(output, source, target, file)
    each = iter(scores)
    ahead = list(islice(each, 1))  # files that cannot be read are refused before the output is touched
    with open_output(output) as begun:
        for one in chain(ahead, each):
            begun.write([line_of(one, words)])
    typer.echo(scores.summary(), err=True)
