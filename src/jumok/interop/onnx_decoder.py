"""A Transformer as two graphs: an encoder, run once for each batch, and one step of the decoder.

    encoder        ids, mask (B, S)                         -> keys and values of the source, for each layer
    decoder_step   token, position (B), mask, source, past  -> log p of the next token, keys and values of this one

What was written so far lies in buffers (B, G, C, D), two for each layer, that belong to who calls: the keys of the
token at position p go to column p, and a row at position p looks at the columns before p. So rows may stand at
different positions, a buffer may be wider than what is in it, and no step copies what it only looks at: the scores of
the past and of the new token are computed apart, and lie side by side for the softmax.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from jumok.interop.onnx_graph import Values
from jumok.interop.onnx_plain import Marked, masked, plain
from jumok.layers.block import Block
from jumok.layers.multihead import KeyValue, MultiHeadAttention
from jumok.layers.position import rotate
from jumok.models.transformer import Transformer


class EncoderGraph(nn.Module):
    """Keys and values of the source for each layer of the decoder: (B, G, S, D) each."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = plain(model)

    def forward(self, given: list[Tensor]) -> Values:
        ids_BS, mask_BS = given
        hidden_BSD = self.model._encoded(Marked(ids_BS, mask_BS))
        offered = self.model.offered(hidden_BSD)
        return tuple(part.transpose(1, 2).contiguous() for pair in offered for part in pair)


@dataclass(frozen=True)
class Step:
    """What all layers of a step share."""

    source_open: Tensor  # (B, 1, 1, S), where the source has words
    past_open: Tensor  # (B, 1, 1, C), where a row has written
    turns: Tensor | None = None  # (B, 1, 2, D), rotary
    past_bias: Tensor | None = None  # (B, H, 1, C), by distance
    own_bias: Tensor | None = None  # (1, H, 1, 1), of no distance
    added: list[Tensor] = field(default_factory=list)  # each layer's new key and value (B, G, 1, D)
    looked: list[Tensor] = field(default_factory=list)  # each layer's weights of the source (B, S), the mean over heads


class StepGraph(nn.Module):
    """One token further, for every row."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = plain(model)

    @property
    def attention(self) -> MultiHeadAttention:
        """Of the first layer: all are alike."""
        block = self.model.decoder.blocks[0]
        assert isinstance(block, Block)
        return block.attention

    def forward(self, given: list[Tensor]) -> Values:
        """`given`: tokens, positions, the source's mask; for each layer the source's keys and values, then for each
        layer those of the past."""
        model, decoder = self.model, self.model.decoder
        tokens_B, positions_B, mask_BS, *stores = given
        pairs = [KeyValue(*stores[place : place + 2]) for place in range(0, len(stores), 2)]
        sources, pasts = pairs[: len(decoder.blocks)], pairs[len(decoder.blocks) :]
        step = self._step(positions_B, mask_BS, pasts[0].key.size(2))
        x_B1D = model.embedding(tokens_B)[:, None]
        if decoder.added is not None:
            x_B1D = x_B1D + decoder.added(positions_B)[:, None]
        for block, source, past in zip(decoder.blocks, sources, pasts, strict=True):
            assert isinstance(block, Block)
            x_B1D = _block(block, x_B1D, source, past, step)
        log_probs_BV = model.log_probs(decoder.norm(x_B1D)[:, 0])
        return log_probs_BV, torch.stack(step.looked).mean(dim=0), *step.added

    def _step(self, positions_B: Tensor, mask_BS: Tensor, columns: int) -> Step:
        decoder, columns_C = self.model.decoder, torch.arange(columns)
        source_open, past_open = mask_BS[:, None, None].bool(), (columns_C < positions_B[:, None])[:, None, None]
        turns = None if decoder.rotary is None else decoder.rotary(positions_B)[:, None]
        if decoder.relative is None:
            return Step(source_open, past_open, turns)
        past_bias = decoder.relative(positions_B[:, None], columns_C)
        return Step(source_open, past_open, turns, past_bias, decoder.relative(positions_B[:1], positions_B[:1]))


def _block(block: Block, x_B1D: Tensor, source: KeyValue, past: KeyValue, step: Step) -> Tensor:
    cross = block.cross
    assert cross is not None
    assert block.cross_norm is not None
    x_B1D = block.attention_norm(x_B1D, lambda x: _written(block.attention, x, past, step))
    x_B1D = block.cross_norm(x_B1D, lambda x: _source(cross, x, source, step))
    return block.feed_forward_norm(x_B1D, block.feed_forward)


def _written(attention: MultiHeadAttention, x_B1D: Tensor, past: KeyValue, step: Step) -> Tensor:
    """The new token looks at what was written, and at itself."""
    query_BGRD = _grouped(attention, x_B1D, step.turns)
    key_BG1D, value_BG1D = (part.transpose(1, 2) for part in attention.project(x_B1D, step.turns))
    step.added.extend((key_BG1D, value_BG1D))
    past_BGRC = torch.matmul(query_BGRD, past.key.transpose(-1, -2))
    own_BGR1 = torch.matmul(query_BGRD, key_BG1D.transpose(-1, -2))
    if step.past_bias is not None and step.own_bias is not None:
        past_BGRC = past_BGRC + _heads_grouped(attention, step.past_bias[:, :, 0])
        own_BGR1 = own_BGR1 + _heads_grouped(attention, step.own_bias[:, :, 0])
    scores = torch.cat([masked(past_BGRC, step.past_open), own_BGR1], dim=-1)
    weights = torch.softmax(scores, dim=-1)
    seen_BGRD = torch.matmul(weights[..., :-1], past.value) + weights[..., -1:] * value_BG1D
    return attention.output(seen_BGRD.flatten(1)[:, None])


def _source(cross: MultiHeadAttention, x_B1D: Tensor, source: KeyValue, step: Step) -> Tensor:
    query_BGRD = _grouped(cross, x_B1D, None)
    scores_BGRS = masked(torch.matmul(query_BGRD, source.key.transpose(-1, -2)), step.source_open)
    weights_BGRS = torch.softmax(scores_BGRS, dim=-1)
    step.looked.append(weights_BGRS.mean(dim=(1, 2)))
    return cross.output(torch.matmul(weights_BGRS, source.value).flatten(1)[:, None])


def _grouped(attention: MultiHeadAttention, x_B1D: Tensor, turns: Tensor | None) -> Tensor:
    """Queries (B, G, H / G, D), scaled: those that share keys side by side."""
    query_B1HD = attention.query(x_B1D).unflatten(-1, (attention.heads, attention.head_width))
    if turns is not None:
        query_B1HD = rotate(query_B1HD, turns)
    assert attention.scorer.inner_scale is not None
    return _heads_grouped(attention, query_B1HD[:, 0]) * attention.scorer.inner_scale


def _heads_grouped(attention: MultiHeadAttention, x_BHD: Tensor) -> Tensor:
    """(B, G, H / G, …)"""
    split: Tensor = x_BHD.unflatten(1, (attention.groups, attention.heads // attention.groups))  # type: ignore[no-untyped-call]
    return split
