"""`jumok predict`, `jumok embed` and `jumok fill`: what a model says about your texts (or images)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from jumok.cli.predict_notes import Cut, Tabs, Unknown
from jumok.cli.typed import require_text
from jumok.errors import BadInput, Failure

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from jumok.api import TrainedAnswerer, TrainedClassifier, TrainedReader, TrainedTagger
    from jumok.data.examples import Question
    from jumok.tasks.answerer import Found

RUN = typer.Option(..., "--run", help="A run folder.")
DEVICE = typer.Option("auto", help="auto, cpu, cuda or mps.")
AT_ONCE = 1024  # lines
CHARACTERS = 4_000_000  # of the lines that are read at once, but for a line that has more by itself


def _chunks(file: Path | None) -> Iterator[tuple[int, list[str]]]:
    """Lines, with the number of those before them: of a file many at once, of a pipe what has come so far."""
    from jumok.streaming import Source

    for gathered in Source(path=file).chunks(AT_ONCE):
        lines: list[str] = []
        size = 0
        for place, sentence in enumerate(gathered.sentences):
            if lines and size + len(sentence.text) > CHARACTERS:
                yield gathered.first + place - len(lines), lines
                lines, size = [], 0
            lines.append(sentence.text)
            size += len(sentence.text)
        yield gathered.first + len(gathered.sentences) - len(lines), lines


def _load(run: Path, device: str) -> TrainedReader:
    """A run that reads texts, whose weights are numbers."""
    from jumok import api
    from jumok.inspect.healthy import require_numbers

    _refuse_words_in_pictures(run)
    model = api.load(run, device)
    if not isinstance(model, api.TrainedReader):
        told = api.other_task(model.recipe.task, run)
        raise BadInput(f"this needs a BERT, or a run that was made for reading: {run} has learned {told}")
    require_numbers(model.model)
    return model


def _refuse_words_in_pictures(run: Path) -> None:
    from jumok import api

    if api.task_of(run) == "recognition":
        raise BadInput(
            f"{run} has learned to read words in pictures, and this is for texts: jumok read --run {run} word.png"
        )


def _require_finite(run: Path, values: npt.ArrayLike) -> None:
    import numpy as np

    if not np.isfinite(values).all():
        raise Failure(f"{run}: what the model computes is not a number. Its weights may have diverged")


def predict(
    run: Path = RUN,
    files: list[str] | None = typer.Argument(
        None,
        help="Texts, one a line (two with a tab between for pairs); SQuAD JSON for questions; images, folders or "
        "patterns of them. (default: stdin; of images, their paths)",
    ),
    question: str | None = typer.Option(None, "--question", help="Answering: what to ask."),
    context: str | None = typer.Option(None, "--context", help="Answering: the text to find it in."),
    best: int = typer.Option(1, min=1, help="How many labels or answers to tell."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON, an object a line."),
    as_csv: bool = typer.Option(False, "--csv", help="Images: print CSV with a header."),
    device: str = DEVICE,
) -> None:
    """Labels, numbers or tags for your texts, one a line; answers to your questions; classes of your images."""
    from jumok import api
    from jumok.streaming import open_output

    require_text(question=question, context=context)
    _refuse_words_in_pictures(run)  # whatever else is asked for
    if api.task_of(run) == "vision":
        from jumok.cli.predict_images import predict_images

        if question is not None or context is not None:
            raise BadInput(f"--question and --context are for runs that answer; {run} has learned vision")
        predict_images(run, files or [], best, as_json, as_csv, device)
        return
    if as_csv:
        raise BadInput("--csv is for images; texts have --json")
    if files and len(files) > 1:
        raise BadInput(f"{len(files)} files are given: name one, or pipe them in (cat … | jumok predict --run {run})")
    file = Path(files[0]) if files else None
    model = _load(run, device)
    if isinstance(model, api.TrainedFiller):
        raise BadInput(f"{run} has learned {model.recipe.task}: start a task from it (jumok train classify --start …)")
    if isinstance(model, api.TrainedAnswerer):
        _answer(model, file, question, context, best, as_json)
        return
    if question is not None or context is not None:
        raise BadInput(f"--question and --context are for runs that answer; {run} has learned {model.recipe.task}")
    if best > 1 and not (isinstance(model, api.TrainedClassifier) and model.labels):
        said = "one tag for each word" if isinstance(model, api.TrainedTagger) else "one number for each text"
        raise BadInput(f"--best {best}: {run} tells {said}, and there is no next best")
    unknown, cut, tabs = Unknown(model.tokenizer), Cut(model), Tabs(getattr(model, "pairs", None))
    with open_output(None) as output:
        for before, lines in _chunks(file):
            if isinstance(model, api.TrainedTagger):
                output.write(_tags(model, lines, as_json))
            else:
                assert isinstance(model, api.TrainedClassifier)
                texts = [_text(line, number, model.pairs) for number, line in enumerate(lines, before + 1)]
                output.write(_labels(model, texts, best, as_json))
                cut.see(texts, model.model.apart)
                tabs.see(lines)
            unknown.count(lines)
    for note in (unknown, cut, tabs):
        note.tell()


def _tags(model: TrainedTagger, lines: Sequence[str], as_json: bool) -> list[str]:
    """A word and its tag on each line, an empty line behind each sentence."""
    words = [line.split() for line in lines]
    found = zip(words, model.predict(words), strict=True)
    if as_json:
        return [json.dumps({"words": line, "tags": tags}, ensure_ascii=False) for line, tags in found]
    return ["".join(f"{word}\t{tag}\n" for word, tag in zip(line, tags, strict=True)) for line, tags in found]


def _labels(model: TrainedClassifier, texts: Sequence[tuple[str, str | None]], best: int, as_json: bool) -> list[str]:
    found, told = model.predict(texts), []
    _require_finite(model.run.path, [one.probability if one.probabilities else float(one.label) for one in found])
    for text, said in zip(texts, found, strict=True):
        ranked = sorted(said.probabilities.items(), key=lambda item: -item[1])[:best]
        if as_json:
            about = {"text": text[0]} | ({"second": text[1]} if text[1] is not None else {})
            shares = {"probabilities": dict(ranked)} if ranked else {}
            label: str | float = said.label if ranked else float(said.label)
            told.append(json.dumps({**about, "label": label, **shares}, ensure_ascii=False))
        else:
            told.append("\t".join(f"{name}\t{share:.4f}" for name, share in ranked) or said.label)
    return told


def _text(line: str, number: int, pairs: bool | None) -> tuple[str, str | None]:
    """What is on a line: two texts with a tab between, where the run has learned from pairs (or nobody knows)."""
    first, tab, second = line.partition("\t")
    if pairs is False:
        return line, None
    if pairs and not tab and line.strip():
        raise BadInput(f"line {number}: this run has learned from pairs of texts: write both, with a tab between them")
    return first, second if tab or pairs else None


def _answer(
    model: TrainedAnswerer, file: Path | None, question: str | None, context: str | None, best: int, as_json: bool
) -> None:
    from jumok.data.examples import Question
    from jumok.data.rows import about_cut
    from jumok.data.squad import read_questions
    from jumok.streaming import open_output
    from jumok.tasks.answerer import long_questions, question_limit

    if file is not None and (question is not None or context is not None):
        raise BadInput("give a file with questions, or --question and --context, not both")
    if (question is None) != (context is None):
        given, missing = ("--question", "--context") if context is None else ("--context", "--question")
        raise BadInput(f"{given} is given, but {missing} is missing")
    if file is not None:
        questions = read_questions([file], answered=False)
    elif question is None or context is None:
        raise BadInput("give --question and --context, or a file with questions (SQuAD's JSON, or JSONL)")
    else:
        questions = [Question(question, context)]
    for one in questions:
        if not one.question.strip() or not one.context.strip():
            name = f"{file}, question {one.identity}: " if file is not None else ""
            raise BadInput(f"{name}a question and a context are needed, and one of them is empty")
    unknown = Unknown(model.tokenizer)
    with open_output(None) as output:
        for start in range(0, len(questions), AT_ONCE):
            part = questions[start : start + AT_ONCE]
            for one, found in zip(part, model.answers(part, best), strict=True):
                answers = [found.best, *found.others][:best]
                _require_finite(model.run.path, [each.probability for each in answers])
                output.write(_answers(one, answers, as_json))
            unknown.count([text for one in part for text in (one.question, one.context)])
    unknown.tell()
    cut = long_questions(model.tokenizer, questions, model.limit)
    if cut:
        key = "a third of data.max_length"
        told = about_cut(cut, len(questions), question_limit(model.limit), key, "questions")
        typer.echo(f"note: {told}", err=True)


def _answers(one: Question, answers: Sequence[Found], as_json: bool) -> list[str]:
    if as_json:
        told = [{"text": each.text, "start": each.start, "probability": each.probability} for each in answers]
        about = {"id": one.identity} if one.identity else {}
        return [json.dumps({**about, "question": one.question, "answers": told}, ensure_ascii=False)]
    name = f"{one.identity}\t" if one.identity else ""
    return [f"{name}{_on_a_line(each.text) or '(no answer)'}\t{each.probability:.4f}" for each in answers]


def _on_a_line(text: str) -> str:
    """A context may have lines and tabs of its own; a line of the output is one answer."""
    return " ".join(text.split())


def embed(
    run: Path = RUN,
    file: Path | None = typer.Argument(None, help="Texts, one a line. (default: stdin)"),
    output: Path | None = typer.Option(
        None, "--output", help="Write the vectors here: .npy, .safetensors, or .tsv. (default: TSV to stdout)"
    ),
    pooling: str = typer.Option("mean", help="mean (over all tokens), first (the [CLS] vector) or max."),
    raw: bool = typer.Option(False, "--raw", help="Leave the vectors as long as they are, instead of length 1."),
    device: str = DEVICE,
) -> None:
    """Texts as vectors: similar texts are near each other (their inner product is the cosine)."""
    from jumok.tasks.embedder import POOLINGS

    if pooling not in POOLINGS:
        raise BadInput(f"--pooling {pooling}: give {', '.join(POOLINGS)}")
    suffix = output.suffix if output is not None else ".tsv"
    if suffix not in (".npy", ".safetensors", ".tsv"):
        raise BadInput(f"--output {output}: name a .npy, .safetensors or .tsv file")
    if output is not None and (output.is_dir() or not output.absolute().parent.is_dir()):
        raise BadInput(f"--output {output}: name a file in a folder that exists")
    if output is not None and file is not None and output.exists() and output.samefile(file):
        raise BadInput(f"--output {output}: that is the text itself")
    model = _load(run, device)
    unknown, cut = Unknown(model.tokenizer), Cut(model)

    def vectors() -> Iterator[npt.NDArray[np.float32]]:
        for _, lines in _chunks(file):
            made = model.embed(lines, pooling, not raw)
            _require_finite(run, made)
            unknown.count(lines)
            cut.see(lines)
            yield made

    if output is None:
        _print_vectors(vectors())
    else:
        count, width = _write_vectors(vectors(), output)
        typer.echo(f"{count:,} vector{'s' * (count != 1)} of {width} numbers: {output}")
    unknown.tell()
    cut.tell()


def _rows(vectors: npt.NDArray[np.float32]) -> list[str]:
    return ["\t".join(f"{value:.6g}" for value in row) for row in vectors]


def _print_vectors(parts: Iterator[npt.NDArray[np.float32]]) -> None:
    from jumok.streaming import open_output

    count = 0
    with open_output(None) as output:
        for part in parts:
            output.write(_rows(part))
            count += len(part)
    if not count:
        raise BadInput("there are no texts")


def _write_vectors(parts: Iterator[npt.NDArray[np.float32]], output: Path) -> tuple[int, int]:
    """All or nothing: a file that is there is a whole one."""
    import os

    import numpy as np
    from safetensors.numpy import save_file

    from jumok.files import disk_errors_named

    found = list(parts)
    if not found:
        raise BadInput("there are no texts")
    vectors = np.concatenate(found)
    temporary = output.with_name(f".{output.name}.writing-{os.getpid()}{output.suffix}")
    with disk_errors_named("writing the vectors", output, "Free some space, or name another --output."):
        try:
            if output.suffix == ".npy":
                np.save(str(temporary), vectors)
            elif output.suffix == ".safetensors":
                save_file({"embeddings": vectors}, str(temporary))
            else:
                text = "".join(f"{row}\n" for row in _rows(vectors))
                temporary.write_text(text, encoding="utf-8", newline="\n")
            temporary.replace(output)
        finally:
            temporary.unlink(missing_ok=True)
    return vectors.shape[0], vectors.shape[1]


def fill(
    text: str = typer.Argument(..., help='A text with [MASK] where a word is to be guessed: "나는 [MASK] 이다".'),
    run: Path = RUN,
    best: int = typer.Option(5, min=1, help="How many guesses to show for each."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
    device: str = DEVICE,
) -> None:
    """Which words stand where [MASK] stands, by a pretrained model."""
    from jumok import api
    from jumok.interop.run_folder import HEADLESS

    require_text(text=text)
    model = _load(run, device)
    if not isinstance(model, api.TrainedFiller):
        raise BadInput(f"{run} has learned {model.recipe.task}: hidden words are guessed by a pretrained run")
    if model.recipe.imported is not None and HEADLESS in model.recipe.imported:
        typer.echo(
            f"note: {run} was imported {HEADLESS}: these guesses are random. Pretrain it first "
            f"(jumok train bert-tiny --start {run} --text …)",
            err=True,
        )
    found = model.fill(text, best)
    _require_finite(run, [guess.probability for guesses in found for guess in guesses])
    unknown = Unknown(model.tokenizer)
    unknown.count(text.split("[MASK]"))
    unknown.tell()
    if as_json:
        places = [[{"token": g.token, "probability": g.probability, "text": g.text} for g in one] for one in found]
        typer.echo(json.dumps(places, ensure_ascii=False, indent=1))
        return
    for number, guesses in enumerate(found, 1):
        if len(found) > 1:
            typer.echo(f"[MASK] {number}:")
        for guess in guesses:
            typer.echo(f"{guess.probability:7.2%}  {guess.token}\t{guess.text}")
