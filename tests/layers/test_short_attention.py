"""Attention of short rows: the kernel is the mathematics, and who may take it. The kernel without a GPU:

    TRITON_INTERPRET=1 python -m pytest tests/layers/test_short_attention.py

needs the `triton` package, which PyTorch for the CPU does not bring along. tests/gpu/test_short.py has it for real.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from jumok.layers import multihead, short_attention
from jumok.layers.attention import ScaledDot, attention
from jumok.layers.multihead import KeyValue, Look, MultiHeadAttention, Past
from jumok.layers.packed_attention import HAS_TRITON, INTERPRETED
from jumok.layers.short_attention import written_out

interpreted = pytest.mark.skipif(not (HAS_TRITON and INTERPRETED), reason="needs triton and TRITON_INTERPRET=1")
LENGTHS = [1, 5, 16, 17, 33, 49, 64, 65, 80, 81, 97, 128]  # one block, two, full ones and others


def with_gradient(attend: Callable[[Tensor, float], Tensor], qkv: Tensor, pull: Tensor, scale: float) -> list[Tensor]:
    leaf = qkv.detach().clone().requires_grad_()
    out = attend(leaf, scale)
    return [out.detach(), *torch.autograd.grad(out, leaf, pull)]


@pytest.mark.parametrize("tokens", [1, 5, 64, 65, 66, 97])
def test_the_gradient_of_the_bias_is_the_sum(tokens: int) -> None:
    """By the kernel where it is there, else the written-out way."""
    qkv, pull, scale = inputs_of(tokens, 24)
    bias, leaf = torch.randn(qkv.shape[2:], requires_grad=True), qkv.requires_grad_()
    out = short_attention.short_attention(leaf, scale, bias)
    torch.testing.assert_close(out, written_out(qkv, scale), atol=1e-5, rtol=1e-5)  # it is in qkv already
    d_qkv, d_bias = torch.autograd.grad(out, (leaf, bias), pull)
    torch.testing.assert_close(d_bias, d_qkv.sum((0, 1)), atol=1e-4, rtol=1e-4)


def inputs_of(tokens: int, width: int, heads: int = 2) -> tuple[Tensor, Tensor, float]:
    return torch.randn(2, tokens, 3, heads, width), torch.randn(2, tokens, heads, width), 1.3 * width**-0.5


def test_written_out_is_attention() -> None:
    qkv, _, _ = inputs_of(9, 8)
    query, key, value = (part.transpose(1, 2) for part in qkv.unbind(2))
    expected = attention(query, key, value, None, ScaledDot(8, 8, 8, 0), fused=False)
    torch.testing.assert_close(written_out(qkv, 8**-0.5), expected.transpose(1, 2))


@interpreted
@pytest.mark.parametrize("tokens", LENGTHS)
@pytest.mark.parametrize("width", [16, 24, 32, 64])
def test_the_kernel_is_the_mathematics(tokens: int, width: int) -> None:
    qkv, pull, scale = inputs_of(tokens, width)
    found = with_gradient(short_attention.short_attention, qkv, pull, scale)
    expected = with_gradient(written_out, qkv.double(), pull.double(), scale)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one.double(), other, atol=1e-5, rtol=1e-5)


@interpreted
@pytest.mark.parametrize("tokens", [7, 65, 90])
def test_keys_that_are_none_count_for_nothing_in_large_scores(tokens: int) -> None:
    """Every score far below 0, where exp(−L) of a key that is none would be infinite."""
    qkv, pull, scale = inputs_of(tokens, 16)
    qkv[:, :, 0, :, 0], qkv[:, :, 1, :, 0] = 30.0, -30.0
    found = with_gradient(short_attention.short_attention, qkv, pull, scale)
    expected = with_gradient(written_out, qkv.double(), pull.double(), scale)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one.double(), other, atol=2e-2, rtol=2e-2)


@interpreted
@pytest.mark.parametrize("tokens", [33, 65, 128])
def test_low_precision_is_near(tokens: int) -> None:
    """In float16: the interpreter cannot multiply bfloat16."""
    qkv, pull, scale = inputs_of(tokens, 64)
    qkv, pull = qkv.half(), pull.half()
    low = with_gradient(short_attention.short_attention, qkv, pull, scale)
    full = with_gradient(written_out, qkv.double(), pull.double(), scale)
    for one, other in zip(low, full, strict=True):
        assert one.dtype == torch.float16
        torch.testing.assert_close(one.double(), other, atol=1e-2, rtol=1e-2)


@interpreted
@pytest.mark.parametrize("together", [2, 4])
def test_several_heads_in_a_program(together: int) -> None:
    from jumok.layers import short_triton

    qkv, pull, scale = inputs_of(65, 16, heads=4)
    tiles = short_triton.Tiles(together)
    out, level = short_triton.forward(qkv, scale, tiles)
    found = out, short_triton.backward(pull, qkv, level, scale, tiles)[0]
    for one, other in zip(found, with_gradient(written_out, qkv, pull, scale), strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


@interpreted
def test_what_lies_apart_is_brought_together() -> None:
    qkv, pull, scale = inputs_of(20, 16)
    turned = pull.transpose(1, 2).contiguous().transpose(1, 2)

    def apart(x: Tensor, scale: float) -> Tensor:
        return short_attention.short_attention(x.transpose(1, 3).contiguous().transpose(1, 3), scale)

    found = with_gradient(apart, qkv, turned, scale)
    for one, other in zip(found, with_gradient(written_out, qkv, pull, scale), strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


@interpreted
def test_equal_inputs_give_equal_bits() -> None:
    qkv, pull, scale = inputs_of(65, 32)
    once, again = (with_gradient(short_attention.short_attention, qkv, pull, scale) for _ in "ab")
    assert all(torch.equal(one, other) for one, other in zip(once, again, strict=True))


@interpreted
def test_pytorch_agrees_that_it_is_an_operator() -> None:
    from jumok.layers.short_triton import _forward_op

    qkv, _, scale = inputs_of(17, 16)
    torch.library.opcheck(_forward_op, (qkv.requires_grad_(), torch.randn(qkv.shape[2:], requires_grad=True), scale))


@interpreted
def test_a_row_is_two_blocks() -> None:
    from jumok.layers.short_triton import blocks_of

    found = {tokens: blocks_of(tokens) for tokens in range(1, short_attention.LONGEST + 1)}
    assert all(tokens <= sum(blocks) for tokens, blocks in found.items())
    assert all(second == 0 or tokens > first for tokens, (first, second) in found.items())  # the first is full
    assert [found[tokens] for tokens in (17, 64, 65, 66, 81, 128)] == [
        (16, 1), (64, 0), (64, 1), (64, 16), (64, 32), (64, 64),
    ]  # fmt: skip


# ------------------------------------------------------------ the door

HEADS, WIDTH = 4, 32


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[torch.Size]:
    """Shapes of what went through, on a machine that would take it. What does the work is the written-out way."""
    found: list[torch.Size] = []

    def noted(qkv: Tensor, scale: float, bias: Tensor) -> Tensor:
        found.append(qkv.shape)
        return short_attention.short_attention(qkv, scale, bias)

    monkeypatch.setattr(multihead, "short_attention", noted)
    monkeypatch.setattr(multihead, "suits_short", lambda x, width: x.size(1) <= 128)
    monkeypatch.setattr(MultiHeadAttention, "in_one", staticmethod(lambda x: True))
    return found


def layer_of(groups: int = HEADS, dropout: float = 0.0) -> MultiHeadAttention:
    return MultiHeadAttention(WIDTH, HEADS, groups, dropout, "self", "encoder.0.self")


def results(layer: MultiHeadAttention, x: Tensor, pull: Tensor) -> list[Tensor]:
    layer.zero_grad()
    leaf = x.clone().requires_grad_()
    out = layer(leaf, Look())
    out.backward(pull)
    assert leaf.grad is not None
    gradients = [weight.grad.clone() for weight in layer.parameters() if weight.grad is not None]
    return [out.detach(), leaf.grad, *gradients]


def test_a_layer_is_the_same_either_way(taken: list[torch.Size], monkeypatch: pytest.MonkeyPatch) -> None:
    layer, x, pull = layer_of(), torch.randn(3, 11, WIDTH), torch.randn(3, 11, WIDTH)
    whole = results(layer, x, pull)
    assert taken == [torch.Size((3, 11, 3, HEADS, WIDTH // HEADS))]
    monkeypatch.setattr(MultiHeadAttention, "in_one", staticmethod(lambda x: False))
    apart = results(layer, x, pull)
    assert len(taken) == 1
    assert len(whole) == len(apart) == 2 + 8
    for one, other in zip(whole, apart, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


@interpreted
@pytest.mark.parametrize("tokens", [17, 65])
def test_a_layer_takes_the_kernel(tokens: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from jumok.layers import short_triton

    called, kernel = [], short_triton.short_attention
    monkeypatch.setattr(short_triton, "short_attention", lambda *given: called.append(1) or kernel(*given))
    layer, x, pull = layer_of(), torch.randn(2, tokens, WIDTH), torch.randn(2, tokens, WIDTH)
    found = []
    for in_one in (False, True):
        monkeypatch.setattr(MultiHeadAttention, "in_one", staticmethod(lambda x, in_one=in_one: in_one))
        found.append(results(layer, x, pull))
        assert len(called) == in_one
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


@interpreted
def test_a_compiled_layer_is_the_plain_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MultiHeadAttention, "in_one", staticmethod(lambda x: True))
    layer, x, pull = layer_of(), torch.randn(2, 17, WIDTH), torch.randn(2, 17, WIDTH)
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    for one, other in zip(results(layer, x, pull), results(compiled, x, pull), strict=True):  # type: ignore[arg-type]
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


def buffer() -> Past:
    return Past(torch.zeros(2, 9, HEADS, WIDTH // HEADS), torch.zeros(2, 9, HEADS, WIDTH // HEADS), 0)


OTHERS: dict[str, Callable[[MultiHeadAttention, Tensor], Any]] = {
    "mask": lambda layer, x: layer(x, Look(torch.ones(2, 9, dtype=torch.bool))),
    "causal": lambda layer, x: layer(x, Look(causal=True)),
    "bias": lambda layer, x: layer(x, Look(bias=torch.zeros(1, HEADS, 9, 9))),
    "turns": lambda layer, x: layer(x, Look(turns=torch.ones(9, 2, WIDTH // HEADS))),
    "coverage": lambda layer, x: layer(x, Look(coverage=[])),
    "memory": lambda layer, x: layer(x, Look(), KeyValue(*torch.randn(2, 2, 9, HEADS, WIDTH // HEADS))),
    "past": lambda layer, x: layer(x.detach(), Look(), past=buffer()),
    "watched": lambda layer, x: (layer.tap.register_forward_hook(lambda *given: None), layer(x, Look())),
    "evaluated": lambda layer, x: layer.eval()(x, Look()),
    "long": lambda layer, x: layer(torch.randn(1, 129, WIDTH), Look()),
}


@pytest.mark.parametrize("case", OTHERS)
def test_whatever_is_more_than_that_goes_the_usual_way(case: str, taken: list[torch.Size]) -> None:
    x = torch.randn(2, 9, WIDTH)
    layer_of()(x, Look())
    assert len(taken) == 1
    with torch.no_grad():
        OTHERS[case](layer_of(), x)
    assert len(taken) == 1


def test_shared_keys_and_dropout_go_the_usual_way(taken: list[torch.Size]) -> None:
    x = torch.randn(2, 9, WIDTH)
    layer_of(groups=2)(x, Look())
    layer_of(dropout=0.1)(x, Look())
    assert not taken


def test_who_suits(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.randn(2, 128, 8)
    monkeypatch.setattr(short_attention, "INTERPRETED", False)
    assert not short_attention.suits(x, 64)  # a CPU
    monkeypatch.setattr(short_attention, "INTERPRETED", True)
    monkeypatch.setattr(short_attention, "HAS_TRITON", True)
    assert short_attention.suits(x, 64)
    assert short_attention.suits(x.half(), 128)
    assert not short_attention.suits(torch.randn(2, 129, 8), 64)
    assert not short_attention.suits(torch.randn(2, 0, 8), 64)
    assert not short_attention.suits(x, 129)
    assert not short_attention.suits(x.double(), 64)
    assert not short_attention.suits(x.bfloat16(), 64)  # which the interpreter cannot multiply
    monkeypatch.setattr(short_attention, "HAS_TRITON", False)
    assert not short_attention.suits(x, 64)
