"""Experiment 16: what study notes often get wrong."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest
import torch

from jumok.lab.recall import PAIRS, Recall, draw_pairs
from jumok.lab.report import drawn
from jumok.lab.study_notes import AFTER, BY_WIDTH, EXPERIMENT, PAPER, STEPS, QueryOfItsOwn, one_a_step, scaled_after

TINY = 0.01


@pytest.fixture(scope="module")
def numbers() -> Any:
    return json.loads(json.dumps(EXPERIMENT.measure(1, TINY)))


def test_the_whole_way(numbers: Any) -> None:
    assert json.loads(json.dumps(EXPERIMENT.measure(1, TINY))) == numbers  # the seed decides
    assert EXPERIMENT.measure(2, TINY) != numbers
    assert drawn(EXPERIMENT, [numbers, numbers])


def test_scaled_after_the_softmax_the_weights_do_not_sum_to_one(numbers: Any) -> None:
    assert numbers["scaled"][AFTER]["sum of the weights"] == pytest.approx(256**-0.5, rel=1e-5)
    assert numbers["scaled"][PAPER]["sum of the weights"] == pytest.approx(1, rel=1e-5)
    assert numbers["scaled"][BY_WIDTH]["entropy at the start"] > numbers["scaled"][PAPER]["entropy at the start"]


def test_each_note_is_built_as_it_says(seed: int) -> None:
    pairs = draw_pairs(torch.Generator().manual_seed(seed), rows=3)
    after = scaled_after(16)
    attention = after.attention
    query = attention.query(after.name_embedding(pairs.asked))
    memory = attention.project(after.name_embedding(pairs.names) + after.value_embedding(pairs.values))
    weights = torch.softmax(query @ memory.key[:, :, 0].transpose(1, 2), dim=-1) / 4
    assert torch.allclose(after(pairs), after.head(attention.output(weights @ memory.value[:, :, 0])), atol=1e-5)
    own = QueryOfItsOwn(8, PAIRS)
    x = torch.randn(2, 5, 8)
    written_out = torch.stack([x[:, step] @ own.weight[step] for step in range(5)], dim=1)
    assert torch.allclose(own(x), written_out, atol=1e-6)
    assert isinstance(one_a_step().attention.query, QueryOfItsOwn)
    assert not isinstance(Recall(64).attention.query, QueryOfItsOwn)


def test_verdicts_follow_the_numbers(numbers: Any) -> None:
    one, own = STEPS
    wrong = deepcopy(numbers) | {"updates": 200}
    wrong["scaled"][PAPER] |= {"updates to learn": [10, 10], "entropy at the start": 0.7}
    wrong["scaled"][BY_WIDTH] |= {"updates to learn": [30, 30]}
    wrong["scaled"][AFTER] |= {"updates to learn": [200, 200], "entropy at the start": 0.05}
    wrong["steps"][one] |= {"updates to learn": 20, "accuracy at later steps": 1.0}
    wrong["steps"][own] |= {"updates to learn": 60, "accuracy at later steps": 0.1}
    wrong["positions"] = {"before the heads": [1.0, 1.0], "after the heads": [0.2, 0.2]}
    verdicts = EXPERIMENT.judge([wrong])
    assert all(verdict.holds for verdict in verdicts)
    assert "more than 200 updates" in verdicts[1].because
    harmless = deepcopy(wrong)
    harmless["scaled"] = dict.fromkeys(wrong["scaled"], wrong["scaled"][PAPER])
    harmless["steps"] = dict.fromkeys(STEPS, wrong["steps"][one])
    harmless["positions"]["after the heads"] = [1.0, 1.0]
    assert not any(verdict.holds for verdict in EXPERIMENT.judge([harmless]))
    assert "60%" in EXPERIMENT.judge([wrong, harmless])[3].because
