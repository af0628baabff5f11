"""`--minutes`: measured once, fixed once."""

from __future__ import annotations

import pytest

from jumok.recipe import Training
from jumok.training.pace import LEAST_UPDATES, MOST_UPDATES, WARM, Pace
from jumok.training.state import TrainState


def feed(pace: Pace, seconds: float) -> int:
    for number in range(1, 1000):
        if pace.measured(seconds):
            return number
    raise AssertionError("never measured")


def test_slow_updates_are_measured_at_least_ten_times_and_fast_ones_a_hundred() -> None:
    assert feed(Pace(TrainState(minutes=1)), 5.0) == WARM + LEAST_UPDATES
    assert feed(Pace(TrainState(minutes=10)), 0.01) == WARM + MOST_UPDATES


def test_the_plan_fills_the_time_that_is_left() -> None:
    state = TrainState(update=20, minutes=2)
    pace = Pace(state)
    feed(pace, 0.5)
    training = Training(validate_every=10)
    pace.fix(elapsed=30, validation=2, training=training)
    assert state.total is not None
    updates = state.total - 20
    assert 30 + 2 + updates * 0.5 + updates / 10 * 2 == pytest.approx(120, abs=1)


def test_a_fixed_plan_is_never_measured_again() -> None:
    pace = Pace(TrainState(total=50, minutes=1))
    assert not any(pace.measured(5.0) for _ in range(300))


def test_no_time_left_still_makes_one_update() -> None:
    state = TrainState(update=13, minutes=0.01)
    pace = Pace(state)
    feed(pace, 1.0)
    pace.fix(elapsed=60, validation=1, training=Training())
    assert state.total == 14


@pytest.mark.parametrize("when", [1, WARM + 1, 15, 60])
def test_a_machine_that_sleeps_once_still_gets_its_plan(when: int) -> None:
    """45 seconds of three minutes, in an update of 10 milliseconds: they are gone, the others are as fast as ever."""
    state = TrainState(update=110, minutes=3)
    pace = Pace(state)
    for number in range(1, 1000):
        if pace.measured(45.0 if number == when else 0.01):
            break
    pace.fix(elapsed=46, validation=0, training=Training())
    assert state.total is not None
    assert 10_000 < state.total < 13_600
