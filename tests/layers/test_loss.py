"""The one-buffer cross-entropy against PyTorch's own, values and gradients."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from jumok.layers.loss import IGNORED, smoothed_cross_entropy


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.7])
def test_it_equals_pytorch(smoothing: float) -> None:
    seed = int(torch.randint(1 << 30, ()))
    torch.manual_seed(seed)
    logits = (5 * torch.randn(13, 29)).requires_grad_()
    target = torch.randint(29, (13,))
    expected = F.cross_entropy(logits, target, reduction="sum", label_smoothing=smoothing)
    expected_gradient = torch.autograd.grad(3 * expected, logits)[0]
    smoothed, plain = smoothed_cross_entropy(logits, target, smoothing)
    gradient = torch.autograd.grad(3 * smoothed, logits)[0]
    told = f"seed {seed}"
    torch.testing.assert_close(smoothed, expected, msg=lambda m: f"{told}: {m}")
    torch.testing.assert_close(gradient, expected_gradient, msg=lambda m: f"{told}: {m}")
    torch.testing.assert_close(plain, F.cross_entropy(logits, target, reduction="sum"))
    assert not plain.requires_grad


def test_extreme_logits_stay_finite() -> None:
    logits = torch.tensor([[1e4, -1e4, 0.0]], requires_grad=True)
    smoothed, plain = smoothed_cross_entropy(logits, torch.tensor([1]), 0.1)
    smoothed.backward()
    assert torch.isfinite(plain)
    assert torch.isfinite(logits.grad).all()


def test_no_words_give_no_loss() -> None:
    logits = torch.zeros(0, 5, requires_grad=True)
    smoothed, _ = smoothed_cross_entropy(logits, torch.zeros(0, dtype=torch.long), 0.1)
    smoothed.backward()
    assert smoothed.item() == 0.0


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_what_is_no_word_counts_nothing(smoothing: float) -> None:
    logits = torch.randn(9, 11, dtype=torch.float64, requires_grad=True)
    target = torch.randint(11, (9,))
    real = torch.tensor([True, False, True, True, False, False, True, True, False])
    found = smoothed_cross_entropy(logits, target.masked_fill(~real, IGNORED), smoothing)
    expected = smoothed_cross_entropy(logits[real], target[real], smoothing)
    torch.testing.assert_close(found, expected)
    gradients = [torch.autograd.grad(one, logits)[0] for one in (found[0], expected[0])]
    torch.testing.assert_close(*gradients)
