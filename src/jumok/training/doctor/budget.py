"""The largest batch (`Recipe.batch_key`) that fits, found by trying: double it (or halve it), then close in."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

CLOSE = 1.15  # the largest that fits and the smallest that does not are at most this far apart
SMALLEST = 16
ROUND = 64

Try = Callable[[int], dict[str, Any]]


@dataclass
class Search:
    """`bound` says why nothing larger was tried: memory (it does not fit), time, or data (a batch holds all)."""

    budget: int  # what the recipe says
    fits: bool = False
    largest: int | None = None
    bound: str = "memory"
    tried: dict[int, dict[str, Any]] = field(default_factory=dict)

    @property
    def own(self) -> dict[str, Any]:
        """How it went with the recipe's own budget."""
        return self.tried[self.budget]


def search(attempt: Try, budget: int, seconds: float) -> Search:
    """`attempt(budget)` says whether it `fits`, the `seconds` it took, and whether the batch is the `whole` data.

    Nothing is tried that would take longer than `seconds`, judged by what has been tried.
    """
    found = Search(budget)

    def fits(size: int) -> bool:
        found.tried[size] = attempt(size)
        return bool(found.tried[size].get("fits"))

    low, high = (budget, None) if fits(budget) else (None, budget)
    found.fits = low is not None
    if "late" in found.own:
        found.bound = "time"
        return found
    while low is not None and high is None:
        last = found.tried[low]
        if last.get("whole"):
            found.bound = "data"
            break
        if 2 * float(last.get("seconds", 0.0)) > seconds:
            found.bound = "time"
            break
        low, high = (2 * low, None) if fits(2 * low) else (low, 2 * low)
    while low is None and high is not None and high > SMALLEST:
        low, high = (high // 2, high) if fits(high // 2) else (None, high // 2)
    while low is not None and high is not None and high > CLOSE * low:
        middle = rounded(math.sqrt(low * high))
        if not low < middle < high:
            break
        low, high = (middle, high) if fits(middle) else (low, middle)
    found.largest = low
    return found


def rounded(size: float) -> int:
    """A number that looks as if somebody had chosen it."""
    return int(size) if size < 16 * ROUND else int(size // ROUND) * ROUND
