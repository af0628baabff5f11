"""What a search is asked for, and how its hypotheses are scored."""

from __future__ import annotations

import math
from dataclasses import dataclass

from jumok.data.batch import PAD, START
from jumok.errors import BadInput


@dataclass(frozen=True)
class SearchOptions:
    """How one row is searched. Every length counts `<eos>`."""

    beam: int = 1  # hypotheses kept at each step; 1 is greedy
    length_penalty: float = 1.0  # score = log-probability / length ** length_penalty; 0: no normalisation
    max_length: int | None = None  # None: max_ratio × source length + max_extra
    nbest: int = 1  # hypotheses given back
    prefix: tuple[int, ...] = ()  # tokens that every hypothesis must start with
    forbidden: tuple[int, ...] = (PAD, START)  # tokens never generated (a prefix may still hold them)
    patience: float | None = None  # stop after patience × beam finished (Kasai et al. 2022); None: when nothing can win
    max_ratio: float = 2.0
    max_extra: int = 20

    def __post_init__(self) -> None:
        if self.beam < 1:
            raise BadInput(f"beam: {self.beam} hypotheses is no search; use 1 (greedy) or more")
        if not 1 <= self.nbest <= self.beam:
            raise BadInput(f"nbest: {self.nbest} does not fit a beam of {self.beam}; use 1 to {self.beam}, or widen it")
        if not 0 <= self.length_penalty <= 10:
            raise BadInput(f"length_penalty: must be a number from 0 to 10, not {self.length_penalty}")
        if self.max_length is not None and self.max_length < 1:
            raise BadInput(f"max_length: must be at least 1 (it counts <eos>), not {self.max_length}")
        if not (self.max_ratio >= 0 and math.isfinite(self.max_ratio)) or self.max_extra < 0:
            raise BadInput(f"max_ratio {self.max_ratio} and max_extra {self.max_extra}: neither may be below 0")
        if self.patience is not None and not self.patience > 0:
            raise BadInput(f"patience: must be above 0, not {self.patience}")
        if any(token < 0 for token in self.prefix):
            raise BadInput(f"prefix: token ids are not negative: {list(self.prefix)}")

    def limit(self, source_length: int | None) -> int:
        """The longest output of a row."""
        if self.max_length is not None:
            return self.max_length
        if source_length is None:
            raise BadInput("max_length: say it, this batch has no source lengths to derive it from")
        return max_length_for(source_length, self.max_ratio, self.max_extra)


def max_length_for(source_length: int, ratio: float, extra: int) -> int:
    """The longest output (with `<eos>`) for a source: `ratio · source_length + extra`, at least 1."""
    return max(1, int(ratio * source_length) + extra)


def normalised(log_probability: float, length: int, length_penalty: float) -> float:
    """`log p(y | x) / |y|^α` (Wu et al. 2016 without the constant); |y| counts `<eos>`."""
    return float(log_probability / max(1, length) ** length_penalty)
