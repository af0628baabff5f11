"""How good a classifier is: how often it is right, which labels it confuses, and whether it knows how sure to be.

For each label, from the examples that have it (gold), those it was given to (predicted) and those in both (right):

    precision = right / predicted        recall = right / gold        F1 = 2 · right / (gold + predicted)

Macro F1 is the mean over labels: each counts the same, however rare. A label that no example of the test has says
nothing about the model: its recall and F1 are not defined, and the macro mean leaves it out. (scikit-learn counts such
a label as 0 where the model predicts it once.) A label that is never predicted has no precision, and an F1 of 0.

Matthews correlation is 1 for all right, 0 for what guessing gives however uneven the labels are (Gorodkin 2004 for more
than two); n examples, c of them right, t_k with label k, p_k predicted to have it:

    (c · n − Σ p_k t_k) / √((n² − Σ p_k²) (n² − Σ t_k²))         not defined where only one label was met or predicted

Of two labels, the *last one* is the positive one, whose F1 is told beside the macro mean.

Calibration: of the examples that the model is 80 % sure of, are 80 % right? The expected calibration error (Guo et al.
2017) sorts the examples by the top probability into 10 bins of equal width, (0, 0.1] to (0.9, 1], and is the mean over
examples of |accuracy − mean probability| of their bin. It has no interval: chance adds to it in every draw, so the
bootstrap's would lie beside it. Log loss is the mean of −log p(gold), in nats;
a probability of less than 1e-15 counts as 1e-15.

Accuracy, precision and recall have Wilson's interval, the others the bootstrap's (`intervals.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jumok.errors import BadInput, Failure
from jumok.tasks.columns import aligned, short
from jumok.tasks.intervals import Counts, Estimate, Numbers, estimate, finite, ratio, times_drawn, wilson

BINS = 10
LEAST = 1e-15  # the probability that a loss is at most taken of
MOST_IN_MATRIX = 12  # labels whose confusions fit into a terminal
CONFUSIONS = 10  # shown of more than that


@dataclass(frozen=True)
class LabelScore:
    """One label."""

    label: str
    precision: Estimate
    recall: Estimate
    f1: Estimate
    support: int  # examples that have it
    predicted: int  # examples that it was given to

    def to_json(self) -> dict[str, Any]:
        return {
            "label": self.label,
            **{name: getattr(self, name).to_json() for name in ("precision", "recall", "f1")},
            "support": self.support,
            "predicted": self.predicted,
        }


@dataclass(frozen=True)
class Bin:
    """Examples whose top probability is above `low` and at most `high`; no means where there are none."""

    low: float
    high: float
    count: int
    right: int
    confidence: float | None
    accuracy: float | None


@dataclass(frozen=True)
class Confusion:
    gold: str
    predicted: str
    count: int


@dataclass(frozen=True)
class LabelScores:
    labels: tuple[str, ...]
    count: int
    accuracy: Estimate
    macro_f1: Estimate
    matthews: Estimate
    log_loss: Estimate
    calibration_error: float
    by_label: tuple[LabelScore, ...]
    confusion: Counts  # [gold, predicted]
    bins: tuple[Bin, ...]

    @property
    def positive(self) -> LabelScore | None:
        """Of two labels the last one."""
        return self.by_label[-1] if len(self.labels) == 2 else None

    @property
    def most_frequent(self) -> LabelScore:
        """What is right without a model is as often as this label."""
        return max(self.by_label, key=lambda score: score.support)

    @property
    def missing(self) -> tuple[str, ...]:
        """Labels that no example of the test has."""
        return tuple(score.label for score in self.by_label if not score.support)

    def confusions(self) -> list[Confusion]:
        """What was taken for what, the most frequent first."""
        wrong = self.confusion.copy()
        np.fill_diagonal(wrong, 0)
        cells = sorted((int(wrong[cell]), -cell[0], -cell[1]) for cell in zip(*np.nonzero(wrong), strict=True))
        return [Confusion(self.labels[-gold], self.labels[-other], count) for count, gold, other in reversed(cells)]

    def headline(self) -> list[tuple[str, str, str]]:
        """What is told first: name, score, interval."""
        rows = [("accuracy", self.accuracy.percent(), self.accuracy.percent_interval())]
        if self.positive:
            name = f"F1 of “{short(self.positive.label)}”"
            rows.append((name, self.positive.f1.percent(), self.positive.f1.percent_interval()))
        rows += [
            ("macro F1", self.macro_f1.percent(), self.macro_f1.percent_interval()),
            ("Matthews correlation", self.matthews.number(), self.matthews.number_interval()),
            ("log loss", self.log_loss.number(), self.log_loss.number_interval()),
            ("calibration error", f"{100 * self.calibration_error:.1f} %", ""),
        ]
        return rows

    def notes(self) -> list[str]:
        """What one must know to read the numbers."""
        common = self.most_frequent
        share = 100 * common.support / self.count
        notes = [f"always “{short(common.label)}” would be right in {share:.1f} % of the examples"]
        if self.missing:
            names = ", ".join(f"“{short(label)}”" for label in self.missing[:5]) + ", …" * (len(self.missing) > 5)
            notes.append(f"no example of the test has {names}: left out of macro F1")
        if not self.matthews.defined:
            notes.append("Matthews correlation is not defined where only one label was met or predicted")
        return notes

    def to_json(self) -> dict[str, Any]:
        positive = self.positive
        return {
            "examples": self.count,
            "labels": list(self.labels),
            "accuracy": self.accuracy.to_json(),
            "macro_f1": self.macro_f1.to_json(),
            "matthews": self.matthews.to_json(),
            "positive": {"label": positive.label, "f1": positive.f1.to_json()} if positive else None,
            "log_loss": self.log_loss.to_json(),
            "calibration": {"error": finite(self.calibration_error), "bins": [asdict(each) for each in self.bins]},
            "most_frequent": {"label": self.most_frequent.label, "share": self.most_frequent.support / self.count},
            "by_label": [score.to_json() for score in self.by_label],
            "confusion": self.confusion.tolist(),
        }

    def summary(self) -> str:
        """Tables for a terminal."""
        lines = [f"{self.count:,} example{'s' * (self.count != 1)}, {len(self.labels)} labels", ""]
        lines += aligned([("", "", "95 % interval"), *self.headline()])
        lines += ["", *(f"note: {note}" for note in self.notes()), ""]
        head = ("label", "precision", "recall", "F1", "F1's interval", "examples", "predicted")
        lines += aligned([head, *map(_row, self.by_label)])
        lines += ["", *(self._matrix() if len(self.labels) <= MOST_IN_MATRIX else self._worst())]
        return "\n".join(lines)

    def _matrix(self) -> list[str]:
        names = [short(label, 14) for label in self.labels]
        rows = [[name, *(f"{count:,}" for count in row)] for name, row in zip(names, self.confusion, strict=True)]
        return ["confusions (down: gold, across: predicted)", *aligned([["", *names], *rows])]

    def _worst(self) -> list[str]:
        worst = self.confusions()
        if not worst:
            return ["no label was taken for another"]
        rows = [(short(each.gold), short(each.predicted), f"{each.count:,}") for each in worst[:CONFUSIONS]]
        title = f"the most frequent confusions, {min(CONFUSIONS, len(worst))} of {len(worst):,}"
        return [title, *aligned([("gold", "predicted", "examples"), *rows], left=2)]


def _row(score: LabelScore) -> tuple[str, ...]:
    shares = [each.percent() for each in (score.precision, score.recall, score.f1)]
    return short(score.label), *shares, score.f1.percent_interval(), f"{score.support:,}", f"{score.predicted:,}"


# ---------------------------------------------------------------- from outputs to scores


def label_scores(
    gold: Sequence[str], probabilities_NC: NDArray[np.floating[Any]], labels: Sequence[str]
) -> LabelScores:
    """`gold`: what each example is; `probabilities_NC`: what the model gave each of the `labels`, in their order.

    The label with the highest probability is the predicted one, of equals the first. Each of the gold labels must be
    among `labels`: what to say otherwise is the caller's affair, who knows where the label was read.
    """
    if not gold:
        raise BadInput("there are no examples to score: the test data is empty")
    probabilities = np.asarray(probabilities_NC, dtype=np.float64)
    if probabilities.shape != (len(gold), len(labels)):
        raise ValueError(f"probabilities of shape {probabilities.shape} for {len(gold)} examples, {len(labels)} labels")
    if not np.isfinite(probabilities).all():
        raise Failure("the model's probabilities are not numbers: its weights are broken. Train it again, more slowly")
    place = {label: number for number, label in enumerate(labels)}
    wanted = np.array([place[label] for label in gold])
    given = probabilities.argmax(axis=1)
    confusion = np.zeros((len(labels), len(labels)), dtype=np.int64)
    np.add.at(confusion, (wanted, given), 1)
    loss = losses(wanted, probabilities)
    *drawn, loss_drawn = _draws(wanted, given, loss, len(labels))
    counts = tuple(np.asarray(each) for each in (confusion.diagonal(), confusion.sum(axis=1), confusion.sum(axis=0)))
    bins = _bins(probabilities.max(axis=1), wanted == given)
    return LabelScores(
        labels=tuple(labels),
        count=len(gold),
        accuracy=wilson(int(counts[0].sum()), len(gold)),
        macro_f1=estimate(float(macro_f1(*counts)), macro_f1(*drawn)),
        matthews=estimate(float(matthews(*counts)), matthews(*drawn)),
        log_loss=estimate(float(loss.mean()), loss_drawn),
        calibration_error=_calibration_error(bins),
        by_label=by_label(labels, counts, drawn),
        confusion=confusion,
        bins=bins,
    )


def losses(wanted: Counts, probabilities_NC: Numbers) -> Numbers:
    """−log p(gold) of each example."""
    of_gold = probabilities_NC[np.arange(len(wanted)), wanted]
    return -np.log(np.clip(of_gold, LEAST, 1.0))


def _draws(wanted: Counts, given: Counts, loss: Numbers, labels: int) -> tuple[Numbers, ...]:
    """In each draw right, gold and predicted of each label, (samples, labels) each; and the mean loss, (samples)."""
    cells, cell_of = np.unique(wanted * labels + given, return_inverse=True)  # those of the matrix that are not empty
    gold, predicted = np.divmod(cells, labels)
    rows = []
    for times in times_drawn(len(wanted)):
        often = np.bincount(cell_of, weights=times)
        of_right, of_gold, of_predicted = (
            np.bincount(of_cell, weights=weights, minlength=labels)
            for of_cell, weights in ((gold, often * (gold == predicted)), (gold, often), (predicted, often))
        )
        rows.append((of_right, of_gold, of_predicted, (times * loss).sum() / len(wanted)))
    return tuple(np.stack(each) for each in zip(*rows, strict=True))


def by_label(labels: Sequence[str], counts: Sequence[NDArray[Any]], drawn: Sequence[Numbers]) -> tuple[LabelScore, ...]:
    """`counts`: right, gold and predicted of each label; `drawn`: the same of each draw."""
    right, gold, predicted = counts
    scores, draws = f1_of(right, gold, predicted), f1_of(*drawn)
    return tuple(
        LabelScore(
            label,
            wilson(int(right[number]), int(predicted[number])),
            wilson(int(right[number]), int(gold[number])),
            estimate(float(scores[number]), draws[:, number]),
            int(gold[number]),
            int(predicted[number]),
        )
        for number, label in enumerate(labels)
    )


# ---------------------------------------------------------------- formulas, over any number of draws at once


def f1_of(right: NDArray[Any], gold: NDArray[Any], predicted: NDArray[Any]) -> Numbers:
    """(…, labels); nan for a label that no example has."""
    return np.where(gold > 0, ratio(2 * right, gold + predicted), math.nan)


def macro_f1(right: NDArray[Any], gold: NDArray[Any], predicted: NDArray[Any]) -> Numbers:
    """(…, labels) -> (…)"""
    there = gold > 0
    return ratio(np.where(there, f1_of(right, gold, predicted), 0.0).sum(axis=-1), there.sum(axis=-1))


def matthews(right: NDArray[Any], gold: NDArray[Any], predicted: NDArray[Any]) -> Numbers:
    """(…, labels) -> (…)"""
    right, gold, predicted = (np.asarray(each, dtype=np.float64) for each in (right, gold, predicted))
    all_examples = gold.sum(axis=-1)
    above = right.sum(axis=-1) * all_examples - (predicted * gold).sum(axis=-1)
    spread = (all_examples**2 - (predicted**2).sum(axis=-1)) * (all_examples**2 - (gold**2).sum(axis=-1))
    return ratio(above, np.sqrt(np.maximum(spread, 0.0)))


def _bins(confidence: Numbers, right: NDArray[np.bool_]) -> tuple[Bin, ...]:
    edges = np.linspace(0.0, 1.0, BINS + 1)
    where = np.searchsorted(edges[1:-1], confidence, side="left")
    counts = np.bincount(where, minlength=BINS)
    rights = np.bincount(where[right], minlength=BINS)
    sums = np.bincount(where, weights=confidence, minlength=BINS)
    return tuple(
        Bin(
            round(float(edges[place]), 9),
            round(float(edges[place + 1]), 9),
            int(counts[place]),
            int(rights[place]),
            finite(float(sums[place] / counts[place])) if counts[place] else None,
            finite(float(rights[place] / counts[place])) if counts[place] else None,
        )
        for place in range(BINS)
    )


def _calibration_error(bins: Sequence[Bin]) -> float:
    gaps = [
        each.count * abs(each.accuracy - each.confidence)
        for each in bins
        if each.confidence is not None and each.accuracy is not None
    ]
    return sum(gaps) / sum(each.count for each in bins)
