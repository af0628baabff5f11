"""Batches of images: every image once an epoch but for what is left over, another order each time, nothing replayed."""

from __future__ import annotations

import numpy as np
import pytest

from jumok.data.images.order import Order
from jumok.data.plan import LayoutPlan


@pytest.mark.parametrize(("images", "size"), [(10, 3), (64, 16), (7, 7), (5, 5), (33, 32)])
def test_an_epoch(images: int, size: int) -> None:
    numbers = np.random.default_rng().permutation(1000)[:images]
    order = Order(numbers, size)
    assert order.batches == images // size
    seed = int(np.random.default_rng().integers(1000))
    epochs = []
    for epoch in range(3):
        batches = [order.pairs(place, (seed, 0, epoch)) for place in range(order.batches)]
        assert all(len(batch) == size for batch in batches)
        seen = np.concatenate(batches)
        assert len(set(seen.tolist())) == len(seen)
        assert set(seen.tolist()) <= set(numbers.tolist())
        epochs.append(seen)
    assert images < 8 or not np.array_equal(epochs[0], epochs[1])
    again = order.pairs(order.batches - 1, (seed, 0, 1))
    assert np.array_equal(again, epochs[1][-size:])


def test_all_images_come_sooner_or_later() -> None:
    order = Order(np.arange(37), 8)
    seen = {int(n) for epoch in range(60) for place in range(order.batches) for n in order.pairs(place, (1, 0, epoch))}
    assert seen == set(range(37))


def test_a_plan_mixes_corpora_by_their_weights() -> None:
    plan = LayoutPlan([Order(np.arange(40), 4), Order(np.arange(100, 120), 4)], [3, 1], 5)
    micro = [plan.at(update)[0] for update in range(40)]
    assert [one.corpus for one in micro].count(0) == 30
    assert all((one.indices >= 100).all() == (one.corpus == 1) for one in micro)
    assert np.array_equal(plan.at(17)[0].indices, micro[17].indices)
