"""Experiment 9: Add & Norm."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
import torch
from torch import nn

from jumok.lab.add_and_norm import CHANCE, EXPERIMENT, KINDS, WIDTH, WORST, loss_on, reach, stack_of
from jumok.lab.report import drawn
from jumok.lab.training import seeded
from jumok.layers.block import Block
from jumok.layers.multihead import Look

TINY = 0.02


@pytest.fixture(scope="module")
def numbers() -> Any:
    return json.loads(json.dumps(EXPERIMENT.measure(1, TINY), allow_nan=False))


def test_the_whole_way(numbers: Any) -> None:
    assert json.loads(json.dumps(EXPERIMENT.measure(1, TINY))) == numbers  # the seed decides
    assert EXPERIMENT.measure(2, TINY) != numbers
    for key in ("loss", "gradient"):
        assert list(numbers[key]) == list(KINDS)
        assert all(len(values) == len(numbers["depths"]) for values in numbers[key].values())
        assert all(0 <= value <= WORST for values in numbers[key].values() for value in values)
    assert len(EXPERIMENT.judge([numbers, numbers])) == 3
    assert drawn(EXPERIMENT, [numbers, numbers])


@pytest.mark.parametrize("kind", KINDS)
def test_a_block_is_the_equation_of_its_kind(kind: str, seed: int) -> None:
    block = stack_of(kind, 1).encoder.blocks[0]
    assert isinstance(block, Block)
    norms = [module for module in block.modules() if isinstance(module, nn.LayerNorm)]
    x, look = torch.randn(3, 5, WIDTH), Look()
    expected = x
    for place, f in enumerate((lambda x: block.attention(x, look), block.feed_forward)):
        expected = {
            "plain": lambda x, f=f, _=place: f(x),
            "norm only": lambda x, f=f, i=place: norms[i](f(x)),
            "add only": lambda x, f=f, _=place: x + f(x),
            "post-norm": lambda x, f=f, i=place: norms[i](x + f(x)),
            "pre-norm": lambda x, f=f, i=place: x + f(norms[i](x)),
        }[kind](expected)
    assert len(norms) == (0 if kind in ("plain", "add only") else 2)
    torch.testing.assert_close(block(x, look), expected)


def test_the_gradient_that_reaches_the_first_block_is_autograd_s(seed: int) -> None:
    model = stack_of("post-norm", 3)
    with seeded(4):
        found = reach(model)
    with seeded(4):
        loss_on(model, 64).backward()
    first, last = (
        math.sqrt(
            sum(float(weight.grad.square().sum()) for weight in model.encoder.blocks[i].feed_forward.parameters())
        )
        for i in (0, -1)
    )
    assert found == pytest.approx(first / last, rel=1e-4)


def test_an_untrained_model_knows_no_more_than_chance(seed: int) -> None:
    assert float(loss_on(stack_of("plain", 12), 64).detach()) == pytest.approx(CHANCE, abs=0.3)


def test_both_outcomes() -> None:
    def outcome(**deep: float) -> list[bool]:
        loss = {kind: [0.1, deep[kind.replace(" ", "_").replace("-", "_")]] for kind in KINDS}
        one = {"depths": [2, 24], "updates": 90, "loss": loss, "gradient": {kind: [1.0, 1.0] for kind in KINDS}}
        return [verdict.holds for verdict in EXPERIMENT.judge([one, one])]

    assert outcome(plain=2.77, norm_only=2.7, add_only=WORST, post_norm=2.7, pre_norm=0.2) == [True, True, True]
    assert outcome(plain=0.1, norm_only=0.1, add_only=0.1, post_norm=0.1, pre_norm=0.1) == [False, False, False]
    assert outcome(plain=2.77, norm_only=2.7, add_only=2.7, post_norm=2.7, pre_norm=2.7) == [False, False, False]
