"""The loss in chunks against the one written out: values, gradients, precision, and how much is in memory."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from jumok.layers import chunked_loss
from jumok.layers.chunked_loss import vocabulary_loss, vocabulary_r_drop
from jumok.layers.loss import IGNORED, smoothed_cross_entropy
from jumok.layers.r_drop import r_drop

Case = tuple[Tensor, Tensor, Tensor | None, Tensor]


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """The form in plain PyTorch; test_loss_triton.py has the other."""
    monkeypatch.setattr(chunked_loss, "kernels", None)


def case(
    words: int, vocabulary: int, width: int, dtype: torch.dtype = torch.float32, bias: bool = True, missing: float = 0.2
) -> Case:
    """Hidden states, an output layer, and targets of which some are no words."""
    hidden = torch.randn(words, width, dtype=dtype, requires_grad=True)
    weight = torch.randn(vocabulary, width, dtype=dtype, requires_grad=True)
    target = torch.randint(vocabulary, (words,)).masked_fill(torch.rand(words) < missing, IGNORED)
    return hidden, weight, torch.randn(vocabulary, dtype=dtype, requires_grad=True) if bias else None, target


def gradients(loss: Tensor, *of: Tensor | None) -> list[Tensor]:
    return list(torch.autograd.grad(loss * 3, [tensor for tensor in of if tensor is not None]))


@settings(max_examples=40, deadline=None)
@given(
    words=st.integers(0, 33),
    vocabulary=st.integers(1, 40),
    chunk=st.integers(0, 40),
    smoothing=st.sampled_from([0.0, 0.1, 0.6]),
    bias=st.booleans(),
    seed=st.integers(0, 2**31),
)
def test_it_equals_the_loss_written_out(
    words: int, vocabulary: int, chunk: int, smoothing: float, bias: bool, seed: int
) -> None:
    torch.manual_seed(seed)
    hidden, weight, offset, target = case(words, vocabulary, 6, bias=bias)
    found = vocabulary_loss(hidden, weight, offset, target, smoothing, chunk)
    expected = smoothed_cross_entropy(F.linear(hidden, weight, offset), target, smoothing)
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-5)
    assert found[0].requires_grad
    assert not found[1].requires_grad
    pairs = zip(*(gradients(one[0], hidden, weight, offset) for one in (found, expected)), strict=True)
    for one, other in pairs:
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


@settings(max_examples=25, deadline=None)
@given(words=st.integers(0, 20), chunk=st.integers(0, 25), bias=st.booleans(), seed=st.integers(0, 2**31))
def test_r_drop_equals_the_one_written_out(words: int, chunk: int, bias: bool, seed: int) -> None:
    torch.manual_seed(seed)
    hidden, weight, offset, _ = case(2 * words, 15, 6, bias=bias)
    target = case(words, 15, 6)[3]
    found = vocabulary_r_drop(hidden, weight, offset, target, 0.1, 3.0, chunk)
    expected = r_drop(F.linear(hidden, weight, offset), target, 0.1, 3.0)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    pairs = zip(*(gradients(one[0], hidden, weight, offset) for one in (found, expected)), strict=True)
    for one, other in pairs:
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("chunk", [1, 3, 7, 100])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_gradient_is_the_derivative(chunk: int, smoothing: float) -> None:
    hidden, weight, bias, target = case(7, 5, 4, torch.float64)
    assert torch.autograd.gradcheck(
        lambda *x: vocabulary_loss(*x, target, smoothing, chunk)[0], (hidden, weight, bias), fast_mode=False
    )
    assert torch.autograd.gradcheck(
        lambda h, *x: vocabulary_r_drop(h.repeat(2, 1) * torch.tensor([[1.0]] * 7 + [[0.5]] * 7), *x, target, 0.1, 2.0)[
            0
        ],
        (hidden, weight, bias),
    )


def test_float32_is_exact_to_its_last_digits() -> None:
    """Against float64; chunks may not cost precision."""
    hidden, weight, bias, target = case(300, 500, 32)
    exact = [tensor.detach().double().requires_grad_() for tensor in (hidden, weight, bias)]
    expected, _ = smoothed_cross_entropy(F.linear(*exact), target, 0.1)
    found, _ = vocabulary_loss(hidden, weight, bias, target, 0.1, 64)
    torch.testing.assert_close(found.double(), expected, rtol=1e-6, atol=0)
    for one, other in zip(gradients(found, hidden, weight, bias), gradients(expected, *exact), strict=True):
        assert (one.double() - other).norm() < 1e-6 * other.norm()


def test_under_autocast_only_the_products_are_rough() -> None:
    """No farther from the truth than what autocast makes of the form written out; the sums stay in float32."""
    hidden, weight, bias, target = case(400, 300, 64)
    hidden = (hidden.detach() / 8).requires_grad_()
    expected, _ = smoothed_cross_entropy(F.linear(hidden, weight, bias), target, 0.1)
    with torch.autocast("cpu", torch.bfloat16):
        rough, _ = smoothed_cross_entropy(F.linear(hidden, weight, bias), target, 0.1)
        found, plain = vocabulary_loss(hidden, weight, bias, target, 0.1, 50)
    assert found.dtype == plain.dtype == torch.float32
    torch.testing.assert_close(found, expected, rtol=3e-3, atol=0)
    truth = gradients(expected, hidden, weight, bias)
    for one, other, true in zip(
        gradients(found, hidden, weight, bias), gradients(rough, hidden, weight, bias), truth, strict=True
    ):
        assert one.dtype == torch.float32
        assert (one - true).norm() < 1.2 * (other - true).norm() + 1e-3 * true.norm()


def test_weights_in_low_precision_still_get_a_gradient_summed_in_float32() -> None:
    hidden, weight, bias, target = case(4096, 8, 4, torch.bfloat16, missing=0.0)
    found = gradients(vocabulary_loss(hidden, weight, bias, target, 0.0, 16)[0], weight, bias)
    whole = gradients(vocabulary_loss(hidden, weight, bias, target, 0.0, 4096)[0], weight, bias)
    for one, other in zip(found, whole, strict=True):
        assert one.dtype == torch.bfloat16
        assert (one - other).float().norm() < 2e-2 * other.float().norm()


def test_without_gradients_none_are_computed() -> None:
    hidden, weight, bias, target = case(64, 50, 8)
    for learns, products in ((False, 1), (True, 3)):
        watch = Watch()
        with torch.set_grad_enabled(learns), watch:
            found = vocabulary_loss(hidden, weight, bias, target, 0.1, 16)
        assert (
            sum(watch.calls[name] for name in ("aten::mm", "aten::addmm_", "mkldnn::_linear_pointwise"))
            == 64 // 16 * products
        )
        assert found[0].requires_grad == learns
    torch.testing.assert_close(found, smoothed_cross_entropy(F.linear(hidden, weight, bias), target, 0.1))


class Watch(TorchDispatchMode):
    """Notes what is called and the sizes of all tensors that come out."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: set[int] = set()
        self.calls: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.calls[func.name().partition(".")[0]] += 1
        for tensor in torch.utils._pytree.tree_leaves(result):
            if isinstance(tensor, Tensor):
                self.sizes.add(tensor.numel())
        return result


