"""Where examples come from: the reader of each task, the embedded grammar, and the vocabulary of their texts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple
from itertools import islice
from pathlib import Path
from typing import Any

from jumok.data import grammar, grammar_tasks
from jumok.data.conll import Columns, read_tagged, tag_column
from jumok.data.examples import Example, Question, Tagged
from jumok.data.labelled import Fields, read_examples, resolve_fields
from jumok.data.squad import read_questions
from jumok.errors import BadInput, did_you_mean
from jumok.recipe import Corpus, FieldsSection, Recipe
from jumok.text.tokenizer import Tokenizer, train_tokenizer

Say = Callable[[str], None]
Item = Example | Tagged | Question
PLACES = ("file", "line", "lines")  # of an example: where it stands, not what it is


def read_items(task: str, corpus: Corpus, split: str, labelled: bool = True) -> list[Any]:
    """All examples of a corpus, in order."""
    split = corpus.split or split
    if corpus.grammar is not None:
        return _grammar_items(task, corpus, split)
    return read_files(task, corpus.examples, corpus.fields, labelled)


def read_files(task: str, files: Sequence[str], fields: FieldsSection, labelled: bool = True) -> list[Any]:
    """All examples of files."""
    if task == "tagging":
        return list(read_tagged(files, _columns(fields), labelled))
    if task == "answering":
        return read_questions(files, labelled)
    return list(read_examples(files, Fields(fields.text, fields.second, fields.label), labelled))


def labels_read_from(task: str, corpus: Corpus) -> str:
    """Where in its files the labels of a corpus are, in words; the grammar has no columns."""
    if corpus.grammar is not None:
        return ""
    if task == "tagging":
        return tag_column(corpus.examples[0], _columns(corpus.fields))
    fields = corpus.fields
    found = resolve_fields(corpus.examples, Fields(fields.text, fields.second, fields.label)).label
    return f'column "{found}"' if isinstance(found, str) else f"column {found}, counted from 0"


def _columns(fields: FieldsSection) -> Columns:
    for column in (fields.text, fields.label):
        if isinstance(column, str):
            raise BadInput(
                f'data.train.fields: "{column}" is no number; columns of tagged words are told by their numbers, '
                "counted from 0 (or from −1 backwards)"
            )
    return fields.text, fields.label  # type: ignore[return-value]


def _grammar_items(task: str, corpus: Corpus, split: str) -> list[Any]:
    language = str(corpus.grammar)
    if language not in grammar.LANGUAGES:
        raise BadInput(f'the grammar has no "{language}".{did_you_mean(language, grammar.LANGUAGES)}')
    makers: dict[str, Callable[[str, str, int], Iterator[Any]]] = {
        "regression": grammar_tasks.grammar_similarity,
        "tagging": grammar_tasks.grammar_tagged,
        "answering": grammar_tasks.grammar_questions,
        # two texts, where the recipe says that there is a second one
        "classification": grammar_tasks.grammar_examples
        if corpus.fields.second is None
        else grammar_tasks.grammar_pairs,
    }
    return list(makers[task](language, split, corpus.pairs))


def texts_of(item: Item) -> list[str]:
    if isinstance(item, Tagged):
        return [" ".join(item.words)]
    if isinstance(item, Question):
        return [item.question, item.context]
    return [item.text] if item.second is None else [item.text, item.second]


def place_of(item: Item) -> str:
    """Where an example stands, in words."""
    if isinstance(item, Question):
        return f"{item.file}, question {item.identity}" if item.file else f"question {item.identity}"
    return f"{item.file}, line {item.line}" if item.file else f"example {item.line}"


def place_of_word(item: Tagged, word: int) -> str:
    """Where a word of a sentence stands, and its tag with it."""
    return f"{item.file}, line {item.lines[word]}" if item.file and item.lines else place_of(item)


def items_key(items: Sequence[Item]) -> str:
    """Equal keys, equal examples."""
    digest = hashlib.sha256()
    for item in items:
        what = [part for name, part in zip(item.__slots__, astuple(item), strict=True) if name not in PLACES]
        digest.update(json.dumps(what, ensure_ascii=True).encode() + b"\n")
    return digest.hexdigest()


def example_tokenizer(recipe: Recipe, items: Sequence[Item], say: Say) -> Tokenizer:
    """The recipe's tokenizer: loaded where it names a folder, else trained on the examples' texts."""
    section = recipe.tokenizer
    if section.source:
        return Tokenizer.load(Path(section.source))
    say(f"training the tokenizer ({section.kind}, at most {section.vocabulary} tokens)")
    texts = dict.fromkeys(text for item in items for text in texts_of(item))  # a context has many questions
    lines = islice(texts, 0, None, -(-len(texts) // section.sample) or 1)
    return train_tokenizer(lines, section.kind, section.vocabulary, section.lowercase)
