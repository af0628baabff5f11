"""The encoder–decoder Transformer (Vaswani et al. 2017).

The encoder's words see each other; the decoder's words see those before them and, in every layer, the whole source.

    h = encoder(E_x[x] √d + PE)     s = decoder(E_y[<sos> y_1 …] √d + PE, h)     p(y_t | y_<t, x) = softmax(W s_t + b)

Training computes all positions at once; search computes one at a time and keeps keys and values (layers/cache.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jumok.data.batch import PAD, START, Sequences
from jumok.data.packing import PackedSide
from jumok.layers.block import Block, Source
from jumok.layers.cache import KeyValueCache, join_coverage, stacked
from jumok.layers.dropout import WordDropout
from jumok.layers.embedding import Embedding
from jumok.layers.linear import for_products
from jumok.layers.multihead import KeyValue, Look, MultiHeadAttention
from jumok.layers.spans import Spans
from jumok.layers.stack import Stack
from jumok.models.bert import Bert
from jumok.models.encoder_decoder import EncoderDecoder
from jumok.recipe import TransformerSection


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


class Transformer(EncoderDecoder):
    packs = True

    def __init__(self, section: TransformerSection, source_size: int, target_size: int) -> None:
        super().__init__()
        self.replays = section.position != "relative"  # its packed attention is laid out anew for every batch
        self.section = section
        self.embedding = Embedding(target_size, section.width, PAD)
        self.unseen = WordDropout(section.target_word_dropout)
        shared = section.tie_embeddings == "all"
        self.reader = Bert(section.reader, source_size) if section.reader is not None else None
        if self.reader is None:
            self.source_embedding = self.embedding if shared else Embedding(source_size, section.width, PAD)
            self.encoder = Stack(section, section.encoder_layers, "self", "encoder")
        else:
            self.packs = self.replays = False  # the reader begins each sentence with a token of its own
            # the same modules by their usual names, without being parameters twice
            object.__setattr__(self, "source_embedding", self.reader.embedding)
            object.__setattr__(self, "encoder", self.reader.encoder)
        self.decoder = Stack(section, section.decoder_layers, "causal", "decoder", cross=True)
        self.tied = section.tie_embeddings != "none"
        if section.position == "learned":
            self.longest = section.max_positions
        self.bias = nn.Parameter(torch.zeros(target_size))
        if not self.tied:
            self.weight = nn.Parameter(torch.empty(target_size, section.width))
            nn.init.normal_(self.weight, std=section.width**-0.5)

    def output(self, hidden: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Logits are W s + b, where W may be the word vectors themselves."""
        return hidden, self.embedding.weight if self.tied else self.weight, self.bias

    def forward(self, source: Sequences | PackedSide, target: Tensor | PackedSide) -> Tensor:
        """Hidden states (B, T, D) after reading `<sos> y_1 … y_(T-1)`; `head` of position t predicts y_t.

        The target is ids (B, T) where padding stands at the end of a row: no real word looks at it. Or both sides are
        packed, and B is 1.
        """
        if isinstance(source, PackedSide) and isinstance(target, PackedSide):
            look = Look(spans=Spans.across(target, source))
            sources = [Source(memory, look) for memory in self._layers(source)]
            return self.decoder(self.unseen(self.embedding(target.ids)), sources=sources, packed=target)
        assert isinstance(source, Sequences)
        assert isinstance(target, Tensor)  # both sides are packed, or none is
        look = Look(source.mask)
        sources = [Source(memory, look) for memory in self._layers(source)]
        return self.decoder(self.unseen(self.embedding(target)), sources=sources)

    def _layers(self, source: Sequences | PackedSide) -> list[KeyValue]:
        """The source as each decoder layer will look at it."""
        if self.reader is not None:
            assert isinstance(source, Sequences)
            h_BSD = self._read(self.reader, source)
        elif isinstance(source, PackedSide):
            h_BSD = self.encoder(self.source_embedding(source.ids), packed=source)
        else:
            h_BSD = self.encoder(self.source_embedding(source.ids), source.mask)
        h_BSD = for_products(h_BSD)
        return [self._cross(block).project(h_BSD) for block in self.decoder.blocks]

    @staticmethod
    def _read(reader: Bert, source: Sequences) -> Tensor:
        """A BERT has always read `[CLS]` before a text, whose place its decoder has no need of."""
        first_B1 = torch.full_like(source.ids[:, :1], START)
        return reader(Sequences(torch.cat([first_B1, source.ids], dim=1), source.lengths + 1))[:, 1:]

    @staticmethod
    def _cross(block: nn.Module) -> MultiHeadAttention:
        assert isinstance(block, Block)
        assert block.cross is not None
        return block.cross

    # ------------------------------------------------------------ the Stepper protocol

    def encode(self, batch: Sequences) -> Memory:
        owner_B = torch.arange(len(batch), device=batch.ids.device)
        return Memory(owner_B, stacked(self._layers(batch)), batch.mask)

    def start(self, memory: Memory, rows: int, capacity: int, coverage: bool = False) -> Cache:
        self.decoder.reach(capacity)
        layers, _, _, _, groups, head_width = memory.store.shape
        past = KeyValueCache.empty(layers, rows, min(capacity, FIRST_CAPACITY), groups, head_width, memory.store)
        return Cache(past, torch.zeros_like(memory.mask, dtype=memory.store.dtype) if coverage else None)

    def step(self, tokens: Tensor, positions: Tensor, memory: Memory, cache: Cache) -> tuple[Tensor, Cache]:
        past = cache.past.with_room(1)
        weights: list[Tensor] | None = None if cache.covered is None else []
        look = Look(memory.mask, coverage=weights)
        sources = [Source(KeyValue(layer[0], layer[1]), look) for layer in memory.store]
        hidden_B1D = self.decoder(self.embedding(tokens)[:, None], sources=sources, cache=past)
        cache = Cache(past.advanced(1), cache.covered)
        if weights is not None:
            assert cache.covered is not None
            cache = replace(cache, covered=cache.covered + torch.stack(weights).mean(dim=0)[:, 0])
        return F.log_softmax(self.head(hidden_B1D[:, 0]).float(), dim=-1), cache

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
