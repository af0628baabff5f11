"""A series cut for learning: parts in the order of time, one scale, and windows as a pure function of the update.

    |———— train ————|— valid —|—— test ——|
       [ window ][h]                         all of it in the training part
                 [ window ][h]               validation and test look back, but what they are asked for is theirs alone

A window belongs to the part that all of its `horizon` values lie in; one that would reach across is left out. The scale
comes from the training part, so nothing of the future is in what the model is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from jumok.data.season import find_season
from jumok.data.series import Series, Values
from jumok.data.shuffle import IntArray, Shuffle
from jumok.errors import BadInput
from jumok.recipe import SeriesSection

ORDER = 6  # what the permutation is for, part of its key
LONGEST_WINDOW = 192  # that is taken by itself (a longer season, and a user, may ask for more)


@dataclass(frozen=True)
class WindowBatch:
    """What is known (past) and what is asked for (future), in the model's units."""

    past: Tensor  # (B, W) float32
    future: Tensor  # (B, K) float32
    origins: tuple[int, ...] = ()  # the number of the last known value, for messages

    @property
    def tokens(self) -> int:
        """How many values the loss is taken over."""
        return self.future.numel()

    def __len__(self) -> int:
        return self.past.size(0)

    def to(self, device: torch.device | str) -> WindowBatch:
        past, future = (part.to(device, non_blocking=True) for part in (self.past, self.future))
        return WindowBatch(past, future, self.origins)

    def split(self, parts: int) -> list[WindowBatch]:
        """The same windows in `parts` smaller batches (fewer, when there are fewer windows)."""
        size = -(-len(self) // parts)
        cuts = [slice(start, start + size) for start in range(0, len(self), size)]
        return [WindowBatch(self.past[cut], self.future[cut], self.origins[cut]) for cut in cuts]


@dataclass(frozen=True)
class Layout:
    """How a series is cut, scaled and looked at. Everything that a loaded run needs to know besides the numbers."""

    window: int
    horizon: int
    season: int
    train: int  # where the training part ends
    valid: int  # where the validation part ends
    mean: float  # of the training part
    scale: float

    def standardised(self, values: Values) -> Tensor:
        """(y − mean) / scale, as the model reads it."""
        return torch.from_numpy(((values - self.mean) / self.scale).astype(np.float32))

    def restored(self, standardised: Tensor) -> Values:
        return standardised.double().cpu().numpy() * self.scale + self.mean

    def origins(self, part: str, total: int) -> IntArray:
        """The last known places of all windows whose future lies in a part."""
        begin, end = {
            "train": (self.window, self.train), "valid": (self.train, self.valid), "test": (self.valid, total),
        }[part]  # fmt: skip
        return np.arange(begin - 1, end - self.horizon)


def lay_out(series: Series, section: SeriesSection) -> Layout:
    """Find what the recipe leaves open (season and window), and refuse what cannot be learned from."""
    count, horizon = len(series), section.horizon
    test = max(horizon, round(section.test * count))
    valid = max(horizon, round(section.valid * count))
    train = count - valid - test
    known = section.window or 1
    if train < known + horizon + 1:
        raise BadInput(
            f'"{series.name}" is too short: of its {count} values {max(train, 0)} are left to train on (validation '
            f"{valid}, test {test}), but a window of {known} and a horizon of {horizon} need {known + horizon + 1}. "
            "Take a smaller --window or --horizon, smaller data.series.valid and data.series.test, or more data"
        )
    values = series.values[:train]
    mean, scale = float(values.mean()), float(values.std())
    if scale <= 1e-12 * max(1.0, abs(mean)):
        raise BadInput(
            f'"{series.name}" does not change in its training part (the first {train} values are all '
            f"{values[0]:g}): there is nothing to learn"
        )
    season = section.season or find_season(values)
    if season >= train:
        raise BadInput(
            f"a season of {season} is longer than the training part of {train} values: take a smaller --season, or 1"
        )
    return Layout(section.window or _window(season, horizon, train), horizon, season, train, train + valid, mean, scale)


def _window(season: int, horizon: int, train: int) -> int:
    """Four seasons (or horizons), as far as that is quick to read and leaves half of the training part to ask for."""
    wanted = max(min(4 * max(season, horizon), LONGEST_WINDOW), season + 1)
    return max(1, min(wanted, (train - horizon) // 2))


class SeriesPlan:
    """All batches of a run over one series."""

    def __init__(self, series: Series, layout: Layout, batch_tokens: int, seed: int, accumulate: int = 1) -> None:
        self.layout, self.seed, self.accumulate = layout, seed, accumulate
        self.total = len(series)
        self.standardised = layout.standardised(series.values)
        self.windows = len(layout.origins("train", self.total))
        # as many windows as fit into a batch, spread evenly over the batches of an epoch
        self.batches_per_epoch = -(-self.windows // max(1, batch_tokens // layout.window))

    @cached_property
    def _rows(self) -> Tensor:
        """Row i: the window from place i on and its future; a view, nothing is copied."""
        return self.standardised.unfold(0, self.layout.window + self.layout.horizon, 1)

    def batch(self, origins: IntArray) -> WindowBatch:
        rows = self._rows[torch.from_numpy(origins - (self.layout.window - 1))]
        return WindowBatch(rows[:, : self.layout.window], rows[:, self.layout.window :], tuple(origins.tolist()))

    def at(self, update: int, only: Sequence[int] | None = None) -> list[WindowBatch]:
        """The batches of an update (counted from 0); with `only`, those of them with these numbers."""
        numbers = range(self.accumulate) if only is None else only
        return [self._batch(update * self.accumulate + number) for number in numbers]

    def _batch(self, number: int) -> WindowBatch:
        epoch, place = divmod(number, self.batches_per_epoch)
        low, high = (edge * self.windows // self.batches_per_epoch for edge in (place, place + 1))
        chosen = Shuffle(self.windows, self.seed, epoch, ORDER)(np.arange(low, high))
        return self.batch(chosen + self.layout.window - 1)
