"""How good tags are: of words, and of the names that they mark (CoNLL's conlleval; Tjong Kim Sang and Buchholz 2000).

A name ("span") is right where its type, its first and its last word are all right; a name found by half is a wrong one
and a missed one. Over all names of the test, whatever their type ("micro"):

    precision = right / predicted        recall = right / gold        F1 = 2 · right / (gold + predicted)

As in conlleval, what divides by nothing is 0, and spans are read leniently: a name may also begin without its B
(`data/tag_spans.py` knows the schemes). Tags that mark no spans, such as parts of speech, have accuracy and the F1 of
each tag instead; macro F1 is the mean over the tags that some word of the test has.

The intervals draw whole sentences (`intervals.py`): the words of one sentence are not independent.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jumok.data.tag_spans import is_scheme, spans
from jumok.errors import BadInput
from jumok.tasks.columns import aligned, short
from jumok.tasks.intervals import Estimate, Numbers, drawn_sums, estimate, ratio
from jumok.tasks.label_scores import macro_f1


@dataclass(frozen=True)
class TagScore:
    """One type of span, or one tag, or all spans together."""

    name: str
    precision: Estimate
    recall: Estimate
    f1: Estimate
    gold: int
    predicted: int
    right: int

    def to_json(self) -> dict[str, Any]:
        shares = {name: getattr(self, name).to_json() for name in ("precision", "recall", "f1")}
        return {"name": self.name, **shares, "gold": self.gold, "predicted": self.predicted, "right": self.right}


@dataclass(frozen=True)
class TagScores:
    sentences: int
    words: int
    accuracy: Estimate  # of words
    spans: TagScore | None  # None: the tags mark none
    macro_f1: Estimate  # of the types, or of the tags where there are no types
    by_name: tuple[TagScore, ...]  # of each type, or of each tag
    most_frequent: tuple[str, float]  # tag, and its share of the words: what is right without a model
    strange: tuple[str, ...] = ()  # tags of no scheme among others that are of one: because of them there are no spans

    @property
    def f1(self) -> Estimate:
        """The one number to compare by: of spans, and without them of tags."""
        return self.spans.f1 if self.spans else self.macro_f1

    def headline(self) -> list[tuple[str, str, str]]:
        """What is told first: name, score, interval."""
        rows = [("word accuracy", self.accuracy)]
        if self.spans:
            named = (("precision", self.spans.precision), ("recall", self.spans.recall), ("F1", self.spans.f1))
            rows = [*((f"span {name}", each) for name, each in reversed(named)), *rows]
        rows.append(("macro F1 over types" if self.spans else "macro F1 over tags", self.macro_f1))
        return [(name, each.percent(), each.percent_interval()) for name, each in rows]

    def notes(self) -> list[str]:
        """What one must know to read the numbers."""
        tag, share = self.most_frequent
        notes = [f"always “{short(tag)}” would be right for {100 * share:.1f} % of the words"]
        if self.strange:
            notes.append(
                "words are scored and not spans, because not all tags mark spans (O, B-…, I-…): "
                + _quoted(self.strange)
            )
        if self.spans and not self.spans.gold:
            notes.append("there is no span in the test data")
        missing = [score.name for score in self.by_name if not score.gold]
        if missing:
            notes.append(f"predicted, but not in the test data: {_quoted(missing)}; left out of macro F1")
        return notes

    def to_json(self) -> dict[str, Any]:
        tag, share = self.most_frequent
        return {
            "sentences": self.sentences,
            "words": self.words,
            "accuracy": self.accuracy.to_json(),
            "spans": self.spans.to_json() if self.spans else None,
            "macro_f1": self.macro_f1.to_json(),
            "by_type" if self.spans else "by_tag": [score.to_json() for score in self.by_name],
            "most_frequent": {"tag": tag, "share": share},
            "strange": list(self.strange),
        }

    def summary(self) -> str:
        """Tables for a terminal."""
        lines = [f"{self.sentences:,} sentence{'s' * (self.sentences != 1)}, {self.words:,} words", ""]
        lines += aligned([("", "", "95 % interval"), *self.headline()])
        lines += ["", *(f"note: {note}" for note in self.notes()), ""]
        name = "type" if self.spans else "tag"
        head = (name, "precision", "recall", "F1", "F1's interval", "gold", "predicted", "right")
        return "\n".join([*lines, *aligned([head, *map(_row, self.by_name)])])


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"“{short(name)}”" for name in names[:5]) + ", …" * (len(names) > 5)


def _row(score: TagScore) -> tuple[str, ...]:
    shares = [each.percent() for each in (score.precision, score.recall, score.f1)]
    counts = [f"{count:,}" for count in (score.gold, score.predicted, score.right)]
    return short(score.name) or "(no type)", *shares, score.f1.percent_interval(), *counts


# ---------------------------------------------------------------- from tags to scores


def tag_scores(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> TagScores:
    """The tags of each sentence's words, as they are and as the model says they are."""
    if not any(gold):
        raise BadInput("there are no words to score: the test data is empty")
    if [len(tags) for tags in gold] != [len(tags) for tags in predicted]:
        raise ValueError("each word needs one gold and one predicted tag")
    tags = Counter(tag for sentence in gold for tag in sentence)
    kinds = tags.keys() | {tag for sentence in predicted for tag in sentence}
    marks_spans = is_scheme(kinds)
    typed = {tag for tag in kinds if len(tag) > 1 and is_scheme([tag])}
    strange = tuple(sorted(kinds - typed - {"O"})) if typed and not marks_spans else ()
    count = _span_counts if marks_spans else _tag_counts
    counted = [count(ours, theirs) for ours, theirs in zip(gold, predicted, strict=True)]
    names = sorted({name for of_sentence in counted for counter in of_sentence for name in counter})
    place = {name: number for number, name in enumerate(names)}
    rows = np.zeros((len(gold), 2 + 3 * len(names)))  # words right, words; for each name: right, gold, predicted
    for row, of_sentence, ours, theirs in zip(rows, counted, gold, predicted, strict=True):
        row[:2] = sum(one == other for one, other in zip(ours, theirs, strict=True)), len(ours)
        for number, counter in enumerate(of_sentence):
            for name, often in counter.items():
                row[2 + number * len(names) + place[name]] = often
    sums, drawn = rows.sum(axis=0), drawn_sums(rows)
    counts, counts_drawn = (each[..., 2:].reshape(*each.shape[:-1], 3, len(names)) for each in (sums, drawn))
    (tag, often), *_ = tags.most_common(1)
    otherwise = 0.0 if marks_spans else math.nan
    whole, whole_drawn = (each.sum(axis=-1, keepdims=True) for each in (counts, counts_drawn))
    return TagScores(
        sentences=len(gold),
        words=int(sums[1]),
        accuracy=estimate(float(sums[0] / sums[1]), ratio(drawn[:, 0], drawn[:, 1])),
        spans=_scores(["all"], whole, whole_drawn, otherwise)[0] if marks_spans else None,
        macro_f1=estimate(float(_macro(counts)), _macro(counts_drawn)),
        by_name=tuple(_scores(names, counts, counts_drawn, otherwise)),
        most_frequent=(tag, often / int(sums[1])),
        strange=strange,
    )


