"""Seasons that are there are found, and where there is none, none is."""

from __future__ import annotations

import secrets

import numpy as np
import pytest

from jumok.data.season import autocorrelation, find_season
from jumok.data.series_generated import DAY, tides


@pytest.fixture
def random() -> np.random.Generator:
    seed = secrets.randbelow(2**31)
    print(f"seed {seed}")
    return np.random.default_rng(seed)


@pytest.mark.parametrize("season", [7, 12, 24, 30])
@pytest.mark.parametrize("count", [300, 2000])
def test_a_season_under_noise_and_trend(random: np.random.Generator, season: int, count: int) -> None:
    steps = np.arange(count)
    wave = np.sin(2 * np.pi * (steps + random.integers(season)) / season)
    assert find_season(wave + 0.2 * random.standard_normal(count) + random.normal() * steps) == season


def test_a_rough_season_on_a_wandering_level(random: np.random.Generator) -> None:
    """In nearly all draws: of a profile whose halves are alike by chance, half is found."""
    found = []
    for _ in range(40):
        profile = np.tile(random.standard_normal(24), 50)
        wandering = 0.2 * random.standard_normal(len(profile)).cumsum()
        found.append(find_season(profile + wandering + 0.2 * random.standard_normal(len(profile))))
    assert found.count(24) >= 30, found


def test_no_season_in_noise_and_random_walks(random: np.random.Generator) -> None:
    noise = [find_season(random.standard_normal(1000)) for _ in range(10)]
    walks = [find_season(random.standard_normal(1000).cumsum()) for _ in range(60)]
    assert noise == [1] * 10
    assert walks.count(1) >= 39, walks


def test_nothing_repeats_in_a_straight_line_or_in_next_to_nothing() -> None:
    assert find_season(np.arange(200.0)) == 1
    assert find_season(np.full(200, 5.0)) == 1
    assert find_season(np.array([1.0, 2.0, 1.0, 2.0])) == 1


def test_the_day_of_the_tides() -> None:
    assert find_season(tides(3000).values[:2100]) == DAY
    assert find_season(tides(700).values[:490]) == DAY


def test_autocorrelation_is_its_definition(random: np.random.Generator) -> None:
    values = random.standard_normal(50)
    steps = np.arange(50)
    level = values - np.polyval(np.polyfit(steps, values, 1), steps)
    expected = [np.sum(level[: 50 - k] * level[k:]) / (50 - k) / np.mean(level**2) for k in range(50)]
    assert np.allclose(autocorrelation(values), expected)
