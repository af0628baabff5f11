"""The best cut as SentencePiece finds it to the last bit, for texts in which rounding decides which one that is.

    best(0) = 0,    best(j) = max over pieces text[i:j] of best(i) + score(text[i:j])        (Kudo 2018, Viterbi)

Of "sss" the cuts s|ss and ss|s have one sum of scores. Which of them wins is decided by how the sums before it were
rounded: here they are float32, as in the library (from 0.2.2 on), where our engine has float64. That takes a while in
Python, so it is done only where a word has another cut that is nearly as good, or is long.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np

from jumok.text.sentencepiece_rules import SPACE

UNKNOWN_COSTS = 10.0  # below the worst piece
NEAR = 0.01  # more than rounding takes from or adds to a sum in LONG_TEXT characters
LONG_TEXT, LONG_WORD = 2000, 40  # characters; what is longer is cut here without a question
MOST_WORDS = 100_000  # remembered
MOST_CHARACTERS = 50_000  # of a text; no model reads a longer one

Piece = tuple[int, int, int]  # its id (0: unknown), and from where to where it goes


class Ties:
    """`pieces` and their scores by their ids, which count from 1."""

    def __init__(self, pieces: Sequence[tuple[str, float]]) -> None:
        self._opens = [False, *(name.startswith(SPACE) for name, _ in pieces)]
        # every beginning of a piece, so that nobody looks on where none goes on; what is no piece itself has None
        self._known: dict[str, tuple[int, np.float32] | None] = {
            name[:end]: None for name, _ in pieces for end in range(1, len(name))
        }
        self._known |= {name: (id, np.float32(score)) for id, (name, score) in enumerate(pieces, 1)}
        self._unknown = np.float32(min(score for _, score in pieces)) - np.float32(UNKNOWN_COSTS)
        self._parted = parted(pieces)
        self._near: dict[str, bool] = {}

    def possible(self, text: str, ids: Sequence[int]) -> bool:
        """Whether a word of a text, of more than one piece in a cut that our engine made, has another as good."""
        if len(text) > MOST_CHARACTERS:
            return False
        if not self._parted or len(text) > LONG_TEXT:
            return True
        places = [place for place, id in enumerate(ids) if place and self._opens[id]]
        words = re.findall(f"{SPACE}[^{SPACE}]*|[^{SPACE}]+", text)
        counts = [end - start for start, end in zip([0, *places], [*places, len(ids)], strict=True)]
        if len(words) != len(counts):
            return True
        return any(count > 1 and self._is_near(word) for word, count in zip(words, counts, strict=True))

    def _is_near(self, word: str) -> bool:
        if len(word) > LONG_WORD:
            return True
        found = self._near.get(word)
        if found is None:
            best, second = self._two_best(word)
            found = best - second < NEAR
            if len(self._near) >= MOST_WORDS:
                self._near.clear()
            self._near[word] = found
        return found

    def _two_best(self, word: str) -> tuple[float, float]:
        """The sums of the two best cuts."""
        none = -float("inf")
        best: list[tuple[float, float]] = [(0.0, none), *[(none, none)] * len(word)]
        for start in range(len(word)):
            for end, _, score in self._pieces(word, start):
                sums = sorted((*best[end], *(before + float(score) for before in best[start])), reverse=True)
                best[end] = sums[0], sums[1]
        return best[-1]

    def _pieces(self, text: str, start: int) -> Iterator[tuple[int, int, np.float32]]:
        """Where each piece that begins here ends, its id and its score; the shortest first, then what is unknown."""
        single = False
        for end in range(start + 1, len(text) + 1):
            part = text[start:end]
            if part not in self._known:
                break
            found = self._known[part]
            if found is not None:
                single = single or end == start + 1
                yield end, *found
        if not single:
            yield start + 1, 0, self._unknown

    def cut(self, text: str) -> list[Piece]:
        best = [np.float32(0.0)] * (len(text) + 1)
        ids, starts = [0] * (len(text) + 1), [-1] * (len(text) + 1)
        for start in range(len(text)):
            here = best[start]
            for end, id, score in self._pieces(text, start):
                total = score + here
                if starts[end] < 0 or total > best[end]:
                    best[end], ids[end], starts[end] = total, id, start
        pieces: list[Piece] = []
        end = len(text)
        while end > 0:
            id, start = ids[end], starts[end]
            if id == 0 and pieces and pieces[-1][0] == 0:  # a run of unknown characters is one piece
                pieces[-1] = (0, start, pieces[-1][2])
            else:
                pieces.append((id, start, end))
            end = start
        return pieces[::-1]


def parted(pieces: Sequence[tuple[str, float]]) -> bool:
    """Whether a blank only ever opens a piece, so that a text's words are cut one by one."""
    names = {name for name, _ in pieces}
    return SPACE in names and all(SPACE not in name[1:] for name in names)
