"""The best cut as SentencePiece finds it to the last bit, for texts in which rounding decides which one that is.

    best(0) = 0,    best(j) = max over pieces text[i:j] of best(i) + score(text[i:j])        (Kudo 2018, Viterbi)

Of "sss" the cuts s|ss and ss|s have one sum of scores. Which of them wins is decided by how the sums before it were
rounded: here they are float32, as in the library, where our engine has float64. That takes a while in Python, so it is
done only where the pieces of a word would write it in another order too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from jumok.text.sentencepiece_rules import SPACE

UNKNOWN_COSTS = 10.0  # below the worst piece
MOST_WORDS = 100_000  # remembered
MOST_PIECES = 24  # of a word whose orders are looked through; longer ones may have another
MOST_STEPS = 1000  # on the way through them
MOST_CHARACTERS = 50_000  # of a text; no model reads a longer one

Piece = tuple[int, int, int]  # its id (0: unknown), and from where to where it goes


class Ties:
    """`pieces` and their scores by their ids, which count from 1."""

    def __init__(self, pieces: Sequence[tuple[str, float]]) -> None:
        self._names = ["", *(name for name, _ in pieces)]
        self._scores = {name: (id, np.float32(score)) for id, (name, score) in enumerate(pieces, 1)}
        self._longest = max(map(len, self._names))
        self._unknown = np.float32(min(score for _, score in pieces)) - np.float32(UNKNOWN_COSTS)
        self._words: dict[tuple[int, ...], bool] = {}

    def possible(self, ids: Sequence[int]) -> bool:
        """Whether the pieces of some word in a cut would write it in another order, too."""
        opens = [place for place, id in enumerate(ids) if self._names[id].startswith(SPACE)]
        return any(self._turns(tuple(ids[start:end])) for start, end in pairwise([0, *opens, len(ids)]))

    def _turns(self, word: tuple[int, ...]) -> bool:
        if len(word) < 2:
            return False
        if word not in self._words:
            if len(self._words) >= MOST_WORDS:
                self._words.clear()
            self._words[word] = any(has_another_order(part) for part in self._known(word))
        return self._words[word]

    def _known(self, word: Sequence[int]) -> Iterator[list[str]]:
        """The parts between what is unknown, which no piece can take the place of."""
        part: list[str] = []
        for id in (*word, 0):
            if id:
                part.append(self._names[id])
            else:
                yield part
                part = []

    def cut(self, text: str) -> list[Piece]:
        size = len(text)
        best = [np.float32(0.0)] * (size + 1)
        ids, starts = [0] * (size + 1), [-1] * (size + 1)
        for start in range(size):
            here, single = best[start], False
            for end in range(start + 1, min(start + self._longest, size) + 1):
                found = self._scores.get(text[start:end])
                if found is None:
                    continue
                total = found[1] + here
                if starts[end] < 0 or total > best[end]:
                    best[end], ids[end], starts[end] = total, found[0], start
                single = single or end == start + 1
            if not single:
                least, end = self._unknown + here, start + 1
                if starts[end] < 0 or least > best[end]:
                    best[end], ids[end], starts[end] = least, 0, start
        pieces: list[Piece] = []
        end = size
        while end > 0:
            id, start = ids[end], starts[end]
            if id == 0 and pieces and pieces[-1][0] == 0:  # a run of unknown characters is one piece
                pieces[-1] = (0, start, pieces[-1][2])
            else:
                pieces.append((id, start, end))
            end = start
        return pieces[::-1]


def has_another_order(pieces: Sequence[str]) -> bool:
    """Whether the same pieces, put in another order, write the same text. (Or whether that takes too long to say.)"""
    if len(set(pieces)) < 2:
        return False
    if len(pieces) > MOST_PIECES:
        return True
    text, left, steps = "".join(pieces), Counter(pieces), MOST_STEPS

    def orders(start: int) -> int:
        """How many there are from here on; those beyond the second are not looked for."""
        nonlocal steps
        steps -= 1
        if start == len(text) or steps < 0:
            return 1 if steps >= 0 else 2
        found = 0
        for piece in left:
            if found < 2 and left[piece] and text.startswith(piece, start):
                left[piece] -= 1
                found += orders(start + len(piece))
                left[piece] += 1
        return found

    return orders(0) > 1
