"""What a model looked at while it wrote one sentence: what every picture, page and JSON file is made from."""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jumok.errors import BadInput

FORMAT = 1
END_MARK = "<eos>"
Weights = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Attention:
    """weights[t, s]: how much the t-th target token (the query) looked at the s-th source token (the key).

    Where a text looks at itself (`kind` "self" or "causal"), both are that text.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    weights: Weights  # (T, S)
    score: float | None = None  # the log-probability of the target, where it is known
    kind: str = "cross"  # who looks at whom: the target at the source; "self": a text at itself; "causal": at its past
    name: str = ""  # which of the model's attentions, where it has several: "decoder.1.cross, head 3"

    def __post_init__(self) -> None:
        object.__setattr__(self, "source", tuple(self.source))
        object.__setattr__(self, "target", tuple(self.target))
        object.__setattr__(self, "weights", np.asarray(self.weights, dtype=np.float32))
        expected = (len(self.target), len(self.source))
        if self.weights.shape != expected:
            raise ValueError(f"weights are {self.weights.shape}, but the tokens (target, source) ask for {expected}")

    def __str__(self) -> str:
        """Drawn in characters, as `jumok attend` shows it in a terminal."""
        from jumok.inspect.terminal import draw

        return draw(self)

    def _repr_html_(self) -> str:
        """In a notebook: the interactive picture, in a frame of its own so that its styles stay there."""
        from jumok.inspect.html import framed
        from jumok.inspect.pictures import page_of

        return framed(page_of(self), min(420 + 34 * len(self.target), 900))

    def save(self, path: str | Path, dark: bool = False) -> None:
        """Draw it into a file; the ending says how: .png, .svg, .html, .gif or .json."""
        from jumok.inspect.pictures import write_picture

        write_picture(self, Path(path), dark)

    def merge(
        self,
        source_words: Sequence[int | None],
        target_words: Sequence[int | None],
        source: Sequence[str] | None = None,
        target: Sequence[str] | None = None,
    ) -> Attention:
        """From pieces to words: summed over the pieces of a source word, averaged over those of a target word.

        So every row still sums to what it summed to before. `source_words[s]` is the word that piece s belongs to;
        None stands for itself (`<eos>`). The words' own text comes from `source` and `target` (by word number);
        without it the pieces are joined as they are.
        """
        columns = _groups(source_words, len(self.source), "source")
        rows = _groups(target_words, len(self.target), "target")
        weights = merged(self.weights, source_words, target_words)
        names = _names(columns, self.source, source), _names(rows, self.target, target)
        return Attention(*names, weights, self.score, self.kind, self.name)

    @property
    def written(self) -> str:
        """The target as one line, without its `<eos>`: one that was cut has none."""
        return " ".join(self.target[:-1] if self.target[-1:] == (END_MARK,) else self.target)

    def part(self, rows: int, columns: int) -> Attention:
        """The first target and source tokens only: without `<eos>`, for example."""
        kept = self.source[:columns], self.target[:rows], self.weights[:rows, :columns]
        return Attention(*kept, self.score, self.kind, self.name)

    # ---------------------------------------------------------------- JSON

    def as_dictionary(self) -> dict[str, Any]:
        """Plain values; a float32 is written with as many digits as bring it back exactly."""
        score = self.score if self.score is not None and math.isfinite(self.score) else None
        weights = [[float(str(value)) if math.isfinite(value) else None for value in row] for row in self.weights]
        tokens = {"source": list(self.source), "target": list(self.target)}
        return {**tokens, "weights": weights, "score": score, "kind": self.kind, "name": self.name}

    def to_json(self) -> str:
        return json.dumps({"format": FORMAT, **self.as_dictionary()}, ensure_ascii=False, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str, where: str = "attention JSON") -> Attention:
        try:
            raw = json.loads(text)
        except ValueError as error:
            raise BadInput(f"{where}: not valid JSON: {error}") from None
        if not isinstance(raw, dict) or not {"source", "target", "weights"} <= raw.keys():
            raise BadInput(f"{where}: expected an object with source, target and weights (from jumok attend)")
        if raw.get("format", FORMAT) != FORMAT:
            raise BadInput(f"{where}: format {raw['format']!r} is not {FORMAT}; it was written by another version")
        tokens = [raw["source"], raw["target"]]
        if not all(isinstance(side, list) and all(isinstance(token, str) for token in side) for side in tokens):
            raise BadInput(f"{where}: source and target must be lists of strings")
        score = raw.get("score")
        if score is not None and not isinstance(score, int | float):
            raise BadInput(f"{where}: score must be a number or null")
        kind, name = raw.get("kind", "cross"), raw.get("name", "")
        if not isinstance(kind, str) or not isinstance(name, str):
            raise BadInput(f"{where}: kind and name must be strings")
        try:
            weights = np.array(raw["weights"], dtype=np.float32).reshape(len(raw["weights"]), -1)  # None becomes nan
            if not raw["weights"] or not raw["source"]:
                weights = np.zeros((len(raw["target"]), len(raw["source"])), dtype=np.float32)
            return cls(tuple(raw["source"]), tuple(raw["target"]), weights, score, kind, name)
        except (TypeError, ValueError) as error:
            raise BadInput(f"{where}: the weights are not one row of numbers per target token: {error}") from None


def merged(weights: Weights, source_words: Sequence[int | None], target_words: Sequence[int | None]) -> Weights:
    """(…, T, S) weights of pieces as weights of words, as `Attention.merge` does it."""
    columns = [members[0] for _, members in _groups(source_words, weights.shape[-1], "source")]
    rows = _groups(target_words, weights.shape[-2], "target")
    if not columns or not rows:
        return np.zeros((*weights.shape[:-2], len(rows), len(columns)), dtype=np.float32)
    sums = np.add.reduceat(weights, columns, axis=-1)  # neighbours only: a number that is none stays in its word
    sums = np.add.reduceat(sums, [members[0] for _, members in rows], axis=-2)
    return np.asarray(sums / np.array([[len(members)] for _, members in rows], dtype=np.float32), dtype=np.float32)


Group = tuple[int | None, list[int]]  # (word number, its pieces)


def _groups(words: Sequence[int | None], count: int, side: str) -> list[Group]:
    """Neighbouring pieces of the same word, in order."""
    if len(words) != count:
        raise ValueError(f"{count} {side} tokens, but word numbers for {len(words)}")
    groups: list[Group] = []
    for index, word in enumerate(words):
        if word is not None and groups and groups[-1][0] == word:
            groups[-1][1].append(index)
        else:
            groups.append((word, [index]))
    return groups


def _names(groups: list[Group], pieces: Sequence[str], words: Sequence[str] | None) -> tuple[str, ...]:
    """Each word's own text; a word without any (a model may write nothing but a space) is called by its pieces."""
    known = words or ()
    return tuple(
        known[word] if word is not None and word < len(known) else "".join(pieces[index] for index in members)
        for word, members in groups
    )


def visible(text: str, keep: str = "") -> str:
    """The text as it may be shown: control, invisible and unknown characters, other than `keep`, become escapes."""
    return "".join(
        _escape(character) if _hidden(character) and character not in keep else character for character in text
    )


def _hidden(character: str) -> bool:
    return not character.isprintable() and unicodedata.category(character) != "Zs"


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
