"""Writing the target: three decoders that differ only in what they get from the source, and when.

A decoder reads word vectors of `<sos> y_1 y_2 …` and gives the hidden state from which the next word is predicted.
`step` does one position (search, scheduled sampling), `forward` a whole row at once (teacher forcing).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jumok.errors import BadInput
from jumok.layers.attention import attention_weights, build_scorer
from jumok.layers.cache import join_coverage
from jumok.layers.linear import linear
from jumok.layers.recurrent import Recurrent, State
from jumok.layers.tap import Tap
from jumok.models.encoder import Encoded
from jumok.recipe import Seq2SeqSection


@dataclass(frozen=True)
class Memory:
    """What the decoder keeps of the source, a row for each hypothesis. Without attention: the state alone."""

    owner: Tensor  # (B,) which sentence a row belongs to: rows of one sentence are equal
    state: State
    keys: Tensor | None = None  # (B, S, D) as the scorer prepared them
    values: Tensor | None = None  # (B, S, D)
    mask: Tensor | None = None  # (B, S)

    def select(self, rows: Tensor) -> Memory:
        owner_B = self.owner.index_select(0, rows)
        if torch.equal(owner_B, self.owner):  # hypotheses of one sentence changed places: nothing to copy
            return self
        chosen = {
            name: None if tensor is None else tensor.index_select(0, rows)
            for name, tensor in (("keys", self.keys), ("values", self.values), ("mask", self.mask))
        }
        return replace(self, owner=owner_B, state=tuple(part.index_select(1, rows) for part in self.state), **chosen)

    @staticmethod
    def join(parts: Sequence[Memory]) -> Memory:
        """Rows of several batches in one. Sources are cut and padded to the longest; padding stays masked."""
        owners, taken = [parts[0].owner], parts[0].owner.max() + 1
        for part in parts[1:]:  # a sentence of one batch is not the same-numbered one of another
            owners.append(part.owner + taken)
            taken = owners[-1].max() + 1
        state = _join_states([part.state for part in parts])
        masks = [part.mask for part in parts if part.mask is not None]
        if not masks:
            return Memory(torch.cat(owners), state)
        longest = int(torch.stack([mask.sum(dim=1).max() for mask in masks]).max())
        keys = [_widen(part.keys, longest) for part in parts if part.keys is not None]
        values = [_widen(part.values, longest) for part in parts if part.values is not None]
        mask = torch.cat([_widen(mask, longest) for mask in masks])
        return Memory(torch.cat(owners), state, torch.cat(keys), torch.cat(values), mask)


class Cache(NamedTuple):
    """Where a hypothesis stands: the recurrent state, under input feeding the last s̃, and Σ_t α_ts if asked for."""

    state: State
    feed: Tensor | None = None  # (B, D)
    coverage: Tensor | None = None  # (B, S)

    def select(self, rows: Tensor) -> Cache:
        feed = None if self.feed is None else self.feed.index_select(0, rows)
        coverage = None if self.coverage is None else self.coverage.index_select(0, rows)
        return Cache(tuple(part.index_select(1, rows) for part in self.state), feed, coverage)

    @staticmethod
    def join(parts: Sequence[Cache], width: int) -> Cache:
        """Rows of several batches in one, for sources of `width`; one that kept no coverage so far starts at 0."""
        feeds = [part.feed for part in parts if part.feed is not None]
        coverage = join_coverage([(part.coverage, part.state[0].size(1)) for part in parts], width)
        return Cache(_join_states([part.state for part in parts]), torch.cat(feeds) if feeds else None, coverage)


def _join_states(states: Sequence[State]) -> State:
    return tuple(torch.cat(parts, dim=1) for parts in zip(*states, strict=True))


def _widen(tensor: Tensor, width: int) -> Tensor:
    """(B, S, …) cut or padded with zeros to (B, width, …)."""
    return F.pad(tensor[:, :width], (0, 0) * (tensor.dim() - 2) + (0, max(0, width - tensor.size(1))))


class Bridge(nn.Module):
    """From the encoder's final state to the decoder's first.

    The two directions of each layer lie side by side and fill the width. Learned (Bahdanau): s_0 = tanh(W [→h; ←h] + b)
    in each layer; an LSTM's cell state is not bounded, so it has no tanh.
    """

    def __init__(self, section: Seq2SeqSection, learned: bool) -> None:
        super().__init__()
        self.directions = 2 if section.bidirectional else 1
        maps = section.layers * (2 if section.cell == "lstm" else 1) if learned else 0
        self.maps = nn.ModuleList(linear(section.width, section.width) for _ in range(maps))

    def forward(self, state: State) -> State:
        if self.directions == 2:
            state = tuple(torch.cat((part[0::2], part[1::2]), dim=-1) for part in state)
        if not self.maps:
            return state
        vectors = [vector_BD for part in state for vector_BD in part]
        mapped = torch.stack([layer(vector_BD) for layer, vector_BD in zip(self.maps, vectors, strict=True)])
        hidden, *cell = mapped.chunk(len(state))
        return (torch.tanh(hidden), *cell)


class Decoder(nn.Module):
    """The plain encoder–decoder (Sutskever et al. 2014): s_t = cell(y_(t-1), s_(t-1)), started from the encoder's
    final state, which is the only thing the decoder gets."""

    extra_input = 0  # what the cell reads besides the word vector
    learned_bridge = False

    def __init__(self, section: Seq2SeqSection) -> None:
        super().__init__()
        self.bridge = Bridge(section, self.learned_bridge)
        self.recurrent = Recurrent(
            section.cell,
            section.embedding + self.extra_input * section.width,
            section.width,
            section.layers,
            dropout=section.dropout,
            forget_bias=section.forget_bias,
            written_out=section.written_out,
        )

    def remember(self, encoded: Encoded) -> Memory:
        owner_B = torch.arange(encoded.mask.size(0), device=encoded.mask.device)
        return Memory(owner_B, self.bridge(encoded.state))

    def start(self, memory: Memory, coverage: bool = False) -> Cache:
        if coverage:
            raise BadInput("a coverage penalty needs attention, which this model has not: leave coverage_penalty at 0")
        return Cache(memory.state)

    def step(self, embedded_BD: Tensor, memory: Memory, cache: Cache) -> tuple[Tensor, Cache]:
        """One position: the hidden state (B, D) that predicts the next word, and the new cache."""
        s_B1D, state = self.recurrent(embedded_BD[:, None], state=cache.state)
        return s_B1D[:, 0], Cache(state)

    def forward(self, embedded_BTD: Tensor, memory: Memory) -> Tensor:
        """All positions at once. Padding is at the end of a row, so it cannot reach what the loss looks at."""
        return self.recurrent(embedded_BTD, state=self.start(memory).state)[0]


class Attending(Decoder):
    """What the two decoders with attention share: a scorer, a tap, and keys prepared once for each source."""

    def __init__(self, section: Seq2SeqSection) -> None:
        super().__init__(section)
        self.scorer = build_scorer(section.scorer, section.width, section.width, section.width, section.max_source)
        self.tap = Tap("cross", "decoder")

    def remember(self, encoded: Encoded) -> Memory:
        key_BSD = self.scorer.prepare(encoded.outputs)
        return replace(super().remember(encoded), keys=key_BSD, values=encoded.outputs, mask=encoded.mask)

    def start(self, memory: Memory, coverage: bool = False) -> Cache:
        looked = (
            torch.zeros(memory.mask.shape, device=memory.mask.device) if coverage and memory.mask is not None else None
        )
        return Cache(memory.state, coverage=looked)

    def attend(self, query_BTD: Tensor, memory: Memory) -> Tensor:
        return self.tap(query_BTD, memory.keys, memory.values, memory.mask, self.scorer)

    def cover(self, query_B1D: Tensor, memory: Memory, cache: Cache) -> Tensor | None:
        """Σ_t α_ts with this step's weights in it, where it is kept."""
        if cache.coverage is None or memory.keys is None:
            return None
        return cache.coverage + attention_weights(query_B1D, memory.keys, memory.mask, self.scorer)[:, 0].float()


