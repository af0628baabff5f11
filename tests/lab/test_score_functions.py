"""Experiment 4: the score functions."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch

from jumok.lab.report import drawn
from jumok.lab.score_functions import EXPERIMENT, SCORERS, megabytes
from jumok.layers.attention import build_scorer

TINY = 0.005


@pytest.fixture(scope="module")
def numbers() -> Any:
    return json.loads(json.dumps(EXPERIMENT.measure(1, TINY), allow_nan=False))


def test_the_whole_way(numbers: Any) -> None:
    again = EXPERIMENT.measure(1, TINY)
    for key in ("bleu", "aer", "megabytes"):  # the seed decides all but the time
        assert again[key] == numbers[key]
        assert list(numbers[key]) == list(SCORERS)
    assert all(0 <= rate <= 1 for rate in numbers["aer"].values())
    assert all(taken > 0 for taken in numbers["milliseconds"].values())
    assert len(EXPERIMENT.judge([numbers, numbers])) == 5
    assert drawn(EXPERIMENT, [numbers, numbers])


def test_additive_keeps_a_vector_for_every_pair_of_words(seed: int) -> None:
    """T x S tanh vectors of D float32 numbers, and what is linear in the length."""
    rows, length, width = 2, 40, 8
    texts = torch.randn(3, rows, length, width)
    pairs = 4 * rows * length * length * width / 1e6
    assert pairs < megabytes(build_scorer("additive", width, width, width, length), texts) < 1.5 * pairs
    assert megabytes(build_scorer("dot", width, width, width, length), texts) < pairs / 5


def test_both_outcomes() -> None:
    def outcome(bleu: list[float], aer: list[float], cost: list[float]) -> list[bool]:
        values = {"bleu": bleu, "aer": aer, "milliseconds": cost, "megabytes": cost}
        one = {key: dict(zip(SCORERS, numbers, strict=True)) for key, numbers in values.items()}
        return [verdict.holds for verdict in EXPERIMENT.judge([one, one])]

    assert outcome([60, 62, 62, 55, 40], [0.2, 0.1, 0.1, 0.3, 0.6], [1, 1, 1.2, 9, 2]) == [True] * 5
    assert outcome([60, 20, 62, 70, 65], [0.2, 0.7, 0.1, 0.05, 0.15], [1, 1, 1.2, 1.5, 2]) == [False] * 5
    by_noise = [51.0, 50.9, 52.3, 50.6, 50.4]  # by less than another seed would change it
    assert outcome(by_noise, [0.2, 0.1, 0.1, 0.3, 0.6], [1, 1, 1.2, 9, 2]) == [True, False, False, False, True]
