"""Errors of forecasts, against their definitions written out."""

from __future__ import annotations

import secrets

import numpy as np
import pytest

from jumok.tasks.forecast_scores import compare, last_value, naive_forecasts, seasonal_naive


def test_naive_forecasts_by_hand() -> None:
    values = np.array([10.0, 20, 30, 11, 21, 31, 12])
    assert last_value(values, np.array([5]), 3).tolist() == [[31, 31, 31]]
    # from place 6 (12, the first of a season): 21 and 31 are known, then the season begins again
    assert seasonal_naive(values, np.array([6]), 7, 3).tolist() == [[21, 31, 12, 21, 31, 12, 21]]
    assert seasonal_naive(values, np.array([1]), 2, 3).tolist() == [[20, 10]], "what is not known yet is the last value"
    assert seasonal_naive(values, np.array([6]), 2, 1).tolist() == [[12, 12]]
    assert list(naive_forecasts(values, np.array([6]), 2, 1)) == ["last value"]


def test_scores_are_their_definitions() -> None:
    seed = secrets.randbelow(2**31)
    print(f"seed {seed}")
    random = np.random.default_rng(seed)
    values, season, horizon = random.standard_normal(100).cumsum(), 7, 5
    origins = np.arange(60, 95)
    model = random.standard_normal((len(origins), horizon))
    scores = compare(model, values, origins, values[:50], season, "test part", "x")
    truth = [[values[origin + step] for step in range(1, horizon + 1)] for origin in origins]
    unit = np.mean([abs(values[t] - values[t - season]) for t in range(season, 50)])
    guesses = {
        "model": model.tolist(),
        "last value": [[values[origin]] * horizon for origin in origins],
        "seasonal naive": [[values[origin + step - season] for step in range(1, horizon + 1)] for origin in origins],
    }
    assert [method.name for method in scores.methods] == list(guesses)
    for method in scores.methods:
        errors = np.array(guesses[method.name]) - np.array(truth)
        assert method.mae == pytest.approx(np.abs(errors).mean())
        assert method.rmse == pytest.approx(np.sqrt((errors**2).mean()))
        assert method.mase == pytest.approx(np.abs(errors).mean() / unit)
        assert method.mae_by_step == pytest.approx(np.abs(errors).mean(axis=0))


def test_the_table_says_who_wins() -> None:
    values = np.arange(40.0)
    origins = np.arange(20, 38)
    truth = np.stack([values[origins + 1], values[origins + 2]], axis=1)
    good, bad = (compare(truth + off, values, origins, values[:20], 1, "test part", "x") for off in (0.3, 9.0))
    assert good.wins
    assert "80% below that of last value" in good.summary()
    assert not bad.wins
    assert "not better than last value" in bad.summary()
    assert good.to_json()["methods"][0]["mae_by_step"] == pytest.approx([0.3, 0.3])


def test_a_series_that_repeated_itself_exactly_has_no_unit() -> None:
    values = np.tile([1.0, 2.0], 20)
    scores = compare(np.zeros((3, 2)), values, np.arange(30, 33), values[:20], 2, "test part", "x")
    assert scores.model.mase is None
    assert "–" in scores.summary()
