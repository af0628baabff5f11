"""What is learned from besides pairs and running text: texts with a label, sentences with a tag for each word,
questions about a text. Readers make these (`labelled.py`, `conll.py`, `squad.py`, `grammar/`); tasks encode them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Example:
    """A text, or two that belong together, and what is said about them: a label, or a number as it is written."""

    text: str
    second: str | None = None
    label: str | None = None  # None: not told, as for what is to be predicted
    line: int = 0  # of its file, counted from 1
    file: str = ""


@dataclass(frozen=True, slots=True)
class Tagged:
    """The words of a sentence and a tag for each; no tags at all where they are to be predicted."""

    words: tuple[str, ...]
    tags: tuple[str, ...] = ()
    line: int = 0  # of its first word
    file: str = ""
    lines: Sequence[int] = field(default=(), compare=False)  # of each word; (): all are on `line`


@dataclass(frozen=True, slots=True)
class Answer:
    """A stretch of a context: `context[start : start + len(text)] == text`."""

    text: str
    start: int


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a context. No answers: it has none there (SQuAD 2.0), or it is to be predicted."""

    question: str
    context: str
    answers: tuple[Answer, ...] = ()
    identity: str = ""
    title: str = ""  # of the article: contexts of one article must not be split between training and test
    file: str = ""
