"""What every model that translates offers, recurrent or not: training by `forward` and `head`, search as a Stepper.

p(y | x) = Π_t p(y_t | y_<t, x)
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from jumok.data.batch import Sequences
from jumok.models.predictor import Predictor


class EncoderDecoder(Predictor):
    """`forward` gives hidden states, `head` turns those that are needed into logits; the rest is the Stepper protocol
    (search/stepper.py), whose memory and cache are each model's own business."""

    attends = True  # whether the target looks at the source, so that there is something to show
    packs = False  # whether it can learn from packed batches (data/packing.py)
    replays = False  # whether its training may be compiled and recorded: nothing in it waits for the GPU
    longest = sys.maxsize  # most tokens it can write, <eos> included

    def encode(self, batch: Sequences) -> Any:
        raise NotImplementedError

    def start(self, memory: Any, rows: int, capacity: int, coverage: bool = False) -> Any:
        raise NotImplementedError

    def step(self, tokens: Tensor, positions: Tensor, memory: Any, cache: Any) -> tuple[Tensor, Any]:
        raise NotImplementedError

    def select(self, memory: Any, cache: Any, rows: Tensor) -> tuple[Any, Any]:
        raise NotImplementedError

    def join(self, parts: Sequence[tuple[Any, Any]]) -> tuple[Any, Any]:
        raise NotImplementedError

    def coverage(self, cache: Any) -> Tensor:
        raise NotImplementedError
