"""Experiment 8: word order and positions."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch

from jumok.lab.position import EXPERIMENT, KINDS, SCHEMES, difference_when_moved, properties, spread_of_distances
from jumok.lab.report import drawn

TINY = 0.01


@pytest.fixture(scope="module")
def numbers() -> Any:
    return json.loads(json.dumps(EXPERIMENT.measure(1, TINY)))


def test_the_whole_way(numbers: Any) -> None:
    assert set(numbers["accuracy"]) == set(KINDS)
    assert json.loads(json.dumps(EXPERIMENT.measure(1, TINY))) == numbers  # the seed decides
    assert EXPERIMENT.measure(2, TINY)["accuracy"] != numbers["accuracy"]
    assert all(verdict.because and verdict.claim for verdict in EXPERIMENT.judge([numbers, numbers]))
    assert drawn(EXPERIMENT, [numbers, numbers])


def test_an_encoder_without_positions_is_equivariant(seed: int) -> None:
    assert difference_when_moved("none", seed) < 1e-5
    assert all(difference_when_moved(kind, seed) > 1e-3 for kind in KINDS if kind != "none")


def test_properties_of_positions() -> None:
    found = {name: properties(scheme) for name, scheme in SCHEMES.items()}
    assert found["one-hot"]["unique"] == pytest.approx(2**0.5)
    assert found["one-hot"]["growth"] == 16
    assert found["the share t/(N−1)"]["steps"][0] == pytest.approx(1 / 7)
    assert found["the share t/(N−1)"]["growth"] == 1
    assert found["the number t"]["growth"] == pytest.approx(511 / 31)
    # ‖PE(t+1) − PE(t)‖² = Σ_i 2 − 2 cos θ_i
    angles = 10000.0 ** -(torch.arange(0, 64, 2, dtype=torch.float64) / 64)
    assert found["sinusoidal"]["steps"][3] == pytest.approx(float((2 - 2 * angles.cos()).sum().sqrt()))
    assert spread_of_distances() < 1e-9


def test_both_outcomes(numbers: Any) -> None:
    def with_accuracy(kind: str, trained: float, beyond: float) -> Any:
        accuracy = {one: {"by_length": [1.0] * 8, "trained": 1.0, "beyond": 1.0} for one in KINDS}
        accuracy["none"]["trained"] = 0.1
        accuracy[kind] |= {"trained": trained, "beyond": beyond}
        return {**numbers, "accuracy": accuracy}

    def holds(numbers: Any, start: str) -> bool:
        return next(verdict.holds for verdict in EXPERIMENT.judge([numbers]) if verdict.claim.startswith(start))

    assert holds(with_accuracy("learned", 1.0, 0.1), "Learned")
    assert not holds(with_accuracy("learned", 1.0, 1.0), "Learned")
    assert holds(with_accuracy("sinusoidal", 1.0, 0.95), "Sinusoidal positions let")
    assert not holds(with_accuracy("sinusoidal", 1.0, 0.2), "Sinusoidal positions let")
    assert holds(with_accuracy("relative", 1.0, 1.0), "So a task in which order decides")
    assert not holds(with_accuracy("none", 1.0, 1.0), "So a task in which order decides")
    untrained = {kind: {"by_length": [0.06] * 8, "trained": 0.06, "beyond": 0.06} for kind in KINDS}
    for start in ("So a task", "Learned", "Sinusoidal positions let", "Rotary", "So does"):
        assert not holds({**numbers, "accuracy": untrained}, start)
    for name in ("unique", "exist", "Their distances"):
        assert any(verdict.holds for verdict in EXPERIMENT.judge([numbers]) if name in verdict.claim)


def test_the_least_that_any_seed_moved_is_told(numbers: Any) -> None:
    little = {**numbers, "moved": {**numbers["moved"], "learned": 2e-3}}
    verdict = EXPERIMENT.judge([numbers, little])[0]
    assert "2e-03 with any" in verdict.because
    assert not verdict.holds
