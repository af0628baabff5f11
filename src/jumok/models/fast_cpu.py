"""The Transformer's search on the CPU with the least work for each step; the same numbers as models/transformer.py.

What makes it fast: linear maps packed for the processor (layers/packed.py), queries, keys and values of a layer in one
product, the keys and values of the source for all layers in one; the hypotheses of a sentence as several queries
against one block of keys, reordered without copying it (models/beams.py); no dropout, no autograd.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from jumok.data.batch import Sequences
from jumok.layers.cache import join_coverage
from jumok.layers.packed import Precision, pack
from jumok.models.beams import NEVER, Layout, Past, Source
from jumok.models.fast_layers import PackedStack, keys_and_values
from jumok.models.transformer import Transformer


@dataclass(frozen=True)
class Cache:
    past: Past
    covered: Tensor | None = None  # (N, S), Σ_t α_ts, the mean over layers and heads


class FastTransformer:
    """A Stepper (search/stepper.py) with a packed copy of a model's weights."""

    def __init__(self, model: Transformer, precision: Precision = "float32") -> None:
        self.source_embedding, self.embedding = model.source_embedding.weight.detach(), model.embedding.weight.detach()
        self.encoder, self.decoder = PackedStack(model.encoder, precision), PackedStack(model.decoder, precision)
        self.memory = keys_and_values(model.decoder, precision)
        self.head = pack(self.embedding if model.tied else model.weight, model.bias, precision)

    @torch.inference_mode()
    def encode(self, batch: Sequences) -> Source:
        rows, length = batch.ids.shape
        closed = None
        if int(batch.lengths.min()) < length:
            closed = torch.zeros(rows, length).masked_fill_(~batch.mask, NEVER)
        h_ND = self.encoder.read(F.embedding(batch.ids, self.source_embedding), closed)
        memory = self.memory(h_ND).view(rows, length, -1, 2, self.decoder.groups, self.decoder.head_width)
        layers = list(memory.permute(2, 3, 4, 0, 1, 5).contiguous().unbind())
        return Source(layers, closed, Layout.of(np.arange(rows), rows))

    @torch.inference_mode()
    def start(self, memory: Source, rows: int, capacity: int, coverage: bool = False) -> Cache:
        stack = self.decoder
        stack.reach(capacity)
        positions = stack.relative is not None
        past = Past.empty(len(stack.layers), stack.groups, rows, stack.head_width, capacity, positions)
        return Cache(past, torch.zeros(rows, memory.layers[0].size(3)) if coverage else None)

    @torch.inference_mode()
    def step(self, tokens: Tensor, positions: Tensor, memory: Source, cache: Cache) -> tuple[Tensor, Cache]:
        past = cache.past.extended(memory.layout, positions)
        weights: list[Tensor] | None = None if cache.covered is None else []
        hidden_ND = self.decoder.step(F.embedding(tokens, self.embedding), positions, memory, past, weights)
        covered = cache.covered
        if weights is not None and covered is not None:
            covered = covered + memory.layout.gather(torch.stack(weights).mean(dim=0).flatten(0, 1))
        return torch.log_softmax(self.head(hidden_ND), dim=-1), Cache(past, covered)

    @torch.inference_mode()
    def select(self, memory: Source, cache: Cache, rows: Tensor) -> tuple[Source, Cache]:
        layout, keep = memory.layout.select(rows.numpy())
        past = cache.past.select(rows, memory.layout, layout, keep)
        covered = None if cache.covered is None else cache.covered.index_select(0, rows)
        return memory.select(layout, keep), Cache(past, covered)

    @torch.inference_mode()
    def join(self, parts: Sequence[tuple[Source, Cache]]) -> tuple[Source, Cache]:
        memory = Source.join([source for source, _ in parts])
        past = Past.join([cache.past for _, cache in parts], [source.layout for source, _ in parts])
        covered = [(cache.covered, len(source.layout.owner)) for source, cache in parts]
        return memory, Cache(past, join_coverage(covered, memory.layers[0].size(3)))

    def coverage(self, cache: Cache) -> Tensor:
        assert cache.covered is not None, "the search started without coverage"
        return cache.covered
