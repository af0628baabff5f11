"""GELU from one exponential is GELU, and so is its gradient; with the sums of a bias, too. Their kernel without a GPU:

    TRITON_INTERPRET=1 python -m pytest tests/layers/test_gelu.py

needs the `triton` package, which PyTorch for the CPU does not bring along. tests/gpu/test_gelu.py has it for real.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jumok.layers import gelu as gelus
from jumok.layers.block import FeedForward
from jumok.layers.gelu import OneExponential, gelu, gelu_of_map, gradient_with_sums, normal
from jumok.recipe import VitSection


def test_the_distribution() -> None:
    x = torch.cat([torch.randn(20_000) * 3, torch.tensor([0.0, -0.0, 1e-20, -1e-20, 30.0, -30.0, 1e30, -1e30])])
    share, bell = normal(x)
    expected = torch.special.ndtr(x.double())
    assert (share - expected).abs().max() < 5e-7  # of the formula 7.5e-8, the rest is rounding
    torch.testing.assert_close(bell.double(), torch.exp(-0.5 * x.double() ** 2), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_values_and_gradients(dtype: torch.dtype) -> None:
    x = (torch.randn(5000) * 2).to(dtype).requires_grad_()
    weight = torch.randn(5000).to(dtype)
    found, expected = OneExponential.apply(x), F.gelu(x)
    close = {"atol": 2e-6, "rtol": 1e-5} if dtype == torch.float32 else {"atol": 1e-3, "rtol": 1e-2}
    assert found.dtype == dtype
    torch.testing.assert_close(found, expected, **close)
    gradients = [torch.autograd.grad((y * weight).sum(), x)[0] for y in (found, expected)]
    torch.testing.assert_close(*gradients, **close)


def test_it_can_be_traced() -> None:
    x = torch.randn(64, requires_grad=True)
    compiled = torch.compile(lambda x: OneExponential.apply(x).sum(), backend="aot_eager", fullgraph=True)
    (found,) = torch.autograd.grad(compiled(x), x)
    (expected,) = torch.autograd.grad(F.gelu(x).sum(), x)
    torch.testing.assert_close(found, expected, atol=2e-6, rtol=1e-5)


def test_elsewhere_it_is_pytorchs() -> None:
    x = torch.randn(100)
    assert torch.equal(gelu(x), F.gelu(x))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(1, 8), (3, 5, 24), (2, 65, 384), (1, 129), (300, 300)])
def test_sums_are_those_of_the_gradient(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    x = (torch.randn(shape) * 2).to(dtype)
    dy = torch.randn(shape).to(dtype)
    leaf = x.double().requires_grad_()
    (expected,) = torch.autograd.grad(F.gelu(leaf), leaf, dy.double())
    dx, sums = gradient_with_sums(dy, x, torch.float32)
    assert (dx.dtype, sums.dtype) == (dtype, torch.float32)
    close = {"atol": 2e-6, "rtol": 1e-5} if dtype == torch.float32 else {"atol": 1e-3, "rtol": 1e-2}
    torch.testing.assert_close(dx.double(), expected, **close)
    torch.testing.assert_close(sums, dx.float().flatten(0, -2).sum(0), atol=1e-4, rtol=1e-4)


def test_programs_share_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    if gelus.HAS_TRITON and gelus.INTERPRETED:
        monkeypatch.setattr("jumok.layers.gelu_triton.PROGRAMS", 3)
    x, dy = torch.randn(997, 200), torch.randn(997, 200)
    dx, sums = gradient_with_sums(dy, x, torch.float32)
    torch.testing.assert_close(dx, gelus.gradient(dy, x), atol=2e-6, rtol=1e-5)
    torch.testing.assert_close(sums, dx.sum(0), atol=1e-3, rtol=1e-4)


@pytest.mark.parametrize("autocast", [False, True])
def test_a_map_has_all_its_gradients(autocast: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bias has its own from the sums, and no part of it twice."""
    network = FeedForward(VitSection(width=48, heads=2, layers=1, feed_forward=96))
    nn.init.normal_(network.inner.bias)
    u, pull = torch.randn(7, 5, 48, requires_grad=True), torch.randn(7, 5, 48)

    def learn() -> list[Tensor]:
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            y = network(u)
        return [y.detach().float(), *torch.autograd.grad(y, [u, *network.parameters()], pull.to(y.dtype))]

    expected = learn()
    monkeypatch.setattr(gelus, "sums_suit", lambda u, layer: True)
    for one, other in zip(learn(), expected, strict=True):
        assert one.dtype == other.dtype
        assert float((one - other).norm()) < (0.02 if autocast else 1e-5) * float(other.norm())


def test_sums_are_for_programs_that_are_compiled_for_a_gpu() -> None:
    layer, u = nn.Linear(8, 8), torch.randn(3, 8)
    assert not gelus.sums_suit(u, layer)
    assert torch.equal(gelu_of_map(u, layer), F.gelu(layer(u)))


@pytest.mark.full
def test_sums_can_be_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    layer, u = nn.Linear(16, 24), torch.randn(5, 16)
    (expected,) = torch.autograd.grad(F.gelu(layer(u)).sum(), layer.bias)
    monkeypatch.setattr(gelus, "sums_suit", lambda u, layer: torch.compiler.is_compiling())
    compiled = torch.compile(lambda u: gelu_of_map(u, layer).sum(), backend="aot_eager", fullgraph=True)
    (found,) = torch.autograd.grad(compiled(u), layer.bias)
    torch.testing.assert_close(found, expected, atol=2e-6, rtol=1e-5)
