"""Dropout from 16 bits: how much is dropped, what becomes of the rest, and that a seed decides."""

from __future__ import annotations

import pytest
import torch

from jumok.layers.dropout import Dropout, WordDropout, keep_mask


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("shape", [(1000, 257), (3, 5, 7), (1,), (0, 4)])
def test_a_share_is_dropped_and_the_mean_stays(p: float, shape: tuple[int, ...]) -> None:
    masks = torch.stack([keep_mask(torch.Size(shape), p) for _ in range(4)])
    assert masks.shape == (4, *shape)
    kept = masks[masks > 0]
    torch.testing.assert_close(kept, torch.full_like(kept, 1 / (1 - p)), rtol=1e-4, atol=0)
    if masks.numel() > 10_000:
        deviation = (p * (1 - p) / masks.numel()) ** 0.5
        assert abs((masks == 0).double().mean().item() - p) < 5 * deviation + 1e-5
        # neighbours, and the same place the next time, know nothing of each other
        for one, other in ((masks[..., 1:], masks[..., :-1]), (masks[1:], masks[:-1])):
            both = ((one == 0) & (other == 0)).double().mean().item()
            assert abs(both - p * p) < 6 * (p * p / one.numel()) ** 0.5 + 1e-5


def test_the_seed_decides() -> None:
    layer, x = Dropout(0.4), torch.randn(100, 33)
    drawn = []
    for seed in (1, 2, 1):
        torch.manual_seed(seed)
        drawn.append((layer(x), layer(x)))
    assert torch.equal(drawn[0][0], drawn[2][0])
    assert torch.equal(drawn[0][1], drawn[2][1])
    assert not torch.equal(drawn[0][0], drawn[1][0])
    assert not torch.equal(drawn[0][0], drawn[0][1])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_what_it_drops_gets_no_gradient(dtype: torch.dtype) -> None:
    layer = Dropout(0.25)
    x = torch.randn(50, 20, dtype=dtype, requires_grad=True)
    y = layer(x)
    y.sum().backward()
    assert y.dtype == x.grad.dtype == dtype
    torch.testing.assert_close(y, x.detach() * x.grad)
    assert ((x.grad == 0) == (y == 0))[x != 0].all()  # one in 2²⁴ normal draws is 0 by itself


def test_onto_a_residual_it_is_the_sum() -> None:
    layer = Dropout(0.3)
    x, onto = (torch.randn(40, 30, requires_grad=True) for _ in range(2))
    results = []
    for call in (lambda: layer(x, onto=onto), lambda: onto + layer(x)):
        torch.manual_seed(7)
        total = call()
        results.append((total, *torch.autograd.grad(total.square().sum(), (x, onto))))
    torch.testing.assert_close(*results)
    low = layer(x.bfloat16(), onto=onto)  # under autocast
    assert low.dtype == torch.float32
    assert torch.autograd.grad(low.sum(), x)[0].dtype == torch.float32


@pytest.mark.parametrize("p", [0.0, 0.5])
def test_without_training_or_probability_nothing_is_dropped(p: float) -> None:
    layer, x = Dropout(p).train(p == 0), torch.randn(3, 4)
    assert torch.equal(layer(x), x)
    assert torch.equal(layer(x, onto=x), x + x)


def test_computed_again_it_is_the_same() -> None:
    """Under activation checkpointing the mask of the backward pass is that of the forward pass."""
    layer, x = Dropout(0.5), torch.randn(30, 30, requires_grad=True)
    y = torch.utils.checkpoint.checkpoint(lambda x: layer(x).square(), x, use_reentrant=False)
    y.sum().backward()
    torch.testing.assert_close(x.grad * x.detach() / 2, y.detach())


def test_compiled_it_drops_too() -> None:
    layer, x = Dropout(0.5), torch.ones(400, 50)
    torch._dynamo.reset()
    y = torch.compile(layer, backend="aot_eager", fullgraph=True)(x)
    assert abs((y == 0).float().mean().item() - 0.5) < 0.03


def test_words_go_as_a_whole_and_each_for_itself() -> None:
    layer, x = WordDropout(0.4), torch.randn(40, 50, 3).abs() + 0.1
    shares = layer(x) / x
    torch.testing.assert_close(shares, shares[..., :1].expand_as(shares))  # a product and a quotient round
    kept = shares[..., 0] > 0
    torch.testing.assert_close(shares[kept], torch.full_like(shares[kept], 1 / 0.6), rtol=1e-4, atol=0)
    assert abs(kept.double().mean().item() - 0.6) < 6 * (0.24 / kept.numel()) ** 0.5
    assert kept.any(dim=0).all()  # no position is always unseen
    assert torch.equal(layer.eval()(x), x)
