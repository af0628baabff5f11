"""Heads against the equation, grouped heads against repeated ones, the fused kernel against the written-out sum."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from jumok.layers.attention import ScaledDot, attention, attention_weights
from jumok.layers.multihead import KeyValue, Look, MultiHeadAttention
from jumok.layers.position import Rotary

CLOSE = {"atol": 1e-5, "rtol": 1e-5}


def heads_of(heads: int, groups: int, width: int = 24, dropout: float = 0.0) -> MultiHeadAttention:
    layer = MultiHeadAttention(width, heads, groups, dropout, "self", "encoder.0.self")
    for part in (layer.query, layer.key, layer.value, layer.output):
        torch.nn.init.normal_(part.bias)
    return layer


def part(layer: torch.nn.Linear, x: Tensor, head: int, width: int) -> Tensor:
    rows = slice(head * width, (head + 1) * width)
    return x @ layer.weight[rows].T + layer.bias[rows]


@pytest.mark.parametrize(("heads", "groups"), [(1, 1), (4, 4), (6, 2), (4, 1)])
@torch.no_grad()
def test_every_head_follows_the_equation(heads: int, groups: int) -> None:
    """head_h = softmax(q_h k_h^T / √d_k) v_h, then [head_1; …; head_H] W^O; query head h has the keys of its group."""
    layer, size = heads_of(heads, groups), 24 // heads
    x, memory = torch.randn(2, 3, 24), torch.randn(2, 5, 24)
    together = []
    for head in range(heads):
        group = head // (heads // groups)
        q = part(layer.query, x, head, size)
        k, v = part(layer.key, memory, group, size), part(layer.value, memory, group, size)
        together.append(torch.softmax(q @ k.transpose(1, 2) / math.sqrt(size), dim=-1) @ v)
    expected = layer.output(torch.cat(together, dim=-1))
    torch.testing.assert_close(layer(x, Look(), layer.project(memory)), expected, **CLOSE)
    torch.testing.assert_close(layer(x, Look()), layer(x, Look(), layer.project(x)), **CLOSE)  # at itself


def test_grouped_heads_are_full_heads_that_share_their_keys() -> None:
    grouped, full = heads_of(6, 2), heads_of(6, 6)
    with torch.no_grad():
        for name in ("query", "output"):
            getattr(full, name).load_state_dict(getattr(grouped, name).state_dict())
        for name in ("key", "value"):
            ours, theirs = getattr(grouped, name), getattr(full, name)
            for head in range(6):
                rows, shared = slice(head * 4, head * 4 + 4), slice(head // 3 * 4, head // 3 * 4 + 4)
                theirs.weight[rows], theirs.bias[rows] = ours.weight[shared], ours.bias[shared]
    x = torch.randn(2, 5, 24)
    torch.testing.assert_close(grouped(x, Look(causal=True)), full(x, Look(causal=True)), **CLOSE)
    assert grouped.key.weight.numel() * 3 == full.key.weight.numel()
    assert grouped.project(x).key.shape == (2, 5, 2, 4)  # what a cache keeps


SHAPES = st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(1, 6), st.integers(1, 7))


@given(SHAPES, st.sampled_from(["none", "keys", "pairs", "heads"]), st.booleans(), st.booleans(), st.integers(0, 2**31))
def test_fused_and_written_out_agree_to_the_gradient(
    shape: tuple[int, int, int, int], masked: str, biased: bool, causal: bool, seed: int
) -> None:
    """With heads, for every mix of mask, bias and causality, also where a query may look nowhere."""
    batch, heads, queries, keys = shape
    keys = max(keys, queries) if causal else keys
    scorer, random = ScaledDot(5, 5, 5, 0), torch.Generator().manual_seed(seed)

    def normal(*size: int) -> Tensor:
        return torch.randn(*size, generator=random, requires_grad=True)

    inputs = [normal(batch, heads, queries, 5), normal(batch, heads, keys, 5), normal(batch, heads, keys, 4)]
    bias = normal(1, heads, queries, keys) if biased else None
    sizes = {"keys": (batch, keys), "pairs": (batch, queries, keys), "heads": (batch, heads, queries, keys)}
    mask = None if masked == "none" else torch.rand(*sizes[masked], generator=random) < 0.6
    wanted = torch.randn(batch, heads, queries, 4, generator=random)
    leaves = [*inputs, *([bias] if bias is not None else [])]
    results = []
    for fused in (True, False):
        output = attention(*inputs, mask, scorer, fused=fused, bias=bias, causal=causal)
        results.append((output, *torch.autograd.grad((output * wanted).sum(), leaves)))
    for mine, theirs in zip(*results, strict=True):
        assert torch.isfinite(theirs).all()
        torch.testing.assert_close(mine, theirs, **CLOSE)
    weights = attention_weights(*inputs[:2], mask, scorer, bias, causal)
    torch.testing.assert_close(weights @ inputs[2], results[1][0], **CLOSE)
    if causal:  # the last query stands at the last key
        ahead = torch.ones(queries, keys, dtype=torch.bool).triu(keys - queries + 1)
        assert not weights[..., ahead].any()


@torch.no_grad()
def test_a_mask_hides_and_a_bias_prefers() -> None:
    layer, x = heads_of(4, 4), torch.randn(2, 5, 24)
    mask = torch.tensor([[True] * 5, [True, True, True, False, False]])
    hidden = layer(x, Look(mask))
    torch.testing.assert_close(hidden[1, :3], layer(x[1:, :3], Look())[0], **CLOSE)
    other = x.clone()
    other[1, 3:] = 100.0
    torch.testing.assert_close(layer(other, Look(mask))[:, :3], hidden[:, :3], **CLOSE)
    bias = torch.zeros(1, 4, 5, 5)
    bias[..., 2] = 1e4  # everyone looks at the third word
    expected = layer.output(layer.value(x[:, 2:3])).expand(-1, 5, -1)
    torch.testing.assert_close(layer(x, Look(bias=bias)), expected, **CLOSE)


@torch.no_grad()
def test_coverage_is_the_mean_of_the_heads_weights() -> None:
    layer, x, memory = heads_of(4, 2), torch.randn(2, 3, 24), torch.randn(2, 6, 24)
    seen: list[Tensor] = []
    projected = layer.project(memory)
    plain = layer(x, Look(), projected)
    torch.testing.assert_close(layer(x, Look(coverage=seen), projected), plain)
    query = F.linear(x, layer.query.weight, layer.query.bias).unflatten(-1, (4, 6)).transpose(1, 2)
    key = projected.key.transpose(1, 2).repeat_interleave(2, dim=1)
    expected = torch.softmax(query @ key.transpose(2, 3) / math.sqrt(6), dim=-1).mean(dim=1)
    torch.testing.assert_close(seen[0], expected, **CLOSE)
    assert isinstance(projected, KeyValue)


def test_dropout_of_weights_acts_in_training_alone() -> None:
    """Dropped weights are zeros, the others grow by 1 / (1 − p): the mean over many draws is the undropped output."""
    layer, x = heads_of(2, 2, dropout=0.4), torch.randn(1, 6, 24)
    with torch.no_grad():
        layer.eval()
        plain = layer(x, Look())
        assert torch.equal(layer(x, Look()), plain)
        layer.train()
        draws = torch.cat([layer(x.expand(500, -1, -1), Look()) for _ in range(8)])
    assert not torch.equal(draws[0], draws[1])
    error = draws.std(dim=0) / len(draws) ** 0.5
    assert ((draws.mean(dim=0) - plain[0]).abs() < 6 * error + 1e-5).all()


@pytest.mark.parametrize(("heads", "groups"), [(4, 4), (4, 2), (4, 1)])
@pytest.mark.parametrize("turned", [False, True])
def test_queries_keys_and_values_from_one_product(
    heads: int, groups: int, turned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a GPU computes them while a model learns: the same output, and the same gradients of everything."""
    layer, x = heads_of(heads, groups).train(), torch.randn(2, 5, 24, requires_grad=True)
    turns = Rotary(24 // heads)(torch.arange(5)) if turned else None
    up = torch.randn(2, 5, 24)
    found = []
    for in_one in (False, True):
        monkeypatch.setattr(MultiHeadAttention, "in_one", staticmethod(lambda x, in_one=in_one: in_one))
        layer.zero_grad()
        x.grad = None
        out = layer(x, Look(turns=turns))
        out.backward(up)
        assert x.grad is not None
        gradients = [weight.grad.clone() for weight in layer.parameters() if weight.grad is not None]
        found.append([out.detach(), x.grad.clone(), *gradients])
    assert len(found[0]) == len(found[1]) == 2 + 8
    for apart, together in zip(*found, strict=True):
        torch.testing.assert_close(together, apart, **CLOSE)
