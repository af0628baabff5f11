"""The kernel against the loss written out, in Triton's interpreter (TRITON_INTERPRET=1) or on a GPU."""

from __future__ import annotations

import os

import pytest
import torch
from torch.nn import functional as F

from jumok.layers import chunked_loss
from jumok.layers.chunked_loss import vocabulary_loss
from jumok.layers.loss import IGNORED, smoothed_cross_entropy

pytest.importorskip("triton")
if not torch.cuda.is_available() and os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("Triton needs a GPU, or TRITON_INTERPRET=1", allow_module_level=True)

from jumok.layers import loss_triton

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
TOLERANCES = {torch.float32: 1e-5, torch.bfloat16: 4e-3, torch.float16: 5e-4}


@pytest.mark.parametrize("dtype", list(TOLERANCES), ids=str)
@pytest.mark.parametrize("vocabulary", [1, 5, 64, 100, 4096, 9001])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("biased", [False, True])
def test_losses_and_gradient_in_place(dtype: torch.dtype, vocabulary: int, smoothing: float, biased: bool) -> None:
    logits = (4 * torch.randn(5, vocabulary, device=DEVICE)).to(dtype)
    target = torch.randint(vocabulary, (5,), device=DEVICE)
    target[2] = IGNORED
    bias = torch.randn(vocabulary, device=DEVICE) if biased else None
    given = logits.float().requires_grad_()
    expected = smoothed_cross_entropy(given if bias is None else given + bias, target, smoothing)
    gradient = torch.autograd.grad(expected[0], given)[0]
    losses = torch.full((3, 5), 7.0, device=DEVICE)
    for learns in (False, True):
        before = logits.clone()
        loss_triton.smoothed_cross_entropy_(logits, bias, target, smoothing, losses, learns)
        torch.testing.assert_close(tuple(losses[:2].sum(dim=1)), expected, rtol=1e-5, atol=1e-5)
        assert losses[:, 2].tolist() == [0.0, 0.0, 7.0]
        if not learns:
            assert torch.equal(logits, before)
    torch.testing.assert_close(logits.float(), gradient, rtol=TOLERANCES[dtype], atol=TOLERANCES[dtype])


def test_extreme_logits_stay_finite() -> None:
    logits = torch.tensor([[1e4, -1e4, 0.0], [-1e30, -3e30, 3e30]], device=DEVICE)
    losses = torch.empty(3, 2, device=DEVICE)
    loss_triton.smoothed_cross_entropy_(logits, None, torch.tensor([1, 2], device=DEVICE), 0.0, losses, True)
    assert losses[0].tolist() == [2e4, 0.0]
    assert torch.isfinite(logits).all()


@pytest.mark.parametrize("chunk", [3, 100])
def test_the_whole_loss_goes_through_it(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    hidden, weight, bias = (
        torch.randn(*shape, device=DEVICE, requires_grad=True) for shape in ((10, 6), (33, 6), (33,))
    )
    target = torch.randint(33, (10,), device=DEVICE)
    target[4] = IGNORED
    called = []
    kernel = loss_triton.smoothed_cross_entropy_
    monkeypatch.setattr(loss_triton, "smoothed_cross_entropy_", lambda *given: called.append(1) or kernel(*given))
    assert chunked_loss.kernels is loss_triton
    found = vocabulary_loss(hidden, weight, bias, target, 0.1, chunk)
    assert len(called) == -(-10 // chunk)
    expected = smoothed_cross_entropy(F.linear(hidden, weight, bias), target, 0.1)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-4)
    gradients = [torch.autograd.grad(one[0], (hidden, weight, bias)) for one in (found, expected)]
    torch.testing.assert_close(*gradients, rtol=1e-3, atol=1e-4)
