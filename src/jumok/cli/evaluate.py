"""`jumok evaluate`: scores that others can compare."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from jumok.cli.typed import options_as_typed
from jumok.cli.words import TRUST, WORDS, known_words
from jumok.errors import BadInput

if TYPE_CHECKING:
    from jumok.tasks.known_words import KnownWords

WRITTEN = {"--report": "page", "--sheet": "sheet", "--confusion": "picture"}


def evaluate(
    run: list[Path] = typer.Option(
        [], "--run", help="A run folder; several translate together (ensemble). (default: the run in the package)"
    ),
    source: Path | None = typer.Option(None, "--source", help="Sentences to translate, one a line."),
    reference: Path | None = typer.Option(None, "--reference", help="Their true translations."),
    text: Path | None = typer.Option(None, "--text", help="Language models: the text to measure."),
    stride: int | None = typer.Option(
        None, help="Transformer language models: tokens between windows. (default: half a window)"
    ),
    data: list[Path] | None = typer.Option(
        None,
        "--data",
        help="Labels, tags, answers: the examples to judge (TSV, CSV, JSONL, CoNLL, SQuAD JSON); images: a folder, "
        "tar, zip or table of paths; words in pictures: with a labels file, or LMDB.",
    ),
    field: list[str] | None = typer.Option(
        None, "--field", help="Where in --data things are: text=…, second=…, label=… (default: as in training)"
    ),
    report: Path | None = typer.Option(None, "--report", help="Write a page to browse the errors of --data."),
    sheet: Path | None = typer.Option(
        None, "--sheet", help="Images: draw the most confident mistakes of --data (PNG)."
    ),
    confusion: Path | None = typer.Option(
        None, "--confusion", help="Classes: draw what was taken for what in --data (PNG, SVG)."
    ),
    words: list[Path] | None = WORDS,
    trust: float | None = TRUST,
    csv: list[Path] | None = typer.Option(
        None, "--csv", help="Forecasters: score the whole of this file. (default: the run's test part)"
    ),
    column: str | None = typer.Option(None, "--column", help="Its column, by name or number. (default: the recipe's)"),
    alignments: Path | None = typer.Option(
        None, "--alignments", help="Gold alignments (Pharaoh): prints the error rate."
    ),
    alignment_layer: int | None = typer.Option(
        None, help="A Transformer's layer to read alignments from, counted from 0. (default: the second to last)"
    ),
    alignment_head: int | None = typer.Option(None, help="Its head, counted from 0. (default: the mean of all)"),
    one_based: bool = typer.Option(False, "--one-based", help="The gold alignments count words from 1."),
    beam: int | None = typer.Option(None, help="Hypotheses kept at each step. (default: the recipe's)"),
    length_penalty: float | None = typer.Option(
        None, help="Scores are divided by length to this power. (default: the recipe's)"
    ),
    coverage_penalty: float | None = typer.Option(
        None, help="What a source word that was hardly looked at costs. (default: the recipe's)"
    ),
    batch: int | None = typer.Option(None, help="Sentences translated at once. (default: the recipe's)"),
    precision: str = typer.Option("float32", help="float32, bfloat16 or int8: less is faster, with small differences."),
    tutorial: bool = typer.Option(False, "--tutorial", help="Print lower-cased, tokenised BLEU too, as tutorials do."),
    output: Path | None = typer.Option(None, "--output", help="Write the translations here."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
    tag: str | None = typer.Option(None, "--tag", help="The language to write, where the model knows several (2de)."),
    device: str = typer.Option("auto", help="auto, cpu, cuda or mps."),
) -> None:
    """Translate a test set and score it (BLEU and chrF with signatures, alignment error rate), judge labels, tags,
    answers and images, measure the perplexity of a text, or the errors of a forecaster."""
    from jumok import api
    from jumok.data.readers import read_lines
    from jumok.evaluation import evaluate as evaluate_run
    from jumok.streaming import refuse_sources
    from jumok.tasks.wishes import Wishes

    if output is not None and (output.is_dir() or not output.absolute().parent.is_dir()):
        raise BadInput(f"--output {output}: name a file in a folder that exists")
    alone = run[0] if len(run) == 1 else None
    files = {"--report": report, "--sheet": sheet, "--confusion": confusion}
    if data or field or any(file is not None for file in files.values()):
        if alone is None or not data or any(each is not None for each in (source, reference, text)):
            raise BadInput(
                "--data needs one --run (of labels, tags, answers or images) and no --source, --reference or --text"
            )
        _judge(alone, data, field or [], files, as_json, device, known_words(words, trust))
        return
    if words or trust is not None:
        raise BadInput("--words are for words in pictures: give --data, pictures of words and a labels file")
    if csv or (alone is not None and api.task_of(alone) == "forecasting"):
        if alone is None or any(each is not None for each in (source, reference, text)):
            raise BadInput("a forecaster is scored with --run and, where it should be another series, --csv alone")
        forecaster = api.load_forecaster(alone, device)
        scores = forecaster.evaluate(forecaster.read(csv, column) if csv else None)
        typer.echo(json.dumps(scores.to_json(), ensure_ascii=False, indent=1) if as_json else scores.summary())
        return
    if text is not None:
        if alone is None or source is not None or reference is not None:
            raise BadInput("--text needs --run with a language model, and neither --source nor --reference")
        found = api.load_language_model(alone, device).perplexity(read_lines(text), stride)
        typer.echo(json.dumps(found.to_json(), ensure_ascii=False, indent=1) if as_json else found.summary())
        return
    if alignments is None and (alignment_layer is not None or alignment_head is not None):
        raise BadInput("--alignment-layer and --alignment-head say what --alignments are compared with: give that too")
    if source is None or reference is None:
        raise BadInput(_what_to_give(None if alone is None else (alone, api.task_of(alone))))
    refuse_sources(output, source, reference, alignments)
    model = api.load_translator(run, device, precision=precision).tagged(tag)
    asked = {
        "beam": beam,
        "length_penalty": length_penalty,
        "coverage_penalty": coverage_penalty,
        "batch": batch,
    }
    with options_as_typed(*asked):
        model.check(Wishes(**asked))  # type: ignore[arg-type]
    result = evaluate_run(
        model,
        source,
        reference,
        alignments,
        one_based=one_based,
        tutorial=tutorial,
        layer=alignment_layer,
        head=alignment_head,
        **asked,
    )
    if output is not None:
        output.write_text("".join(line + "\n" for line in result.outputs), encoding="utf-8", newline="\n")
    typer.echo(json.dumps(result.to_json(), ensure_ascii=False, indent=1) if as_json else result.summary())


def _what_to_give(run: tuple[Path, str] | None) -> str:
    if run is None:
        return "give --source and --reference (a translator), --text (a language model) or --data (labels)"
    path, task = run
    if task in ("translation", "language"):
        return f"{path} has learned {task}: give {'--text' if task == 'language' else '--source and --reference'}"
    if task == "pretraining":
        return f"{path} has learned pretraining: how well it guesses is told by its validations (jumok runs {path})"
    given = {"vision": "images", "recognition": "pictures of words and a labels file"}.get(task, "labelled examples")
    return f"{path} has learned {task}: give --data with {given}"


def _judge(
    run: Path,
    data: list[Path],
    fields: list[str],
    files: dict[str, Path | None],
    as_json: bool,
    device: str,
    words: KnownWords | None,
) -> None:
    from jumok import api
    from jumok.inspect.judging import check_pictures, judge
    from jumok.recipe import FieldsSection

    written = {option: file for option, file in files.items() if file is not None}
    for option, file in written.items():
        _check_place(option, file, data, [other for name, other in written.items() if name != option])
    named: dict[str, int | str] = {}
    for field in fields:
        name, equals, column = field.partition("=")
        if not equals or name not in FieldsSection.model_fields:
            raise BadInput(f"--field {field}: write text=…, second=… or label=… with a column's name or number")
        named[name] = int(column) if column.lstrip("-").isdecimal() else column
    report, sheet, confusion = files["--report"], files["--sheet"], files["--confusion"]
    check_pictures(api.task_of(run), sheet, confusion)
    model = api.load(run, device)
    asked = FieldsSection(**named) if named else None
    try:
        found = judge(model, data, asked, report, sheet=sheet, confusion=confusion, words=words)
    except BadInput as error:  # columns are said by an option here
        raise BadInput(str(error).replace("data.train.fields.", "--field ")) from None
    typer.echo(json.dumps(found.scores.to_json(), ensure_ascii=False, indent=1) if as_json else found.scores.summary())
    for note in found.notes:
        typer.echo(f"note: {note}", err=as_json)  # who reads JSON must hear of it, too
    for option, file in written.items() if not as_json else ():
        typer.echo(f"{WRITTEN[option]}: {file}")


def _check_place(option: str, file: Path, data: list[Path], others: list[Path]) -> None:
    """Refuse a place that is none, or where something would be lost or mixed up."""
    if file.is_dir() or not file.absolute().parent.is_dir():
        raise BadInput(f"{option} {file}: name a file in a folder that exists")
    place = file.resolve()
    for each in data:
        if place == each.resolve():
            raise BadInput(f"{option} {file}: that is the data itself")
        if option != "--report" and each.is_dir() and each.resolve() in place.parents:
            raise BadInput(f"{option} {file}: that is among the data ({each}), and would be read as a part of it")
    if place in (other.resolve() for other in others):
        raise BadInput(f"{option} {file}: two files under one name")
