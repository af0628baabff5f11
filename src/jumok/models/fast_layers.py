"""The blocks of a Transformer, packed for the CPU: reading whole texts, and writing one more word of every hypothesis.

The equations are those of layers/block.py and layers/multihead.py. 1/√d_k is part of the packed query weights. Grouped
queries (fewer heads of keys than of queries) are more queries against the same keys, as the hypotheses of a sentence
are (models/beams.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jumok.layers.block import ACTIVATIONS, AddNorm, Block, FeedForward
from jumok.layers.packed import Packed, Precision, pack, side_by_side
from jumok.layers.position import rotate
from jumok.layers.stack import Stack
from jumok.models.beams import Layout, Past, Source

Function = Callable[[Tensor], Tensor]


class PackedStack:
    def __init__(self, stack: Stack, precision: Precision) -> None:
        self.added, self.rotary, self.relative, self.reach = stack.added, stack.rotary, stack.relative, stack.reach
        blocks = _blocks(stack)
        self.layers = [PackedBlock(block, precision) for block in blocks]
        self.norm = _norm(stack.norm)
        attention = blocks[0].attention
        self.heads, self.groups, self.head_width = attention.heads, attention.groups, attention.head_width

    def read(self, embedded_BLD: Tensor, closed_BL: Tensor | None) -> Tensor:
        """Hidden states (B·L, D) of whole texts, in which each word sees all that is not closed (-∞)."""
        rows, length, width = embedded_BLD.shape
        self.reach(length)
        positions_L = torch.arange(length)
        x_ND = self._placed(embedded_BLD, positions_L).flatten(0, 1)
        bias = None if closed_BL is None else closed_BL[:, None, None]
        if self.relative is not None:
            relative = self.relative(positions_L, positions_L)
            bias = relative if bias is None else relative + bias
        turns = None if self.rotary is None else self.rotary(positions_L)
        for layer in self.layers:
            projected = layer.project(layer.before_attention(x_ND)).view(rows, length, -1, self.head_width)
            query, key, value = torch.split(projected, [self.heads, self.groups, self.groups], dim=2)
            if turns is not None:
                query, key = rotate(query, turns), rotate(key, turns)
            query, key, value = query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2)
            shared = self.groups != self.heads
            seen = F.scaled_dot_product_attention(query, key, value, bias, scale=1.0, enable_gqa=shared)
            x_ND = layer.after_attention(layer.output.plus(seen.transpose(1, 2).reshape(-1, width), x_ND))
            x_ND = layer.feed_forward(x_ND)
        return self.norm(x_ND)

    def step(
        self, embedded_ND: Tensor, positions_N: Tensor, source: Source, past: Past, weights: list[Tensor] | None
    ) -> Tensor:
        """Hidden states (N, D) of one more word in each row, for which `past` has entries already. If `weights` is a
        list, each layer appends how it looks at the source (S, places, L), the mean over heads."""
        view = View(source.layout, self.groups, self.heads // self.groups, self.head_width)
        used, first = past.used, past.used - source.layout.places
        x_ND = self._placed(embedded_ND, positions_N)
        turns = None if self.rotary is None else self.rotary(positions_N)[:, None]
        past_bias = view.shaped(self._past_bias(view.layout, past, positions_N))
        source_bias = view.shaped(None if source.closed is None else source.closed[None, :, None, None], weights)
        for layer, store, memory in zip(self.layers, past.layers, source.layers, strict=True):
            projected = layer.project(layer.before_attention(x_ND)).view(len(x_ND), -1, self.head_width)
            query, new = torch.split(projected, [self.heads, 2 * self.groups], dim=1)
            if turns is not None:
                key, value = new.chunk(2, dim=1)
                key = rotate(key[:, None], turns)[:, 0]
                query, new = rotate(query[:, None], turns)[:, 0], torch.cat((key, value), dim=1)
            store[:, :, :, first:used] = view.entries(new)
            seen = view.look(query, store[:, :, :, :used], past_bias)
            x_ND = layer.after_attention(layer.output.plus(seen, x_ND))
            query = layer.cross_query(layer.before_cross(x_ND))
            seen = view.look(query, memory, source_bias, weights)
            x_ND = layer.after_cross(layer.cross_output.plus(seen, x_ND))
            x_ND = layer.feed_forward(x_ND)
        return self.norm(x_ND)

    def _placed(self, embedded: Tensor, positions: Tensor) -> Tensor:
        """E[y] √d + PE"""
        scale = embedded.size(-1) ** 0.5
        return embedded * scale if self.added is None else torch.add(self.added(positions), embedded, alpha=scale)

    def _past_bias(self, layout: Layout, past: Past, positions_N: Tensor) -> Tensor | None:
        """(groups, S, places, heads of a group, E), with 1 for what makes no difference: -∞ where a row does not
        descend from an entry, and the relative positions."""
        bias = None
        if past.closed is not None:
            closed = layout.spread(past.closed[:, : past.used])
            bias = closed.view(1, layout.sentences, layout.places, 1, past.used)
        if self.relative is None or past.position is None:
            return bias
        query_SP = layout.spread(positions_N).view(-1, layout.places)
        distance_SPE = past.position[:, None, : past.used] - query_SP[:, :, None]
        near = self.relative.weight(self.relative.bucket(distance_SPE)).unflatten(3, (self.groups, -1))
        near = near.permute(3, 0, 1, 4, 2)
        return near if bias is None else near + bias


class View:
    """How the rows of a batch look at keys and values: all queries of a sentence and group at once."""

    def __init__(self, layout: Layout, groups: int, each: int, head_width: int) -> None:
        self.layout, self.groups, self.each, self.head_width = layout, groups, each, head_width
        self.single = layout.places * each == 1  # one query for each block of keys: the fused kernel is faster

    def entries(self, new: Tensor) -> Tensor:
        """Keys and values (N, 2 groups, D) of new words as entries (2, groups, S, places, D)."""
        layout = self.layout
        placed = layout.spread(new).view(layout.sentences, layout.places, 2, self.groups, self.head_width)
        return placed.permute(2, 3, 0, 1, 4)

    def shaped(self, bias: Tensor | None, weights: list[Tensor] | None = None) -> Tensor | None:
        """A bias (groups, S, places, heads of a group, E) as `look` wants it, once for all layers."""
        if bias is None:
            return None
        if self.single and weights is None:
            return bias[:, :, 0, 0].transpose(0, 1)[:, :, None]
        wanted = (self.groups, self.layout.sentences, self.layout.places, self.each, bias.size(-1))
        return bias.expand(wanted).reshape(self.groups * self.layout.sentences, -1, bias.size(-1))

    def look(self, query: Tensor, memory: Tensor, bias: Tensor | None, weights: list[Tensor] | None = None) -> Tensor:
        """What the queries (N, H, D) or (N, H·D) see (N, H·D) of keys and values (2, groups, S, E, D)."""
        layout, width = self.layout, self.head_width
        query = layout.spread(query)
        if self.single and weights is None:
            key, value = memory.transpose(1, 2)
            seen = F.scaled_dot_product_attention(query.view(-1, self.groups, 1, width), key, value, bias, scale=1.0)
            return layout.gather(seen.flatten(1))
        query = query.view(layout.sentences, layout.places, self.groups, self.each, width).permute(2, 0, 1, 3, 4)
        query = query.reshape(self.groups * layout.sentences, -1, width)
        key, value = memory.flatten(1, 2)
        scores = torch.bmm(query, key.mT) if bias is None else torch.baddbmm(bias, query, key.mT)
        alpha = torch.softmax(scores, dim=-1)
        if weights is not None:
            by_head = alpha.view(self.groups, layout.sentences, layout.places, self.each, -1)
            weights.append(by_head.mean(dim=(0, 3)))
        seen = torch.bmm(alpha, value).view(self.groups, layout.sentences, layout.places, self.each, width)
        return layout.gather(seen.permute(1, 2, 0, 3, 4).reshape(layout.sentences * layout.places, -1))


class PackedBlock:
    """The linear maps of one block. `before_…` and `after_…` normalise, where pre- and post-norm do."""

    def __init__(self, block: Block, precision: Precision) -> None:
        attention = block.attention
        scale = attention.scorer.inner_scale
        assert scale is not None
        self.before_attention, self.after_attention = _around(block.attention_norm)
        self.project = _together([attention.query, attention.key, attention.value], precision, scale)
        self.output = _together([attention.output], precision)
        if block.cross is not None and block.cross_norm is not None:
            self.before_cross, self.after_cross = _around(block.cross_norm)
            self.cross_query = _together([block.cross.query], precision, scale)
            self.cross_output = _together([block.cross.output], precision)
        self.before_feed, self.after_feed = _around(block.feed_forward_norm)
        self.inner = _inner(block.feed_forward, precision)
        self.outer = _together([block.feed_forward.outer], precision)

    def feed_forward(self, x_ND: Tensor) -> Tensor:
        return self.after_feed(self.outer.plus(self.inner(self.before_feed(x_ND)), x_ND))


def keys_and_values(decoder: Stack, precision: Precision) -> Packed:
    """From the encoder's output to what all decoder layers look at: (layer, key or value, group, D) side by side."""
    crossing = [block.cross for block in _blocks(decoder) if block.cross is not None]
    return _together([part for each in crossing for part in (each.key, each.value)], precision)


