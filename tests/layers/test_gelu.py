"""GELU from one exponential is GELU, and so is its gradient."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from jumok.layers.gelu import OneExponential, gelu, normal


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
