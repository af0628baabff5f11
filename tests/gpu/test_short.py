"""Attention of short rows on a GPU: the kernel is the mathematics, recorded and compiled is eager.

On a machine with a GPU: make gpu-check
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from seeded import seed  # noqa: F401  fresh inputs in every run
from torch import Tensor
from torch.nn import functional as F

from jumok.layers import multihead
from jumok.layers.packed_attention import HAS_TRITON
from jumok.layers.short_attention import short_attention, suits, written_out
from jumok.models.vit import ImageLabeller
from jumok.recipe import VitSection

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU (make gpu-check)")

LENGTHS = [1, 5, 16, 17, 33, 49, 64, 65, 80, 81, 97, 128]


@pytest.fixture(autouse=True)
def _full_precision() -> None:
    torch.backends.cuda.matmul.allow_tf32 = False
    assert HAS_TRITON, "PyTorch for CUDA brings Triton along"


def with_gradient(attend: Callable[[Tensor, float], Tensor], qkv: Tensor, pull: Tensor, scale: float) -> list[Tensor]:
    leaf = qkv.detach().clone().requires_grad_()
    out = attend(leaf, scale)
    return [out.detach(), *torch.autograd.grad(out, leaf, pull)]


@pytest.mark.parametrize("tokens", LENGTHS)
def test_the_gradient_of_the_bias_is_the_sum(tokens: int) -> None:
    qkv, pull = inputs_of(tokens, 64, torch.bfloat16, batch=50)
    leaf, bias = qkv.requires_grad_(), torch.randn(qkv.shape[2:], device="cuda", requires_grad=True)
    d_qkv, d_bias = torch.autograd.grad(short_attention(leaf, 0.125, bias), (leaf, bias), pull)
    total = d_qkv.double().sum((0, 1))
    torch.testing.assert_close(d_bias.double(), total, atol=5e-3 * float(total.abs().max()) + 1e-2, rtol=1e-2)


def fused(qkv_BT3HD: Tensor, scale: float) -> Tensor:
    query, key, value = (part.transpose(1, 2) for part in qkv_BT3HD.unbind(2))
    return F.scaled_dot_product_attention(query, key, value, scale=scale).transpose(1, 2)


def inputs_of(tokens: int, width: int, dtype: torch.dtype, batch: int = 3, heads: int = 3) -> tuple[Tensor, Tensor]:
    qkv = torch.randn(batch, tokens, 3, heads, width, device="cuda").to(dtype)
    return qkv, torch.randn(batch, tokens, heads, width, device="cuda").to(dtype)


def worst(found: list[Tensor], exact: list[Tensor]) -> float:
    return max(float((one.double() - other).abs().max()) for one, other in zip(found, exact, strict=True))


@pytest.mark.parametrize("tokens", LENGTHS)
@pytest.mark.parametrize("width", [16, 24, 32, 64, 128])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_it_is_as_exact_as_pytorch(tokens: int, width: int, dtype: torch.dtype) -> None:
    (qkv, pull), scale = inputs_of(tokens, width, dtype), width**-0.5
    assert suits(qkv, width)
    exact = with_gradient(written_out, qkv.double(), pull.double(), scale)
    ours = worst(with_gradient(short_attention, qkv, pull, scale), exact)
    theirs = worst(with_gradient(fused, qkv, pull, scale), exact)
    print(f"{tokens} {width} {dtype}: off by {ours:.5f} at most, PyTorch's by {theirs:.5f}")
    assert ours < 2 * theirs + 1e-3


@pytest.mark.parametrize("tokens", [5, 33, 64])
def test_float32(tokens: int) -> None:
    """The door sends it elsewhere; who calls the kernel itself gets three products of tf32 for one."""
    from jumok.layers.short_triton import short_attention as kernel

    qkv, pull = inputs_of(tokens, 32, torch.float32)
    assert not suits(qkv, 32)
    found, expected = (with_gradient(one, qkv, pull, 0.2) for one in (kernel, written_out))
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("tokens", [64, 65, 100])
def test_equal_inputs_give_equal_bits(tokens: int) -> None:
    qkv, pull = inputs_of(tokens, 64, torch.bfloat16, batch=500, heads=6)
    first = with_gradient(short_attention, qkv, pull, 0.125)
    for _ in range(5):
        again = with_gradient(short_attention, qkv, pull, 0.125)
        assert all(torch.equal(one, other) for one, other in zip(first, again, strict=True))


def test_a_recording_serves_other_images() -> None:
    qkv, pull = inputs_of(65, 64, torch.bfloat16, batch=20)
    with_gradient(short_attention, qkv, pull, 0.125)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        recorded = with_gradient(short_attention, qkv, pull, 0.125)
    for _ in range(3):
        qkv.copy_(torch.randn_like(qkv))
        graph.replay()
        for one, other in zip(recorded, with_gradient(short_attention, qkv, pull, 0.125), strict=True):
            assert torch.equal(one, other)


@pytest.mark.parametrize("pooling", ["class", "mean"])  # 65 tokens, 64
def test_a_step_of_a_vision_transformer(pooling: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the kernel, compiled with it, and without it."""
    section = VitSection(
        image=32, patch=4, width=128, heads=2, layers=2, feed_forward=192, dropout=0.0, pooling=pooling
    )
    model = ImageLabeller(section, 10).cuda().train()
    images = torch.randint(0, 256, (16, 3, 32, 32), dtype=torch.uint8, device="cuda")
    wanted = torch.randint(10, (16,), device="cuda")
    asked: list[bool] = []

    def noted(x: Tensor, width: int) -> bool:
        asked.append(suits(x, width))
        return asked[-1]

    def step(one: Any) -> list[Tensor]:
        model.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16):
            loss = F.cross_entropy(one(images).float(), wanted)
        loss.backward()
        gradient = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
        return [loss.detach(), gradient]

    with monkeypatch.context() as patch:
        patch.setattr(multihead, "suits_short", noted)
        plain = step(model)
    assert asked == [True, True]
    compiled = step(torch.compile(model, fullgraph=True))
    with monkeypatch.context() as patch:
        patch.setattr(multihead, "suits_short", lambda x, width: False)
        without = step(model)
    for other in (compiled, without):
        torch.testing.assert_close(other[0], plain[0], atol=2e-2, rtol=2e-2)
        assert float((other[1] - plain[1]).norm()) < 0.05 * float(plain[1].norm())
