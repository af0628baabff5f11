"""What a generating model offers to the search. RNN, Transformer and text recogniser all generate through this.

`Memory` and `Cache` are the model's own business: the search only carries them. Both always have one row per live
hypothesis, in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from torch import Tensor

Memory = Any
Cache = Any


class Stepper(Protocol):
    """One step of generation at a time, `p(y_t | y_<t, x)`."""

    def encode(self, batch: Any) -> Memory:
        """Read the source (for text: `Sequences`): one memory row per sentence."""
        ...

    def start(self, memory: Memory, rows: int, capacity: int, coverage: bool = False) -> Cache:
        """The state before the first token, for `rows` hypotheses of at most `capacity` tokens (`<eos>` included).

        With `coverage` the cache also sums how much each source position was looked at.
        """
        ...

    def step(self, tokens: Tensor, positions: Tensor, memory: Memory, cache: Cache) -> tuple[Tensor, Cache]:
        """Feed one token (B,) at its position (B,); return log-probabilities (B, V) of the next and the new cache.

        The log-probabilities are the caller's: the search overwrites them.
        """
        ...

    def select(self, memory: Memory, cache: Cache, rows: Tensor) -> tuple[Memory, Cache]:
        """Keep, repeat or reorder rows: row i of the result is row `rows[i]` of the input."""
        ...

    def join(self, parts: Sequence[tuple[Memory, Cache]]) -> tuple[Memory, Cache]:
        """The rows of several batches, one after another, as one batch: continuous batching.

        Rows may stand at different positions (`positions` tells them apart) and have sources of different lengths
        (padded to the longest there is). The capacity is the largest of the parts. If one part keeps its coverage, all
        do from here on; rows that did not before count from 0.
        """
        ...

    def coverage(self, cache: Cache) -> Tensor:
        """Σ_t α_ts (B, S) over the steps so far, the mean over heads and layers; 0 where the source is padding.

        Only for a cache that was started with `coverage=True`.
        """
        ...
