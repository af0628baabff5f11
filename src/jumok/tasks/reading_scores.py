"""How well words in pictures are read: how many are right, and how far off the others are.

    word accuracy    words that are read as they are written, to the last character, upper and lower case told apart
    36 characters    the same as the field compares it (Baek et al. 2019): both in lower case, and all but a–z and 0–9
                     taken away. Words of which nothing is left then are left out, and counted
    1 − NED          the mean over words of 1 − D / max(|truth|, |read|), D being the edit distance (ICDAR 2019)
    CER              Σ D / Σ |truth|: characters to be mended for each that is written; above 1 where too much is read

All texts are compared in NFC: 가 typed as one syllable is the 가 that was typed as two letters. Where nothing is
written, only reading nothing is right.

Where it is known how sure the model was of each word, it is told how many of those it was at least so sure of are
right: from where on readings can be trusted, and how many are left for a person to look at.

Shares of words have Wilson's interval, 1 − NED and CER the bootstrap's over words (`intervals.py`).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jumok.errors import BadInput
from jumok.tasks.columns import aligned, short
from jumok.tasks.edit_distance import Kind, edit_distance, edits
from jumok.tasks.intervals import Estimate, Numbers, drawn_sums, estimate, finite, ratio, wilson
from jumok.tasks.reading_kinds import SCRIPTS, composed, length_group, length_name, script_of

CONFUSIONS = 10  # shown in a terminal
KEPT = 200  # in JSON
SURE = (0.5, 0.8, 0.9, 0.95, 0.99)
OUTSIDE_36 = re.compile("[^a-z0-9]")


@dataclass(frozen=True)
class Part:
    """Words of one length, or in one script."""

    name: str
    count: int
    accuracy: Estimate
    similarity: float  # 1 − NED
    error_rate: float  # CER; nan where no character is written

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "words": self.count,
            "accuracy": self.accuracy.to_json(),
            "one_minus_ned": finite(self.similarity),
            "cer": finite(self.error_rate),
        }


@dataclass(frozen=True)
class Sure:
    """Words that the model was at least so sure of."""

    least: float
    count: int
    accuracy: Estimate

    def to_json(self) -> dict[str, Any]:
        return {"least": self.least, "words": self.count, "accuracy": self.accuracy.to_json()}


@dataclass(frozen=True)
class Confusion:
    """What was read for a character; "" for nothing."""

    kind: Kind
    truth: str
    read: str
    count: int
    of: int  # how often the character is written; 0 where something was inserted


@dataclass(frozen=True)
class ReadingScores:
    count: int  # words
    characters: int  # that are written in them
    right: int
    accuracy: Estimate
    accuracy_36: Estimate
    left_out_36: int  # words without any of the 36 characters
    similarity: Estimate  # 1 − NED
    error_rate: Estimate  # CER
    by_length: tuple[Part, ...]
    by_script: tuple[Part, ...]
    confusions: tuple[Confusion, ...]  # the most frequent first
    by_confidence: tuple[Sure, ...] = ()  # none where it is not known how sure the model was

    def headline(self) -> list[tuple[str, str, str]]:
        """What is told first: name, score, interval."""
        scores = (
            ("word accuracy", self.accuracy),
            ("… of 36 characters", self.accuracy_36),
            ("1 − NED", self.similarity),
            ("CER", self.error_rate),
        )
        return [(name, score.percent(), score.percent_interval()) for name, score in scores]

    def notes(self) -> list[str]:
        """What one must know to read the numbers."""
        notes = ["36 characters: lower-cased, letters a–z and digits alone, as the field compares it"]
        if self.left_out_36:
            has = "words have" if self.left_out_36 > 1 else "word has"
            notes.append(f"{self.left_out_36:,} {has} none of these and cannot be compared so")
        if not self.error_rate.defined:
            notes.append("CER is not defined where no character is written")
        return notes

    def to_json(self) -> dict[str, Any]:
        return {
            "words": self.count,
            "characters": self.characters,
            "accuracy": self.accuracy.to_json(),
            "accuracy_36": {**self.accuracy_36.to_json(), "words": self.count - self.left_out_36},
            "one_minus_ned": self.similarity.to_json(),
            "cer": self.error_rate.to_json(),
            "by_length": [part.to_json() for part in self.by_length],
            "by_script": [part.to_json() for part in self.by_script],
            "by_confidence": [sure.to_json() for sure in self.by_confidence],
            "confusions": [asdict(each) for each in self.confusions[:KEPT]],
        }

    def summary(self) -> str:
        """Tables for a terminal."""
        lines = [f"{self.count:,} word{'s' * (self.count != 1)}, {self.characters:,} characters", ""]
        lines += aligned([("", "", "95 % interval"), *self.headline()])
        lines += ["", *(f"note: {note}" for note in self.notes())]
        for name, parts in (("script", self.by_script), ("length", self.by_length)):
            if len(parts) > 1:
                head = (name, "words", "accuracy", "95 % interval", "1 − NED", "CER")
                lines += ["", *aligned([head, *map(part_row, parts)])]
        if self.by_confidence:
            heads = ("at least so sure", "words", "of all", "accuracy", "95 % interval")
            lines += ["", *aligned([heads, *map(self.sure_row, self.by_confidence)])]
        return "\n".join([*lines, "", *self._confused()])

    def sure_row(self, sure: Sure) -> tuple[str, ...]:
        """As it stands in a table."""
        share = f"{100 * sure.count / self.count:.1f} %"
        accuracy = sure.accuracy.percent(), sure.accuracy.percent_interval()
        return f"{100 * sure.least:g} %", f"{sure.count:,}", share, *accuracy

    def _confused(self) -> list[str]:
        if not self.confusions:
            return ["no character was read as another"]
        shown = self.confusions[:CONFUSIONS]
        rows = [
            (named(each.truth), named(each.read), f"{each.count:,}", f"of {each.of:,}" if each.of else "")
            for each in shown
        ]
        title = f"the most frequent confusions, {len(shown)} of {len(self.confusions):,}"
        return [title, *aligned([("written", "read", "times", ""), *rows], left=2)]


def part_row(part: Part) -> tuple[str, ...]:
    """As it stands in a table."""
    shares = [f"{100 * share:.1f} %" if math.isfinite(share) else "–" for share in (part.similarity, part.error_rate)]
    return part.name, f"{part.count:,}", part.accuracy.percent(), part.accuracy.percent_interval(), *shares


def named(character: str) -> str:
    """A character that can be seen."""
    return {"": "(nothing)", " ": "(space)"}.get(character) or short(character)


# ---------------------------------------------------------------- from outputs to scores


def reading_scores(
    truth: Sequence[str], read: Sequence[str], confidence: Sequence[float] | None = None
) -> ReadingScores:
    """`truth`: what is written in each picture, "" for nothing; `read`: what the model says; `confidence`: how sure it
    is of each."""
    if not truth:
        raise BadInput("there are no words to score: the test data is empty")
    pairs = [(composed(one), composed(other)) for one, other in zip(truth, read, strict=True)]
    distance = np.array([edit_distance(*pair) for pair in pairs], np.float64)
    length = np.array([len(one) for one, _ in pairs], np.float64)
    longer = np.array([max(len(one), len(other)) for one, other in pairs], np.float64)
    similarity = 1 - ratio(distance, longer, 0.0)
    drawn = drawn_sums(np.stack((similarity, distance, length), axis=1))
    rows = np.stack((similarity, distance, length, distance == 0), axis=1)
    right = int((distance == 0).sum())
    same_36, count_36 = _of_36(pairs)
    lengths = np.array([length_group(len(one)) for one, _ in pairs])
    scripts = np.array([SCRIPTS.index(script_of(one)) for one, _ in pairs])
    return ReadingScores(
        count=len(pairs),
        characters=int(length.sum()),
        right=right,
        accuracy=wilson(right, len(pairs)),
        accuracy_36=wilson(same_36, count_36),
        left_out_36=len(pairs) - count_36,
        similarity=estimate(float(similarity.mean()), drawn[:, 0] / len(pairs)),
        error_rate=estimate(float(ratio(distance.sum(), length.sum())), ratio(drawn[:, 1], drawn[:, 2])),
        by_length=tuple(_part(length_name(group), rows[lengths == group]) for group in np.unique(lengths).tolist()),
        by_script=tuple(_part(SCRIPTS[place], rows[scripts == place]) for place in np.unique(scripts).tolist()),
        confusions=_confusions([pair for pair, off in zip(pairs, distance, strict=True) if off], pairs),
        by_confidence=() if confidence is None else _by_confidence(np.array(confidence), distance == 0),
    )


def of_36(text: str) -> str:
    """What the field compares: letters a–z, in lower case, and digits."""
    return OUTSIDE_36.sub("", text.lower())


def _of_36(pairs: Sequence[tuple[str, str]]) -> tuple[int, int]:
    """How many words are the same, and how many can be compared."""
    compared = [(wanted, of_36(other)) for one, other in pairs if (wanted := of_36(one))]
    return sum(one == other for one, other in compared), len(compared)


def _part(name: str, rows: Numbers) -> Part:
    similarity, distance, length, right = rows.sum(axis=0).tolist()
    return Part(name, len(rows), wilson(int(right), len(rows)), similarity / len(rows), _ratio(distance, length))


def _by_confidence(confidence: Numbers, right: NDArray[np.bool_]) -> tuple[Sure, ...]:
    if len(confidence) != len(right):
        raise ValueError(f"{len(confidence)} confidences of {len(right)} words")
    found = ((least, right[confidence >= least]) for least in SURE)
    return tuple(Sure(least, len(those), wilson(int(those.sum()), len(those))) for least, those in found)


def _ratio(above: float, below: float) -> float:
    return above / below if below else math.nan


def _confusions(wrong: Sequence[tuple[str, str]], pairs: Sequence[tuple[str, str]]) -> tuple[Confusion, ...]:
    counts = Counter((edit.kind, edit.truth, edit.read) for pair in wrong for edit in edits(*pair))
    written = Counter(character for truth, _ in pairs for character in truth)
    found = (Confusion(*key, count, written[key[1]]) for key, count in counts.items())
    return tuple(sorted(found, key=lambda each: (-each.count, each.truth, each.read)))
