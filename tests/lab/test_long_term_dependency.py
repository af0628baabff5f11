"""Experiment 1: how far back learning reaches."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
import torch

from jumok.inspect.gates import gradient_norms
from jumok.lab.long_term_dependency import EXPERIMENT, LAGS, NETWORKS, Reader, gradient_by_distance, recall, texts
from jumok.lab.report import drawn
from jumok.layers.recurrent import Recurrent


@pytest.fixture(scope="module")
def numbers() -> dict[str, Any]:
    return EXPERIMENT.measure(3, 0.01)


def test_the_way_from_seed_to_verdicts_and_figure(numbers: dict[str, Any]) -> None:
    assert json.loads(json.dumps(numbers, allow_nan=False)) == numbers
    assert all(len(numbers["accuracy"][name]) == len(LAGS) for name in NETWORKS)
    assert all(len(numbers["gradient"][name]) == LAGS[-1] + 1 for name in NETWORKS)
    assert len(EXPERIMENT.judge([numbers, numbers])) == 5
    assert all(picture.startswith(b"\x89PNG") for picture in drawn(EXPERIMENT, [numbers, numbers]))


def test_the_same_seed_gives_the_same_numbers_and_another_one_others(numbers: dict[str, Any]) -> None:
    again = {name: [recall(name, lag, 3, 3) for lag in LAGS[:2]] for name in NETWORKS}
    assert again == {name: numbers["accuracy"][name][:2] for name in NETWORKS}
    assert again != {name: [recall(name, lag, 4, 3) for lag in LAGS[:2]] for name in NETWORKS}


@pytest.mark.parametrize("name", [name for name in NETWORKS if name != "attention"])
def test_the_gradient_is_the_one_that_gates_show(name: str) -> None:
    reader = Reader(*NETWORKS[name])
    assert isinstance(reader.body, Recurrent)
    x = torch.randn(1, 9, reader.body.width)
    (expected,) = gradient_norms([reader.body], x)
    torch.testing.assert_close(torch.tensor(gradient_by_distance(reader, x)), expected.flip(0), rtol=1e-4, atol=1e-7)


def test_the_forget_bias_is_what_was_asked_for() -> None:
    reader = Reader("lstm", 5.0)
    x = torch.zeros(1, 1, 32)
    weights = reader.body._weights(0)
    bias = (weights.input_bias + weights.hidden_bias).chunk(4)[1]
    assert (bias == 5.0).all()
    assert reader.last(x).shape == (1, 32)
    untouched = Reader("lstm", None).body._weights(0)
    assert untouched.input_bias.abs().max() <= 32**-0.5


def test_the_value_to_recall_stands_first() -> None:
    ids, value = texts(50, 7, torch.Generator().manual_seed(1))
    assert ids.shape == (50, 8)
    assert torch.equal(ids[:, 0] - 1, value)
    assert int(ids[:, 1:].min()) > int(ids[:, 0].max())  # what does not matter cannot be taken for a value


def made(decay: dict[str, float], recall: dict[str, float]) -> dict[str, Any]:
    return {
        "gradient": {name: [decay[name] ** d for d in range(LAGS[-1] + 1)] for name in NETWORKS},
        "lags": list(LAGS),
        "updates": 7,
        "accuracy": {name: [recall[name]] * len(LAGS) for name in NETWORKS},
    }


def test_verdicts_follow_the_numbers() -> None:
    names = list(NETWORKS)
    vanishing = dict(zip(names, (0.5, 0.6, 0.8, 0.99, 0.6, 1.0), strict=True))
    able = dict(zip(names, (0.1, 0.1, 0.1, 0.9, 0.1, 1.0), strict=True))
    verdicts = EXPERIMENT.judge([made(vanishing, able)])
    assert [verdict.holds for verdict in verdicts] == [True, False, True, True, True]
    assert f"{0.5**80:.0e}" in verdicts[0].because
    assert "after 7 updates at most" in verdicts[4].because
    assert math.isclose(float(verdicts[2].because.split("leaves ")[1].split()[0]), 0.6)
    for rate in (9 ** (-1 / 79), 9 ** (1 / 79)):  # nine times less, or more, from distance 1 to 80
        matters = made(vanishing | {"attention": rate}, able)
        assert not EXPERIMENT.judge([matters])[3].holds
    carried = dict(zip(names, (0.99, 0.99, 0.98, 0.97, 0.99, 0.5), strict=True))
    helpless = dict.fromkeys(names, 0.1)
    assert [one.holds for one in EXPERIMENT.judge([made(carried, helpless)])] == [False, True, False, False, False]
