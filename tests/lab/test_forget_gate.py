"""Experiment 13: the forget gate over the span it must bridge."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch

from jumok.lab.forget_gate import (
    ASK,
    EXPERIMENT,
    LENGTH,
    NETWORKS,
    PHASES,
    TESTED,
    VALUES,
    Rememberer,
    carriers,
    texts,
    with_cut,
)
from jumok.lab.report import drawn


@pytest.fixture(scope="module")
def numbers() -> dict[str, Any]:
    return EXPERIMENT.measure(1, 0.01)


def test_the_way_from_seed_to_verdicts_and_figure(numbers: dict[str, Any]) -> None:
    assert json.loads(json.dumps(numbers, allow_nan=False)) == numbers
    assert len(EXPERIMENT.judge([numbers, numbers])) == 5
    assert all(picture.startswith(b"\x89PNG") for picture in drawn(EXPERIMENT, [numbers, numbers]))


def test_the_same_seed_gives_the_same_numbers(numbers: dict[str, Any]) -> None:
    assert EXPERIMENT.measure(1, 0.01) == numbers
    assert EXPERIMENT.measure(2, 0.01) != numbers


def test_texts_store_and_ask_where_they_say(seed: int) -> None:
    given = texts(100, torch.Generator().manual_seed(seed))
    assert (given.ids.gather(1, given.asks) == ASK).all()
    assert torch.equal(given.ids.gather(1, given.stores), given.values + ASK - VALUES)
    assert ((given.ids == ASK).sum(dim=1) == 2).all()
    assert (given.ids >= ASK - VALUES).sum() == 4 * 100  # nothing else that could be taken for a value
    assert int(given.asks.max()) < LENGTH
    phases = given.phases()
    assert tuple(phases) == PHASES
    covered = torch.stack(list(phases.values())).sum(dim=0)
    assert (covered == (torch.arange(LENGTH) < given.stores[:, 1:])).all()  # up to the second "store", without overlap


@pytest.mark.parametrize("feedback", [True, False])
def test_what_is_not_cut_is_the_model_itself(feedback: bool, seed: int) -> None:
    model, given = Rememberer(feedback).eval(), texts(20, torch.Generator().manual_seed(seed))
    where = torch.arange(LENGTH).expand(20, -1) >= 30
    with torch.no_grad():
        expected = model(given.ids)
    torch.testing.assert_close(with_cut(model, given.ids, torch.zeros_like(where)), expected, rtol=1e-4, atol=1e-5)
    cut = with_cut(model, given.ids, where)
    torch.testing.assert_close(cut[:, :30], expected[:, :30], rtol=1e-4, atol=1e-5)
    assert not torch.isclose(cut[:, 30:], expected[:, 30:], atol=1e-5).all(dim=-1).any()


def test_carriers_are_the_units_that_tell_the_value(seed: int) -> None:
    given = texts(TESTED, torch.Generator().manual_seed(seed))
    cell = torch.randn(TESTED, LENGTH, 10)
    cell[:, :, 7] += 5 * given.values[:, :1]
    assert int(carriers(cell, given)[0]) == 7


def made(span: float, elsewhere: float, store: float, cut: float) -> dict[str, Any]:
    phases = {"before": elsewhere, "store": store, "span": span, "ask": span, "after": elsewhere}
    one = {"recall": 1.0, "forget": phases, "cut in the span": cut, "cut after it": 1.0}
    return dict.fromkeys(NETWORKS, one)


def test_verdicts_follow_the_gates() -> None:
    assert [one.holds for one in EXPERIMENT.judge([made(0.99, 0.5, 0.1, 0.2)])] == [True] * 5
    assert [one.holds for one in EXPERIMENT.judge([made(0.8, 0.8, 0.8, 1.0)])] == [False] * 5
