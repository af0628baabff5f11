"""A layer norm with the residual connection beside it: one gradient for both is that of autograd. The kernel without a
GPU:

    TRITON_INTERPRET=1 python -m pytest tests/layers/test_norm.py

needs the `triton` package, which PyTorch for the CPU does not bring along. tests/gpu/test_norm.py has it for real.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from jumok.layers import block
from jumok.layers import norm as norms
from jumok.layers.norm import NormBeside, norm_beside
from jumok.models.vit import ImageLabeller
from jumok.recipe import VitSection


def gradients(
    x: Tensor, s: Tensor | None, norm: nn.LayerNorm, pulls: tuple[Tensor, Tensor], beside: bool
) -> list[Tensor]:
    """z = x + s and norm(z), and the gradient of Σ p₁ z + Σ p₂ norm(z) in x, s, g and b, and in a bias of s."""
    leaf, added = x.clone().requires_grad_(), None if s is None else s.clone().requires_grad_()
    bias = torch.zeros(x.size(-1), requires_grad=True)
    norm.zero_grad()
    if beside:
        z, y = NormBeside.apply(leaf, added, norm.weight, norm.bias, norm.eps, x.dtype, None if s is None else bias)
    else:
        z = leaf if added is None else leaf + (added + bias)
        y = norm(z)
    torch.autograd.backward([z, y], list(pulls))
    leaves = [leaf, norm.weight, norm.bias, *([] if added is None else [added, bias])]
    return [z.detach(), y.detach(), *[each.grad for each in leaves if each.grad is not None]]


def inputs_of(shape: tuple[int, ...]) -> tuple[Tensor, nn.LayerNorm, tuple[Tensor, Tensor]]:
    norm = nn.LayerNorm(shape[-1], eps=1e-6)
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    return torch.randn(shape) * 3 + 1, norm, (torch.randn(shape), torch.randn(shape))


@pytest.mark.parametrize("narrow", [None, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(1, 1, 8), (3, 5, 24), (2, 65, 384), (700, 16), (4, 3, 1536)])
def test_one_gradient_is_that_of_autograd(shape: tuple[int, ...], narrow: torch.dtype | None) -> None:
    x, norm, pulls = inputs_of(shape)
    s = None if narrow is None else torch.randn(shape).to(narrow)
    ours, theirs = gradients(x, s, norm, pulls, True), gradients(x, s, norm, pulls, False)
    assert [one.dtype for one in ours] == [other.dtype for other in theirs]
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-2 if one.dtype == torch.bfloat16 else 1e-4)


def test_programs_share_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there are more rows than programs have at hand, each goes on; with the written-out way nothing changes."""
    if norms.HAS_TRITON and norms.INTERPRETED:
        monkeypatch.setattr("jumok.layers.norm_triton.PROGRAMS", 3)
    x, norm, pulls = inputs_of((997, 48))
    ours, theirs = gradients(x, x.flip(0), norm, pulls, True), gradients(x, x.flip(0), norm, pulls, False)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


def test_it_is_for_programs_that_are_compiled_for_a_gpu() -> None:
    x, norm, _ = inputs_of((2, 3, 8))
    kept, y = norm_beside(norm, x)
    assert kept is x
    torch.testing.assert_close(y, norm(x))
    assert not norms.suits(norm, x)


@pytest.mark.full
@pytest.mark.parametrize("autocast", [False, True])
def test_a_compiled_model_has_the_gradient_of_an_eager_one(autocast: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through torch.compile as on a GPU, on the CPU: the function is part of the program, sums go from block to
    block."""
    model = ImageLabeller(VitSection(width=32, heads=2, layers=3, feed_forward=64), 5).train()
    images, labels = torch.randint(0, 256, (6, 3, 32, 32)), torch.randint(0, 5, (6,))

    def learn(compiled: bool) -> dict[str, Tensor]:
        model.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            scores = (torch.compile(model) if compiled else model)(images)
        nn.functional.cross_entropy(scores.float(), labels).backward()
        return {name: each.grad.clone() for name, each in model.named_parameters() if each.grad is not None}

    expected, left = learn(False), []

    def suits(norm: nn.Module, x: Tensor) -> bool:
        return torch.compiler.is_compiling()

    monkeypatch.setattr(norms, "suits", suits)
    monkeypatch.setattr(block, "suits", lambda norm, x: bool(left.append(1) or suits(norm, x)))
    found = learn(True)
    assert left, "biases are left to the norms"
    for name, other in expected.items():
        if not name.endswith("key.bias"):  # which changes nothing: its gradient is rounding
            assert (found[name] - other).norm() < (0.05 if autocast else 1e-4) * other.norm(), name