@pytest.mark.parametrize("passes", [1, 2])
def test_there_are_never_more_logits_than_of_a_chunk(passes: int) -> None:
    words, vocabulary, chunk = 512, 300, 32
    hidden, weight, bias, _ = case(passes * words, vocabulary, 8)
    target = case(words, vocabulary, 8)[3]
    watch, kept = Watch(), []
    with watch, torch.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x.numel()) or x, lambda x: x):
        if passes == 1:
            loss, _ = vocabulary_loss(hidden, weight, bias, target, 0.1, chunk)
        else:
            loss, *_ = vocabulary_r_drop(hidden, weight, bias, target, 0.1, 1.0, chunk)
        loss.backward()
    assert max(watch.sizes) == passes * chunk * vocabulary
    assert sum(kept) == hidden.numel() + weight.numel() + vocabulary
    assert hidden.grad is not None


def test_a_chunk_is_chosen_by_size() -> None:
    """Small: all words at once. Large: as many as fit, whatever the vocabulary at least some."""
    for words, vocabulary, largest in ((512, 300, 512 * 300), (1030, 16384, 256 * 16384), (1100, 4096, 1024 * 4096)):
        watch = Watch()
        with watch, torch.no_grad():
            vocabulary_loss(torch.zeros(words, 2), torch.zeros(vocabulary, 2), None, torch.zeros(words).long())
        assert max(watch.sizes) == largest


def test_extreme_logits_stay_finite() -> None:
    hidden = torch.tensor([[1e4], [-1e4], [torch.finfo(torch.float32).max / 10]], requires_grad=True)
    weight = torch.tensor([[1.0], [0.0], [-1.0]], requires_grad=True)
    loss, plain = vocabulary_loss(hidden, weight, None, torch.tensor([1, 0, IGNORED]), 0.1, 2)
    loss.backward()
    assert torch.isfinite(plain)
    assert torch.isfinite(hidden.grad).all()


@pytest.mark.parametrize("chunk", [8, 100])
def test_it_can_be_compiled(chunk: int) -> None:
    """As one operation: whole, without a break."""
    hidden, weight, bias, target = case(30, 20, 6)

    def twice(hidden: Tensor) -> Tensor:
        return vocabulary_loss(hidden * 2, weight, bias, target, 0.1, chunk)[0] / 7

    torch._dynamo.reset()
    compiled = torch.compile(twice, backend="aot_eager", fullgraph=True)
    found, expected = (gradients(loss(hidden), hidden, weight, bias) for loss in (compiled, twice))
    torch.testing.assert_close(found, expected)
    with torch.no_grad():
        torch.testing.assert_close(compiled(hidden), twice(hidden))
