"""What a generating model offers to the search. RNN, Transformer and text recogniser all generate through this.

`Memory` and `Cache` are the model's own business: the search only carries them. Both always have one row per live
hypothesis, in the same order.
"""

from __future__ import annotations

from typing import Any, Protocol

from torch import Tensor

Memory = Any
Cache = Any


class Stepper(Protocol):
    """One step of generation at a time, `p(y_t | y_<t, x)`."""

    def encode(self, batch: Any) -> Memory:
        """Read the source (for text: `Sequences`): one memory row per sentence."""
        ...

    def start(self, memory: Memory, rows: int, capacity: int) -> Cache:
        """The state before the first token, for `rows` hypotheses of at most `capacity` tokens."""
        ...

    def step(self, tokens: Tensor, positions: Tensor, memory: Memory, cache: Cache) -> tuple[Tensor, Cache]:
        """Feed one token (B,) at its position (B,); return log-probabilities (B, V) of the next and the new cache."""
        ...

    def select(self, memory: Memory, cache: Cache, rows: Tensor) -> tuple[Memory, Cache]:
        """Keep, repeat or reorder rows: row i of the result is row `rows[i]` of the input."""
        ...
