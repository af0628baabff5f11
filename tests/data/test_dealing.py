"""Dealt batches: every pair once per epoch, all of nearly the same size, found by number alone."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lengths import Lengths

from jumok.data.dealing import Deal
from jumok.data.plan import Plan
from jumok.data.shuffle import draws


def plan_of(store: Any, tokens: int, seed: int = 1, **rest: Any) -> Plan:
    return Plan([store], [1], tokens, seed, packed=True, **rest)


def epoch(plan: Plan, number: int) -> list[np.ndarray]:
    first = number * plan.batches_per_epoch
    return [plan.at(first + place)[0].indices for place in range(plan.batches_per_epoch)]


lengths = st.lists(st.tuples(st.integers(1, 700), st.integers(1, 700)), min_size=2, max_size=200)


@given(pairs=lengths, tokens=st.integers(1, 3000), seed=st.integers(0, 100), start=st.integers(0, 10**9))
def test_every_pair_once_per_epoch(pairs: list[tuple[int, int]], tokens: int, seed: int, start: int) -> None:
    store = Lengths(*zip(*pairs, strict=True))
    excluded = np.arange(0, len(pairs) - 1, 7)
    plan = plan_of(store, tokens, seed, exclude=excluded)
    seen = np.concatenate(epoch(plan, start))
    assert sorted(seen.tolist()) == sorted(set(range(len(pairs))) - set(excluded.tolist()))
    again = plan_of(store, tokens, seed, exclude=excluded)
    assert all(np.array_equal(*both) for both in zip(epoch(plan, start), epoch(again, start), strict=True))


@pytest.mark.parametrize("tokens", [2_000, 25_000])
def test_batches_are_of_nearly_the_same_size_on_both_sides(tokens: int) -> None:
    generator = np.random.default_rng(7)
    source = np.clip(generator.lognormal(np.log(23), 0.6, 60_000), 1, 256).astype(int)
    target = np.clip(source * generator.normal(1.1, 0.2, 60_000), 1, 256).astype(int)
    plan = plan_of(Lengths(source, target), tokens)
    layout = plan.layouts[0]
    assert isinstance(layout, Deal)
    sizes = np.array([((source[rows] + 1).sum(), (target[rows] + 1).sum()) for rows in epoch(plan, 3)])
    assert max(layout.budget) <= tokens + 128
    fits = (sizes <= np.array(layout.budget)).all(axis=1).mean()
    filled = sizes.sum(axis=0) / (np.array(layout.budget) * len(sizes))
    assert fits > (0.99 if tokens > 10_000 else 0.7)
    assert (filled > (0.97 if tokens > 10_000 else 0.9)).all()


def test_epochs_and_batches_differ() -> None:
    generator = np.random.default_rng(1)
    store = Lengths(generator.integers(1, 30, 3000), generator.integers(1, 30, 3000))
    plan = plan_of(store, 500)
    first, second = epoch(plan, 0), epoch(plan, 1)
    partners = [{tuple(sorted(pair)) for rows in one for pair in pairwise(rows)} for one in (first, second)]
    assert len(partners[0] & partners[1]) < 0.05 * len(partners[0])  # not the same company again
    assert len({len(rows) for rows in first}) <= 2


def test_draws_are_even_and_belong_to_their_key() -> None:
    counts = np.bincount(draws(100_000, 10, 3, 1, 4), minlength=10)
    assert (abs(counts - 10_000) < 500).all()
    assert np.array_equal(draws(50, 1000, 1, 2), draws(50, 1000, 1, 2))
    assert not np.array_equal(draws(50, 1000, 1, 2), draws(50, 1000, 1, 3))
