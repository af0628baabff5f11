"""How good answers to questions about a text are: SQuAD's exact match and F1, and KorQuAD's.

Both compare the written answer with each of the gold answers and keep the best. What does not matter is taken away
before ("normalised"):

    en  (Rajpurkar et al. 2016)  lower case; ASCII punctuation; the words a, an, the; blanks in excess
    ko  (Lim et al. 2019)        quotation marks and brackets become blanks (' " ‘ ’ 《 》 〈 〉 < > ( )), lower case,
                                 the other ASCII punctuation, blanks in excess; no articles

Exact match is 1 where nothing else differs. F1 counts what both have, as often as both have it, in *words* for English
and in *characters* without blanks for Korean, whose words end in particles that are not part of the answer:

    precision = shared / written        recall = shared / gold        F1 = 2 · precision · recall / (precision + recall)

A question without gold answers has none in its text (SQuAD 2.0; Rajpurkar et al. 2018): only the empty answer is right,
and to a question that has answers the empty one is wrong. A gold answer of which nothing is left ("the") does not
count.

Exact match has Wilson's interval, F1 the bootstrap's over questions (`intervals.py`).
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from jumok.errors import BadInput, did_you_mean
from jumok.tasks.columns import aligned
from jumok.tasks.intervals import Estimate, Numbers, mean_estimate, wilson

Language = Literal["en", "ko"]

ARTICLES = re.compile(r"\b(?:a|an|the)\b")
WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)
KOREAN_MARKS = str.maketrans(dict.fromkeys("'\"‘’《》〈〉<>()", " "))


def normalised(text: str, language: Language = "en") -> str:
    """What two answers must share to be the same."""
    if language == "ko":
        text = text.translate(KOREAN_MARKS).lower().translate(WITHOUT_PUNCTUATION)
    else:
        text = ARTICLES.sub(" ", text.lower().translate(WITHOUT_PUNCTUATION))
    return " ".join(text.split())


def answer_score(predicted: str, gold: Iterable[str], language: Language = "en") -> tuple[bool, float]:
    """Exact match and F1 of one answer; `gold` is empty where the text has no answer."""
    ours = normalised(predicted, language)
    theirs = [text for text in (normalised(each, language) for each in gold) if text] or [""]
    return ours in theirs, max(_f1(ours, text, language) for text in theirs)


def _f1(ours: str, theirs: str, language: Language) -> float:
    if not ours or not theirs:
        return float(ours == theirs)
    written, wanted = ((text.replace(" ", "") if language == "ko" else text.split()) for text in (ours, theirs))
    shared = (Counter(written) & Counter(wanted)).total()
    return 2 * shared / (len(written) + len(wanted))


@dataclass(frozen=True)
class AnswerPart:
    """Questions of one kind: all, those with an answer, those without."""

    count: int
    exact: Estimate
    f1: Estimate

    def to_json(self) -> dict[str, Any]:
        return {"questions": self.count, "exact_match": self.exact.to_json(), "f1": self.f1.to_json()}


@dataclass(frozen=True)
class AnswerScores:
    language: Language
    whole: AnswerPart
    answerable: AnswerPart | None  # None where all questions are of one kind: the whole says it
    unanswerable: AnswerPart | None
    silent: int  # questions that the model gave no answer to

    @property
    def count(self) -> int:
        return self.whole.count

    def headline(self) -> list[tuple[str, str, str]]:
        """What is told first: name, score, interval."""
        parts = (("", self.whole), ("with an answer: ", self.answerable), ("without an answer: ", self.unanswerable))
        rows = []
        for name, part in parts:
            if part is not None:
                rows.append((f"{name}exact match", part.exact.percent(), part.exact.percent_interval()))
                if part is not self.unanswerable:  # without an answer F1 is the same
                    rows.append((f"{name}F1", part.f1.percent(), part.f1.percent_interval()))
        return rows

    def notes(self) -> list[str]:
        """What one must know to read the numbers."""
        counted = "characters, as KorQuAD 1.0 does" if self.language == "ko" else "words, as SQuAD does"
        notes = [f"F1 counts {counted}"]
        if self.unanswerable:
            notes.append(f"{self.unanswerable.count:,} of {self.count:,} questions have no answer in their text")
        if self.silent:
            notes.append(f"the model gave no answer to {self.silent:,} of {self.count:,} questions")
        return notes

    def to_json(self) -> dict[str, Any]:
        parts = {"answerable": self.answerable, "unanswerable": self.unanswerable}
        return {
            "language": self.language,
            **self.whole.to_json(),
            **{name: part.to_json() if part else None for name, part in parts.items()},
            "silent": self.silent,
        }

    def summary(self) -> str:
        """A table for a terminal."""
        rows = aligned([("", "", "95 % interval"), *self.headline()])
        lines = [f"{self.count:,} question{'s' * (self.count != 1)}", "", *rows, ""]
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes())])


def answer_scores(gold: Sequence[Sequence[str]], predicted: Sequence[str], language: Language = "en") -> AnswerScores:
    """`gold`: for each question all answers that count as right, none where the text has none; `predicted`: "" for
    no answer."""
    if language not in get_args(Language):
        raise BadInput(
            f'language "{language}": there is no way to compare its answers.'
            + did_you_mean(language, get_args(Language))
        )
    if not gold:
        raise BadInput("there are no questions to score: the test data is empty")
    pairs = [answer_score(text, answers, language) for text, answers in zip(predicted, gold, strict=True)]
    exact, f1 = (np.array(each, dtype=np.float64) for each in zip(*pairs, strict=True))
    has_answer = np.array([len(answers) > 0 for answers in gold])
    mixed = bool(has_answer.any() and not has_answer.all())
    return AnswerScores(
        language=language,
        whole=_part(exact, f1),
        answerable=_part(exact[has_answer], f1[has_answer]) if mixed else None,
        unanswerable=_part(exact[~has_answer], f1[~has_answer]) if mixed else None,
        silent=sum(not text.strip() for text in predicted),
    )


def _part(exact: Numbers, f1: Numbers) -> AnswerPart:
    return AnswerPart(len(exact), wilson(int(exact.sum()), len(exact)), mean_estimate(f1))
