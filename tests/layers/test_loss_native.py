"""The loss in C against the one written out: values, gradients, their sums, what is no word and what is no number."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from jumok.layers import c_library, chunked_loss, loss_native
from jumok.layers.chunked_loss import vocabulary_loss
from jumok.layers.loss import IGNORED, logit_gradient_, word_losses


@pytest.fixture(autouse=True)
def _of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    if loss_native.library() is None:
        pytest.skip("no C compiler here")
    monkeypatch.setattr(loss_native, "LEAST", 1)


def written_out(logits: Tensor, bias: Tensor | None, target: Tensor, smoothing: float) -> tuple[Tensor, ...]:
    """Losses, gradient and its sums, in float64."""
    exact = logits.double() if bias is None else logits.double() + bias.double()
    log_p = torch.log_softmax(exact, dim=-1)
    losses = torch.stack(word_losses(log_p, target, smoothing))
    gradient = logit_gradient_(log_p.exp(), target, smoothing)
    return losses, gradient, gradient.sum(0)


def in_c(logits: Tensor, bias: Tensor | None, target: Tensor, smoothing: float, learns: bool = True) -> list[Tensor]:
    logits, losses, sums = logits.clone(), torch.full((3, len(target)), 7.0), torch.ones(logits.size(1))
    assert loss_native.runs(logits)
    loss_native.smoothed_cross_entropy_(logits, bias, target, smoothing, losses, learns, sums if learns else None)
    assert losses[2].eq(7.0).all()
    return [losses[:2], logits, sums - 1]


@settings(max_examples=60, deadline=None)
@given(
    words=st.integers(1, 20),
    vocabulary=st.integers(1, 70),
    smoothing=st.sampled_from([0.0, 0.1, 0.6]),
    biased=st.booleans(),
    low=st.booleans(),
    seed=st.integers(0, 2**31),
)
def test_losses_gradients_and_sums(
    words: int, vocabulary: int, smoothing: float, biased: bool, low: bool, seed: int
) -> None:
    torch.manual_seed(seed)
    logits = (5 * torch.randn(words, vocabulary)).to(torch.bfloat16 if low else torch.float32)
    bias = torch.randn(vocabulary) if biased else None
    target = torch.randint(-1, vocabulary, (words,))
    losses, gradient, sums = in_c(logits, bias, target, smoothing)
    expected = written_out(logits, bias, target, smoothing)
    torch.testing.assert_close(losses, expected[0].float(), rtol=1e-5, atol=1e-5)
    tolerance = 4e-3 if low else 1e-6
    torch.testing.assert_close(gradient.float(), expected[1].float(), rtol=tolerance, atol=1e-6)
    torch.testing.assert_close(sums, expected[2].float(), rtol=1e-5, atol=1e-5)  # of what was not rounded yet


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_many_words_with_several_threads(threads: int, dtype: torch.dtype) -> None:
    logits, bias = torch.randn(67, 3001).to(dtype), torch.randn(3001)
    target = torch.randint(3001, (67,)).masked_fill(torch.rand(67) < 0.3, IGNORED)
    found, again = (in_c(logits, bias, target, 0.1) for _ in range(2))
    for one, other, expected in zip(found, again, written_out(logits, bias, target, 0.1), strict=True):
        assert torch.equal(one, other)
        torch.testing.assert_close(one.double(), expected, rtol=1e-2 if dtype == torch.bfloat16 else 1e-5, atol=2e-5)
    assert found[1][target == IGNORED].eq(0).all()


def test_rows_that_do_not_lie_together() -> None:
    room, target = torch.randn(9, 100), torch.randint(70, (18,))[::2]
    before = room.clone()
    losses = torch.zeros(3, 18)[:, 4:13]
    loss_native.smoothed_cross_entropy_(room[:, :70], None, target, 0.1, losses, True, None)
    expected = written_out(before[:, :70], None, target, 0.1)
    torch.testing.assert_close(losses[:2], expected[0].float(), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(room[:, :70], expected[1].float(), rtol=1e-5, atol=1e-6)
    assert torch.equal(room[:, 70:], before[:, 70:])


def test_who_only_looks_keeps_the_logits() -> None:
    logits, target = torch.randn(5, 33), torch.randint(33, (5,))
    losses, kept, _ = in_c(logits, None, target, 0.1, learns=False)
    assert torch.equal(kept, logits)
    torch.testing.assert_close(losses, written_out(logits, None, target, 0.1)[0].float(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("place", [0, 17, 36])
@pytest.mark.parametrize("wrong", [torch.nan, torch.inf])
def test_what_is_no_number_is_seen(place: int, wrong: float) -> None:
    logits, target = torch.randn(3, 37), torch.randint(37, (3,))
    logits[1, place] = wrong
    losses, gradient, sums = in_c(logits, None, target, 0.1)
    assert losses.isnan().tolist() == [[False, True, False]] * 2
    assert gradient.isnan().any(dim=1).tolist() == [False, True, False]
    assert sums.isnan().any()


def test_what_cannot_be() -> None:
    """A logit of -inf: probability 0, and no loss unless it is asked for."""
    logits, target = torch.randn(2, 20), torch.tensor([3, 4])
    logits[:, 4] = -torch.inf
    losses, gradient, _ = in_c(logits, None, target, 0.0)
    assert losses.isfinite().tolist() == [[True, False]] * 2
    assert losses[0, 1] == torch.inf
    torch.testing.assert_close(gradient[:, 4], torch.tensor([0.0, -1.0]))


def test_a_target_beyond_the_vocabulary_is_no_place_in_memory() -> None:
    with pytest.raises(IndexError, match="vocabulary of 20: 20"):
        in_c(torch.randn(2, 20), None, torch.tensor([3, 20]), 0.0)


@pytest.mark.parametrize("autocast", [False, True])
def test_a_model_learns_the_same_with_and_without(autocast: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    hidden, weight = torch.randn(300, 16, requires_grad=True), torch.randn(90, 16, requires_grad=True)
    bias, target = torch.randn(90, requires_grad=True), torch.randint(-1, 90, (300,))
    calls, plain_runs = [], loss_native.runs
    monkeypatch.setattr(loss_native, "runs", lambda logits: calls.append(plain_runs(logits)) or calls[-1])
    found = []
    for in_use in (True, False):
        monkeypatch.setattr(chunked_loss, "kernels", None)
        if not in_use:
            monkeypatch.setattr(loss_native, "LEAST", 2**40)
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            loss, plain = vocabulary_loss(hidden, weight, bias, target, 0.1, chunk=70)
        found.append([loss.detach(), plain, *torch.autograd.grad(loss, [hidden, weight, bias])])
    assert calls == [True] * 5 + [False] * 5
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=2e-2 if autocast else 1e-4, atol=5e-2 if autocast else 1e-4)


def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    loss_native.library.cache_clear()
    try:
        monkeypatch.setattr(c_library.shutil, "which", lambda name: None)
        assert not loss_native.runs(torch.zeros(2, 20))
        hidden, weight = torch.randn(5, 8), torch.randn(20, 8)
        loss, _ = vocabulary_loss(hidden, weight, None, torch.randint(20, (5,)), 0.1)
        assert loss.isfinite()
    finally:
        loss_native.library.cache_clear()
