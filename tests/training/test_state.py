"""What a run remembers: the best, how long ago it was, and when to cut the rate."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from jumok.training.state import TrainState


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=30), st.integers(0, 4))
def test_best_and_stale_follow_the_values(values: list[float], patience: int) -> None:
    state = TrainState()
    for number, value in enumerate(values, 1):
        state.update = number
        is_best = state.note_validation(value, patience, 0.5)
        so_far = values[:number]
        assert is_best == (value > max(so_far[:-1], default=float("-inf")))
        assert state.best == max(so_far)
        assert state.best_update == so_far.index(max(so_far)) + 1
        assert state.stale == number - state.best_update


def test_plateau_cuts_after_patience_and_waits_again() -> None:
    state = TrainState()
    scales = []
    for value in (1.0, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9):
        state.note_validation(value, 2, 0.5)
        scales.append(state.plateau_scale)
    assert scales == [1, 1, 1, 0.5, 0.5, 0.5, 0.25]


def test_it_survives_json_to_the_bit() -> None:
    state = TrainState(update=7, total=9, best=0.1 + 0.2, window={"loss": 1 / 3, "tokens": 12.0}, data=["k"])
    assert TrainState.from_json(json.loads(json.dumps(state.to_json()))) == state
