"""Guided alignment: one head of the decoder learns to look at the words that belong together.

    loss += λ · Σ_t −(1 / |G_t|) Σ_{s ∈ G_t} log α_ts        (Chen et al. 2016; one head: Garg et al. 2019)

G_t are the source tokens that the alignments link to target token t, α the weights of the first head of one layer,
at the position where t is to be written. A token without links teaches nothing. All other heads are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from jumok.data.batch import PairBatch
from jumok.data.links import Places, TokenLinks
from jumok.layers.attention import attention_weights
from jumok.layers.tap import Tap

HEAD = 0
LEAST = 1e-9  # a weight below it teaches as if it were this one: log 0 has no gradient


class Guidance:
    """`links` of each corpus that has some, by its number."""

    def __init__(self, tap: Tap, links: Mapping[int, TokenLinks], strength: float) -> None:
        self.tap, self.links, self.strength = tap, links, strength
        self._seen: list[Tensor] = []

    @contextmanager
    def watching(self) -> Iterator[None]:
        """While the model reads a batch: keep the weights of the head, written out, with their gradients."""

        def keep(_: Any, inputs: tuple[Any, ...], __: Tensor) -> None:
            query_BHTD, key_BHSD, _value, mask, scorer, bias, causal, _dropout = inputs
            one = slice(HEAD, HEAD + 1)
            own_bias = None if bias is None else bias[:, one]
            weights = attention_weights(query_BHTD[:, one], key_BHSD[:, one], mask, scorer, own_bias, causal)
            self._seen.append(weights[:, 0])

        self._seen.clear()
        handle = self.tap.register_forward_hook(keep)
        try:
            yield
        finally:
            handle.remove()

    def loss(self, batch: PairBatch) -> Tensor:
        """Of what was seen of this batch; where it was read twice (R-Drop), the mean of both."""
        (weights_BTS,) = self._seen
        self._seen.clear()
        links = self.links.get(batch.corpus)
        if links is None:
            return weights_BTS.new_zeros(())
        passes_PBTS = weights_BTS.float().view(-1, len(batch), *weights_BTS.shape[1:])
        return sum_over_links(passes_PBTS, links.of(batch.indices)) / len(passes_PBTS)


def sum_over_links(weights_PBTS: Tensor, places: Places) -> Tensor:
    """Σ_t −(1 / |G_t|) Σ_{s ∈ G_t} log α_ts, over all passes."""
    _, rows, words, _ = weights_PBTS.shape
    row, target, source = (torch.from_numpy(column).to(weights_PBTS.device) for column in places)
    flat = row * words + target
    counts = torch.zeros(rows * words, device=weights_PBTS.device).index_add_(0, flat, torch.ones_like(flat).float())
    logs = weights_PBTS[:, row, target, source].clamp_min(LEAST).log()
    return -(logs / counts[flat]).sum()
