"""A random order of 0 … n−1 that can be asked for any place without laying out the rest.

A Feistel network (Luby and Rackoff 1988) over digits instead of bits (Black and Rogaway 2002): write x = l·b + r with
l < a and r < b, where a ≈ b ≈ √n and a·b ≥ n; then in turn `l ← l + F(r, k_i) mod a` and `r ← r + F(l, k_i) mod b`.
Each round can be undone, so this permutes 0 … a·b−1. The few numbers that land at n or above are sent through again
until they fall below it (cycle walking), which leaves a permutation of 0 … n−1. Where place i of epoch e goes costs
the same for every i and e.
"""

from __future__ import annotations

import hashlib
import math

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
        left = math.isqrt(count - 1) + 1
        self._left, self._right = np.uint64(left), np.uint64(-(-count // left))

    def __call__(self, places: npt.ArrayLike) -> IntArray:
        """Where each place goes."""
        numbers = np.atleast_1d(np.asarray(places, dtype=np.uint64)).copy()
        outside = np.arange(numbers.size)
        while outside.size:
            numbers[outside] = self._rounds(numbers[outside])
            outside = outside[numbers[outside] >= self.count]
        return numbers.astype(np.int64).reshape(np.shape(places))

    def _rounds(self, numbers: _Words) -> _Words:
        left, right = np.divmod(numbers, self._right)
        for index in range(0, ROUNDS, 2):
            left = (left + _mix(right + self._keys[index]) % self._left) % self._left
            right = (right + _mix(left + self._keys[index + 1]) % self._right) % self._right
        return left * self._right + right


def draws(count: int, below: int, *key: int) -> IntArray:
    """`count` numbers from 0 … below−1 that belong to a key."""
    digest = hashlib.blake2b(",".join(map(str, key)).encode(), digest_size=8).digest()
    start = np.frombuffer(digest, "<u8").astype(np.uint64)
    mixed: IntArray = (_mix(_mix(np.arange(count, dtype=np.uint64) + start)) % np.uint64(below)).astype(np.int64)
    return mixed


def _mix(words: _Words) -> _Words:
    """splitmix64's finaliser (Steele, Lea and Flood 2014): every input bit reaches every output bit."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