class LuongDecoder(Attending):
    """Luong et al. 2015: the state comes first, the attention value a_t after it, and both make the prediction:

    s_t = cell(y_(t-1), s_(t-1))      a_t = attention(s_t, h)      s̃_t = tanh(W_c [a_t; s_t] + b_c)
    """

    def __init__(self, section: Seq2SeqSection) -> None:
        super().__init__(section)
        self.combine = linear(2 * section.width, section.width)

    def attentional(self, s_BTD: Tensor, memory: Memory) -> Tensor:
        a_BTD = self.attend(s_BTD, memory)
        return torch.tanh(self.combine(torch.cat((a_BTD, s_BTD), dim=-1)))

    def step(self, embedded_BD: Tensor, memory: Memory, cache: Cache) -> tuple[Tensor, Cache]:
        s_B1D, state = self.recurrent(embedded_BD[:, None], state=cache.state)
        return self.attentional(s_B1D, memory)[:, 0], Cache(state, coverage=self.cover(s_B1D, memory, cache))

    def forward(self, embedded_BTD: Tensor, memory: Memory) -> Tensor:
        s_BTD, _ = self.recurrent(embedded_BTD, state=self.start(memory).state)
        return self.attentional(s_BTD, memory)


class FeedingDecoder(LuongDecoder):
    """Luong's input feeding: the cell also reads the last s̃, so it knows where it looked before:

    s_t = cell([y_(t-1); s̃_(t-1)], s_(t-1))
    """

    extra_input = 1

    def start(self, memory: Memory, coverage: bool = False) -> Cache:
        return super().start(memory, coverage)._replace(feed=torch.zeros_like(memory.state[0][0]))

    def step(self, embedded_BD: Tensor, memory: Memory, cache: Cache) -> tuple[Tensor, Cache]:
        assert cache.feed is not None
        fed_B1D = torch.cat((embedded_BD, cache.feed), dim=-1)[:, None]
        s_B1D, state = self.recurrent(fed_B1D, state=cache.state)
        hidden_BD = self.attentional(s_B1D, memory)[:, 0]
        return hidden_BD, Cache(state, hidden_BD, self.cover(s_B1D, memory, cache))

    def forward(self, embedded_BTD: Tensor, memory: Memory) -> Tensor:
        cache, hidden = self.start(memory), []
        for embedded_BD in embedded_BTD.unbind(1):
            hidden_BD, cache = self.step(embedded_BD, memory, cache)
            hidden.append(hidden_BD)
        return torch.stack(hidden, dim=1)


