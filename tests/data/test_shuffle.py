"""A keyed permutation that can be asked for any place."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumok.data.shuffle import Shuffle

keys = st.lists(st.integers(0, 2**70), min_size=1, max_size=4)


@given(count=st.integers(1, 3000), key=keys)
def test_it_is_a_permutation(count: int, key: list[int]) -> None:
    assert np.array_equal(np.sort(Shuffle(count, *key)(np.arange(count))), np.arange(count))


@given(count=st.integers(1, 2**61), key=keys, seed=st.integers(0, 2**32))
def test_places_can_be_asked_one_by_one_in_any_order(count: int, key: list[int], seed: int) -> None:
    places = np.random.default_rng(seed).integers(0, count, 20)
    together = Shuffle(count, *key)(places)
    assert ((together >= 0) & (together < count)).all()
    assert [int(Shuffle(count, *key)([place])[0]) for place in places[::-1]] == together[::-1].tolist()
    assert len(set(together.tolist())) == len(set(places.tolist()))


def test_every_part_of_the_key_counts() -> None:
    places = np.arange(1000)
    orders = [Shuffle(1000, *key)(places) for key in [(1,), (2,), (1, 0), (0, 1), (1, 1), (11,), (1, 0, 0)]]
    for index, order in enumerate(orders):
        assert all((order == other).mean() < 0.02 for other in orders[:index])


@pytest.mark.parametrize("count", [5, 16, 100])
def test_every_place_goes_everywhere_equally_often(count: int) -> None:
    """χ² over many keys, loosely: expected count − 1, and its spread is √(2·count) about that."""
    keys = 1200
    orders = np.stack([Shuffle(count, 7, key)(np.arange(count)) for key in range(keys)])
    for place in (0, 1, count // 2, count - 1):
        seen = np.bincount(orders[:, place], minlength=count)
        square = float(((seen - keys / count) ** 2 / (keys / count)).sum())
        assert square < (count - 1) + 7 * np.sqrt(2 * count), f"place {place}"


def test_every_order_of_four_comes_up_about_equally_often() -> None:
    counts = Counter(tuple(Shuffle(4, 5, key)(np.arange(4)).tolist()) for key in range(2400))
    assert len(counts) == 24
    assert sum((count - 100) ** 2 / 100 for count in counts.values()) < 23 + 7 * np.sqrt(2 * 24)


def test_neighbours_part() -> None:
    order = Shuffle(100_000, 3)(np.arange(100_000))
    assert abs(np.corrcoef(order[:-1], order[1:])[0, 1]) < 0.02
    assert abs(np.corrcoef(np.arange(100_000), order)[0, 1]) < 0.02


def test_nothing_to_shuffle() -> None:
    with pytest.raises(ValueError, match="nothing to shuffle"):
        Shuffle(0, 1)
