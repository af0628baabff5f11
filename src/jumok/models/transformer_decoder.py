"""The decoder of a Transformer one token at a time, whatever it looks at: a text that was read, or a picture.

    s_t = decoder(E[y_(t-1)], past, h)

Everything a step can take over is kept: the keys and values of what is looked at, computed once, and those of what has
been written so far (layers/cache.py). A model that has `embedding`, a `decoder` with attention to a source, and
`log_probs` is a Stepper (search/stepper.py) with this, but for `encode`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jumok.layers.block import Block, Source
from jumok.layers.cache import KeyValueCache, join_coverage, stacked
from jumok.layers.linear import for_products
from jumok.layers.multihead import KeyValue, Look, MultiHeadAttention
from jumok.layers.stack import Stack


@dataclass(frozen=True)
class Memory:
    """What every decoder layer sees of the source, a row for each hypothesis: keys and values, computed once."""

    owner: Tensor  # (B,) which sentence a row belongs to: rows of one sentence are equal
    store: Tensor  # (L, 2, B, S, G, D)
    mask: Tensor  # (B, S)

    def select(self, rows: Tensor) -> Memory:
        owner_B = self.owner.index_select(0, rows)
        if torch.equal(owner_B, self.owner):  # hypotheses of one sentence changed places: nothing to copy
            return self
        return Memory(owner_B, self.store.index_select(2, rows), self.mask.index_select(0, rows))

    @staticmethod
    def join(parts: Sequence[Memory]) -> Memory:
        """The rows of all parts; sources are cut and padded to the longest that is left."""
        width = max(int(part.mask.sum(dim=1).max()) for part in parts)
        taken, owners = 0, []
        for part in parts:  # owners of different parts must stay apart
            owners.append(part.owner + taken)
            taken = int(owners[-1].max()) + 1 if len(part.owner) else taken
        stores = [F.pad(part.store, (0, 0, 0, 0, 0, width - part.store.size(3))) for part in parts]
        masks = [F.pad(part.mask, (0, width - part.mask.size(1))) for part in parts]
        return Memory(torch.cat(owners), torch.cat(stores, dim=2), torch.cat(masks))


@dataclass(frozen=True)
class Cache:
    """Where each hypothesis stands: what its words offer to the next one, and how much of the source was looked at."""

    past: KeyValueCache
    covered: Tensor | None = None  # (B, S), Σ_t α_ts, the mean over layers and heads

    def select(self, rows: Tensor) -> Cache:
        covered = None if self.covered is None else self.covered.index_select(0, rows)
        return Cache(self.past.select(rows), covered)


class TransformerDecoding:
    """To inherit from, beside nn.Module: it has no parameters of its own, so theirs keep their names."""

    embedding: nn.Module
    decoder: Stack

    def log_probs(self, hidden: Tensor) -> Tensor:
        """log p of every token (…, V), float32, from hidden states (…, D)."""
        raise NotImplementedError

    def offered(self, h_BSD: Tensor) -> list[KeyValue]:
        """What was read, as each decoder layer will look at it."""
        h_BSD = for_products(h_BSD)
        return [_cross(block).project(h_BSD) for block in self.decoder.blocks]

    def remember(self, h_BSD: Tensor, mask_BS: Tensor) -> Memory:
        owner_B = torch.arange(len(h_BSD), device=h_BSD.device)
        return Memory(owner_B, stacked(self.offered(h_BSD)), mask_BS)

    # ------------------------------------------------------------ the Stepper protocol

    def start(self, memory: Memory, rows: int, capacity: int, coverage: bool = False) -> Cache:
        self.decoder.reach(capacity)
        layers, _, _, _, groups, head_width = memory.store.shape
        past = KeyValueCache.empty(layers, rows, min(capacity, FIRST_CAPACITY), groups, head_width, memory.store)
        return Cache(past, torch.zeros_like(memory.mask, dtype=memory.store.dtype) if coverage else None)

    def advance(self, tokens: Tensor, memory: Memory, cache: Cache) -> tuple[Tensor, Cache]:
        """One step, up to the hidden states (B, D) that predict the next tokens."""
        past = cache.past.with_room(1)
        weights: list[Tensor] | None = None if cache.covered is None else []
        look = Look(memory.mask, coverage=weights)
        sources = [Source(KeyValue(layer[0], layer[1]), look) for layer in memory.store]
        hidden_B1D = self.decoder(self.embedding(tokens)[:, None], sources=sources, cache=past)
        cache = Cache(past.advanced(1), cache.covered)
        if weights is not None:
            assert cache.covered is not None
            cache = replace(cache, covered=cache.covered + torch.stack(weights).mean(dim=0)[:, 0])
        return hidden_B1D[:, 0], cache

    def step(self, tokens: Tensor, positions: Tensor, memory: Memory, cache: Cache) -> tuple[Tensor, Cache]:
        hidden_BD, cache = self.advance(tokens, memory, cache)
        return self.log_probs(hidden_BD), cache

    def select(self, memory: Memory, cache: Cache, rows: Tensor) -> tuple[Memory, Cache]:
        return memory.select(rows), cache.select(rows)

    def join(self, parts: Sequence[tuple[Memory, Cache]]) -> tuple[Memory, Cache]:
        memory = Memory.join([part for part, _ in parts])
        past = KeyValueCache.join([cache.past for _, cache in parts])
        covered = [(cache.covered, len(part.mask)) for part, cache in parts]
        return memory, Cache(past, join_coverage(covered, memory.mask.size(1)))

    def coverage(self, cache: Cache) -> Tensor:
        assert cache.covered is not None, "the search started without coverage"
        return cache.covered


FIRST_CAPACITY = 32  # columns a cache begins with; most sentences never need more, and it grows by itself


def _cross(block: nn.Module) -> MultiHeadAttention:
    assert isinstance(block, Block)
    assert block.cross is not None
    return block.cross