class BahdanauDecoder(Attending):
    """Bahdanau et al. 2015: the previous state looks first, and what it saw goes into the cell:

    c_t = attention(s_(t-1), h)      s_t = cell([y_(t-1); c_t], s_(t-1))      t_t = maxout(W [s_t; c_t; y_(t-1)] + b)
    """

    extra_input = 1
    learned_bridge = True

    def __init__(self, section: Seq2SeqSection) -> None:
        super().__init__(section)
        self.readout = linear(2 * section.width + section.embedding, 2 * section.width)

    def advance(self, embedded_BD: Tensor, memory: Memory, cache: Cache) -> tuple[Tensor, Cache]:
        """[s_t; c_t; y_(t-1)], all that the readout needs."""
        query_B1D = cache.state[0][-1][:, None]
        context_B1D = self.attend(query_B1D, memory)
        read_B1D = torch.cat((embedded_BD[:, None], context_B1D), dim=-1)
        s_B1D, state = self.recurrent(read_B1D, state=cache.state)
        seen_B1D = torch.cat((s_B1D, context_B1D, embedded_BD[:, None]), dim=-1)
        return seen_B1D[:, 0], Cache(state, coverage=self.cover(query_B1D, memory, cache))

    def maxout(self, seen: Tensor) -> Tensor:
        return self.readout(seen).unflatten(-1, (-1, 2)).amax(dim=-1)

    def step(self, embedded_BD: Tensor, memory: Memory, cache: Cache) -> tuple[Tensor, Cache]:
        seen_BD, cache = self.advance(embedded_BD, memory, cache)
        return self.maxout(seen_BD), cache

    def forward(self, embedded_BTD: Tensor, memory: Memory) -> Tensor:
        cache, seen = self.start(memory), []
        for embedded_BD in embedded_BTD.unbind(1):
            seen_BD, cache = self.advance(embedded_BD, memory, cache)
            seen.append(seen_BD)
        return self.maxout(torch.stack(seen, dim=1))  # the readout does not recur: all positions at once


def build_decoder(section: Seq2SeqSection) -> Decoder:
    if section.attention == "bahdanau":
        return BahdanauDecoder(section)
    if section.attention == "luong":
        return FeedingDecoder(section) if section.input_feeding else LuongDecoder(section)
    return Decoder(section)


class RecurrentDecoding:
    """A model with such a decoder is a Stepper (search/stepper.py), but for `encode`. To inherit from, beside
    nn.Module: it has no parameters of its own, so theirs keep their names."""

    embedding: nn.Module
    decoder: Decoder
    dropout: nn.Module

    def log_probs(self, hidden: Tensor) -> Tensor:
        """log p of every token (…, V), float32, from hidden states (…, D)."""
        raise NotImplementedError

    def start(self, memory: Memory, rows: int, capacity: int, coverage: bool = False) -> Cache:
        return self.decoder.start(memory, coverage)

    def advance(self, tokens: Tensor, memory: Memory, cache: Cache) -> tuple[Tensor, Cache]:
        """One step, up to the hidden states (B, D) that predict the next tokens."""
        hidden_BD, cache = self.decoder.step(self.dropout(self.embedding(tokens)), memory, cache)
        return self.dropout(hidden_BD), cache

    def step(self, tokens: Tensor, positions: Tensor, memory: Memory, cache: Cache) -> tuple[Tensor, Cache]:
        hidden_BD, cache = self.advance(tokens, memory, cache)
        return self.log_probs(hidden_BD), cache

    def select(self, memory: Memory, cache: Cache, rows: Tensor) -> tuple[Memory, Cache]:
        return memory.select(rows), cache.select(rows)

    def join(self, parts: Sequence[tuple[Memory, Cache]]) -> tuple[Memory, Cache]:
        memory = Memory.join([memory for memory, _ in parts])
        width = 0 if memory.mask is None else memory.mask.size(1)
        return memory, Cache.join([cache for _, cache in parts], width)

    def coverage(self, cache: Cache) -> Tensor:
        assert cache.coverage is not None, "start() was not asked to keep the coverage"
        return cache.coverage
