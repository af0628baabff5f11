"""How sure a score is: the interval that holds it in 95 of 100 test sets like this one.

A test set is one sample of all the examples that there are. Two ways to say what another sample would have given:

Wilson's interval (1927) for a proportion p̂ = k / n of independent examples. Unlike p̂ ± z·√(p̂(1−p̂)/n) it stays within
0 and 1 and is of use where all or none of a few examples are right:

    (p̂ + z²/2n ± z · √(p̂(1−p̂)/n + z²/4n²)) / (1 + z²/n)                 z = 1.96

The percentile bootstrap (Efron 1979) for everything else. n examples are drawn from the n that there are, with
replacement, 1,000 times; the interval is the middle 95 % of the scores of these draws. What is drawn is the unit that
was sampled: the sentence and not its words, which depend on each other. The draws come from a fixed seed, so the same
outputs always give the same interval, and two systems that are scored on the same examples meet the same draws.

A score that some draw does not define (a rare label that was not drawn) leaves that draw out. Where every draw has the
same score, as when all examples are right, the draws know nothing of the mistakes that another test set would show:
there is no interval then. A score or an interval that is not defined is nan here, null in JSON, and "–" to people.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SAMPLES = 1000
SEED = 12345
CONFIDENCE = 0.95
SAME = 1e-12  # of a score: what rounding makes of equal draws
Z = 1.959963984540054  # the normal distribution holds CONFIDENCE between −Z and Z

Numbers = NDArray[np.float64]
Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Estimate:
    """A score and its interval; nan where they are not defined."""

    score: float
    low: float = math.nan
    high: float = math.nan

    @property
    def defined(self) -> bool:
        return math.isfinite(self.score)

    def to_json(self) -> dict[str, float | None]:
        return {name: finite(getattr(self, name)) for name in ("score", "low", "high")}

    def percent(self) -> str:
        """83.1 %"""
        return f"{100 * self.score:.1f} %" if self.defined else "–"

    def percent_interval(self) -> str:
        """80.2 – 85.7"""
        return f"{100 * self.low:.1f} – {100 * self.high:.1f}" if math.isfinite(self.low) else "–"

    def number(self) -> str:
        """0.662"""
        return signed(self.score, 3)

    def number_interval(self) -> str:
        """0.604 – 0.714"""
        if not math.isfinite(self.low):
            return "–"
        between = " – " if self.low >= 0 else " … "  # −0.1 – 0.2 reads like a subtraction
        return f"{signed(self.low, 3)}{between}{signed(self.high, 3)}"


def finite(value: float) -> float | None:
    """JSON knows no nan."""
    return float(value) if math.isfinite(value) else None


def signed(value: float, digits: int) -> str:
    """With a real minus, without one before zero; large and small numbers with as many digits as mean something."""
    if not math.isfinite(value):
        return "–"
    text = f"{value:.{digits}f}" if value == 0 or 0.001 <= abs(value) < 1000 else f"{value:.{digits + 1}g}"
    return text.replace("-", "−") if float(text) else text.replace("-", "")


# ---------------------------------------------------------------- proportions


def wilson(right: float, count: float) -> Estimate:
    """`right` of `count` independent examples."""
    if count == 0:
        return Estimate(math.nan)
    share = right / count
    middle = share + Z**2 / (2 * count)
    half = Z * math.sqrt(share * (1 - share) / count + Z**2 / (4 * count**2))
    whole = 1 + Z**2 / count
    # at the ends the interval touches 0 or 1 exactly, but for the last bit
    low = 0.0 if right == 0 else max(0.0, (middle - half) / whole)
    high = 1.0 if right == count else min(1.0, (middle + half) / whole)
    return Estimate(share, low, high)


# ---------------------------------------------------------------- draws


def times_drawn(count: int, samples: int = SAMPLES, seed: int = SEED) -> Iterator[Counts]:
    """For each draw, how often each of the `count` examples is in it: whole numbers that add up to `count`."""
    chance = np.random.default_rng(seed)
    for _ in range(samples):
        yield np.bincount(chance.integers(count, size=count), minlength=count)


def drawn_sums(rows: Numbers, samples: int = SAMPLES, seed: int = SEED) -> Numbers:
    """(samples, columns): what the rows (one for each example) of each draw add up to.

    Most scores are functions of such sums, so that a whole draw is one product.
    """
    sums = np.empty((samples, rows.shape[1]))
    for number, times in enumerate(times_drawn(len(rows), samples, seed)):
        # not `times @ rows`: the threads of a BLAS would decide the last bit, and wait for each other a thousand times
        sums[number] = np.einsum("n,nk->k", times.astype(np.float64), rows)
    return sums


def estimate(score: float, drawn: Numbers) -> Estimate:
    """The score with the middle 95 % of its draws."""
    known = drawn[np.isfinite(drawn)]
    if not math.isfinite(score) or not len(known) or np.ptp(known) <= SAME * abs(score):
        return Estimate(float(score))
    tail = 100 * (1 - CONFIDENCE) / 2
    low, high = np.percentile(known, [tail, 100 - tail])
    return Estimate(float(score), float(low), float(high))


def mean_estimate(values: Numbers) -> Estimate:
    """The mean of one number for each example."""
    return estimate(float(values.mean()), drawn_sums(values[:, None])[:, 0] / len(values))


def ratio(above: NDArray[np.generic], below: NDArray[np.generic], otherwise: float = math.nan) -> Numbers:
    """above / below, and `otherwise` where that divides by nothing."""
    over, under = np.broadcast_arrays(np.asarray(above, np.float64), np.asarray(below, np.float64))
    return np.divide(over, under, out=np.full(over.shape, otherwise), where=under > 0)
