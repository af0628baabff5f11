"""Questions about a text whose answer is a stretch of it, in the files of SQuAD 1.1 and 2.0 (Rajpurkar et al. 2016,
2018), which KorQuAD and others share:

    {"data": [{"title": …, "paragraphs": [{"context": …, "qas": [
        {"id": …, "question": …, "answers": [{"text": …, "answer_start": 17}], "is_impossible": false}]}]}]}

or flat, one object a line: `{"id", "question", "context", "answers": […]}`, or with `"answer"` and `"start"` for a
single answer. `"answers"` may also be the two arrays that Hugging Face writes. Each also compressed.

A place is counted in characters (code points) of the context. An answer that is not at its place is refused, even where
it could be found elsewhere: whether that is the one that was meant cannot be known.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

from jumok.data.compression import without_compression
from jumok.data.examples import Answer, Question
from jumok.data.json_values import json_objects, json_text, named_items, parse_json
from jumok.data.readers import json_kind, read_lines
from jumok.errors import BadInput


def read_questions(files: Sequence[str | Path], answered: bool = True) -> list[Question]:
    """All questions of the files in order, each with all of its answers, equal ones once.

    Where they are not `answered`, answers are neither needed nor read.
    """
    if not files:
        raise BadInput("no file with questions was given")
    questions: list[Question] = []
    seen: dict[str, str] = {}
    for file in files:
        before = len(questions)
        for where, question in _from_file(file, answered):
            if question.identity in seen:
                raise BadInput(f'{where}: the id "{question.identity}" was there before: {seen[question.identity]}')
            seen[question.identity] = where
            questions.append(question)
        if len(questions) == before:
            raise BadInput(f"{file}: there is no question in it")
    return questions


def split_by_article(questions: Sequence[Question], share: float, seed: int) -> tuple[list[Question], list[Question]]:
    """The questions in two parts, the second about the `share` of all; those of an article are in one part.

    Which articles are held out follows from their titles and the seed, not from the order they come in. Questions
    without a title go by their context.
    """
    if not 0 < share < 1:
        raise BadInput(f"the share of questions to hold out is between 0 and 1, not {share}")
    sizes = Counter(_article(question) for question in questions)
    if len(sizes) < 2:
        raise BadInput(f"{len(questions)} questions on {len(sizes)} article cannot be split by article: give two files")
    order = sorted(sizes, key=lambda article: hashlib.sha256(f"{seed}\0{article}".encode()).digest())
    goal = share * len(questions)
    held_out: set[str] = set()
    count = 0
    for article in order[:-1]:  # the last one stays, so that neither part is empty
        if not held_out or count + sizes[article] / 2 <= goal:
            held_out.add(article)
            count += sizes[article]
    parts: tuple[list[Question], list[Question]] = ([], [])
    for question in questions:
        parts[_article(question) in held_out].append(question)
    return parts


def _article(question: Question) -> str:
    return f"title {question.title}" if question.title else f"context {question.context}"


# ---------------------------------------------------------------- files


def _from_file(file: str | Path, answered: bool) -> Iterator[tuple[str, Question]]:
    """The questions and their places, for messages. A file is flat by its suffix, or by its first line."""
    lines = read_lines(file)
    skipped = 0
    first = next(lines, None)
    while first is not None and not first.strip():
        skipped += 1
        first = next(lines, None)
    if first is None:
        raise BadInput(f"{file}: the file is empty")
    if without_compression(file).suffix.lower() in (".jsonl", ".ndjson") or _is_flat(first):
        yield from _flat(file, chain([""] * skipped, [first], lines), answered)
    else:
        text = "\n" * skipped + "\n".join(chain([first], lines))
        yield from _nested(file, parse_json(text, str(file)), answered)


def _is_flat(line: str) -> bool:
    """Whether the first line is an object of its own with a question in it."""
    if not line.rstrip().endswith("}"):
        return False
    try:
        row = parse_json(line, "")
    except BadInput:
        return False
    return isinstance(row, dict) and "data" not in row and "question" in row


def _flat(file: str | Path, lines: Iterator[str], answered: bool) -> Iterator[tuple[str, Question]]:
    for number, row in json_objects(file, lines, as_written=False):
        where = f"{file}, line {number}"
        context = _text(row, "context", where, "")
        yield where, _question(file, where, "", row, context, _title(row, where, ""), answered)


def _nested(file: str | Path, whole: Any, answered: bool) -> Iterator[tuple[str, Question]]:
    where = str(file)
    for at_article, article in _objects(whole, "data", where, ""):
        title = _title(article, where, at_article)
        for at_paragraph, paragraph in _objects(article, "paragraphs", where, at_article):
            context = _text(paragraph, "context", where, at_paragraph)
            for at_question, row in _objects(paragraph, "qas", where, at_paragraph):
                yield f"{where}, {at_question}", _question(file, where, at_question, row, context, title, answered)


# ---------------------------------------------------------------- one question


def _question(
    file: str | Path, where: str, path: str, row: dict[str, Any], context: str, title: str, answered: bool
) -> Question:
    identity = _text(row, "id", where, path)
    question = _text(row, "question", where, path)
    answers: dict[Answer, None] = {}
    if answered:
        impossible = row.get("is_impossible", False)
        if not isinstance(impossible, bool):
            raise BadInput(f"{_at(where, path, 'is_impossible')}: true or false is needed, not {json_kind(impossible)}")
        for at, text, start in _answers(row, where, path, impossible):
            if impossible:
                raise BadInput(f'{_at(where, at)}: question "{identity}" is_impossible, and yet it has an answer')
            if context[start : start + len(text)] != text or start < 0:
                raise BadInput(f"{_at(where, at)}: {_misplaced(identity, context, text, start)}")
            answers[Answer(text, start)] = None
    return Question(question, context, tuple(answers), identity, title, str(file))


def _answers(row: dict[str, Any], where: str, path: str, impossible: bool) -> Iterator[tuple[str, str, int]]:
    """Path, text and start of each answer, in any of the ways to write them."""
    if "answers" not in row and "answer" in row:
        if row["answer"] is not None:  # null: there is none
            yield _join(path, "answer"), *_answer(row, ("answer",), ("start", "answer_start"), where, path)
        return
    if "answers" not in row and impossible:
        return
    answers = _get(row, ("answers",), where, path)
    at = _join(path, "answers")
    if isinstance(answers, dict):
        texts, starts = (_array(answers, key, where, at) for key in ("text", "answer_start"))
        if len(texts) != len(starts):
            raise BadInput(f'{_at(where, at)}: {len(texts)} in "text" and {len(starts)} in "answer_start"')
        answers = [{"text": text, "answer_start": start} for text, start in zip(texts, starts, strict=True)]
    for number, answer in enumerate(_array({"answers": answers}, "answers", where, path)):
        place = f"{at}[{number}]"
        if not isinstance(answer, dict):
            raise BadInput(f"{_at(where, place)}: an object is needed, not {json_kind(answer)}")
        yield place, *_answer(answer, ("text",), ("answer_start", "start"), where, place)


def _answer(
    row: dict[str, Any], text_keys: Sequence[str], start_keys: Sequence[str], where: str, path: str
) -> tuple[str, int]:
    text = json_text(_get(row, text_keys, where, path), f"{_at(where, path, text_keys[0])}:")
    if not text:
        raise BadInput(
            f"{_at(where, path, text_keys[0])}: an empty answer. A question without one has an empty array of answers"
        )
    start = _get(row, start_keys, where, path)
    if not isinstance(start, int) or isinstance(start, bool):
        shown = f"{start}" if isinstance(start, float) else json_kind(start)
        raise BadInput(f"{_at(where, path, start_keys[0])}: a whole number is needed, not {shown}")
    return text, start


def _misplaced(identity: str, context: str, text: str, start: int) -> str:
    there = context[start : start + min(len(text), 60)] if start >= 0 else ""
    first = context.find(text)
    if first < 0:
        found = "It is nowhere in the context"
    elif context.find(text, first + 1) < 0:
        found = f"It is at {first}: correct answer_start"
    else:
        found = f"It is there more than once, first at {first}: correct answer_start"
    return (
        f'question "{identity}": the answer "{_short(text)}" is not at {_number(start)} of the context, '
        f'where "{_short(there)}" stands. {found} (places count characters from 0)'
    )


# ---------------------------------------------------------------- places in JSON


def _objects(row: Any, key: str, where: str, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    if not isinstance(row, dict):
        raise BadInput(f"{_at(where, path)}: an object is needed, not {json_kind(row)}")
    for number, value in enumerate(_array(row, key, where, path)):
        at = f"{_join(path, key)}[{number}]"
        if not isinstance(value, dict):
            raise BadInput(f"{_at(where, at)}: an object is needed, not {json_kind(value)}")
        yield at, value


def _array(row: dict[str, Any], key: str, where: str, path: str) -> list[Any]:
    value = _get(row, (key,), where, path)
    if not isinstance(value, list):
        raise BadInput(f"{_at(where, path, key)}: an array is needed, not {json_kind(value)}")
    return value


def _text(row: dict[str, Any], key: str, where: str, path: str) -> str:
    text = json_text(_get(row, (key,), where, path), f"{_at(where, path, key)}:")
    if not text.strip():
        raise BadInput(f"{_at(where, path, key)}: is empty")
    return text


def _title(row: dict[str, Any], where: str, path: str) -> str:
    title = row.get("title")
    return "" if title is None else json_text(title, f"{_at(where, path, 'title')}:")


def _get(row: dict[str, Any], keys: Sequence[str], where: str, path: str) -> Any:
    for key in keys:
        if key in row:
            return row[key]
    there = ", ".join(f'"{name[:40]}"' for name, _ in islice(named_items(row), 20)) or "none"
    raise BadInput(f"{_at(where, path, keys[0])}: is missing. Keys that are there: {there}")


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _at(where: str, path: str, key: str = "") -> str:
    full = _join(path, key) if key else path
    return f"{where}, {full}" if full else where


def _short(text: str) -> str:
    return f"{text[:60]}…" if len(text) > 60 else text


def _number(value: int) -> str:
    return str(value) if abs(value) < 10**18 else "a number of many digits"
