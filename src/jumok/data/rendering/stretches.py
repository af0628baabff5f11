"""Many texts at once, each put together from stretches of one long array of ids.

Every part of a text (a word, a mark, a month) is a start and a length in that array; a row of them is a text. No loop
goes over texts or characters.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int32]
Integers = npt.NDArray[np.int64]


def joined(pool: Ids, starts_BP: Integers, lengths_BP: Integers, width: int) -> tuple[Ids, Integers]:
    """The parts of each row side by side, (B, width) with zeros behind them, and how long they are, (B,)."""
    lengths_B = lengths_BP.sum(axis=1)
    lengths = lengths_BP.ravel()
    before = np.cumsum(lengths) - lengths
    places = np.repeat(starts_BP.ravel() - before, lengths) + np.arange(lengths.sum())
    ids_BW = np.zeros((len(starts_BP), width), np.int32)
    ids_BW[np.arange(width) < lengths_B[:, None]] = pool[places]
    return ids_BW, lengths_B


def below(words: npt.NDArray[np.uint64], count: int | Integers) -> Integers:
    """Evenly from 0 … count−1, by the upper half of random words; `count` is far below 2³²."""
    scaled = (words >> np.uint64(32)) * np.asarray(count).astype(np.uint64)
    return (scaled >> np.uint64(32)).astype(np.int64)


def unit(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.float64]:
    """Evenly in [0, 1), exactly."""
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53


def by_weight(words: npt.NDArray[np.uint64], cumulative: npt.NDArray[np.float64]) -> Integers:
    """0 … n−1, each as often as its weight; `cumulative` are the sums of weights up to each."""
    # a hair below the sum: rounding must not reach a last one of weight 0
    below_sum = np.nextafter(cumulative[-1], 0.0)
    return np.searchsorted(cumulative, unit(words) * below_sum, side="right").astype(np.int64)
