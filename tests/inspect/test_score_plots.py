"""Drawings beside scores, and the texts of example lists."""

from __future__ import annotations

import re
import secrets
from itertools import pairwise

import numpy as np
import pytest

from jumok.inspect.example_browser import shown, units, worst_first
from jumok.inspect.score_plots import scatter, ticks_between


def test_ticks_are_round_and_within() -> None:
    assert ticks_between(0, 5) == [0, 1, 2, 3, 4, 5]
    assert ticks_between(-0.3, 0.35) == [-0.2, 0, 0.2]
    seed = secrets.randbelow(2**31)
    chance = np.random.default_rng(seed)
    for _ in range(100):
        low = float(chance.normal(0, 100))
        high = low + float(10 ** chance.uniform(-3, 5))
        ticks = ticks_between(low, high)
        assert 2 <= len(ticks) <= 7, f"seed {seed}: {low} to {high}"
        assert low - 1e-6 * (high - low) <= ticks[0] <= ticks[-1] <= high + 1e-6 * (high - low), f"seed {seed}"
        steps = [later - earlier for earlier, later in pairwise(ticks)]
        assert max(steps) == pytest.approx(min(steps), rel=1e-3), f"seed {seed}"


def test_points_are_where_they_belong() -> None:
    svg = scatter([0.0, 10.0, 5.0], [0.0, 10.0, 0.0])
    points = [(float(x), float(y)) for x, y in re.findall(r"M([\d.]+) ([\d.]+)h0", svg)]
    (left, low), (middle, low_too), (right, high) = sorted(points)
    assert left < middle < right
    assert middle == pytest.approx((left + right) / 2, abs=0.11)
    assert high < low == low_too


def test_one_value_can_be_drawn() -> None:
    assert "nan" not in scatter([2.0, 2.0], [2.0, 2.0])
    assert scatter([2.0], [2.0]).count("h0") == 1


def test_the_worst_come_first_and_equals_as_in_the_file() -> None:
    assert worst_first([1, 5, 3, 5], lambda row: row, lambda row: 1) == [(2, 5), (4, 5), (3, 3), (1, 1)]


def test_hidden_characters_are_shown_and_lines_kept() -> None:
    assert shown("a\x00b\nc\u202e") == "a\\x00b\nc\\u202e"
    assert shown("\ud800") == "\\ud800"
    assert units("😀\x00a", 0) == 0
    assert units("😀\x00a", 1) == 2
    assert units("😀\x00a", 2) == 2 + len("\\x00")
