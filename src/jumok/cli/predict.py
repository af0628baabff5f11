"""`jumok predict`, `jumok embed` and `jumok fill`: what a model that reads texts says about yours."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import typer

from jumok.cli.typed import require_text
from jumok.errors import BadInput

RUN = typer.Option(..., "--run", help="A run folder.")
DEVICE = typer.Option("auto", help="auto, cpu, cuda or mps.")
AT_ONCE = 1024  # lines


def _lines(file: Path | None) -> Iterator[str]:
    from jumok.data.readers import read_lines

    if file is not None:
        yield from read_lines(file)
        return
    for number, line in enumerate(sys.stdin.buffer, 1):
        try:
            yield line.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise BadInput(f"standard input, line {number}: not UTF-8 (byte {error.start + 1})") from None


def _chunks(lines: Iterable[str]) -> Iterator[list[str]]:
    chunk: list[str] = []
    for line in lines:
        chunk.append(line)
        if len(chunk) == AT_ONCE:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def predict(
    run: Path = RUN,
    file: Path | None = typer.Argument(
        None, help="Texts, one a line (two with a tab between for pairs); SQuAD JSON for questions. (default: stdin)"
    ),
    question: str | None = typer.Option(None, "--question", help="Answering: what to ask."),
    context: str | None = typer.Option(None, "--context", help="Answering: the text to find it in."),
    best: int = typer.Option(1, min=1, help="How many labels or answers to tell."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON, an object a line."),
    device: str = DEVICE,
) -> None:
    """Labels, numbers or tags for your texts, one a line; answers to your questions."""
    from jumok import api

    require_text(question=question, context=context)
    model = api.load(run, device)
    if isinstance(model, api.TrainedAnswerer):
        _answer(model, file, question, context, best, as_json)
        return
    if question is not None or context is not None:
        raise BadInput(f"--question and --context are for runs that answer; {run} has learned {model.recipe.task}")
    if isinstance(model, api.TrainedTagger):
        for chunk in _chunks(_lines(file)):
            words = [line.split() for line in chunk]
            for line, tags in zip(words, model.predict(words), strict=True):
                if as_json:
                    typer.echo(json.dumps({"words": line, "tags": tags}, ensure_ascii=False))
                else:
                    typer.echo("".join(f"{word}\t{tag}\n" for word, tag in zip(line, tags, strict=True)))
        return
    if not isinstance(model, api.TrainedClassifier):
        raise BadInput(f"{run} has learned {model.recipe.task}: there is nothing it could say about a text")
    for chunk in _chunks(_lines(file)):
        texts = [_text(line) for line in chunk]
        for text, said in zip(texts, model.predict(texts), strict=True):
            ranked = sorted(said.probabilities.items(), key=lambda item: -item[1])[:best]
            if as_json:
                about = {"text": text[0]} | ({"second": text[1]} if text[1] is not None else {})
                told = {"probabilities": dict(ranked)} if ranked else {}
                label: str | float = said.label if ranked else float(said.label)
                typer.echo(json.dumps({**about, "label": label, **told}, ensure_ascii=False))
            else:
                typer.echo("\t".join(f"{name}\t{share:.4f}" for name, share in ranked) or said.label)


def _text(line: str) -> tuple[str, str | None]:
    first, tab, second = line.partition("\t")
    return first, second if tab else None


def _answer(  # type: ignore[no-untyped-def]
    model, file: Path | None, question: str | None, context: str | None, best: int, as_json: bool
) -> None:
    from jumok.data.examples import Question
    from jumok.data.squad import read_questions

    if file is not None and (question is not None or context is not None):
        raise BadInput("give a file with questions, or --question and --context, not both")
    if file is not None:
        questions = read_questions([file], answered=False)
    elif question is None or context is None:
        raise BadInput("give --question and --context, or a file with questions (SQuAD's JSON, or JSONL)")
    else:
        questions = [Question(question, context)]
    if any(not one.question.strip() or not one.context.strip() for one in questions):
        raise BadInput("a question and a context are needed, and one of them is empty")
    for one, found in zip(questions, model.answers(questions, best), strict=True):
        answers = [found.best, *found.others][:best]
        if as_json:
            told = [{"text": each.text, "start": each.start, "probability": each.probability} for each in answers]
            about = {"id": one.identity} if one.identity else {}
            typer.echo(json.dumps({**about, "question": one.question, "answers": told}, ensure_ascii=False))
        else:
            name = f"{one.identity}\t" if one.identity else ""
            for each in answers:
                typer.echo(f"{name}{each.text or '(no answer)'}\t{each.probability:.4f}")


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
    import numpy as np

    from jumok import api
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
    model = api.load(run, device)
    if not isinstance(model, api.TrainedReader):
        raise BadInput(f"{run} has learned {model.recipe.task}: vectors come from a BERT or a run made from one")
    found = [model.embed(chunk, pooling, not raw) for chunk in _chunks(_lines(file))]
    if not found:
        raise BadInput("there are no texts")
    vectors = np.concatenate(found)
    if suffix == ".npy":
        np.save(str(output), vectors)
    elif suffix == ".safetensors":
        from safetensors.numpy import save_file

        save_file({"embeddings": vectors}, str(output))
    else:
        text = "".join("\t".join(f"{value:.6g}" for value in row) + "\n" for row in vectors)
        if output is None:
            sys.stdout.write(text)
        else:
            output.write_text(text, encoding="utf-8", newline="\n")
    if output is not None:
        typer.echo(f"{vectors.shape[0]:,} vectors of {vectors.shape[1]} numbers: {output}")


def fill(
    text: str = typer.Argument(..., help='A text with [MASK] where a word is to be guessed: "나는 [MASK] 이다".'),
    run: Path = RUN,
    best: int = typer.Option(5, min=1, help="How many guesses to show for each."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
    device: str = DEVICE,
) -> None:
    """Which words stand where [MASK] stands, by a pretrained model."""
    from jumok import api

    require_text(text=text)
    model = api.load(run, device)
    if not isinstance(model, api.TrainedFiller):
        raise BadInput(f"{run} has learned {model.recipe.task}: hidden words are guessed by a pretrained run")
    found = model.fill(text, best)
    if as_json:
        places = [[{"token": g.token, "probability": g.probability, "text": g.text} for g in one] for one in found]
        typer.echo(json.dumps(places, ensure_ascii=False, indent=1))
        return
    for number, guesses in enumerate(found, 1):
        if len(found) > 1:
            typer.echo(f"[MASK] {number}:")
        for guess in guesses:
            typer.echo(f"{guess.probability:7.2%}  {guess.token}\t{guess.text}")
