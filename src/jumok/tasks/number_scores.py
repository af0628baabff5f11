"""How near predicted numbers come to the true ones: correlations, which ask for the order, and errors, for the size.

    Pearson  = Σ (x − x̄)(y − ȳ) / √(Σ (x − x̄)² · Σ (y − ȳ)²)        a straight line
    Spearman = Pearson of the ranks, equal values sharing their mean rank        any rising line
    MSE = mean (x − y)²          MAE = mean |x − y|

Where all predictions (or all true values) are the same there is no order to compare: the correlations are not defined,
null in JSON. All intervals are the bootstrap's (`intervals.py`); each draw is ranked anew.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jumok.errors import BadInput, Failure
from jumok.tasks.columns import aligned
from jumok.tasks.intervals import Counts, Estimate, Numbers, drawn_sums, estimate, mean_estimate, ratio, times_drawn

NAMES = {"pearson": "Pearson correlation", "spearman": "Spearman correlation", "mse": "MSE", "mae": "MAE"}
NOTHING = 1e-12  # a variance that is this share of a mean square is what rounding left of 0


@dataclass(frozen=True)
class NumberScores:
    count: int
    pearson: Estimate
    spearman: Estimate
    mse: Estimate
    mae: Estimate
    mean_mse: float  # of always saying the mean of the true values: what is right without a model
    constant: str = ""  # what has one value only: "predictions", "true values" or both

    def headline(self) -> list[tuple[str, str, str]]:
        """What is told first: name, score, interval."""
        estimates = [(said, getattr(self, name)) for name, said in NAMES.items()]
        return [(said, each.number(), each.number_interval()) for said, each in estimates]

    def notes(self) -> list[str]:
        """What one must know to read the numbers."""
        notes = [f"always the mean of the true values would have an MSE of {Estimate(self.mean_mse).number()}"]
        if self.count == 1:
            notes.append("the correlations are not defined: there is only one example")
        elif self.constant:
            notes.append(f"the correlations are not defined: all {self.constant} are the same number")
        return notes

    def to_json(self) -> dict[str, Any]:
        scores = {name: getattr(self, name).to_json() for name in NAMES}
        return {"examples": self.count, **scores, "mean_mse": self.mean_mse, "constant": self.constant or None}

    def summary(self) -> str:
        """A table for a terminal."""
        rows = aligned([("", "", "95 % interval"), *self.headline()])
        lines = [f"{self.count:,} example{'s' * (self.count != 1)}", "", *rows, ""]
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes())])


def number_scores(gold: Sequence[float], predicted: Sequence[float]) -> NumberScores:
    true, given = np.asarray(gold, dtype=np.float64), np.asarray(predicted, dtype=np.float64)
    if not len(true):
        raise BadInput("there are no examples to score: the test data is empty")
    if true.shape != given.shape or true.ndim != 1:
        raise ValueError(f"{given.shape} predictions for {true.shape} true values")
    if not np.isfinite(true).all():
        raise BadInput("a true value of the test data is not a finite number")
    if not np.isfinite(given).all():
        raise Failure("the model's outputs are not numbers: its weights are broken. Train it again, more slowly")
    true_ranks, given_ranks = (Ranks.of(each) for each in (true, given))
    once = np.ones(len(true), dtype=np.int64)
    drawn = np.array([rank_correlation(true_ranks, given_ranks, times) for times in times_drawn(len(true))])
    same = [
        name
        for name, ranks in (("predictions", given_ranks), ("true values", true_ranks))
        if len(true) > 1 and not ranks.kinds.any()
    ]
    return NumberScores(
        count=len(true),
        pearson=_pearson(true, given, constant=bool(same) or len(true) == 1),
        spearman=estimate(rank_correlation(true_ranks, given_ranks, once), drawn),
        mse=mean_estimate((true - given) ** 2),
        mae=mean_estimate(np.abs(true - given)),
        mean_mse=float(true.var()),
        constant=" and all ".join(same),
    )


def _pearson(true: Numbers, given: Numbers, constant: bool) -> Estimate:
    if constant:
        return Estimate(math.nan)
    # around their means and below 1, so that no square is too large, too small or lost beside a larger one
    x, y = ((each - each.mean()) / np.abs(each - each.mean()).max() for each in (true, given))
    rows = np.stack([x, y, x * x, y * y, x * y], axis=1)
    return estimate(float(_correlation(rows.sum(axis=0), len(x))), _correlation(drawn_sums(rows), len(x)))


def _correlation(sums: Numbers, count: int) -> Numbers:
    """(…, 5) sums of x, y, x², y², xy -> (…); nan where one side has a single value."""
    x, y, squares_x, squares_y, products = np.moveaxis(sums / count, -1, 0)
    spread_x, spread_y = squares_x - x * x, squares_y - y * y
    varies = (spread_x > NOTHING * squares_x) & (spread_y > NOTHING * squares_y)
    spread = np.sqrt(np.where(varies, spread_x * spread_y, 0.0))
    return np.clip(ratio(products - x * y, spread), -1.0, 1.0)


@dataclass(frozen=True)
class Ranks:
    """Numbers of which only the order counts: 0 for the lowest, 1 for the next, … ; equal ones are of one kind."""

    kinds: Counts

    @classmethod
    def of(cls, values: Numbers) -> Ranks:
        return cls(np.unique(values, return_inverse=True)[1])

    def around_their_mean(self, times: Counts) -> Numbers:
        """Of each example among those drawn, where the mean of all ranks is 0.

        Equal values share the mean of the places that they take: three of them on 4, 5 and 6 all have 5.
        """
        taken = np.bincount(self.kinds, weights=times)
        return (np.cumsum(taken) - taken / 2 - len(times) / 2)[self.kinds]


def rank_correlation(left: Ranks, right: Ranks, times: Counts) -> float:
    """Spearman's, of pairs that occur `times` often; nan where one side has a single value."""
    x, y = left.around_their_mean(times), right.around_their_mean(times)
    weighted = times * x
    spread = math.sqrt(float((weighted * x).sum())) * math.sqrt(float((times * y * y).sum()))
    return max(-1.0, min(1.0, float((weighted * y).sum()) / spread)) if spread else math.nan
