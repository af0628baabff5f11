"""Marks around words, as they stand in print: after a word, before it, or on both sides.

Only marks of the charset; one word in ten with marks has any of them, so that each is seen.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from jumok.data.rendering.alphabet import Alphabet
from jumok.data.rendering.stretches import Integers

# what stands here twice comes twice as often
AFTER = ".....,,,,!!!??::;'\")…*-%+™®"
BEFORE = "#@$&*(\"'-~+/•¿¡©£€"
AROUND = "()()()\"\"\"\"''''[]{}<>**--“”‘’«»‹›„“¿?¡!「」『』《》〈〉【】"
WEIGHTS = {"after": 0.5, "before": 0.15, "around": 0.25, "any": 0.1}


def marks_around(alphabet: Alphabet) -> tuple[Integers, npt.NDArray[np.float64]]:
    """Which marks go together, (M, 2) ids with 0 for none, and the sums of their weights up to each, (M,)."""
    ids = alphabet.charset.ids
    kinds = {
        "after": [(0, ids[mark]) for mark in AFTER if mark in ids],
        "before": [(ids[mark], 0) for mark in BEFORE if mark in ids],
        "around": [(ids[left], ids[right]) for left, right in _pairs(AROUND) if left in ids and right in ids],
        "any": [pair for mark in alphabet.marks.tolist() for pair in ((0, mark), (mark, 0))],
    }
    weights = [WEIGHTS[kind] / len(pairs) for kind, pairs in kinds.items() for _ in pairs]
    pairs = [pair for pairs in kinds.values() for pair in pairs]
    return np.array(pairs, np.int64).reshape(-1, 2), np.cumsum(weights)


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    return zip(text[::2], text[1::2], strict=True)
