"""Experiment 5: why the scores are divided by √d_k."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest
import torch

from jumok.lab.report import drawn
from jumok.lab.scaling import EXPERIMENT, SCORERS, TRAINED, WIDTHS, jacobian_norm

TINY = 0.01
RAW, SCALED = SCORERS


@pytest.fixture(scope="module")
def numbers() -> Any:
    return json.loads(json.dumps(EXPERIMENT.measure(1, TINY)))


def test_the_whole_way(numbers: Any) -> None:
    assert json.loads(json.dumps(EXPERIMENT.measure(1, TINY))) == numbers  # the seed decides
    assert EXPERIMENT.measure(2, TINY)["at random"] != numbers["at random"]
    assert all(len(numbers["at random"][name]) == len(WIDTHS) for name in SCORERS)
    assert all(len(numbers["updates to learn"][name]) == len(TRAINED) for name in SCORERS)
    assert drawn(EXPERIMENT, [numbers, numbers])


def test_the_gradient_is_autograds(seed: int) -> None:
    scores = 3 * torch.randn(5, 7, dtype=torch.float64)
    for row in scores:
        jacobian = torch.autograd.functional.jacobian(lambda e: torch.softmax(e, dim=-1), row)
        assert isinstance(jacobian, torch.Tensor)
        assert float(jacobian_norm(torch.softmax(row, dim=-1))) == pytest.approx(float(jacobian.norm()), rel=1e-9)


def test_a_softmax_needs_no_training_to_be_judged(numbers: Any) -> None:
    """The first three claims are mathematics: they hold whatever the seed."""
    assert [verdict.holds for verdict in EXPERIMENT.judge([numbers])[:3]] == [True, True, True]
    spread = [look["spread of the scores"] for look in numbers["at random"][RAW]]
    assert spread == pytest.approx([width**0.5 for width in WIDTHS], rel=0.05)


def test_verdicts_follow_the_numbers(numbers: Any) -> None:
    numbers |= {"updates": 200}
    numbers["updates to learn"] = {RAW: [60, 100, 200], SCALED: [50, 20, 10]}
    worse = EXPERIMENT.judge([numbers])[3]
    assert worse.holds
    assert "more than 200 updates" in worse.because
    alike = deepcopy(numbers)
    alike["updates to learn"][RAW] = [60, 20, 12]
    assert not EXPERIMENT.judge([alike])[3].holds
    assert "106" in EXPERIMENT.judge([numbers, alike])[3].because  # the mean over seeds
    constant = deepcopy(numbers)
    constant["at random"][RAW] = constant["at random"][SCALED]
    assert [verdict.holds for verdict in EXPERIMENT.judge([constant])[:3]] == [False, False, True]
    swapped = deepcopy(numbers)
    swapped["at random"][SCALED] = swapped["at random"][RAW]
    assert not EXPERIMENT.judge([swapped])[2].holds
