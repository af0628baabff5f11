"""The log-probability that a model gives to translations that somebody else made.

    log p(y | x) = Σ_t log p(y_t | y_<t, x),   y_T = <eos>

One pass over the whole translation gives all its terms: the same numbers as a search would have summed up on the way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch.nn import functional as F

from jumok.data.batch import PairBatch
from jumok.models.encoder_decoder import EncoderDecoder
from jumok.search.ensemble import mean_probability

BATCH_TOKENS = 2048  # of targets in one pass: their log-probabilities over the whole vocabulary are in memory at once


@dataclass(frozen=True)
class Scored:
    """A translation's log-probability, token by token; the last one is `<eos>`."""

    tokens: tuple[str, ...]  # as something to print
    log_probabilities: tuple[float, ...]

    @property
    def log_probability(self) -> float:
        return math.fsum(self.log_probabilities)

    @property
    def average(self) -> float:
        """Per token."""
        return self.log_probability / len(self.log_probabilities)


@torch.inference_mode()
def log_probabilities(
    models: Sequence[EncoderDecoder],
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    device: torch.device,
) -> list[list[float]]:
    """For each pair (token ids), log p of each target token and of `<eos>`; of several models, the mean probability."""
    results: list[list[float]] = [[] for _ in sources]
    order = sorted(range(len(sources)), key=lambda index: (len(targets[index]), len(sources[index])))
    while order:
        width = len(targets[order[-1]]) + 1
        size = max(1, BATCH_TOKENS // width)
        chosen, order = order[-size:], order[:-size]
        batch = PairBatch.of([sources[index] for index in chosen], [targets[index] for index in chosen]).to(device)
        real_BT, labels_BT = batch.target.mask[:, 1:], batch.target.ids[:, 1:]
        each = []
        for model in models:
            hidden_BTD = model(batch.source, batch.target.ids[:, :-1])
            each.append(F.log_softmax(model.head(hidden_BTD[real_BT]).float(), dim=-1))
        found = mean_probability(each).gather(1, labels_BT[real_BT][:, None])[:, 0].cpu().tolist()
        for index in chosen:
            length = len(targets[index]) + 1
            results[index], found = found[:length], found[length:]
    return results
