"""When an update goes wrong: what is left out, and when to give up.

An update that is not a number has not touched the weights: its sentences are left out, and the run goes on. A loss that
is suddenly far too large says that the weights have gone astray: the run goes back to its last checkpoint and passes
over the updates that led there (as Chowdhery et al. 2022 did by hand). Both are reported, and bounded by
`training.skip_bad`.
"""

from __future__ import annotations

import math

from jumok.training.state import TrainState

SETTLED = 50  # updates after which the mean says something
FORGETS = 0.02  # share of the newest loss in the running mean
FAR = 10.0  # spreads above twice the mean
BEFORE = 5  # updates passed over besides the one whose loss was too large


def is_number(values: dict[str, float]) -> bool:
    return all(math.isfinite(value) for value in values.values())


def is_spike(state: TrainState, loss: float, update: int) -> bool:
    """x > 2 m + 10 s, with m the running mean of the loss and s that of its distance from m."""
    if state.loss_mean is None or update < SETTLED or state.loss_mean <= 0:
        return False
    return loss > 2 * state.loss_mean + FAR * state.loss_spread


def note(state: TrainState, loss: float) -> None:
    """m ← m + f (x − m), s ← s + f (|x − m| − s)"""
    if state.loss_mean is None:
        state.loss_mean = loss
        return
    distance = abs(loss - state.loss_mean)
    state.loss_mean += FORGETS * (loss - state.loss_mean)
    state.loss_spread += FORGETS * (distance - state.loss_spread)


def go_back(state: TrainState, checkpoint: TrainState, spike: int) -> TrainState:
    """The state of a checkpoint, which knows now what to pass over on the way."""
    first = max(checkpoint.update, spike - BEFORE)
    checkpoint.left_out = sorted({*state.left_out, *range(first, spike + 1)})
    checkpoint.recovered = state.recovered
    return checkpoint
