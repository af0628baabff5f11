"""Scores of numbers, against their definitions."""

from __future__ import annotations

import json
import math
import secrets
from itertools import pairwise

import numpy as np
import pytest

from jumok.errors import BadInput, Failure
from jumok.tasks.intervals import times_drawn
from jumok.tasks.number_scores import Ranks, number_scores, rank_correlation


def pearson(left: list[float], right: list[float]) -> float:
    middle, other = sum(left) / len(left), sum(right) / len(right)
    above = sum((x - middle) * (y - other) for x, y in zip(left, right, strict=True))
    below = math.sqrt(sum((x - middle) ** 2 for x in left) * sum((y - other) ** 2 for y in right))
    return above / below if below else math.nan


def mean_ranks(values: list[float]) -> list[float]:
    """How many are lower, and half of those that are the same: the definition, slowly."""
    return [sum(x < value for x in values) + (sum(x == value for x in values) + 1) / 2 for value in values]


def made(seed: int, count: int) -> tuple[list[float], list[float]]:
    chance = np.random.default_rng(seed)
    true = chance.integers(0, 6, count).astype(float)  # with many ties
    return true.tolist(), np.round(true + chance.normal(0, 1.5, count), 1).tolist()


def test_scores_are_their_definitions() -> None:
    seed = secrets.randbelow(2**31)
    true, given = made(seed, 120)
    scores = number_scores(true, given)
    errors = [x - y for x, y in zip(true, given, strict=True)]
    assert scores.pearson.score == pytest.approx(pearson(true, given)), f"seed {seed}"
    assert scores.spearman.score == pytest.approx(pearson(mean_ranks(true), mean_ranks(given))), f"seed {seed}"
    assert scores.mse.score == pytest.approx(sum(error**2 for error in errors) / 120)
    assert scores.mae.score == pytest.approx(sum(map(abs, errors)) / 120)
    for each in (scores.pearson, scores.spearman, scores.mse, scores.mae):
        assert each.low < each.score < each.high, f"seed {seed}"


def test_every_draw_is_ranked_anew() -> None:
    seed = secrets.randbelow(2**31)
    true, given = made(seed, 30)
    for times in times_drawn(30, samples=20, seed=seed):
        drawn = [
            [value for value, often in zip(side, times, strict=True) for _ in range(often)] for side in (true, given)
        ]
        expected = pearson(*map(mean_ranks, drawn))
        found = rank_correlation(Ranks.of(np.array(true)), Ranks.of(np.array(given)), times)
        assert found == pytest.approx(expected, nan_ok=True), f"seed {seed}"


def test_intervals_are_the_middle_of_scores_of_drawn_examples() -> None:
    seed = secrets.randbelow(2**31)
    true, given = (np.array(side) for side in made(seed, 80))
    scores, drawn = number_scores(true.tolist(), given.tolist()), []
    for times in times_drawn(80):  # the very same draws, taken out example by example
        x, y = np.repeat(true, times), np.repeat(given, times)
        drawn.append((np.corrcoef(x, y)[0, 1], ((x - y) ** 2).mean()))
    for estimate, values in zip((scores.pearson, scores.mse), zip(*drawn, strict=True), strict=True):
        assert [estimate.low, estimate.high] == pytest.approx(np.percentile(values, [2.5, 97.5]).tolist()), (
            f"seed {seed}"
        )


@pytest.mark.parametrize(
    ("true", "given", "said"),
    [
        ([1.0, 2.0, 3.0], [0.1, 0.1, 0.1], "all predictions are the same"),
        ([2.0, 2.0], [1.0, 3.0], "all true values are the same"),
        ([2.0, 2.0], [3.0, 3.0], "all predictions and all true values are the same"),
        ([2.0], [1.0], "only one example"),
    ],
)
def test_without_an_order_there_is_no_correlation(true: list[float], given: list[float], said: str) -> None:
    scores = number_scores(true, given)
    written = json.loads(json.dumps(scores.to_json(), allow_nan=False))
    assert written["pearson"] == written["spearman"] == {"score": None, "low": None, "high": None}
    assert written["mse"]["score"] is not None
    assert said in scores.summary()


def test_units_do_not_matter_to_correlations() -> None:
    seed = secrets.randbelow(2**31)
    true, given = (np.array(side) for side in made(seed, 60))
    plain = number_scores(true.tolist(), given.tolist())
    for scale, shift in ((1e-200, 0.0), (1e150, 0.0), (1.0, 1e6)):
        moved = number_scores((true * scale + shift).tolist(), (given * scale + shift).tolist())
        assert moved.pearson.score == pytest.approx(plain.pearson.score, abs=1e-6), f"seed {seed}, {scale}, {shift}"
        assert moved.spearman.low == pytest.approx(plain.spearman.low, abs=1e-6), f"seed {seed}, {scale}, {shift}"


def test_a_curve_that_only_rises() -> None:
    true = [float(number) for number in range(40)]
    scores = number_scores(true, [math.exp(value / 4) for value in true])
    assert scores.spearman.score == 1.0
    assert scores.pearson.score < 0.9
    assert all(one <= other for one, other in pairwise((scores.pearson.low, scores.pearson.high, 1.0)))


def test_what_cannot_be_scored() -> None:
    with pytest.raises(BadInput, match="empty"):
        number_scores([], [])
    with pytest.raises(Failure, match="not numbers"):
        number_scores([1.0, 2.0], [1.0, math.inf])
    with pytest.raises(BadInput, match="not a finite number"):
        number_scores([1.0, math.nan], [1.0, 2.0])


def test_as_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    true, given = made(secrets.randbelow(2**31), 200)
    scores = number_scores(true, given)
    assert scores.spearman.score == pytest.approx(stats.spearmanr(true, given).statistic)
    assert scores.pearson.score == pytest.approx(stats.pearsonr(true, given).statistic)
