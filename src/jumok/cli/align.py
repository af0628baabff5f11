"""`jumok align`: which word of a translation comes from which."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from jumok.errors import BadInput

if TYPE_CHECKING:
    from jumok.api import TrainedTranslator
    from jumok.inspect.aligner import Aligner


def align(
    source: Path = typer.Option(..., "--source", help="Sentences, one a line."),
    target: Path = typer.Option(..., "--target", help="Their translations."),
    run: Path | None = typer.Option(
        None, "--run", help="A run folder that translates from source to target. (default: the run in the package)"
    ),
    reverse: Path | None = typer.Option(
        None, "--reverse", help="One that translates from target to source: the links of both are made into one."
    ),
    symmetrize: str = typer.Option(
        "grow-diag-final-and",
        "--symmetrize",
        help="How: intersection, union, grow-diag, grow-diag-final or grow-diag-final-and.",
    ),
    best_head_on: tuple[Path, Path, Path] | None = typer.Option(
        None,
        "--best-head-on",
        metavar="SOURCE TARGET GOLD",
        help="Choose layer, head, shift and reading (of both models) by these sentences with gold alignments.",
    ),
    layer: int | None = typer.Option(
        None, "--layer", help="A Transformer's layer, counted from 0. (default: the second to last)"
    ),
    head: int | None = typer.Option(None, "--head", help="Its head, counted from 0. (default: the mean of all)"),
    shift: bool = typer.Option(
        False, "--shift", help="Link a word from where the decoder reads it, not from where it predicts it."
    ),
    reading: str = typer.Option(
        "rows",
        "--reading",
        help="rows: each target word to the source word it looks at most; both: along both axes; balanced: source "
        "words share themselves out first.",
    ),
    reverse_layer: int | None = typer.Option(None, "--reverse-layer", help="As --layer, of the reverse model."),
    reverse_head: int | None = typer.Option(None, "--reverse-head", help="As --head, of the reverse model."),
    reverse_shift: bool = typer.Option(False, "--reverse-shift", help="As --shift, of the reverse model."),
    reverse_reading: str = typer.Option("rows", "--reverse-reading", help="As --reading, of the reverse model."),
    gold: Path | None = typer.Option(
        None, "--gold", help="Gold alignments of the pairs (Pharaoh): prints the error rate."
    ),
    one_based: bool = typer.Option(False, "--one-based", help="Gold alignments count words from 1."),
    out: Path | None = typer.Option(None, "--out", help="Write the links here. (default: standard output)"),
    tag: str | None = typer.Option(None, "--tag", help="The target language, where the model knows several (2de)."),
    reverse_tag: str | None = typer.Option(None, "--reverse-tag", help="As --tag, of the reverse model."),
    device: str = typer.Option("auto", help="auto, cpu, cuda or mps."),
) -> None:
    """Align the words of sentences and their translations by what the model attends to: a line of Pharaoh links for
    each pair, source word-target word, counted from 0."""
    from jumok import api
    from jumok.data.pharaoh import format_pharaoh
    from jumok.data.readers import read_pairs
    from jumok.files import check_file_place
    from jumok.inspect.aligner import Aligner, Scoring, whole_lines
    from jumok.inspect.alignment import read_gold
    from jumok.inspect.symmetric import method_named
    from jumok.inspect.view import View
    from jumok.recipe import Corpus
    from jumok.streaming import open_output, refuse_sources

    chosen = (
        View(layer, head, shift=shift, reading=reading),
        View(reverse_layer, reverse_head, shift=reverse_shift, reading=reverse_reading),
    )
    if best_head_on and chosen != (View(), View()):
        raise BadInput("--best-head-on finds layer, head, shift and reading by itself: leave the others out")
    if reverse is None and (chosen[1] != View() or reverse_tag is not None):
        raise BadInput("--reverse-layer, -head, -shift, -reading and -tag are about the --reverse run: name that too")
    method_named(symmetrize)
    refuse_sources(out, source, target, gold, *(best_head_on or ()))
    if out is not None:
        check_file_place(out)
    forward = api.load_translator(run, device).tagged(tag)
    backward = None if reverse is None else api.load_translator(reverse, device).tagged(reverse_tag)
    if best_head_on:
        aligner = _best(forward, backward, best_head_on, symmetrize, one_based)
    else:
        aligner = Aligner(forward, chosen[0], backward, chosen[1], symmetrize)
    pairs = read_pairs(Corpus(source=[str(source)], target=[str(target)]))
    scoring = None
    if gold is not None:  # what people have aligned by hand fits into memory
        known = list(pairs)
        scoring = Scoring(read_gold(gold, [one for one, _ in known], [other for _, other in known], one_based))
        pairs = iter(known)
    aligned = aligner.stream(pairs)
    aligned = aligned if scoring is None else scoring.passed(aligned)
    if out is None:
        with open_output(None) as begun:
            for links in aligned:
                begun.write([format_pharaoh(links)])
    else:
        with whole_lines(out) as write:
            for links in aligned:
                write(format_pharaoh(links))
    if scoring is not None:
        score = scoring.total
        rates = f"precision {score.precision:.3f}, recall {score.recall:.3f}"
        typer.echo(f"AER {score.error_rate:.4f}   {rates} ({aligner.name})", err=out is None)
    if aligner.cut:
        typer.echo(f"{aligner.cut} pairs were too long for the model: their last words have no links", err=True)


def _best(
    forward: TrainedTranslator,
    backward: TrainedTranslator | None,
    files: tuple[Path, Path, Path],
    method: str,
    one_based: bool,
) -> Aligner:
    from jumok.data.readers import read_pairs
    from jumok.inspect.aligner import Aligner
    from jumok.inspect.alignment import read_gold
    from jumok.recipe import Corpus

    pairs = list(read_pairs(Corpus(source=[str(files[0])], target=[str(files[1])])))
    sources, targets = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    aligner = Aligner.best(
        forward, sources, targets, read_gold(files[2], sources, targets, one_based), backward, method
    )
    typer.echo(f"best on {files[2]}: {aligner.name}", err=True)
    return aligner
