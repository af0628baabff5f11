"""Chance for generated pictures that is the same on every machine and for every version of numpy.

    word(picture, name, index) = mix(mix(picture + hash(name)) + index · φ),    φ = 2⁶⁴ / golden ratio

Counters and integer hashing only (Salmon et al. 2011): a picture can be asked for alone, in any order, and what is
drawn under one name does not move when another name is added. A number in [0, 1) is the upper 24 bits of a word, which
float32 holds exactly.
"""

from __future__ import annotations

import hashlib
import math

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

_STEP = np.uint64(0x9E3779B97F4A7C15)


class Dice:
    """One row for each picture; `pictures` (N,) are their numbers, all different ones."""

    def __init__(self, pictures: Words) -> None:
        self.keys: Words = mix(pictures * _STEP)

    def __len__(self) -> int:
        return len(self.keys)

    def of(self, rows: Integers) -> Dice:
        """The dice of some of the pictures."""
        chosen = Dice.__new__(Dice)
        chosen.keys = self.keys[rows]
        return chosen

    def words(self, name: str, *shape: int) -> Words:
        """64 random bits each, (N, *shape)."""
        start = np.frombuffer(hashlib.blake2b(name.encode(), digest_size=8).digest(), "<u8").astype(np.uint64)
        places = np.arange(math.prod(shape), dtype=np.uint64) * _STEP
        return mix(mix(self.keys + start)[:, None] + places).reshape(len(self), *shape)

    def between(self, low: float, high: float, name: str, *shape: int) -> Floats:
        """Evenly in [low, high), (N, *shape)."""
        unit = (self.words(name, *shape) >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24)
        return np.float32(low) + np.float32(high - low) * unit

    def choice(self, count: int, name: str, *shape: int) -> Integers:
        """Evenly from 0 … count−1, (N, *shape)."""
        return (self.words(name, *shape) % np.uint64(count)).astype(np.int64)

    def chance(self, share: float, name: str, *shape: int) -> npt.NDArray[np.bool_]:
        """True in this share of the cases, (N, *shape)."""
        return self.between(0.0, 1.0, name, *shape) < np.float32(share)


def mix(words: Words) -> Words:
    """splitmix64's finaliser (Steele, Lea and Flood 2014). Not that of data/shuffle.py: an order of batches may change
    one day, and the pictures must not change with it."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
