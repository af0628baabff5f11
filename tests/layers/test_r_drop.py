"""R-Drop against its definition, written with PyTorch's own parts."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from jumok.layers.loss import IGNORED, smoothed_cross_entropy
from jumok.layers.r_drop import r_drop


def written_out(logits: torch.Tensor, target: torch.Tensor, smoothing: float, strength: float) -> torch.Tensor:
    """The paper's formula with PyTorch's own parts, halved."""
    first, second = logits.chunk(2)
    entropies = [F.cross_entropy(x, target, reduction="sum", label_smoothing=smoothing) for x in (first, second)]
    one, other = first.log_softmax(-1), second.log_softmax(-1)
    forth = F.kl_div(other, one, reduction="sum", log_target=True)
    back = F.kl_div(one, other, reduction="sum", log_target=True)
    return (sum(entropies) + strength * (forth + back) / 2) / 2


@pytest.mark.parametrize(("smoothing", "strength"), [(0.0, 0.0), (0.1, 5.0), (0.3, 1.0), (0.0, 0.7)])
def test_r_drop_equals_its_definition(smoothing: float, strength: float) -> None:
    seed = int(torch.randint(1 << 30, ()))
    torch.manual_seed(seed)
    logits = (3 * torch.randn(2 * 11, 23)).requires_grad_()
    target = torch.randint(23, (11,))
    expected = written_out(logits, target, smoothing, strength)
    loss, plain, kl = r_drop(logits, target, smoothing, strength)
    told = f"seed {seed}"
    torch.testing.assert_close(loss, expected, msg=lambda m: f"{told}: {m}")
    gradients = [torch.autograd.grad(3 * value, logits)[0] for value in (loss, expected)]
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-5, msg=lambda m: f"{told}: {m}")
    torch.testing.assert_close(plain, written_out(logits, target, 0.0, 0.0).detach())
    torch.testing.assert_close(loss.detach() - strength / 2 * kl, written_out(logits, target, smoothing, 0.0).detach())
    assert not plain.requires_grad
    assert not kl.requires_grad


def test_r_drops_gradient_is_the_derivative() -> None:
    logits = torch.randn(2 * 3, 5, dtype=torch.float64, requires_grad=True)
    target = torch.randint(5, (3,))
    assert torch.autograd.gradcheck(lambda x: r_drop(x, target, 0.1, 4.0)[0], (logits,))


def test_equal_passes_leave_the_smoothed_cross_entropy() -> None:
    half = torch.randn(7, 9)
    target = torch.randint(9, (7,))
    loss, plain, kl = r_drop(half.repeat(2, 1), target, 0.1, 5.0)
    smoothed, once = smoothed_cross_entropy(half, target, 0.1)
    assert kl.item() == 0.0
    torch.testing.assert_close(loss, smoothed)
    torch.testing.assert_close(plain, once)


def test_r_drop_of_extreme_logits_stays_finite() -> None:
    logits = torch.tensor([[1e3, -1e3, 0.0], [-1e3, 1e3, 0.0]], requires_grad=True)
    loss, _, kl = r_drop(logits, torch.tensor([1]), 0.1, 5.0)
    loss.backward()
    assert torch.isfinite(kl)
    assert torch.isfinite(logits.grad).all()


def test_what_is_no_word_counts_nothing() -> None:
    logits = torch.randn(2 * 5, 7, dtype=torch.float64, requires_grad=True)
    target = torch.randint(7, (5,))
    real = torch.tensor([True, False, True, True, False])
    found = r_drop(logits, target.masked_fill(~real, IGNORED), 0.1, 3.0)
    expected = r_drop(logits[real.repeat(2)], target[real], 0.1, 3.0)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(*(torch.autograd.grad(one, logits)[0] for one in (found[0], expected[0])))
