"""Products by oneDNN are those of PyTorch, forwards and backwards."""

from __future__ import annotations

import pytest
import torch
from seeded import seed  # noqa: F401
from torch.nn import functional as F

from jumok.layers import products
from jumok.layers.linear import linear
from jumok.layers.vocabulary_products import OneDNN, VocabularyProducts

pytestmark = [
    pytest.mark.usefixtures("seed"),
    pytest.mark.skipif(not products.has_onednn(), reason="this PyTorch has no oneDNN"),
]


@pytest.fixture(autouse=True)
def onednn_on_any_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "other_than_intel", lambda: True)
    monkeypatch.setattr(products, "LEAST", 1)  # of any size


@pytest.mark.parametrize("shape", [(), (7,), (3, 5), (2, 3, 4), (1, 1), (0, 3)])
@pytest.mark.parametrize("outputs", [1, 6, 40])
@pytest.mark.parametrize("biased", [False, True])
def test_a_linear_map_and_its_gradients(shape: tuple[int, ...], outputs: int, biased: bool) -> None:
    x = torch.randn(*shape, 16, requires_grad=True)
    weight = torch.randn(outputs, 16, requires_grad=True)
    bias = torch.randn(outputs, requires_grad=True) if biased else None
    given = [x, weight] if bias is None else [x, weight, bias]
    expected, found = F.linear(x, weight, bias), products.linear_map(x, weight, bias)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    upstream = torch.randn_like(expected)
    for one, other in zip(
        torch.autograd.grad(found, given, upstream), torch.autograd.grad(expected, given, upstream), strict=True
    ):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
        assert one.is_contiguous()


def test_what_comes_out_may_be_written_over() -> None:
    layer = linear(8, 12)
    x = torch.randn(2, 3, 8, requires_grad=True)
    found = torch.autograd.grad(torch.relu_(layer(x)).sum(), [x, *layer.parameters()])
    expected = torch.autograd.grad(torch.relu(F.linear(x, layer.weight, layer.bias)).sum(), [x, *layer.parameters()])
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


def test_only_what_is_needed_gets_a_gradient() -> None:
    layer = linear(8, 12)
    layer.weight.requires_grad_(False)
    x = torch.randn(4, 8, requires_grad=True)
    layer(x).sum().backward()
    assert layer.weight.grad is None
    assert x.grad is not None
    torch.testing.assert_close(x.grad, layer.weight.sum(dim=0).expand(4, 8), rtol=1e-5, atol=1e-5)


def test_other_numbers_and_other_ways_are_left_to_pytorch() -> None:
    assert products.suits(torch.zeros(2, 2))
    assert not products.suits(torch.zeros(2, 2, dtype=torch.float64))
    with torch.autocast("cpu", torch.bfloat16):
        assert not products.suits(torch.zeros(2, 2))
        x = torch.randn(5, 3, dtype=torch.bfloat16, requires_grad=True)
        assert linear(3, 4)(x).dtype == torch.bfloat16
    wide = linear(3, 4).double()
    assert wide(torch.randn(2, 3, dtype=torch.float64)).dtype == torch.float64


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-4), (torch.bfloat16, 3e-2)], ids=str)
def test_products_with_the_vocabulary(dtype: torch.dtype, tolerance: float) -> None:
    if dtype == torch.bfloat16 and not products.suits(torch.zeros(1, dtype=dtype)):
        pytest.skip("this processor has no products of bfloat16")
    weight = torch.randn(50, 16).to(dtype)
    bias = torch.randn(50)
    ways = [kind(weight, bias, 9, torch.float32) for kind in (VocabularyProducts, OneDNN)]
    for rows in (9, 9, 4):
        hidden, gradient = torch.randn(rows, 16).to(dtype), torch.randn(rows, 50).to(dtype)
        plain, other = (way.logits(hidden) + (0 if way.bias_V is None else way.bias_V) for way in ways)
        torch.testing.assert_close(other.float(), plain, rtol=tolerance, atol=tolerance)
        torch.testing.assert_close(*(way.d_hidden(gradient) for way in ways), rtol=tolerance, atol=10 * tolerance)
        for way in ways:
            way.add(gradient, hidden)
    plain, other = (way.gradient() for way in ways)
    assert plain.dtype == other.dtype == torch.float32
    torch.testing.assert_close(other, plain, rtol=tolerance, atol=10 * tolerance)
    assert OneDNN(weight, bias, 9, torch.float32).gradient().eq(0).all()
