"""A stepper whose every distribution is a pure function of (sentence, history), so that a test can ask for it too."""

from __future__ import annotations

import math
import random
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from jumok.data.batch import Sequences

IMPOSSIBLE = -math.inf
History = tuple[int, ...]


class Oracle:
    """A row's name is the first token of its source.

    The cache is the whole history of each hypothesis: a wrong `select` or `join` gives wrong distributions, not just a
    wrong order.
    """

    def __init__(
        self,
        seed: int,
        vocabulary: int,
        coarse: bool = False,
        holes: float = 0.0,
        dtype: torch.dtype = torch.float64,
    ) -> None:
        self.seed, self.vocabulary, self.coarse, self.holes, self.dtype = seed, vocabulary, coarse, holes, dtype
        self.rows_per_step: list[int] = []
        self.encoded: list[int] = []  # rows of each batch that was read
        self.log_probs = lru_cache(maxsize=None)(self._log_probs)
        self.attention = lru_cache(maxsize=None)(self._attention)

    def _log_probs(self, sentence: int, history: History) -> tuple[float, ...]:
        source = random.Random(repr((self.seed, sentence, history)))
        if self.coarse:  # few distinct values whose sums are exact: ties everywhere
            values = [-source.randint(1, 4) / 4 for _ in range(self.vocabulary)]
        else:
            logits = [source.gauss(0, 2) for _ in range(self.vocabulary)]
            total = math.log(sum(math.exp(logit) for logit in logits))
            values = [logit - total for logit in logits]
        values = [IMPOSSIBLE if source.random() < self.holes else value for value in values]
        return tuple(torch.tensor(values, dtype=self.dtype).tolist())

    def _attention(self, sentence: int, history: History, length: int) -> tuple[float, ...]:
        source = random.Random(repr((self.seed, "attention", sentence, history)))
        weights = [source.random() ** 3 for _ in range(length)]
        return tuple(weight / sum(weights) for weight in weights)

    # ------------------------------------------------------------ the Stepper protocol

    def encode(self, batch: Sequences) -> Tensor:
        self.encoded.append(len(batch))
        return torch.stack([batch.ids[:, 0], batch.lengths], dim=1)  # (B, 2) name and length

    def start(self, memory: Tensor, rows: int, capacity: int, coverage: bool = False) -> list[dict[str, Any]]:
        assert len(memory) == rows
        return [{"history": (), "capacity": capacity, "coverage": coverage} for _ in range(rows)]

    def step(self, tokens: Tensor, positions: Tensor, memory: Tensor, cache: Any) -> tuple[Tensor, Any]:
        assert len(tokens) == len(positions) == len(memory) == len(cache)
        self.rows_per_step.append(len(tokens))
        following, rows = [], []
        for token, position, (name, _), entry in zip(
            tokens.tolist(), positions.tolist(), memory.tolist(), cache, strict=True
        ):
            assert position == len(entry["history"]) < entry["capacity"]
            following.append({**entry, "history": (*entry["history"], token)})
            rows.append(self.log_probs(name, following[-1]["history"][1:]))
        return torch.tensor(rows, dtype=self.dtype, device=tokens.device), _Carried(following, memory)

    def select(self, memory: Tensor, cache: Any, rows: Tensor) -> tuple[Tensor, Any]:
        return memory[rows], _Carried([cache[row] for row in rows.tolist()], memory[rows])

    def join(self, parts: Any) -> tuple[Tensor, Any]:
        memory = torch.cat([memory for memory, _ in parts])
        return memory, _Carried([entry for _, cache in parts for entry in cache], memory)

    def coverage(self, cache: Any) -> Tensor:
        lengths = cache.memory[:, 1].tolist()
        total = torch.zeros(len(cache), max(lengths) + 1, dtype=torch.float64)
        for row, (name, length) in enumerate(cache.memory.tolist()):
            if cache[row]["coverage"]:
                for steps in range(1, len(cache[row]["history"]) + 1):
                    weights = self.attention(name, cache[row]["history"][1:steps], length)
                    total[row, :length] += torch.tensor(weights, dtype=torch.float64)
        return total


class _Carried(list[dict[str, Any]]):
    """The entries of a cache, and whose they are."""

    def __init__(self, entries: list[dict[str, Any]], memory: Tensor) -> None:
        super().__init__(entries)
        self.memory = memory
