"""Whether two lists of numbers put things in the same order."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Agreement(NamedTuple):
    """Means over the rows in which both lists say anything: 1 is the same order, 0 none at all, −1 the reverse."""

    kendall: float | None  # None: there was no such row
    spearman: float | None
    rows: int


def kendall(one: NDArray[Any], other: NDArray[Any]) -> float:
    """Kendall's τ_b: pairs in the same order minus pairs in the reverse one, over √(pairs that `one` does not tie ·
    pairs that `other` does not tie). Not a number where all are tied."""
    upper = np.triu_indices(len(one), 1)
    first = np.sign(np.subtract.outer(one, one))[upper]
    second = np.sign(np.subtract.outer(other, other))[upper]
    most = math.sqrt(float((first != 0).sum()) * float((second != 0).sum()))
    return float((first * second).sum()) / most if most else math.nan


def spearman(one: NDArray[Any], other: NDArray[Any]) -> float:
    """Spearman's ρ: the correlation of the ranks; those who share a place have its middle."""
    first, second = ranks(one), ranks(other)
    first, second = first - first.mean(), second - second.mean()
    most = math.sqrt(float((first**2).sum()) * float((second**2).sum()))
    return float((first * second).sum()) / most if most else math.nan


def ranks(numbers: NDArray[Any]) -> NDArray[np.float64]:
    """1 for the smallest."""
    _, place, count = np.unique(numbers, return_inverse=True, return_counts=True)
    middle = np.cumsum(count) - (count - 1) / 2
    return np.asarray(middle[place], dtype=np.float64)


def rank_agreement(one: NDArray[Any], other: NDArray[Any]) -> Agreement:
    """Of the rows of two matrices."""
    found = [(kendall(*rows), spearman(*rows)) for rows in zip(one, other, strict=True)]
    said = [pair for pair in found if not math.isnan(pair[0])]
    if not said:
        return Agreement(None, None, 0)
    return Agreement(float(np.mean([k for k, _ in said])), float(np.mean([s for _, s in said])), len(said))
