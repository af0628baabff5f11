"""A reader that writes as one graph: the whole reading of a picture, with the loop over its places written out.

    images (B, C, H, W)  ->  ids (B, T), log_probs (B, T);   columns (B, columns, V) where there is a CTC head

    y_t = argmax_y log p(y | y_<t, x)      t = 1 … T = max_length + 1,      y_T = <eos>

A permuted reader then looks again at every place with all others known, as often as its recipe says. Nothing stops
early: all T places are written, and those behind a row's first <eos> mean nothing. What a step takes over from those
before it (keys and values, or a recurrent state) goes from one copy of the step to the next; the weights are there
once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from jumok.interop.onnx_graph import Graph, Values
from jumok.interop.onnx_plain import plain
from jumok.layers.block import Block
from jumok.layers.characters import CharacterHead
from jumok.layers.multihead import KeyValue, Look, MultiHeadAttention, Past
from jumok.models.permuted import NO_CHARACTER, PermutedRecognizer, QueryBlock, with_start
from jumok.models.recognizer import CtcHead, CtcRecognizer, first_end
from jumok.models.recognizer_decoders import RecurrentWriter, TransformerWriter, WritingRecognizer
from jumok.text.jamo import together
from jumok.text.special import END, START

BATCHES = (3, 1, 8)
Step = Callable[[Tensor, int], Tensor]  # the ids written last (B, 1), the place -> what is known there (B, 1, D)


class WordsGraph(nn.Module):
    def __init__(self, model: PermutedRecognizer | WritingRecognizer) -> None:
        super().__init__()
        self.model = plain(model)
        self.places = model.section.max_length + 1
        head = self.head
        closed_K = torch.zeros(head.parts[0])
        closed_K[list(NO_CHARACTER)] = -torch.inf
        self.register_buffer("closed", closed_K)
        for module in self.model.modules():
            if isinstance(module, MultiHeadAttention):
                module.__class__ = FixedAttention
        if isinstance(self.model, WritingRecognizer):
            writer = self.model.writer
            if isinstance(writer, RecurrentWriter):
                writer.decoder.recurrent.written_out = True  # no exporter knows all of the kernels for one step
            elif writer.decoder.added is not None:
                self.register_buffer("positions", writer.decoder.added(torch.arange(self.places)))

    @property
    def head(self) -> CharacterHead:
        return self.model.head if isinstance(self.model, PermutedRecognizer) else self.model.writer.head

    def forward(self, given: list[Tensor]) -> Values:
        return self.read(given[0])

    def read(self, images_BCHW: Tensor, leads: list[Tensor] | None = None) -> Values:
        """`leads`, if asked for: how far ahead of the second each choice was, in log p; (B, places) each."""
        model = self.model
        hidden_BSD = model.encoder(images_BCHW)
        if isinstance(model, PermutedRecognizer):
            pictures = model.pictures(hidden_BSD)
            ids_BT, log_prob_BT = self._written(_permuted_step(model, pictures), hidden_BSD, leads)
            for _ in range(model.section.refinements):
                ids_BT, log_prob_BT = self._refined(model, ids_BT, pictures, leads)
            if model.ctc is not None:
                return ids_BT, log_prob_BT, columns(model, hidden_BSD)
            return ids_BT, log_prob_BT
        writer = model.writer
        if isinstance(writer, RecurrentWriter):
            step = _recurrent_step(writer, hidden_BSD)
        else:
            step = _transformer_step(writer, hidden_BSD, getattr(self, "positions", None))
        return self._written(step, hidden_BSD, leads)

    def _written(self, step: Step, hidden_BSD: Tensor, leads: list[Tensor] | None) -> tuple[Tensor, Tensor]:
        """Left to right."""
        written_B1 = _everywhere(hidden_BSD[:, :1, 0], START)
        ids, log_probs = [], []
        for place in range(self.places):
            log_prob_B1, written_B1 = self._choice(step(written_B1, place), place == self.places - 1, leads)
            ids.append(written_B1)
            log_probs.append(log_prob_B1)
        return torch.cat(ids, dim=1), torch.cat(log_probs, dim=1)

    def _refined(
        self, model: PermutedRecognizer, ids_BT: Tensor, pictures: Sequence[KeyValue], leads: list[Tensor] | None
    ) -> tuple[Tensor, Tensor]:
        """All places again, each with all characters but its own (`PermutedRecognizer._refined`)."""
        place_T = torch.arange(self.places)
        embedded_BTD = model.embedding(torch.cat([_everywhere(ids_BT[:, :1], START), ids_BT[:, :-1]], dim=1))
        before_TD = torch.cat([torch.zeros_like(model.positions[:1]), model.positions[: self.places - 1]])
        content = [block.content(embedded_BTD + before_TD) for block in _query_blocks(model)]
        known_BT = place_T < first_end(ids_BT)[:, None]
        mask_BTT = (place_T[:, None] != place_T) & known_BT[:, None]
        queries_BTD = model.queries(ids_BT.size(0))
        hidden_BTD = model.decoded(queries_BTD, content, pictures, with_start(mask_BTT))
        first, last = self.places - 1, hidden_BTD[:, self.places - 1 :]
        parts = self._choice(hidden_BTD[:, :first], False, leads), self._choice(last, True, leads)
        log_prob_BT, refined_BT = (torch.cat(pair, dim=1) for pair in zip(*parts, strict=True))
        return refined_BT, log_prob_BT

    def _choice(self, hidden_BQD: Tensor, last: bool, leads: list[Tensor] | None) -> tuple[Tensor, Tensor]:
        """log p and id of the likeliest, as `CharacterHead.best`; <eos> in the last place."""
        head = self.head
        kinds_BQK, *letters = head.scores(hidden_BQD)
        if last:
            log_prob_BQ = kinds_BQK[..., END]
            return log_prob_BQ, _everywhere(log_prob_BQ, END)
        kinds_BQK = kinds_BQK + self.get_buffer("closed")
        if leads is not None:
            leads.append(self._lead(hidden_BQD))
        if head.first is None:
            found = kinds_BQK.max(dim=-1)
            return found.values, found.indices
        plainest = kinds_BQK[..., : head.first].max(dim=-1)
        best = [part.max(dim=-1) for part in letters]
        syllable_BQ = kinds_BQK[..., head.first] + best[0].values + best[1].values + best[2].values
        number_BQ = together(*(one.indices for one in best)) + head.first
        wins_BQ = syllable_BQ > plainest.values
        log_prob_BQ = torch.where(wins_BQ, syllable_BQ, plainest.values)
        return log_prob_BQ, torch.where(wins_BQ, number_BQ, plainest.indices)

    def _lead(self, hidden_BQD: Tensor) -> Tensor:
        log_probs_BQV = self.head.log_probs(hidden_BQD)
        log_probs_BQV[..., list(NO_CHARACTER)] = -torch.inf
        two_BQ2 = log_probs_BQV.topk(2).values
        return two_BQ2[..., 0] - two_BQ2[..., 1]


def _everywhere(like: Tensor, id: int) -> Tensor:
    """This id, in the shape of another tensor. Not by `full_like`: behind a recurrent encoder the exporter takes what
    it happened to see for the only shape, and keeps it."""
    return (like < like).long() + id


class FixedAttention(MultiHeadAttention):
    """Attention that knows all sizes but the number of rows: a graph that asks for them at every place has twice as
    many nodes. Keys and values are kept as they are multiplied, (B, G, S, D)."""

    def project(self, m_BSD: Tensor, turns: Tensor | None = None) -> KeyValue:
        return KeyValue(*(self._split(one(m_BSD), self.groups) for one in (self.key, self.value)))

    def _spread(self, x_BGSD: Tensor) -> Tensor:
        return x_BGSD if self.groups == self.heads else x_BGSD.repeat_interleave(self.heads // self.groups, dim=1)

    def forward(
        self,
        x_BTD: Tensor,
        look: Look,
        memory: KeyValue | None = None,
        past: Past | None = None,
        leaves_bias: bool = False,
    ) -> Tensor:
        assert not leaves_bias, "nothing is learned here"
        seen = self.project(x_BTD) if memory is None else memory
        query_BHTD = self._split(self.query(x_BTD), self.heads)
        seen_BHTD = self.tap(query_BHTD, self._spread(seen.key), self._spread(seen.value), look.mask, self.scorer)
        return self.output(seen_BHTD.transpose(1, 2).reshape(-1, int(x_BTD.size(1)), self.heads * self.head_width))

    def _split(self, x_BTD: Tensor, heads: int) -> Tensor:
        return x_BTD.reshape(-1, int(x_BTD.size(1)), heads, self.head_width).transpose(1, 2)


# ---------------------------------------------------------------- one place further


def _permuted_step(model: PermutedRecognizer, pictures: Sequence[KeyValue]) -> Step:
    """The query of each place, by what was written before it."""
    blocks = _query_blocks(model)
    kept: list[KeyValue] = []

    def step(written_B1: Tensor, place: int) -> Tensor:
        embedded_B1D = model.embedding(written_B1)
        if place:  # <sos> stands before all positions
            embedded_B1D = embedded_B1D + model.positions[place - 1]
        new = [block.content(embedded_B1D) for block in blocks]
        kept[:] = [_beside(*pairs) for pairs in zip(kept, new, strict=True)] if place else new
        return model.decoded(model.queries(written_B1.size(0), place, place + 1), kept, pictures, None)

    return step


def _query_blocks(model: PermutedRecognizer) -> list[QueryBlock]:
    return [block for block in model.blocks if isinstance(block, QueryBlock)]


def _transformer_step(writer: TransformerWriter, hidden_BSD: Tensor, positions_TD: Tensor | None) -> Step:
    offered = writer.offered(hidden_BSD)
    kept: list[KeyValue | None] = [None for _ in offered]

    def step(written_B1: Tensor, place: int) -> Tensor:
        x_B1D = writer.embedding(written_B1)
        if positions_TD is not None:
            x_B1D = x_B1D + positions_TD[place]
        for layer, (block, picture) in enumerate(zip(writer.decoder.blocks, offered, strict=True)):
            assert isinstance(block, Block)
            x_B1D = _block(block, x_B1D, kept, layer, picture)
        return writer.decoder.norm(x_B1D)

    return step


def _block(block: Block, x_B1D: Tensor, kept: list[KeyValue | None], layer: int, picture: KeyValue) -> Tensor:
    cross = block.cross
    assert cross is not None
    assert block.cross_norm is not None
    x_B1D = block.attention_norm(x_B1D, lambda x: _own(block.attention, x, kept, layer))
    x_B1D = block.cross_norm(x_B1D, lambda x: cross(x, Look(), picture))
    return block.feed_forward_norm(x_B1D, block.feed_forward)


def _own(attention: MultiHeadAttention, x_B1D: Tensor, kept: list[KeyValue | None], layer: int) -> Tensor:
    """The new character looks at itself and all before it."""
    before, new = kept[layer], attention.project(x_B1D)
    known = new if before is None else _beside(before, new)
    kept[layer] = known
    return attention(x_B1D, Look(), known)


def _beside(before: KeyValue, new: KeyValue) -> KeyValue:
    return KeyValue(*(torch.cat(parts, dim=2) for parts in zip(before, new, strict=True)))


def _recurrent_step(writer: RecurrentWriter, hidden_BSD: Tensor) -> Step:
    memory = replace(writer.remember_picture(hidden_BSD), mask=None)  # a picture has no padding
    cache = writer.decoder.start(memory)

    def step(written_B1: Tensor, place: int) -> Tensor:
        nonlocal cache
        hidden_BD, cache = writer.advance(written_B1[:, 0], memory, cache)
        return hidden_BD[:, None]

    return step


# ---------------------------------------------------------------- columns, and the graph


def columns(model: CtcRecognizer | PermutedRecognizer, hidden_BSD: Tensor) -> Tensor:
    """log p (B, columns, V) of a character or nothing, by the CTC head."""
    assert isinstance(model.ctc, CtcHead)
    # as `Encoder.columns`, which asks how many pictures there are
    columns_BCD = hidden_BSD.reshape(-1, *model.encoder.grid, model.section.width).mean(dim=1)
    return model.ctc.head.log_probs(columns_BCD)


def words_graph(model: PermutedRecognizer | WritingRecognizer) -> Graph:
    """Held to the model by `verify_readings` (onnx_readings.py): one that writes has to be asked in its own way."""
    module, shape = WordsGraph(model), (model.section.channels, *model.section.image)
    outputs: dict[str, dict[int, str]] = {"ids": {0: "batch"}, "log_probs": {0: "batch"}}
    if isinstance(model, PermutedRecognizer) and model.ctc is not None:
        outputs["columns"] = {0: "batch"}

    def sample(sizes: Any) -> list[Tensor]:
        return [random_pictures(sizes["batch"], shape)]

    def expected(given: list[Tensor]) -> Values:
        found: Values = module(given)
        return found

    tried = tuple({"batch": rows} for rows in BATCHES)
    return Graph(module, {"images": {0: "batch"}}, outputs, sample, expected, tried)


def random_pictures(rows: int, shape: tuple[int, ...]) -> Tensor:
    """(B, C, H, W) from 0 to 255: noise, coarse in some and fine in others, of strong and weak contrast. A reader that
    has learned sees the same in all noise that is fine."""
    channels, height, width = shape
    made = []
    for _ in range(rows):
        down, across = (int(torch.randint(1, side + 1, ())) for side in (height, width))
        noise_CHW = torch.rand(1, channels, down, across)
        spread_CHW = nn.functional.interpolate(noise_CHW, (height, width), mode="bilinear")[0]
        contrast, ground = torch.rand(2)
        made.append(255 * (contrast * spread_CHW + (1 - contrast) * ground))
    return torch.stack(made)
