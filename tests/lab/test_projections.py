"""Experiment 6: why queries, keys and values have projections of their own."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest
import torch

from jumok.lab.projections import EXPERIMENT, LENGTH, VARIANTS, on_itself, project_with
from jumok.lab.report import drawn
from jumok.layers.multihead import MultiHeadAttention

TINY = 0.01


@pytest.fixture(scope="module")
def numbers() -> Any:
    return json.loads(json.dumps(EXPERIMENT.measure(1, TINY)))


def test_the_whole_way(numbers: Any) -> None:
    assert json.loads(json.dumps(EXPERIMENT.measure(1, TINY))) == numbers  # the seed decides
    assert EXPERIMENT.measure(2, TINY)["trained"] != numbers["trained"]
    for name in VARIANTS:
        rows = torch.tensor(numbers["trained"][name]["weights"])
        assert rows.shape == (LENGTH, LENGTH)
        assert torch.allclose(rows.sum(dim=-1), torch.ones(LENGTH), atol=1e-2)
    assert drawn(EXPERIMENT, [numbers, numbers])


def test_the_diagonal_is_counted() -> None:
    weights = torch.tensor([[[0.5, 0.5, 0.0], [0.2, 0.3, 0.5], [0.1, 0.1, 0.8]]])
    measured = on_itself(weights)
    assert measured["weight on itself"] == pytest.approx((0.5 + 0.3 + 0.8) / 3)
    assert measured["looks at itself most"] == pytest.approx(2 / 3)  # nothing is looked at more


def test_what_is_shared_is_one_map(seed: int) -> None:
    x = torch.randn(2, 5, 16)
    for variant in VARIANTS:
        attention = MultiHeadAttention(16, 1, 1, 0.0, "self", "test.0.self")
        project_with(attention, variant)
        query, key, value = attention.query(x), attention.key(x), attention.value(x)
        assert torch.equal(query, key) == (variant != "Q, K, V")
        assert torch.equal(query, value) == (variant in ("raw vectors", "Q = K = V"))
        assert torch.equal(query, x) == (variant == "raw vectors")


def test_vectors_of_one_norm_look_at_themselves(numbers: Any) -> None:
    """Cauchy and Schwarz: no training is needed."""
    assert numbers["random vectors"]["raw vectors"]["looks at itself most"] == 1
    assert numbers["random vectors"]["Q, K, V"]["weight on itself"] < 2 / LENGTH


def test_verdicts_follow_the_numbers(numbers: Any) -> None:
    trained = {
        "raw vectors": {"accuracy": 0.03, "weight on itself": 0.9},
        "Q = K = V": {"accuracy": 0.5, "weight on itself": 0.6},
        "Q = K": {"accuracy": 0.6, "weight on itself": 0.5},
        "Q, K, V": {"accuracy": 1.0, "weight on itself": 0.1},
    }
    one = numbers | {"trained": trained}
    assert [verdict.holds for verdict in EXPERIMENT.judge([one])] == [True, True, True, True]
    other = deepcopy(one)
    other["random vectors"]["raw vectors"]["looks at itself most"] = 0.2
    other["trained"]["Q, K, V"]["weight on itself"] = 0.8
    other["trained"]["raw vectors"]["accuracy"] = 0.9
    other["trained"]["Q = K"]["accuracy"] = 1.0
    assert not any(verdict.holds for verdict in EXPERIMENT.judge([other]))
    untrained = one | {"trained": trained | {"Q, K, V": {"accuracy": 0.03, "weight on itself": 0.1}}}
    assert [verdict.holds for verdict in EXPERIMENT.judge([untrained])] == [True, False, False, False]
    assert "46%" in EXPERIMENT.judge([one, other])[2].because  # (3% + 90%) / 2
