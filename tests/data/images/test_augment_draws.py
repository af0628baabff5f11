"""Draws of fixed shapes: dealt fairly, chosen as often as said, rectangles that fit."""

from __future__ import annotations

import math

import pytest
import torch

from jumok.data.images.augment_draws import _dealt, dealt, inside, places, rectangles, shuffled, some

CPU = torch.device("cpu")


def test_shuffled_is_an_order() -> None:
    orders = torch.stack([shuffled(5, CPU) for _ in range(3000)])
    assert (orders.sort(1).values == torch.arange(5)).all()
    often = torch.stack([(orders == number).float().mean(0) for number in range(5)])
    assert (often - 0.2).abs().max() < 6 * math.sqrt(0.16 / 3000)


@pytest.mark.parametrize("count", [1, 2, 13, 14, 15, 28, 100, 256])
@pytest.mark.parametrize("kinds", [1, 2, 14])
def test_dealt_fairly(count: int, kinds: int) -> None:
    """Over all offsets every kind comes equally often, and never where its places do not reach."""
    hands = [_dealt(torch.tensor([(offset + 0.5) / kinds]), count, kinds) for offset in range(kinds)]
    often = torch.stack(hands).flatten().bincount(minlength=kinds)
    assert (often == count).all(), "each picture gets each kind with the same probability"
    for hand in [*hands, dealt(count, kinds, CPU), _dealt(torch.tensor([1.0]), count, kinds)]:
        assert (hand.diff() >= 0).all()
        for first in range(kinds):
            for end in range(first + 1, kinds + 1):
                place = places(count, kinds, first, end)
                among = (hand >= first) & (hand < end)
                assert among.sum() == among[place].sum(), (count, kinds, first, end)
                assert place.stop - place.start <= math.ceil((end - first) * count / kinds) + 1


@pytest.mark.parametrize("probability", [0.01, 0.25, 0.5, 0.999, 1.0])
@pytest.mark.parametrize("count", [1, 3, 64])
def test_some_are_chosen(probability: float, count: int) -> None:
    tries = 3000
    often = torch.zeros(count)
    for _ in range(tries):
        rows, chosen = some(count, probability, CPU)
        assert rows.shape == chosen.shape
        assert len(rows.unique()) == len(rows)
        often[rows[chosen]] += 1
        assert abs(int(chosen.sum()) - probability * count) < 1
    near = 6 * math.sqrt(probability * (1 - probability) / tries) + 1e-6
    assert (often / tries - probability).abs().max() < near


@pytest.mark.parametrize("size", [(1, 1), (5, 40), (32, 32)], ids=str)
def test_rectangles_fit(size: tuple[int, int]) -> None:
    high, wide = rectangles(5000, size, (0.1, 0.5), 2.0, CPU)
    assert high.shape == wide.shape == (5000,)
    assert high.min() > 0
    assert wide.min() > 0
    assert high.max() <= size[0]
    assert wide.max() <= size[1]
    if size == (32, 32):
        share, ratio = high * wide / 1024, (wide / high).log() / math.log(2)
        assert share.min() > 0.099
        assert share.max() < 0.501
        assert abs(share.mean() - 0.3) < 6 * 0.4 / math.sqrt(12 * 5000)
        assert abs(ratio.mean()) < 6 * 2 / math.sqrt(12 * 5000)
        assert ratio.abs().max() < 1.001
        assert ratio.abs().max() > 0.95


def test_inside() -> None:
    box = inside(torch.tensor([1, 0]), torch.tensor([3, 9]), torch.tensor([2, 4]), torch.tensor([3, 4]), (4, 5))
    assert box.shape == (2, 1, 4, 5)
    assert box[0, 0].nonzero().tolist() == [[1, 2], [2, 2]]
    assert not box[1].any()
