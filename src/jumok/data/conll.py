"""Sentences with a tag for each word, as the shared tasks of CoNLL have them: one word a line, its tag in a column
beside it, blank lines between sentences. Or JSONL: `{"words": [...], "tags": [...]}`. Each also compressed.

    Rockwell NNP B-NP
    said     VBD B-VP

A file with a tab in its first line has its columns between tabs, and then a word may hold spaces; else columns are
between spaces. All lines of a file have the same number of columns. The word is in the first one and its tag in the
last, unless others are named. In CoNLL-U (ten columns between tabs, the first with the words' numbers) they are the
second, FORM, and the fourth, UPOS. What is no word is left out: `-DOCSTART-` lines, comments, and in CoNLL-U the lines
of contractions (`3-4`) and of words that are not there (`5.1`).

`#` is a word too, so a comment is told from one with care: it begins with `#` and stands before the first word of a
sentence; between tabs it has no tab; between spaces it begins with `# ` and either has another number of columns than
the words have or reads like one (`# text = …`, `# newdoc`, `# id …`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

from jumok.data.examples import Tagged
from jumok.data.json_values import is_json_name, json_objects, json_text, named_items
from jumok.data.readers import json_kind, read_lines
from jumok.data.table_rows import MOST_COLUMNS, beginning
from jumok.errors import BadInput

WORD_KEYS = ("words", "tokens")
TAG_KEYS = ("tags", "labels", "ner_tags", "pos_tags", "chunk_tags")
DOCUMENT = "-DOCSTART-"
CONLL_U_COLUMNS, FORM, UPOS = 10, 1, 3
USUAL = (0, -1)
WHAT_IT_IS = "A CoNLL file has a word and its tag on each line, and a blank line behind each sentence"
LOOKED_AT = 1000  # lines among which there must be one that is no comment

_COMMENT = re.compile(r"# (\w+ = |newdoc\b|newpar\b|id )")
_NO_WORD = re.compile(r"[0-9]+[-.][0-9]+")
_NUMBER = re.compile(r"[0-9]+([-.][0-9]+)?")
_SPACES = re.compile(r"[ \t]+")


Columns = tuple[int | None, int | None]


def read_tagged(files: Sequence[str | Path], columns: Columns = (None, None), tagged: bool = True) -> Iterator[Tagged]:
    """All sentences of the files. `columns`: those of the word and of its tag, from 0, or below 0 from the end; None:
    as the file's kind has it.

    Where they are not `tagged`, tags are neither needed nor read.
    """
    if not files:
        raise BadInput("no file with tagged sentences was given")
    for file in files:
        sentences = _from_json(file, tagged) if is_json_name(file) else _from_columns(file, columns, tagged)
        count, sentence = 0, None
        for sentence in sentences:
            count += 1
            yield sentence
        if sentence is None:
            raise BadInput(f"{file}: there is no sentence in it, the file is empty")
        if count == 1 and tagged and _is_table(sentence):
            raise BadInput(
                f"{file}: this looks like a table of texts, not like tagged words: there is no blank line in it, and "
                f'"{sentence.words[-1][:40]}" is not one word. {WHAT_IT_IS}'
            )


def tag_column(file: str | Path, columns: Columns = (None, None)) -> str:
    """Where the tags of a file are read from, in words."""
    if is_json_name(file):
        row = next((row for _, row in json_objects(file)), {})
        return next((f'"{key}"' for key in TAG_KEYS if key in row), f'"{TAG_KEYS[0]}"')
    layout = _layout(beginning(read_lines(file), LOOKED_AT, len))
    column = layout.usual[1] if columns[1] is None else columns[1]
    name = " (UPOS)" if layout.is_conll_u and column == UPOS else ""
    return f"column {column % layout.width}{name} of {layout.width}, counted from 0"


def _is_table(sentence: Tagged) -> bool:
    """Whether most of the words of a file's only sentence are texts."""
    texts = sum(" " in word for word in sentence.words)
    return len(sentence.words) > 1 and 2 * texts > len(sentence.words)


# ---------------------------------------------------------------- columns


@dataclass(frozen=True)
class _Layout:
    width: int
    by_tabs: bool
    is_conll_u: bool = False

    @property
    def usual(self) -> tuple[int, int]:
        return (FORM, UPOS) if self.is_conll_u else USUAL

    def count(self, line: str) -> int:
        if self.by_tabs:
            return line.count("\t") + 1
        return len(_SPACES.split(line.strip(" \t"), maxsplit=MOST_COLUMNS))

    def cells(self, line: str) -> list[str]:
        if self.by_tabs:
            return [cell.strip(" ") for cell in line.split("\t", MOST_COLUMNS)]
        return _SPACES.split(line.strip(" \t"), maxsplit=MOST_COLUMNS)

    def is_comment(self, line: str) -> bool:
        if self.by_tabs:
            return line.startswith("#") and "\t" not in line
        return line.startswith("# ") and (self.count(line) != self.width or _COMMENT.match(line) is not None)


