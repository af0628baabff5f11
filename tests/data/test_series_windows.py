"""Cutting a series: in the order of time, without a look at the future, and as a pure function of the update."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from jumok.data.series import Series
from jumok.data.series_windows import SeriesPlan, lay_out
from jumok.errors import BadInput
from jumok.recipe import SeriesSection


def section(**keys: object) -> SeriesSection:
    return SeriesSection.model_validate({"csv": ["a.csv"], "season": 1, **keys})


def wandering(count: int, seed: int = 0) -> Series:
    return Series("x", np.random.default_rng(seed).standard_normal(count).cumsum())


@given(st.integers(40, 400), st.integers(1, 12), st.integers(1, 8), st.floats(0.05, 0.3), st.floats(0.05, 0.3))
def test_no_window_is_asked_for_values_of_another_part(
    count: int, window: int, horizon: int, valid: float, test: float
) -> None:
    series = Series("x", np.arange(float(count)))
    try:
        layout = lay_out(series, section(window=window, horizon=horizon, valid=valid, test=test))
    except BadInput:
        return
    plan = SeriesPlan(series, layout, 64, seed=1)
    ends = {"train": (0, layout.train), "valid": (layout.train, layout.valid), "test": (layout.valid, count)}
    seen: dict[str, set[int]] = {}
    for part, (begin, end) in ends.items():
        origins = layout.origins(part, count)
        assert len(origins) >= 1
        batch = plan.batch(origins)
        # the values are their own places, so a window says where it was cut
        past, future = (np.rint(layout.restored(each)).astype(int) for each in (batch.past, batch.future))
        assert past.shape == (len(origins), window)
        assert future.shape == (len(origins), horizon)
        assert (np.diff(np.concatenate((past, future), axis=1), axis=1) == 1).all()
        assert past.min() >= 0
        assert begin <= future.min()
        assert future.max() < end
        seen[part] = set(future.ravel().tolist())
    assert seen["test"] == set(range(layout.valid, count)), "every value of the test part is asked for"
    assert seen["valid"] == set(range(layout.train, layout.valid))


def test_the_scale_and_the_season_know_nothing_of_what_comes_after_training() -> None:
    steps = np.arange(400)
    quiet = Series("x", np.sin(2 * np.pi * steps / 12) + 0.01 * steps)
    loud = Series("x", np.where(steps < 280, quiet.values, 1e6 * np.cos(steps)))
    first, second = (lay_out(series, section(season=0, horizon=6)) for series in (quiet, loud))
    assert first == second
    assert first.train == 280
    assert first.season == 12
    assert first.mean == pytest.approx(quiet.values[:280].mean())


def test_batches_are_a_pure_function_of_the_update() -> None:
    series = wandering(300)
    layout = lay_out(series, section(window=10, horizon=5))
    plans = [SeriesPlan(series, layout, 160, seed=3, accumulate=2) for _ in range(2)]
    forwards = [plans[0].at(update) for update in range(40)]
    for update in reversed(range(40)):
        for one, other in zip(forwards[update], plans[1].at(update), strict=True):
            assert one.origins == other.origins
            assert torch.equal(one.past, other.past)
    assert SeriesPlan(series, layout, 160, seed=4).at(0)[0].origins != plans[0].at(0)[0].origins


def test_an_epoch_has_every_window_once() -> None:
    series = wandering(200)
    layout = lay_out(series, section(window=7, horizon=3))
    plan = SeriesPlan(series, layout, 70, seed=1)
    epochs = [
        [
            origin
            for place in range(plan.batches_per_epoch)
            for origin in plan.at(epoch * plan.batches_per_epoch + place)[0].origins
        ]
        for epoch in range(2)
    ]
    for epoch in epochs:
        assert sorted(epoch) == layout.origins("train", 200).tolist()
    assert epochs[0] != epochs[1]


def test_the_window_is_found_by_itself() -> None:
    assert lay_out(wandering(3000), section(horizon=24, season=24)).window == 96
    assert lay_out(wandering(3000), section(horizon=24, season=168)).window == 192
    assert lay_out(wandering(3000), section(horizon=24, season=365)).window == 366
    assert lay_out(wandering(100), section(horizon=6, season=12)).window == 32  # half of what is there


@pytest.mark.parametrize(
    ("values", "keys", "words"),
    [
        (np.arange(30.0), {"window": 20, "horizon": 5}, ["too short", "30 values", "20", "5"]),
        (np.arange(3.0), {"horizon": 2}, ["too short", "0 are left"]),
        (np.full(100, 7.0), {"horizon": 2}, ["does not change", "7"]),
        (np.concatenate((np.full(70, 7.0), np.arange(30.0))), {"horizon": 2}, ["training part", "70"]),
        (np.arange(100.0), {"horizon": 2, "season": 90}, ["season of 90", "70"]),
    ],
)
def test_what_cannot_be_learned_from(values: np.ndarray, keys: dict[str, object], words: list[str]) -> None:
    with pytest.raises(BadInput) as caught:
        lay_out(Series("x", values), section(**keys))
    for word in words:
        assert word in str(caught.value), caught.value
