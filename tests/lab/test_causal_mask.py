"""Experiment 7: without the causal mask the loss leaks."""

from __future__ import annotations

import json
import math
from copy import deepcopy
from typing import Any

import pytest

from jumok.lab.causal_mask import EXPERIMENT, INSIDE, MASKS, PAST, PROMPT, WRITTEN
from jumok.lab.report import drawn

TINY = 0.01


@pytest.fixture(scope="module")
def numbers() -> Any:
    return json.loads(json.dumps(EXPERIMENT.measure(1, TINY)))


def test_the_whole_way(numbers: Any) -> None:
    assert json.loads(json.dumps(EXPERIMENT.measure(1, TINY))) == numbers  # the seed decides
    assert EXPERIMENT.measure(2, TINY) != numbers
    for mask in MASKS:
        assert all(math.isfinite(loss) for loss in numbers[mask]["training losses"])
        assert [len(text.split()) for text in numbers[mask]["written"]] == [PROMPT + WRITTEN] * 3
        assert 0 <= numbers[mask]["triples known"] <= 1
    assert numbers["updates"] == len(numbers["without"]["training losses"]) == 4  # as many as there were, not 400
    assert drawn(EXPERIMENT, [numbers, numbers])


def test_both_begin_alike_and_read_the_same_text(numbers: Any) -> None:
    first = [numbers[mask]["training losses"][0] for mask in MASKS]
    assert first[0] == pytest.approx(first[1], rel=0.05)
    starts = [[text.split()[:PROMPT] for text in numbers[mask]["written"]] for mask in MASKS]
    assert starts[0] == starts[1]


def test_verdicts_follow_the_numbers(numbers: Any) -> None:
    masked, unmasked = MASKS
    leaking = deepcopy(numbers)
    leaking[masked] |= {INSIDE: 3.5, PAST: 3.5, "triples known": 0.4}
    leaking[unmasked] |= {INSIDE: 0.02, PAST: 6.0, "triples known": 0.1}
    assert [verdict.holds for verdict in EXPERIMENT.judge([leaking])] == [True, True, True]
    assert "10%" in EXPERIMENT.judge([leaking])[2].because
    sound = deepcopy(leaking)
    sound[unmasked] = sound[masked]
    assert [verdict.holds for verdict in EXPERIMENT.judge([sound])] == [False, False, False]
    assert "1.760" in EXPERIMENT.judge([leaking, sound])[0].because  # the mean of 0.02 and 3.5
