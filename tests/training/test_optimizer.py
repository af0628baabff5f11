"""The learning rate is a pure function of the update."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from jumok.recipe import Training
from jumok.training.optimizer import build_optimizer, learning_rate


def rates(schedule: str, total: int | None = 100, **keys: float) -> list[float]:
    training = Training.model_validate({"schedule": schedule, "warmup": 10, "learning_rate": 0.5, **keys})
    return [learning_rate(training, update, total) for update in range(100)]


@pytest.mark.parametrize("schedule", ["constant", "inverse-sqrt", "cosine", "linear", "plateau"])
def test_it_rises_in_a_line_to_the_peak(schedule: str) -> None:
    assert rates(schedule)[:10] == pytest.approx([0.05 * (n + 1) for n in range(10)])


def test_after_the_peak_each_schedule_follows_its_formula() -> None:
    assert rates("constant")[10:] == [0.5] * 90
    assert rates("inverse-sqrt")[39] == pytest.approx(0.5 * math.sqrt(10 / 40))
    assert rates("linear")[54] == pytest.approx(0.5 * (1 - 45 / 91))
    assert rates("cosine")[54] == pytest.approx(0.25 * (1 + math.cos(math.pi * 45 / 91)))
    for schedule in ("cosine", "linear"):
        values = rates(schedule)[10:]
        assert values == sorted(values, reverse=True)
        assert 0 < values[-1] < 0.01


def test_without_a_plan_the_rate_waits_at_the_peak() -> None:
    assert rates("cosine", total=None)[10:] == [0.5] * 90


def test_plateau_follows_its_scale() -> None:
    training = Training(schedule="plateau", warmup=0, learning_rate=0.5)
    assert learning_rate(training, 50, 100, plateau_scale=0.25) == 0.125


def test_weight_decay_shrinks_matrices_only() -> None:
    model = nn.Linear(3, 3)
    optimizer = build_optimizer(model, Training(weight_decay=0.1, learning_rate=1.0))
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    torch.testing.assert_close(model.weight.detach(), before["weight"] * 0.9)
    torch.testing.assert_close(model.bias.detach(), before["bias"])


def test_a_short_run_does_not_spend_itself_on_the_warm_up() -> None:
    training = Training(schedule="linear", warmup=200, learning_rate=1.0)
    values = [learning_rate(training, update, 40) for update in range(40)]
    assert max(values) == values[9] == 1.0
    assert values[-1] < 0.1


@pytest.mark.parametrize(("width", "warmup"), [(512, 4000), (64, 10), (1024, 1)])
def test_the_papers_schedule_is_the_papers_formula(width: int, warmup: int) -> None:
    """Vaswani et al. 2017, equation 3, where steps count from 1; no plan and no learning_rate changes it."""
    training = Training(schedule="paper", warmup=warmup, learning_rate=0.123)
    for step in (1, 2, 10, 3999, 4000, 4001, 100_000):
        expected = width**-0.5 * min(step**-0.5, step * warmup**-1.5)
        for total in (None, 50, 200_000):
            assert learning_rate(training, step - 1, total, width=width) == pytest.approx(expected, rel=1e-12)
    rates = [learning_rate(training, update, None, width=width) for update in range(5000)]
    assert max(rates) == rates[warmup - 1] == pytest.approx((width * warmup) ** -0.5)


def test_epsilon_reaches_the_optimiser() -> None:
    model = nn.Linear(1, 1, bias=False)
    before = model.weight.item()
    optimizer = build_optimizer(model, Training(learning_rate=1.0, epsilon=1e3))
    model.weight.grad = torch.ones(1, 1)
    optimizer.step()
    assert before - model.weight.item() == pytest.approx(1 / (1 + 1e3), rel=1e-4)
