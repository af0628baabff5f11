"""A stepper whose every distribution is a pure function of (sentence, history), so that a test can ask for it too."""

from __future__ import annotations

import math
import random
from functools import lru_cache

import pytest
import torch

from jumok.data.batch import Sequences

IMPOSSIBLE = -math.inf


class Oracle:
    """Remembers the whole history in its cache: a wrong `select` gives wrong distributions, not just wrong order."""

    def __init__(self, seed: int, vocabulary: int, coarse: bool = False, holes: float = 0.0, dtype=torch.float64):
        self.seed, self.vocabulary, self.coarse, self.holes, self.dtype = seed, vocabulary, coarse, holes, dtype
        self.rows_per_step: list[int] = []
        self.capacity = 0
        self.log_probs = lru_cache(maxsize=None)(self._log_probs)

    def _log_probs(self, sentence: int, history: tuple[int, ...]) -> tuple[float, ...]:
        source = random.Random(repr((self.seed, sentence, history)))
        if self.coarse:  # few distinct values whose sums are exact: ties everywhere
            values = [-source.randint(1, 4) / 4 for _ in range(self.vocabulary)]
        else:
            logits = [source.gauss(0, 2) for _ in range(self.vocabulary)]
            total = math.log(sum(math.exp(logit) for logit in logits))
            values = [logit - total for logit in logits]
        values = [IMPOSSIBLE if source.random() < self.holes else value for value in values]
        return tuple(torch.tensor(values, dtype=self.dtype).tolist())

    def encode(self, batch: Sequences) -> torch.Tensor:
        return batch.ids[:, 0]

    def start(self, memory: torch.Tensor, rows: int, capacity: int) -> torch.Tensor:
        assert len(memory) == rows
        self.capacity = capacity
        return torch.zeros(rows, 0, dtype=torch.long)

    def step(self, tokens, positions, memory, cache):
        assert len(tokens) == len(positions) == len(memory) == len(cache)
        assert (positions == cache.size(1)).all()
        assert cache.size(1) < self.capacity
        self.rows_per_step.append(len(tokens))
        cache = torch.cat([cache, tokens[:, None]], dim=1)
        rows = [
            self.log_probs(sentence, tuple(history[1:]))
            for sentence, history in zip(memory.tolist(), cache.tolist(), strict=True)
        ]
        return torch.tensor(rows, dtype=self.dtype), cache

    def select(self, memory, cache, rows):
        return memory[rows], cache[rows]


@pytest.fixture(scope="session")
def oracle() -> type[Oracle]:
    return Oracle
