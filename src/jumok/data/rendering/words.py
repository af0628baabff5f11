"""Words to be written in pictures, from people's files: each once, the most frequent first.

A file is one of three things, told from its first lines:
- one word a line: a list, taken as ordered by frequency. One in the order of the alphabet says nothing about frequency
  and is put in an order that says nothing either;
- a word and a number a line: a list with counts;
- anything else, also one word a line where words come again and again: running text. It is cut into words, and they
  are counted.

Words are NFC and in small letters; how they are written in a picture is decided there. Several files take turns, so
that the first words of each are among the first of all.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise, zip_longest
from pathlib import Path
from typing import Literal

from jumok.data.readers import read_lines
from jumok.data.rendering.held_out import bare
from jumok.errors import BadInput

LOOKED_AT = 1000  # lines that tell what a file is
MOST = 0.95  # of these lines must be alike
DISTINCT = 0.9  # of the words of a list, at least
LONGEST_COUNT = 18  # digits: what is longer counts nothing, and Python refuses to read thousands of them
SORTED = 0.98  # of neighbours in the order of the alphabet: such a list is sorted
REMEMBERED = 5_000_000  # different words of running text; beyond that, those seen once are forgotten

Kind = Literal["list", "counted", "text"]


@dataclass(frozen=True)
class WordList:
    words: tuple[str, ...]  # NFC, small letters, distinct; the most frequent first
    notes: tuple[str, ...] = ()  # what people should know about how the files were read


def read_words(files: Sequence[str | Path]) -> WordList:
    """The words of these files."""
    lists, notes = [], []
    for file in files:
        with_counts, words = _read(file)
        if not words:
            raise BadInput(f"{file}: no words in it: name a word list or running text")
        if not with_counts and _is_sorted(words):
            words.sort(key=_any_order)
            notes.append(
                f"{file}: in the order of the alphabet, so which words are frequent is not known: "
                "render.texts.frequent takes any of them for the frequent ones"
            )
        lists.append(words)
    return WordList(tuple(in_turn(lists)), tuple(notes))


def cut_words(text: str) -> list[str]:
    """The words of running text, in order: what stands between blanks, without the marks around it."""
    return [word for token in text.split() if (word := _word(token))]


def small(text: str) -> str:
    """NFC, in small letters; a letter whose small form is no single character (İ) stays as it is."""
    text = unicodedata.normalize("NFC", text)
    if text.isascii():
        return text.lower()
    lower = "".join([each if len(each := letter.lower()) == 1 else letter for letter in text])
    return unicodedata.normalize("NFC", lower)


def in_turn(lists: Iterable[Sequence[str]]) -> list[str]:
    """The first of each, the second of each, …; what comes again is left out."""
    ranks = zip_longest(*lists)
    return list(dict.fromkeys(word for rank in ranks for word in rank if word is not None))


def _read(file: str | Path) -> tuple[bool, list[str]]:
    """Whether the file says how frequent words are by counting them, and the words."""
    kind = _kind(file)
    if kind == "list":
        words = (small(token) for line in read_lines(file) for token in line.split())
        return False, list(dict.fromkeys(words))
    counts: Counter[str] = Counter()
    if kind == "counted":
        for line in read_lines(file):
            cells = line.split()
            number = int(cells.pop()) if _is_counted(cells) else 1
            counts.update({small(token): number for token in cells})
        return True, [word for word, _ in counts.most_common()]
    tokens: Counter[str] = Counter()
    for line in read_lines(file):
        tokens.update(line.split())
        if len(tokens) > REMEMBERED:
            tokens = Counter({token: count for token, count in tokens.items() if count > 1})
    for token, count in tokens.items():
        if word := _word(token):
            counts[word] += count
    return True, [word for word, _ in counts.most_common()]


def _kind(file: str | Path) -> Kind:
    lines = [cells for line in islice(read_lines(file), LOOKED_AT) if (cells := line.split())]
    single = [cells[0] for cells in lines if len(cells) == 1]
    if len(single) >= MOST * len(lines):
        return "list" if len(set(single)) >= DISTINCT * len(single) else "text"
    counted = sum(map(_is_counted, lines))
    return "counted" if counted >= MOST * len(lines) else "text"


def _is_counted(cells: Sequence[str]) -> bool:
    """Whether a line is a word and how often it was seen."""
    return len(cells) == 2 and len(cells[1]) <= LONGEST_COUNT and cells[1].isdecimal()


def _word(token: str) -> str | None:
    """A token of running text as a word, where there is something to read in it."""
    word = bare(small(token))
    return word if any(map(str.isalnum, word)) else None


def _is_sorted(words: Sequence[str]) -> bool:
    keys = [word.casefold() for word in words]
    rising = sum(before <= after for before, after in pairwise(keys))
    return len(words) >= 20 and rising >= SORTED * (len(words) - 1)


def _any_order(word: str) -> bytes:
    return hashlib.blake2b(word.encode(), digest_size=8, person=b"any order").digest()
