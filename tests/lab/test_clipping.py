"""Experiment 12: exploding gradients."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
import torch

from jumok.lab.clipping import EXPERIMENT, GAINS, RATES, STEPS, Latch, explosions, growth, inputs, trained
from jumok.lab.report import drawn
from jumok.lab.training import seeded


@pytest.fixture(scope="module")
def numbers() -> dict[str, Any]:
    return EXPERIMENT.measure(2, 0.01)


def test_the_way_from_seed_to_verdicts_and_figure(numbers: dict[str, Any]) -> None:
    assert json.loads(json.dumps(numbers, allow_nan=False)) == numbers
    assert len(EXPERIMENT.judge([numbers, numbers])) == 4
    assert all(picture.startswith(b"\x89PNG") for picture in drawn(EXPERIMENT, [numbers, numbers]))


def test_the_same_seed_gives_the_same_numbers(numbers: dict[str, Any]) -> None:
    assert EXPERIMENT.measure(2, 0.01) == numbers
    assert EXPERIMENT.measure(5, 0.01) != numbers


def test_the_stretch_is_the_norm_of_autograds_jacobian() -> None:
    with seeded(7):
        model = Latch(1.5).double()
    x, _ = inputs(1, torch.Generator().manual_seed(7))
    x = x.double()
    before = model.recurrent(x[:, :-6])[1]

    def last(state: torch.Tensor) -> torch.Tensor:
        return model.recurrent(x[:, -6:], state=(state,))[1][0].flatten()

    jacobian = torch.autograd.functional.jacobian(last, before[0])[:, 0, 0]
    assert growth(1.5, 7)[6] == pytest.approx(float(torch.linalg.matrix_norm(jacobian, 2)), rel=1e-6)


def test_a_training_that_explodes_ends_in_numbers() -> None:
    run = trained("SGD", 1e30, None, 1, 20)
    assert json.dumps(run, allow_nan=False)
    assert run["final"] == 10.0


def test_an_explosion_is_far_above_the_updates_around_it() -> None:
    learning = [100 * 0.9**update for update in range(100)]  # its norm falls ten thousand times, and never suddenly
    assert explosions(learning) == 0
    assert explosions([1.0] * 50 + [11.0] + [1.0] * 50) == 1
    assert explosions([1.0] * 50 + [9.0] + [1.0] * 50) == 0
    assert explosions([1.0] * 50 + [50.0] * 50) == 0  # a step, not an explosion
    assert explosions([1.0, math.inf]) == 1  # where a training ends


def made(unclipped: float, clipped: float, adam: float, sudden: int) -> dict[str, Any]:
    final = {"SGD, not clipped": unclipped, "SGD, clipped": clipped, "Adam, not clipped": adam, "Adam, clipped": 0.01}
    return {
        "growth": {f"{gain:g}": [gain**d for d in range(STEPS)] for gain in GAINS},
        "final": {name: [loss] * len(RATES["SGD"]) for name, loss in final.items()},
        "explosions and updates": {name: [[sudden, 400]] * len(RATES["SGD"]) for name in final},
    }


def test_verdicts_follow_the_losses() -> None:
    assert [one.holds for one in EXPERIMENT.judge([made(1.4, 0.01, 0.01, 2)])] == [True, True, True, True]
    verdicts = EXPERIMENT.judge([made(0.01, 0.01, 1.4, 0)])
    assert [one.holds for one in verdicts] == [True, False, False, False]
    assert "in 4 of 4 trainings with clipping, 4 without" in verdicts[2].because
    often = EXPERIMENT.judge([made(1.4, 0.01, 0.01, 40)])[1]
    assert not often.holds
    assert "10.00% of the norms" in often.because
