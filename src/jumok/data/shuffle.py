"""A random order of 0 … n−1 that can be asked for any place without laying out the rest.

A Feistel network (Luby and Rackoff 1988) is a keyed permutation of 2h-bit numbers: split x into halves (l, r), then in
every round `(l, r) ← (r, l ⊕ F(r, k_i))`. Numbers that land at n or above are sent through again until they fall
below it (cycle walking, Black and Rogaway 2002), which leaves a permutation of 0 … n−1. The domain is less than 4n, so
this takes fewer than four turns on average: where place i of epoch e goes costs the same for every i and e.
"""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

ROUNDS = 6
IntArray = npt.NDArray[np.int64]
_Words = npt.NDArray[np.uint64]


class Shuffle:
    """The permutation of `range(count)` that belongs to a key (any whole numbers: seed, corpus, epoch …)."""

    def __init__(self, count: int, *key: int) -> None:
        if count < 1:
            raise ValueError(f"nothing to shuffle: count is {count}")
        self.count = count
        digest = hashlib.blake2b(",".join(map(str, key)).encode(), digest_size=8 * ROUNDS).digest()
        self._keys: _Words = np.frombuffer(digest, "<u8").astype(np.uint64)
        half = max(1, ((count - 1).bit_length() + 1) // 2)
        self._half, self._mask = np.uint64(half), np.uint64((1 << half) - 1)

    def __call__(self, places: npt.ArrayLike) -> IntArray:
        """Where each place goes."""
        numbers = np.atleast_1d(np.asarray(places, dtype=np.uint64)).copy()
        outside = np.arange(numbers.size)
        while outside.size:
            numbers[outside] = self._rounds(numbers[outside])
            outside = outside[numbers[outside] >= self.count]
        return numbers.astype(np.int64).reshape(np.shape(places))

    def _rounds(self, numbers: _Words) -> _Words:
        left, right = numbers >> self._half, numbers & self._mask
        for index in range(ROUNDS):
            left, right = right, left ^ (_mix(right + self._keys[index : index + 1]) & self._mask)
        return (left << self._half) | right


def _mix(words: _Words) -> _Words:
    """splitmix64's finaliser (Steele, Lea and Flood 2014): every input bit reaches every output bit."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