def _blocks(stack: Stack) -> list[Block]:
    return [block for block in stack.blocks if isinstance(block, Block)]


def _together(linears: Sequence[nn.Linear], precision: Precision, first_scale: float = 1.0) -> Packed:
    return pack(*side_by_side(linears, first_scale), precision)


def _inner(network: FeedForward, precision: Precision) -> Function:
    """f(x W_1 + b_1), with its gate if it has one."""
    if network.gate is not None:
        both = _together([network.inner, network.gate], precision)

        def gated(x: Tensor) -> Tensor:
            inner, gate = both(x).chunk(2, dim=-1)
            return ACTIVATIONS[network.activation](inner) * gate

        return gated
    inner, activate = _together([network.inner], precision), ACTIVATIONS[network.activation]
    return inner.relu if network.activation == "relu" else lambda x: activate(inner(x))


def _around(sublayer: AddNorm) -> tuple[Function, Function]:
    """What to do before a sublayer, and after its output has been added."""
    norm = _norm(sublayer.norm)
    return (norm, _same) if sublayer.pre else (_same, norm)


def _norm(norm: nn.Module) -> Function:
    if isinstance(norm, nn.LayerNorm):
        shape, weight, bias, eps = list(norm.normalized_shape), norm.weight, norm.bias, norm.eps
        return lambda x: torch.layer_norm(x, shape, weight, bias, eps)
    return _same if isinstance(norm, nn.Identity) else norm


def _same(x: Tensor) -> Tensor:
    return x
