"""A face: one style of a family of fonts, and the characters it really draws."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Face:
    path: Path
    number: int  # in a collection
    family: str
    style: str
    covered: npt.NDArray[np.int32] = field(compare=False, repr=False)  # code points in order, those it really draws

    @property
    def name(self) -> str:
        return f"{self.family} {self.style}"

    def covers(self, characters: Iterable[str]) -> bool:
        """Whether it draws all of them."""
        return bool(np.isin(codes_of(characters), self.covered, assume_unique=True).all())

    def count(self, characters: Iterable[str]) -> int:
        """How many of them it draws; each counts once."""
        return int(np.isin(codes_of(characters), self.covered, assume_unique=True).sum())


def codes_of(characters: Iterable[str]) -> npt.NDArray[np.int32]:
    """Code points in order, each once."""
    return _kept_codes(characters) if isinstance(characters, str | tuple) else _codes(characters)


def _codes(characters: Iterable[str]) -> npt.NDArray[np.int32]:
    found = np.array(sorted(set(map(ord, characters))), np.int32)
    found.flags.writeable = False
    return found


_kept_codes = lru_cache(maxsize=32)(_codes)  # many faces are asked for the same thousands of characters
