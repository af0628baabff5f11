"""Dropout by a hash of the place: how much is dropped, and that no place knows of another."""

from __future__ import annotations

import pytest
import torch

from jumok.layers.dropout import hashed_dropout, mixed


def dropped(p: float, shape: tuple[int, ...] = (512, 768)) -> torch.Tensor:
    return hashed_dropout(torch.ones(shape), p) == 0


@pytest.mark.parametrize("p", [0.01, 0.1, 0.5, 0.9])
def test_a_share_is_dropped_and_the_mean_stays(p: float) -> None:
    x = torch.ones(512, 768)
    for _ in range(3):
        y = hashed_dropout(x, p)
        kept = y[y != 0]
        torch.testing.assert_close(kept, torch.full_like(kept, 1 / (1 - p)))
        deviation = (p * (1 - p) / x.numel()) ** 0.5
        assert abs((y == 0).double().mean().item() - p) < 6 * deviation
        assert abs(y.double().mean().item() - 1) < 6 * deviation / (1 - p)


@pytest.mark.parametrize("p", [0.1, 0.5])
@pytest.mark.parametrize("shift", [(0, 1), (1, 0), (1, 1), (0, 2), (0, 16), (2, 0), (128, 0), (0, 384)])
def test_neighbours_know_nothing_of_each_other(p: float, shift: tuple[int, int]) -> None:
    """In both directions, near and far: both are dropped as often as by chance."""
    down, right = shift
    for _ in range(3):
        gone = dropped(p)
        one = gone[down:, right:]
        other = gone[: gone.size(0) - down, : gone.size(1) - right]
        both = (one & other).double().mean().item()
        assert abs(both - p * p) < 7 * (p * p * (1 - p * p) / one.numel()) ** 0.5, both


def test_rows_and_columns_are_dropped_alike() -> None:
    """No row and no column is spared: the share of each is the share of all, within chance."""
    gone, p = dropped(0.3, (1024, 1024)).double(), 0.3
    for dimension in (0, 1):
        shares = gone.mean(dim=dimension)
        assert (shares - p).abs().max() < 7 * (p * (1 - p) / 1024) ** 0.5
        spread = shares.var().item() / (p * (1 - p) / 1024)
        assert 0.75 < spread < 1.3, spread


def test_the_seed_decides() -> None:
    x = torch.randn(40, 50)
    drawn = []
    for seed in (1, 2, 1):
        torch.manual_seed(seed)
        drawn.append((hashed_dropout(x, 0.4), hashed_dropout(x, 0.4)))
    assert torch.equal(drawn[0][0], drawn[2][0])
    assert torch.equal(drawn[0][1], drawn[2][1])
    assert not torch.equal(drawn[0][0], drawn[1][0])
    assert not torch.equal(drawn[0][0], drawn[0][1])
    one, other = dropped(0.5), dropped(0.5)
    both = (one & other).double().mean().item()
    assert abs(both - 0.25) < 7 * (0.25 * 0.75 / one.numel()) ** 0.5, "two draws know nothing of each other"


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_gradients_go_where_values_went(dtype: torch.dtype) -> None:
    x = (torch.randn(30, 20).abs() + 0.1).to(dtype).requires_grad_()
    y = hashed_dropout(x, 0.25)
    y.sum().backward()
    assert x.grad is not None
    assert y.dtype == x.grad.dtype == dtype
    assert torch.equal(x.grad == 0, y == 0)
    torch.testing.assert_close(y, x.detach() * x.grad)


def test_mixing_loses_nothing_and_turns_half_of_the_bits() -> None:
    """Different numbers stay different; one bit more changes each other bit in one case of two."""
    numbers = torch.randint(-(2**31), 2**31 - 1, (4096,), dtype=torch.int32).unique()
    assert len(mixed(numbers).unique()) == len(numbers)
    near = torch.arange(2**16, dtype=torch.int32)
    assert len(mixed(near).unique()) == 2**16
    bits = torch.arange(32)
    for bit in range(32):
        flipped = numbers ^ torch.tensor(1 << bit if bit < 31 else -(2**31), dtype=torch.int32)
        changed = (mixed(numbers) ^ mixed(flipped)).long() & 0xFFFFFFFF
        shares = ((changed[:, None] >> bits) & 1).double().mean(dim=0)
        assert (shares - 0.5).abs().max() < 0.1, bit
