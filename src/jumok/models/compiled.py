"""The Transformer's search on the CPU, each step one call of transformer.c; the same numbers as models/transformer.py.

The past of all hypotheses is one pool of entries, one for each word that was written; a table says which entries a
hypothesis descends from, so that to reorder hypotheses is to reorder its rows. Entries that nobody descends from any
more are used again. Sentences lie one after another, without padding, and are never repeated for their hypotheses.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

import torch
from torch import Tensor
from torch.nn import functional as F

from jumok.data.batch import Sequences
from jumok.layers.block import Block
from jumok.layers.cache import join_coverage
from jumok.layers.packed import Precision
from jumok.models.native import computes, library
from jumok.models.native_stack import NUMBER, POINTER, Linear, NativeStack, Packer
from jumok.models.transformer import Transformer

FIRST_ENTRIES, FIRST_LENGTH = 64, 32  # for each sentence, and of each hypothesis; both grow by themselves
STEPS = 8  # at least, for which there are entries after those that are free were collected


class Step(ctypes.Structure):
    """As in transformer.c."""

    _fields_ = (
        ("rows", NUMBER), ("threads", NUMBER), ("tokens", POINTER), ("position", POINTER), ("past", POINTER),
        ("ancestors", POINTER), ("room", NUMBER), ("entry", POINTER), ("source", POINTER), ("covered", POINTER),
        ("covered_room", NUMBER), ("out", POINTER),
    )  # fmt: skip


@dataclass(frozen=True)
class Source:
    """What the decoder's layers see of each row's sentence."""

    rows: Tensor  # (N, 4): address of its first key, floats from one layer's keys to its values, words, its block
    blocks: dict[int, Tensor]  # sentences that were read together: (2 L, words, keys)
    width: int  # words of the longest sentence, also of those that have left

    def select(self, rows: Tensor) -> Source:
        chosen = self.rows.index_select(0, rows)
        if len(self.blocks) == 1:
            return Source(chosen, self.blocks, self.width)
        needed = set(chosen[:, 3].tolist())
        return Source(chosen, {number: self.blocks[number] for number in needed}, self.width)

    @staticmethod
    def join(parts: Sequence[Source]) -> Source:
        blocks = {number: block for part in parts for number, block in part.blocks.items()}
        return Source(torch.cat([part.rows for part in parts]), blocks, max(part.width for part in parts))


class Past:
    """What has been written. Steps write in place: a past belongs to one search."""

    def __init__(self, layers: int, entries: int, keys: int, rows: int, length: int) -> None:
        self.pool = [torch.empty(entries, 2, keys) for _ in range(layers)]
        self.free = torch.arange(entries, dtype=torch.int32)  # entries that nobody descends from
        self.ancestors = torch.zeros(rows, length, dtype=torch.int32)  # (N, room): the entry at each position
        self.length = 0  # of the longest hypothesis

    def select(self, rows: Tensor) -> Past:
        chosen = Past.__new__(Past)
        chosen.pool, chosen.free, chosen.length = self.pool, self.free, self.length
        chosen.ancestors = self.ancestors.index_select(0, rows)
        return chosen

    def extend(self, positions: Tensor) -> Tensor:
        """An entry for the next word of each row, which descends from it. Returns which (N)."""
        rows = len(self.ancestors)
        self.length = int(positions.max()) + 1
        if self.length > self.ancestors.size(1):
            self.ancestors = F.pad(self.ancestors, (0, self.ancestors.size(1)))
        new = self.take(rows)
        self.ancestors.scatter_(1, positions[:, None], new[:, None])
        return new

    def take(self, count: int) -> Tensor:
        if count > len(self.free):
            self._collect(count)
        taken, self.free = self.free[:count], self.free[count:]
        return taken

    def _collect(self, count: int) -> None:
        """Find the entries that are free again; if they are few, make more."""
        entries = self.pool[0].size(0)
        needed = torch.zeros(entries, dtype=torch.bool)
        needed[self.ancestors[:, : self.length].flatten()] = True
        self.free = torch.nonzero(~needed).flatten().int()
        if len(self.free) < STEPS * count:
            more = max(entries, STEPS * count)
            self.pool = [_longer(layer, more) for layer in self.pool]
            self.free = torch.cat((self.free, torch.arange(entries, entries + more, dtype=torch.int32)))

    @staticmethod
    def join(parts: Sequence[Past]) -> Past:
        """The rows of all parts, in the pool of the first."""
        first = parts[0]
        room = max(part.ancestors.size(1) for part in parts)
        joined = first.select(torch.arange(len(first.ancestors)))
        joined.ancestors = F.pad(joined.ancestors, (0, room - joined.ancestors.size(1)))
        joined.length = max(part.length for part in parts)
        for part in parts[1:]:
            ancestors = part.ancestors
            if part.length:
                old = torch.unique(ancestors[:, : part.length])
                new = joined.take(len(old))
                for ours, theirs in zip(joined.pool, part.pool, strict=True):
                    ours[new] = theirs[old]
                renamed = torch.zeros(part.pool[0].size(0), dtype=torch.int32)
                renamed[old] = new
                ancestors = renamed[ancestors]
            added = F.pad(ancestors, (0, room - ancestors.size(1)))
            joined.ancestors = torch.cat((joined.ancestors, added))
        return joined


def _longer(layer: Tensor, more: int) -> Tensor:
    longer = torch.empty(len(layer) + more, *layer.shape[1:])
    longer[: len(layer)] = layer
    return longer


@dataclass(frozen=True)
class Cache:
    past: Past
    covered: Tensor | None = None  # (N, S), Σ_t α_ts, the mean over layers and heads


def compiles(model: Transformer, precision: Precision) -> bool:
    """Whether transformer.c can be compiled here, with threads, and knows this precision and these widths."""
    return computes(precision, model.section.width, model.section.feed_forward)


class CompiledTransformer:
    """A Stepper (search/stepper.py) with a packed copy of a model's weights."""

    @torch.no_grad()
    def __init__(self, model: Transformer, precision: Precision = "float32") -> None:
        found = library()
        assert found is not None
        self.library = found
        packer = Packer(precision, found.jumok_panel())
        self.encoder = NativeStack(model.encoder, model.source_embedding.weight, packer)
        self.decoder = NativeStack(model.decoder, model.embedding.weight, packer)
        crossing = [block.cross for block in model.decoder.blocks if isinstance(block, Block) and block.cross]
        maps = [packer.linear([part]) for each in crossing for part in (each.key, each.value)]
        self.memory = (Linear * len(maps))(*maps)
        self.head = packer.matrix(model.embedding.weight if model.tied else model.weight, model.bias)
        self.numbers = count()  # of the blocks that were read

    def encode(self, batch: Sequences) -> Source:
        """Padding is left out."""
        lengths, ids = batch.lengths, batch.ids
        words, width = int(lengths.sum()), int(lengths.max())
        starts = lengths.cumsum(0) - lengths
        tokens = self.encoder.tokens(ids[batch.mask] if words < ids.numel() else ids.flatten())
        first = starts.repeat_interleave(lengths)
        position, length = torch.arange(words) - first, lengths.repeat_interleave(lengths)
        stack = self.encoder
        room, _kept = stack.room(words)
        block = torch.empty(len(self.memory), words, self.decoder.keys)
        self.library.jumok_read(
            ctypes.byref(stack.structure), ctypes.byref(stack.positions(width)), ctypes.byref(room),
            NUMBER(torch.get_num_threads()), NUMBER(words),
            *(POINTER(each.data_ptr()) for each in (tokens, position, first, length)),
            self.memory, NUMBER(len(self.memory)), POINTER(block.data_ptr()),
        )  # fmt: skip
        number = next(self.numbers)
        address = block.data_ptr() + starts * (4 * self.decoder.keys)
        ones = torch.ones_like(starts)
        return Source(torch.stack((address, ones * block.stride(0), lengths, ones * number), 1), {number: block}, width)

    def start(self, memory: Source, rows: int, capacity: int, coverage: bool = False) -> Cache:
        stack = self.decoder
        stack.reach(capacity)
        past = Past(stack.layers, FIRST_ENTRIES * rows, stack.keys, rows, min(capacity, FIRST_LENGTH))
        return Cache(past, torch.zeros(rows, memory.width) if coverage else None)

    def step(self, tokens: Tensor, positions: Tensor, memory: Source, cache: Cache) -> tuple[Tensor, Cache]:
        past, stack, covered, rows = cache.past, self.decoder, cache.covered, len(tokens)
        tokens, positions = stack.tokens(tokens), positions.contiguous()
        entry = past.extend(positions)
        room, _kept = stack.room(rows)
        log_probs = torch.empty(rows, self.head.outputs)
        pool = (POINTER * stack.layers)(*(layer.data_ptr() for layer in past.pool))
        step = Step(
            rows, torch.get_num_threads(), tokens.data_ptr(), positions.data_ptr(), ctypes.addressof(pool),
            past.ancestors.data_ptr(), past.ancestors.size(1), entry.data_ptr(), memory.rows.data_ptr(),
            None if covered is None else covered.data_ptr(), memory.width, log_probs.data_ptr(),
        )  # fmt: skip
        self.library.jumok_step(
            ctypes.byref(stack.structure), ctypes.byref(stack.positions(past.length)), ctypes.byref(room),
            ctypes.byref(self.head), ctypes.byref(step),
        )  # fmt: skip
        return log_probs, cache

    def select(self, memory: Source, cache: Cache, rows: Tensor) -> tuple[Source, Cache]:
        covered = None if cache.covered is None else cache.covered.index_select(0, rows)
        return memory.select(rows), Cache(cache.past.select(rows), covered)

    def join(self, parts: Sequence[tuple[Source, Cache]]) -> tuple[Source, Cache]:
        memory = Source.join([source for source, _ in parts])
        past = Past.join([cache.past for _, cache in parts])
        covered = [(cache.covered, len(source.rows)) for source, cache in parts]
        return memory, Cache(past, join_coverage(covered, memory.width))

    def coverage(self, cache: Cache) -> Tensor:
        assert cache.covered is not None, "the search started without coverage"
        return cache.covered