Counted = tuple[Counter[str], Counter[str], Counter[str]]  # right, gold and predicted, by name


def _span_counts(gold: Sequence[str], predicted: Sequence[str]) -> Counted:
    ours, theirs = set(spans(gold)), set(spans(predicted))
    right, wanted, given = (Counter(kind for kind, _, _ in each) for each in (ours & theirs, ours, theirs))
    return right, wanted, given


def _tag_counts(gold: Sequence[str], predicted: Sequence[str]) -> Counted:
    right = Counter(one for one, other in zip(gold, predicted, strict=True) if one == other)
    return right, Counter(gold), Counter(predicted)


def _scores(names: Sequence[str], counts: Numbers, drawn: Numbers, otherwise: float) -> list[TagScore]:
    """`counts`: (3, names); `drawn`: (samples, 3, names); `otherwise`: a score that divides by nothing."""

    def shares(each: Numbers, nothing: float) -> tuple[Numbers, Numbers, Numbers]:
        right, gold, predicted = (each[..., number, :] for number in range(3))
        f1 = ratio(2 * right, gold + predicted, nothing)
        if math.isnan(otherwise):
            f1 = np.where(gold > 0, f1, math.nan)
        return ratio(right, predicted, nothing), ratio(right, gold, nothing), f1

    scores, draws = shares(counts, otherwise), shares(drawn, math.nan)
    result = []
    for place, name in enumerate(names):
        precision, recall, f1 = (
            estimate(float(score[place]), draw[:, place]) for score, draw in zip(scores, draws, strict=True)
        )
        right, gold, predicted = (int(count) for count in counts[:, place])
        result.append(TagScore(name, precision, recall, f1, gold, predicted, right))
    return result


def _macro(counts: Numbers) -> Numbers:
    return macro_f1(*(counts[..., number, :] for number in range(3)))
