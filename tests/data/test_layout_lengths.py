"""Rows of one text each, laid out or dealt: each once an epoch, within the budget, any batch at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumok.data.dealing import ROOM, STEP, deal_lengths
from jumok.data.layout import lay_out_lengths
from jumok.data.plan import LayoutPlan

LENGTHS = st.lists(st.integers(1, 60), min_size=1, max_size=150)


@settings(deadline=None, max_examples=30)
@given(lengths=LENGTHS, budget=st.integers(1, 400), seed=st.integers(0, 99), dealt=st.booleans())
def test_each_row_once_an_epoch_within_the_budget(lengths: list[int], budget: int, seed: int, dealt: bool) -> None:
    given_lengths = np.array(lengths)
    layout = (deal_lengths if dealt else lay_out_lengths)(given_lengths, budget)
    plan = LayoutPlan([layout], [1], seed)
    for epoch in (0, 3):
        seen: list[int] = []
        for update in range(epoch * plan.batches_per_epoch, (epoch + 1) * plan.batches_per_epoch):
            (micro,) = plan.at(update)
            assert plan.epoch_of(update) == epoch
            chosen = given_lengths[micro.indices]
            if not dealt:
                assert len(chosen) == 1 or len(chosen) * chosen.max() <= budget
            else:
                # one of each group of neighbours in length, and of the last group not all have one
                mean = given_lengths.sum() / plan.batches_per_epoch
                assert chosen.sum() <= mean + 2 * given_lengths.max()
                assert mean <= max(1.0, budget * (1 - ROOM)) or plan.batches_per_epoch == len(lengths)
            seen += micro.indices.tolist()
        assert sorted(seen) == list(range(len(lengths)))


def test_dealt_batches_are_of_one_size() -> None:
    lengths = np.random.default_rng().integers(3, 128, 5000)
    layout = deal_lengths(lengths, 4096)
    size = layout.budget[0]
    assert size % STEP == 0
    assert size < 4096 * (1 + ROOM) + STEP
    plan = LayoutPlan([layout], [1], 1)
    sums = [int(lengths[plan.at(update)[0].indices].sum()) for update in range(plan.batches_per_epoch)]
    assert max(sums) <= size, "the row that all of them have is large enough"
    assert min(sums) > 0.9 * max(sums)


@pytest.mark.parametrize("dealt", [False, True])
def test_an_update_is_a_pure_function_of_its_number(dealt: bool) -> None:
    generator = np.random.default_rng()
    sizes = [generator.integers(1, 40, count) for count in (90, 31)]

    def plan(seed: int) -> LayoutPlan:
        return LayoutPlan([(deal_lengths if dealt else lay_out_lengths)(s, 100) for s in sizes], [2, 1], seed, 4)

    one, other = plan(1), plan(1)
    for update in (33, 0, 1000, 5, 33):
        whole = one.at(update)
        for number in range(4):
            (alone,) = other.at(update, [number])
            assert alone.corpus == whole[number].corpus
            assert np.array_equal(alone.indices, whole[number].indices)
    different = plan(2)
    same = [
        np.array_equal(a.indices, b.indices)
        for update in range(5)
        for a, b in zip(one.at(update), different.at(update), strict=True)
    ]
    assert not all(same)
