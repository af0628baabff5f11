"""Texts in small letters, put into a case: lower, Title, UPPER, or aNy for each letter. Many at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from jumok.data.rendering.alphabet import Alphabet, Flags
from jumok.data.rendering.stretches import Ids, by_weight

LOWER, TITLE, UPPER, ANY = range(4)


class Casing:
    """A letter whose other case is not in the charset stays as it is."""

    def __init__(self, alphabet: Alphabet, shares: Sequence[float]) -> None:
        self.alphabet = alphabet
        self._cumulative = np.cumsum(shares)

    def __call__(self, ids_BW: Ids, random: npt.NDArray[np.uint64], fixed_B: Flags) -> Ids:
        """The same texts, changed in place; those that are `fixed` are left alone.

        Of `random` words (B, 1 + W / 64), one is for the case, and a bit of the others for each letter.
        """
        case = by_weight(random[:, 0], self._cumulative)
        case[fixed_B] = LOWER
        rows = np.flatnonzero(case == UPPER)
        ids_BW[rows] = self.alphabet.upper[ids_BW[rows]]
        rows = np.flatnonzero(case == TITLE)
        ids_BW[rows] = np.where(self._begins(ids_BW[rows]), self.alphabet.upper[ids_BW[rows]], ids_BW[rows])
        rows = np.flatnonzero(case == ANY)
        places = np.arange(ids_BW.shape[1], dtype=np.uint64)
        bits = random[np.ix_(rows, 1 + places // np.uint64(64))] >> (places % np.uint64(64)) & np.uint64(1)
        ids_BW[rows] = np.where(bits > 0, self.alphabet.upper[ids_BW[rows]], ids_BW[rows])
        return ids_BW

    def _begins(self, ids_BW: Ids) -> Flags:
        """The first letter of each text that has a case, and each one after a space."""
        cased = self.alphabet.cased[ids_BW]
        begins = cased & (np.cumsum(cased, axis=1) == 1)
        if self.alphabet.space is not None:
            begins[:, 1:] |= ids_BW[:, :-1] == self.alphabet.space
        return begins
