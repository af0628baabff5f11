"""Intervals, against their definitions and against what they promise."""

from __future__ import annotations

import json
import math
import secrets

import numpy as np

from jumok.tasks.columns import aligned, short
from jumok.tasks.intervals import Estimate, Z, drawn_sums, estimate, mean_estimate, times_drawn, wilson


def test_wilson_solves_its_equation() -> None:
    """Its ends are the proportions that lie z standard deviations from what was seen: (p̂ − p)² = z² p (1 − p) / n."""
    seed = secrets.randbelow(2**31)
    chance = np.random.default_rng(seed)
    for _ in range(50):
        count = int(chance.integers(1, 500))
        right = int(chance.integers(0, count + 1))
        interval = wilson(right, count)
        for end in (interval.low, interval.high):
            away, deviation = (right / count - end) ** 2, Z**2 * end * (1 - end) / count
            assert math.isclose(away, deviation, rel_tol=1e-9, abs_tol=1e-12), f"seed {seed}: {right} of {count}"
        assert 0 <= interval.low <= interval.score <= interval.high <= 1, f"seed {seed}: {right} of {count}"


def test_wilson_by_hand() -> None:
    # Newcombe (1998), table I: 81 of 263 is 0.2553 to 0.3662; none of 20 is 0 to 0.1611
    assert [round(end, 4) for end in (wilson(81, 263).low, wilson(81, 263).high)] == [0.2553, 0.3662]
    assert (wilson(0, 20).low, round(wilson(0, 20).high, 4)) == (0.0, 0.1611)
    assert wilson(20, 20).high == 1.0
    assert not wilson(0, 0).defined


def test_draws_are_draws_with_replacement() -> None:
    times = np.stack(list(times_drawn(7, samples=4000)))
    assert times.shape == (4000, 7)
    assert (times.sum(axis=1) == 7).all()
    assert np.abs(times.mean(axis=0) - 1).max() < 0.08  # each example is drawn once on average
    assert abs((times == 0).mean() - (6 / 7) ** 7) < 0.02
    assert (times == np.stack(list(times_drawn(7, samples=4000)))).all(), "the same seed gives the same draws"
    rows = np.arange(14.0).reshape(7, 2)
    assert np.array_equal(drawn_sums(rows, samples=4000), times @ rows)


def test_the_bootstrap_of_a_mean_is_near_the_normal_interval() -> None:
    seed = secrets.randbelow(2**31)
    values = np.random.default_rng(seed).normal(3.0, 2.0, 400)
    found = mean_estimate(values)
    half = Z * values.std() / math.sqrt(len(values))
    assert math.isclose(found.score, values.mean())
    assert abs(found.low - (values.mean() - half)) < 0.25 * half, f"seed {seed}"
    assert abs(found.high - (values.mean() + half)) < 0.25 * half, f"seed {seed}"


def test_what_is_not_defined_is_null_and_a_dash() -> None:
    unknown = estimate(math.nan, np.array([0.5, 0.6]))
    assert json.loads(json.dumps(unknown.to_json(), allow_nan=False)) == {"score": None, "low": None, "high": None}
    assert [unknown.percent(), unknown.percent_interval(), unknown.number(), unknown.number_interval()] == ["–"] * 4
    some = estimate(0.5, np.array([math.nan, 0.4, math.nan, 0.6]))
    assert 0.4 <= some.low <= some.high <= 0.6
    assert estimate(0.5, np.full(3, math.nan)).percent_interval() == "–"
    all_right = estimate(1.0, np.ones(1000))
    assert (all_right.percent(), all_right.percent_interval()) == ("100.0 %", "–"), (
        "draws without a mistake know of none"
    )


def test_numbers_as_people_write_them() -> None:
    assert Estimate(0.8314, 0.802, 0.857).percent() == "83.1 %"
    assert Estimate(0.8314, 0.802, 0.857).percent_interval() == "80.2 – 85.7"
    assert Estimate(-0.25, -0.5, 0.1).number() == "−0.250"
    assert Estimate(-0.25, -0.5, 0.1).number_interval() == "−0.500 … 0.100"
    assert Estimate(-1e-17).number() == "−1e−17"
    assert Estimate(-0.0).number() == "0.000"


def test_columns_stay_straight_with_hangul() -> None:
    lines = aligned([("긍정", "1"), ("abc", "1,000")])
    assert lines == ["긍정      1", "abc   1,000"]
    assert short("긍정" * 20, 9) == "긍정긍정…"
    assert short("a\x1b[31m\nb") == "a [31m b"
