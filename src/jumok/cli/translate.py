"""`jumok translate`: stdin → stdout, or file → file, line by line, order kept."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import typer

from jumok.cli.typed import options_as_typed
from jumok.errors import BadInput

SEARCH, WORDS, SAMPLING, FILES = "Search", "What must and may not be written", "Sampling", "Files and output"


def translate(
    sentences: list[str] | None = typer.Argument(None, help="Sentences, each in quotes. Without them, stdin is read."),
    run: list[Path] = typer.Option(
        [], "--run", help="A run folder; several translate together (ensemble). (default: the run in the package)"
    ),
    tag: str | None = typer.Option(None, "--tag", help="The language to write, where the model knows several (2de)."),
    device: str = typer.Option("auto", help="auto, cpu, cuda or mps."),
    precision: str = typer.Option("float32", help="float32, bfloat16 or int8: less is faster, with small differences."),
    engine: str = typer.Option("torch", help="torch, ct2 (CTranslate2), onnx (onnxruntime), or fastest: measured."),
    # Search
    beam: int | None = typer.Option(
        None, help="Hypotheses kept at each step; 1 is greedy. (default: the recipe's)", rich_help_panel=SEARCH
    ),
    nbest: int = typer.Option(
        1, help="Translations per sentence; each line then begins with the sentence's number.", rich_help_panel=SEARCH
    ),
    length_penalty: float | None = typer.Option(
        None, help="Scores are divided by length to this power. (default: the recipe's)", rich_help_panel=SEARCH
    ),
    coverage_penalty: float | None = typer.Option(
        None, help="What a source word that was hardly looked at costs. (default: the recipe's)", rich_help_panel=SEARCH
    ),
    min_length: int = typer.Option(1, help="Fewest tokens, <eos> included.", rich_help_panel=SEARCH),
    max_length: int | None = typer.Option(
        None, help="Most tokens, <eos> included. (default: by the source's length)", rich_help_panel=SEARCH
    ),
    no_repeat_ngram: int | None = typer.Option(
        None, help="No so many tokens twice in the same order; 0: they may.", rich_help_panel=SEARCH
    ),
    batch: int | None = typer.Option(
        None, help="Sentences translated at once. (default: the recipe's)", rich_help_panel=SEARCH
    ),
    # What must and may not be written
    prefix: str = typer.Option("", help="How every translation begins.", rich_help_panel=WORDS),
    prefix_file: Path | None = typer.Option(
        None, help="The same for each sentence, one a line (empty: nothing).", rich_help_panel=WORDS
    ),
    require: list[str] = typer.Option(
        [], help="A phrase that every translation must hold; may be repeated.", rich_help_panel=WORDS
    ),
    require_file: Path | None = typer.Option(
        None, help="Phrases for each sentence, one sentence a line, tabs between them.", rich_help_panel=WORDS
    ),
    forbid: list[str] = typer.Option(
        [], help="A phrase that no translation may hold; may be repeated.", rich_help_panel=WORDS
    ),
    # Sampling
    sample: bool = typer.Option(
        False, "--sample", help="Draw words instead of searching for the best.", rich_help_panel=SAMPLING
    ),
    temperature: float = typer.Option(
        1.0, help="Below 1 unlikely words are rarer, above 1 more frequent.", rich_help_panel=SAMPLING
    ),
    top_k: int = typer.Option(0, help="Draw among the k likeliest; 0: among all.", rich_help_panel=SAMPLING),
    top_p: float = typer.Option(
        1.0, help="Draw among the likeliest that have this probability together.", rich_help_panel=SAMPLING
    ),
    seed: int = typer.Option(0, help="The same seed draws the same words.", rich_help_panel=SAMPLING),
    # Files and output
    input: Path | None = typer.Option(
        None, "--input", help="Read this file (.gz, .xz, .zst too) instead of stdin.", rich_help_panel=FILES
    ),
    output: Path | None = typer.Option(
        None, "--output", help="Write this file instead of stdout.", rich_help_panel=FILES
    ),
    resume: bool = typer.Option(
        False, "--resume", help="Go on with an --output that was interrupted.", rich_help_panel=FILES
    ),
    too_long: str = typer.Option(
        "error", help="Sentences over the model's limit: error, truncate or skip.", rich_help_panel=FILES
    ),
    scores: bool = typer.Option(
        False, "--scores", help="Add the score (log-probability by length) after a tab.", rich_help_panel=FILES
    ),
    alignments: bool = typer.Option(
        False, "--alignments", help="Add word alignments (source-target) after a tab.", rich_help_panel=FILES
    ),
    alignment_layer: int | None = typer.Option(
        None,
        help="A Transformer's layer to read them from, counted from 0. (default: the second to last)",
        rich_help_panel=FILES,
    ),
    alignment_head: int | None = typer.Option(
        None, help="Its head to read them from, counted from 0. (default: the mean of all)", rich_help_panel=FILES
    ),
) -> None:
    """Translate text, one sentence a line."""
    from jumok import api
    from jumok.inspect.view import View
    from jumok.streaming import Columns, Source, translate_stream, translate_together
    from jumok.tasks.wishes import BadSentence, Wishes
    from jumok.training.meeting import joined

    if (alignment_layer is not None or alignment_head is not None) and not alignments:
        raise BadInput("--alignment-layer and --alignment-head say where --alignments come from: give that too")
    names = tuple(field.name for field in fields(Wishes))
    with options_as_typed(*names):
        wishes = Wishes(
            nbest=nbest,
            beam=beam,
            length_penalty=length_penalty,
            coverage_penalty=coverage_penalty,
            min_length=min_length,
            max_length=max_length,
            no_repeat_ngram=no_repeat_ngram,
            sample=sample,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            seed=seed,
            prefix=prefix,
            require=tuple(require),
            forbid=tuple(forbid),
            batch=batch,
            too_long=too_long,
        )
    if prefix and prefix_file is not None:
        raise BadInput("--prefix and --prefix-file both say how translations begin: give one of them")
    with joined("What is written is safe") as ranks:
        model = api.load_translator(run, device, ranks.quiet(api.warn), precision).tagged(tag)
        with options_as_typed(*names):
            model.check(wishes)
            if engine != "torch":
                from jumok.interop.engines import engine_of

                files = {"--prefix-file": prefix_file, "--require-file": require_file}
                own = [option for option, file in files.items() if file is not None]
                say = ranks.quiet(api.warn)
                model.engine = engine_of(engine, model, model.run, precision, wishes, alignments, say, own)
        if alignments:
            View(alignment_layer, alignment_head).tap(model.model)  # what does not exist is refused before any work
        source = Source(sentences or (), input, prefix_file, require_file)
        columns = Columns(scores, alignments, alignment_layer, alignment_head)
        with ranks.speaking(), options_as_typed(*names, kind=BadSentence):
            if ranks.alone:
                translate_stream(model, source, wishes, columns, output, resume)
            else:
                translate_together(model, source, wishes, columns, output, resume, ranks)