def _from_columns(file: str | Path, columns: Columns, tagged: bool) -> Iterator[Tagged]:
    lines = read_lines(file)
    head = beginning(lines, LOOKED_AT, len)
    layout = _layout(head)
    name = str(file)
    words: list[str] = []
    tags: list[str] = []
    at: list[int] = []
    first = True
    places: tuple[int, int] | None = None
    for number, line in enumerate(chain(head, lines), 1):
        if _is_between(line):
            if words:
                yield _sentence(words, tags, at, name)
                words, tags, at, first = [], [], [], False
            continue
        if not words and layout.is_comment(line):
            continue
        found = layout.count(line)
        if found != layout.width or found > MOST_COLUMNS:
            raise BadInput(_ragged(file, number, found, layout, first))
        if places is None:
            wanted = [usual if named is None else named for named, usual in zip(columns, layout.usual, strict=True)]
            places = _places(f"{file}, line {number}", wanted, layout.width, tagged)
        cells = layout.cells(line)
        if layout.by_tabs and layout.width == CONLL_U_COLUMNS and _NO_WORD.fullmatch(cells[0]):
            continue
        at.append(number)
        words.append(_filled(cells[places[0]], f"{file}, line {number}: the word", places[0]))
        if tagged:
            tags.append(_filled(cells[places[1]], f"{file}, line {number}: the tag", places[1]))
    if words:
        yield _sentence(words, tags, at, name)


def _sentence(words: Sequence[str], tags: Sequence[str], at: Sequence[int], name: str) -> Tagged:
    begin, end = at[0], at[-1] + 1
    lines = range(begin, end) if end - begin == len(at) else tuple(at)  # a range has no numbers to keep
    return Tagged(tuple(words), tuple(tags), begin, name, lines)


def _layout(head: Sequence[str]) -> _Layout:
    """By the first line that surely has a word; where all begin with `#`, by the first with a tab, else the first."""
    lines = [line for line in head if not _is_between(line)]
    first = next((line for line in lines if not line.startswith("#")), None)
    if first is None:
        first = next((line for line in lines if "\t" in line), lines[0] if lines else "")
    by_tabs = "\t" in first
    width = _Layout(0, by_tabs).count(first)
    numbered = _NUMBER.fullmatch(first.partition("\t")[0].strip(" ")) is not None
    return _Layout(width, by_tabs, by_tabs and width == CONLL_U_COLUMNS and numbered)


def _is_between(line: str) -> bool:
    """Whether a line ends a sentence. Only spaces and tabs are blank: a wide space (U+3000) is a word of treebanks."""
    if line.startswith(DOCUMENT):
        return len(line) == len(DOCUMENT) or line[len(DOCUMENT)] in " \t"
    return not line.strip(" \t")


def _places(where: str, columns: Sequence[int], width: int, tagged: bool) -> tuple[int, int]:
    """The columns counted from 0; refused where a line has none of that number."""
    found = []
    for role, column in zip(("word", "tag"), columns if tagged else columns[:1], strict=False):
        if not -width <= column < width:
            raise BadInput(
                f"{where}: no column {column} for the {role}: there {'are' if width > 1 else 'is'} {width}, "
                "counted from 0 (from -1 backwards)"
            )
        found.append(column % width)
    if tagged and found[0] == found[1]:
        why = "the line has one column only" if width == 1 else f"both would be column {found[0]}"
        raise BadInput(f"{where}: a word and its tag are needed, but {why}. {WHAT_IT_IS}")
    return found[0], found[-1]


def _ragged(file: str | Path, line: int, found: int, layout: _Layout, first: bool) -> str:
    separator = "tabs" if layout.by_tabs else "spaces"
    if max(found, layout.width) > MOST_COLUMNS:
        return f"{file}, line {line}: more than {MOST_COLUMNS} columns (between {separator}). One line has one word"
    return (
        f"{file}, line {line}: {found} column{'s' * (found > 1)} where the first word has {layout.width} "
        f"(between {separator}). One line has one word with all of its columns; a blank line ends a sentence"
        f"{'. This looks like plain text, or like a table' if first else ''}"  # not one sentence could be read
    )


def _filled(cell: str, what: str, column: int) -> str:
    if not cell:
        raise BadInput(f"{what} is missing (column {column} is empty)")
    return cell


# ---------------------------------------------------------------- JSON


def _from_json(file: str | Path, tagged: bool) -> Iterator[Tagged]:
    for number, row in json_objects(file):
        where = f"{file}, line {number}"
        words = _texts(row, WORD_KEYS, "word", where)
        if not words:
            raise BadInput(f"{where}: a sentence without words")
        tags = _texts(row, TAG_KEYS, "tag", where) if tagged else ()
        if tagged and len(tags) != len(words):
            raise BadInput(f"{where}: {len(words)} words and {len(tags)} tags: each word needs one")
        yield Tagged(words, tags, number, str(file))


def _texts(row: dict[str, Any], keys: Sequence[str], what: str, where: str) -> tuple[str, ...]:
    key = next((key for key in keys if key in row), None)
    if key is None:
        there = ", ".join(f'"{name[:40]}"' for name, _ in islice(named_items(row), 20)) or "none"
        wanted = " or ".join(f'"{name}"' for name in keys)
        raise BadInput(f"{where}: no key {wanted} with the {what}s of the sentence. Keys that are there: {there}")
    values = row[key]
    if not isinstance(values, list):
        raise BadInput(f'{where}: "{key}" is {json_kind(values)}; an array with one {what} after the other is needed')
    texts = []
    for place, value in enumerate(values):
        text = json_text(value, f'{where}: "{key}"[{place}]')
        if not text:
            raise BadInput(f'{where}: "{key}"[{place}] is empty')
        texts.append(text)
    return tuple(texts)
