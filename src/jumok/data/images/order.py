"""Which images make up which batch: a permutation for every epoch, cut into batches of the same size.

What is left over at the end of an epoch waits for the next one, where it stands elsewhere: shapes that repeat are worth
more than a last batch of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jumok.data.layout import IntArray
from jumok.data.shuffle import Shuffle

ORDER = 8  # what is drawn, part of the key


@dataclass(frozen=True)
class Order:
    """Images (their numbers) in batches of `size`; of them all, where there are fewer."""

    numbers: IntArray
    size: int

    @property
    def batches(self) -> int:
        return max(1, len(self.numbers) // self.size)

    def pairs(self, place: int, key: tuple[int, ...]) -> IntArray:
        """The images of a batch, where `key` is the seed, the corpus and the epoch."""
        start, stop = place * self.size, min((place + 1) * self.size, len(self.numbers))
        found: IntArray = self.numbers[Shuffle(len(self.numbers), *key, ORDER)(np.arange(start, stop))]
        return found
