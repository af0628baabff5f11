"""When an update goes wrong: what is left out, and when to give up.

An update that is not a number has not touched the weights: its sentences are left out, and the run goes on. A loss that
is far too large for several updates in a row (one may be a rare, harder text) says that the weights have gone astray:
the run goes back to a checkpoint from before and passes over the updates that led there (as Chowdhery et al. 2022 did
by hand). Both are reported, and bounded by `training.skip_bad`.
"""

from __future__ import annotations

import math

from jumok.training.state import TrainState

SETTLED = 50  # updates after which the mean says something
FORGETS = 0.02  # share of the newest loss in the running mean
FAR = 10.0  # spreads above twice the mean
BEFORE = 5  # updates passed over besides those whose loss was too large
LASTS = 3  # updates in a row whose loss must be far too large


def is_number(values: dict[str, float]) -> bool:
    return all(math.isfinite(value) for value in values.values())


def is_high(state: TrainState, loss: float, update: int) -> bool:
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


def has_gone_astray(state: TrainState, loss: float, update: int) -> bool:
    """Take a loss into account; True when it is the last of several that were too large."""
    if not is_high(state, loss, update):
        state.high = 0
        note(state, loss)
        return False
    state.high_since = update if state.high == 0 else state.high_since
    state.high += 1
    return state.high == LASTS


def go_round(state: TrainState, checkpoint: TrainState, until: int) -> TrainState:
    """The state of a checkpoint, which knows now what to pass over on the way."""
    first = max(checkpoint.update, state.high_since - BEFORE)
    checkpoint.left_out = sorted({*state.left_out, *range(first, until + 1)})
    checkpoint.recovered = state.recovered
    return checkpoint
