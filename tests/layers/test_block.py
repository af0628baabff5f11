"""Add & Norm, the norms, the feed-forward network and dropout: each against its equation."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from jumok.layers.block import AddNorm, Block, FeedForward, Source, build_norm
from jumok.layers.multihead import Look
from jumok.recipe import TransformerSection

CLOSE = {"atol": 1e-5, "rtol": 1e-5}


def section(**keys: Any) -> TransformerSection:
    return TransformerSection(**{"width": 12, "heads": 3, "feed_forward": 20, "dropout": 0.0, **keys})


def disturbed(module: nn.Module) -> Any:
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return module


@torch.no_grad()
def test_norms() -> None:
    x = torch.randn(4, 12) * 3 + 1
    layer, rms = disturbed(build_norm(section())), disturbed(build_norm(section(norm_kind="rms")))
    mean, variance = x.mean(-1, keepdim=True), x.var(-1, keepdim=True, correction=0)
    torch.testing.assert_close(layer(x), (x - mean) / (variance + 1e-5).sqrt() * layer.weight + layer.bias, **CLOSE)
    torch.testing.assert_close(rms(x), x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt() * rms.weight, **CLOSE)


def gelu(x: Tensor) -> Tensor:
    return x * 0.5 * (1 + torch.erf(x / math.sqrt(2)))


def silu(x: Tensor) -> Tensor:
    return x / (1 + torch.exp(-x))


@pytest.mark.parametrize("activation", ["relu", "gelu", "silu", "swiglu"])
@torch.no_grad()
def test_feed_forward(activation: str) -> None:
    network = disturbed(FeedForward(section(activation=activation)))
    x = torch.randn(2, 3, 12)
    inner = x @ network.inner.weight.T + network.inner.bias
    if activation == "swiglu":
        inner = silu(inner) * (x @ network.gate.weight.T + network.gate.bias)
    else:
        assert network.gate is None
        inner = {"relu": lambda x: x.clamp(min=0), "gelu": gelu, "silu": silu}[activation](inner)
    torch.testing.assert_close(network(x), inner @ network.outer.weight.T + network.outer.bias, **CLOSE)


@pytest.mark.parametrize("kind", ["layer", "rms"])
@torch.no_grad()
def test_add_and_norm_before_or_after(kind: str) -> None:
    x, matrix = torch.randn(2, 3, 12), torch.randn(12, 12)
    for norm in ("pre", "post"):
        around = disturbed(AddNorm(section(norm=norm, norm_kind=kind)))
        found = around(x, lambda x: x @ matrix)
        expected = x + around.norm(x) @ matrix if norm == "pre" else around.norm(x + x @ matrix)
        torch.testing.assert_close(found, expected, **CLOSE)


@pytest.mark.parametrize("norm", ["pre", "post"])
@torch.no_grad()
def test_a_block_is_its_sublayers_in_order(norm: str) -> None:
    """Self-attention, attention to the source, feed-forward, each in its Add & Norm."""
    block = disturbed(Block(section(norm=norm), "causal", "decoder.0", cross=True))
    x, h = torch.randn(2, 4, 12), torch.randn(2, 5, 12)
    mask = torch.tensor([[True] * 5, [True, True, False, False, False]])
    memory, causal, at_source = block.cross.project(h), Look(causal=True), Look(mask)
    expected = x
    for around, sublayer in (
        (block.attention_norm, lambda x: block.attention(x, causal)),
        (block.cross_norm, lambda x: block.cross(x, at_source, memory)),
        (block.feed_forward_norm, block.feed_forward),
    ):
        before = around.norm(expected) if norm == "pre" else expected
        expected = expected + sublayer(before) if norm == "pre" else around.norm(expected + sublayer(before))
    torch.testing.assert_close(block(x, causal, Source(memory, at_source)), expected, **CLOSE)
    assert [block.attention.tap.name, block.cross.tap.name] == ["decoder.0.causal", "decoder.0.cross"]
    assert (block.cross.tap.kind, block.cross.tap.heads, block.cross.tap.layer) == ("cross", 3, 0)


@pytest.mark.parametrize("kind", ["dropout", "attention_dropout", "activation_dropout"])
def test_each_dropout_acts_in_training_and_none_in_evaluation(kind: str) -> None:
    torch.manual_seed(0)
    plain, dropping = Block(section(), "self", "encoder.0"), Block(section(**{kind: 0.3}), "self", "encoder.0")
    dropping.load_state_dict(plain.state_dict())
    x = torch.randn(1, 6, 12)
    with torch.no_grad():
        expected = plain(x, Look())
        dropping.eval()
        torch.testing.assert_close(dropping(x, Look()), expected)
        dropping.train()
        assert not torch.allclose(dropping(x, Look()), dropping(x, Look()))


def test_the_sublayers_output_is_what_dropout_takes_from() -> None:
    """p of the numbers that a sublayer gives are dropped and the rest divided by 1 − p; the residual is whole."""
    around, x = AddNorm(section(dropout=0.3)), torch.zeros(1000, 12)
    with torch.no_grad():
        added = around.train()(x, torch.ones_like)
    kept = added != 0
    torch.testing.assert_close(added[kept], torch.full_like(added[kept], 1 / 0.7))
    share = float(kept.float().mean())
    assert abs(share - 0.7) < 6 * (0.7 * 0.3 / added.numel()) ** 0.5


def test_inside_the_feed_forward_network_the_activations_are_dropped() -> None:
    network = FeedForward(section(activation_dropout=0.3)).train()
    seen: list[Tensor] = []
    network.outer.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    nn.init.zeros_(network.inner.weight)
    nn.init.ones_(network.inner.bias)
    network(torch.randn(500, 12))
    kept = seen[0] != 0
    torch.testing.assert_close(seen[0][kept], torch.full_like(seen[0][kept], 1 / 0.7))
    assert abs(float(kept.float().mean()) - 0.7) < 6 * (0.21 / kept.numel()) ** 0.5
