"""Two maps of attention, or two rows of probabilities, brought to one shape: by tokens where both sides have cut the
text alike, else by words.

    Δ = B − A        on the scale of both: s = max over A and B, so that Δ lies in [−s, s]

Weights of a word's pieces are summed where they are looked at and averaged where they look (inspect/attention.py); the
probability of a word is the product over its pieces. What only one side has (a language's tag) is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from jumok.errors import BadInput
from jumok.inspect.attention import Attention, Weights
from jumok.inspect.forced import Side

By = Literal["tokens", "words"]
Keys = Sequence[Hashable]


class Seen(NamedTuple):
    """What one side looked at, by tokens."""

    keys: Side
    queries: Side
    weights: Weights  # (T, S)

    def by(self, by: By) -> tuple[Keys, Keys, Attention]:
        """What tells rows and columns apart, and the map with its names."""
        picture = Attention(tuple(self.keys.tokens), tuple(self.queries.tokens), self.weights)
        if by == "tokens":
            return range(len(self.queries.tokens)), range(len(self.keys.tokens)), picture
        rows, columns = (word_keys(side.tokens, side.words) for side in (self.queries, self.keys))
        return (
            rows,
            columns,
            picture.merge(self.keys.words, self.queries.words, self.keys.texts, self.queries.texts),
        )


class Both(NamedTuple):
    """Two maps side by side."""

    by: By
    rows: list[str]
    columns: list[str]
    a: Weights  # (T, S)
    b: Weights
    left_out: list[str]  # what only one of them has

    @property
    def difference(self) -> Weights:
        return self.b - self.a

    @property
    def scale(self) -> float:
        """The largest weight of both; each map's colours, and those of the difference, run to it."""
        return float(max(self.a.max(initial=0), self.b.max(initial=0)))

    def largest(self) -> dict[str, Any] | None:
        """Where they differ most; None where there is nothing."""
        if not self.a.size:
            return None
        row, column = np.unravel_index(int(abs(self.difference).argmax()), self.a.shape)
        found = {"a": self.a[row, column], "b": self.b[row, column], "difference": self.difference[row, column]}
        return {"row": int(row), "column": int(column), **{name: float(value) for name, value in found.items()}}


def word_keys(tokens: Sequence[str], words: Sequence[int | None]) -> list[Hashable]:
    """For each word of pieces (neighbours of one word are one) what it is: a word's number, or a mark's name; and which
    of several equal ones."""
    found: list[Hashable] = []
    before: int | None = None
    for token, word in zip(tokens, words, strict=True):
        if word is None or word != before:
            found.append(token if word is None else word)
        before = word
    times: Counter[Hashable] = Counter()
    told: list[Hashable] = []
    for key in found:
        told.append((key, times[key]))
        times[key] += 1
    return told


def alike(a: Seen, b: Seen) -> bool:
    """Whether both have cut their texts into the same tokens."""
    return list(a.keys.tokens) == list(b.keys.tokens) and list(a.queries.tokens) == list(b.queries.tokens)


def both(a: Seen, b: Seen, by: By) -> Both:
    if by == "tokens" and not alike(a, b):
        raise BadInput("the two have cut this text into other tokens: compare them by words")
    (rows_a, columns_a, map_a), (rows_b, columns_b, map_b) = a.by(by), b.by(by)
    rows, columns = _common(rows_a, rows_b), _common(columns_a, columns_b)
    left = [
        name
        for keys, names, kept in (
            (rows_a, map_a.target, rows[0]), (rows_b, map_b.target, rows[1]),
            (columns_a, map_a.source, columns[0]), (columns_b, map_b.source, columns[1]),
        )
        for place, name in zip(range(len(keys)), names, strict=True) if place not in kept
    ]  # fmt: skip
    return Both(
        by,
        [map_a.target[place] for place in rows[0]],
        [map_a.source[place] for place in columns[0]],
        map_a.weights[np.ix_(rows[0], columns[0])],
        map_b.weights[np.ix_(rows[1], columns[1])],
        list(dict.fromkeys(left)),
    )


def _common(a: Keys, b: Keys) -> tuple[list[int], list[int]]:
    """Where the keys that both have stand, in the order of the first."""
    places = {key: place for place, key in enumerate(b)}
    found = [(place, places[key]) for place, key in enumerate(a) if key in places]
    return [one for one, _ in found], [other for _, other in found]


# ---------------------------------------------------------------- probabilities


class Row(NamedTuple):
    """log p of tokens, and the words they are pieces of."""

    tokens: Sequence[str]
    words: Sequence[int | None]
    texts: Sequence[str]
    log_probs: Sequence[float]

    def by(self, by: By) -> tuple[Keys, list[str], npt.NDArray[np.float64]]:
        """Keys, names and probabilities."""
        if by == "tokens":
            return range(len(self.tokens)), list(self.tokens), np.exp(self.log_probs)
        keys = word_keys(self.tokens, self.words)
        starts = [
            place
            for place, word in enumerate(self.words)
            if place == 0 or word is None or word != self.words[place - 1]
        ]
        sums = np.add.reduceat(np.asarray(self.log_probs, np.float64), starts) if starts else np.zeros(0)
        names = []
        for place in starts:
            word = self.words[place]
            names.append(self.tokens[place] if word is None or word >= len(self.texts) else self.texts[word])
        return keys, names, np.exp(sums)


def rows_told(a: Row, b: Row, by: By) -> dict[str, Any] | None:
    """Names and probabilities of both; None where tokens differ and tokens are asked for."""
    if by == "tokens" and list(a.tokens) != list(b.tokens):
        return None
    (keys_a, names, p_a), (keys_b, _, p_b) = a.by(by), b.by(by)
    places = _common(keys_a, keys_b)
    return {
        "names": [names[place] for place in places[0]],
        "a": [float(p_a[place]) for place in places[0]],
        "b": [float(p_b[place]) for place in places[1]],
    }
