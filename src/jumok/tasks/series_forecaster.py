"""A trained forecaster with the series it learned from: numbers in, the next numbers out."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from jumok.data.series import LARGEST, Series, Values, read_series
from jumok.data.series_time import continued
from jumok.data.series_windows import Layout
from jumok.data.shuffle import IntArray
from jumok.errors import BadInput
from jumok.files import disk_errors_named, replace_file
from jumok.models.forecaster import Forecaster
from jumok.tasks.forecast_scores import Forecasts, ForecastScores, compare, naive_forecasts

NUMBERS, ABOUT = "series.csv", "series.json"  # in the run folder: loading a run opens no path that its recipe names
ROWS = 512  # windows read at once
MOST_STEPS = 100_000


@dataclass(frozen=True)
class Outlook:
    """A forecast with what it grew out of and what it can be compared with."""

    name: str
    season: int
    history: Values
    times: tuple[str, ...]  # of the history; empty where there are none
    forecast: Values
    naive: Mapping[str, Values]  # the forecasts that cost nothing, by name
    future_times: tuple[str, ...]  # empty where they cannot be told
    truth: Values | None = None  # what came, where that is known

    def columns(self) -> dict[str, list[Any]]:
        """By name: when, the forecast, the naive ones, and the truth where it is known."""
        when = {"time": list(self.future_times)} if self.future_times else {}
        steps = list(range(1, len(self.forecast) + 1))
        numbers = {"forecast": self.forecast, **{name.replace(" ", "_"): each for name, each in self.naive.items()}}
        if self.truth is not None:
            numbers["truth"] = self.truth
        return {"step": steps, **when, **{name: each.tolist() for name, each in numbers.items()}}

    def to_csv(self) -> str:
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        columns = self.columns()
        writer.writerow(columns)
        for row in zip(*columns.values(), strict=True):
            writer.writerow([f"{cell:.10g}" if isinstance(cell, float) else cell for cell in row])
        return file.getvalue()

    def to_json(self) -> str:
        return json.dumps({"series": self.name, "season": self.season, **self.columns()}, ensure_ascii=False, indent=1)


class SeriesForecaster:
    def __init__(self, model: Forecaster, series: Series, layout: Layout, device: torch.device) -> None:
        self.model, self.series, self.layout, self.device = model, series, layout, device

    def forecast(self, values: npt.ArrayLike | None = None, horizon: int | None = None) -> Values:
        """The next `horizon` values after `values`, or after the end of the series that was learned from.

        More than the model's own horizon are written in several goes, each reading the forecast of the one before.
        """
        known = self.series.values if values is None else _numbers(values)
        steps = self.layout.horizon if horizon is None else horizon
        if not 1 <= steps <= MOST_STEPS:
            raise BadInput(f"a horizon of {steps}: give a number of steps from 1 to {MOST_STEPS:,}")
        self._check(known)
        window, found = known[-self.layout.window :], np.empty(0)
        while len(found) < steps:
            part = self.forecasts(window, np.array([len(window) - 1]))[0]
            found, window = np.append(found, part), np.append(window, part)[-self.layout.window :]
        return found[:steps]

    @torch.inference_mode()
    def forecasts(self, values: Values, origins: IntArray) -> Forecasts:
        """The forecasts that were made at each of these places: (origins, horizon)."""
        window = self.layout.window
        rows = self.layout.standardised(values).unfold(0, window, 1)
        found: list[Tensor] = []
        for start in range(0, len(origins), ROWS):
            places = torch.from_numpy(origins[start : start + ROWS] - (window - 1))
            found.append(self.model(rows[places].to(self.device)).cpu())
        return self.layout.restored(torch.cat(found))

    def outlook(self, series: Series | None = None, horizon: int | None = None, known: int | None = None) -> Outlook:
        """The forecast beyond the end of a series, or after its first `known` values, beside the naive ones."""
        series = self.series if series is None else series
        known = len(series) if known is None else known
        values, times = series.values[:known], series.times[:known]
        forecast = self.forecast(values, horizon)
        steps, last = len(forecast), np.array([known - 1])
        naive = naive_forecasts(values, last, steps, self.layout.season)
        truth = series.values[known : known + steps]
        complete = len(truth) == steps
        future = series.times[known : known + steps] if complete else tuple(continued(times, steps) or ())
        return Outlook(
            series.name,
            self.layout.season,
            values,
            times,
            forecast,
            {name: each[0] for name, each in naive.items()},
            tuple(future),
            truth if complete else None,
        )

    def evaluate(self, series: Series | None = None) -> ForecastScores:
        """Errors on the test part of the run's series, or on the whole of another one."""
        layout, part = self.layout, "test part"
        if series is None:
            series, origins = self.series, layout.origins("test", len(self.series))
        else:
            part = "all of it"
            needed = layout.window + layout.horizon
            if len(series) < needed:
                raise BadInput(
                    f'"{series.name}" has {len(series)} values: one forecast needs {layout.window} before it and '
                    f"{layout.horizon} to compare with, {needed} in all"
                )
            origins = np.arange(layout.window - 1, len(series) - layout.horizon)
        training = self.series.values[: layout.train]
        forecasts = self.forecasts(series.values, origins)
        return compare(forecasts, series.values, origins, training, layout.season, part, series.name)

    def _check(self, values: Values) -> None:
        if values.ndim != 1:
            raise BadInput(f"a series is a row of numbers, this has {values.ndim} dimensions")
        if len(values) < self.layout.window:
            raise BadInput(f"{len(values)} values are too few: this model looks back at {self.layout.window}")
        bad = np.flatnonzero(~(np.abs(values) <= LARGEST))
        if bad.size:
            raise BadInput(f"value {bad[0] + 1} is {values[bad[0]]}: that cannot be computed with")


def _numbers(values: npt.ArrayLike) -> Values:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise BadInput(f"a series is a row of numbers: {error}") from None


def save_series(folder: Path, series: Series, layout: Layout) -> None:
    """What a loaded run needs besides recipe and weights."""
    about = {"name": series.name, "timed": bool(series.times), **asdict(layout)}
    with disk_errors_named("saving the series", folder, "Free some space and start again."):
        replace_file(folder / NUMBERS, series.to_csv())
        replace_file(folder / ABOUT, json.dumps(about, ensure_ascii=False, indent=1) + "\n")


def has_series(folder: Path) -> bool:
    """Whether a run has its series already: it is written once, when the run begins."""
    return (folder / ABOUT).is_file()


def load_series(folder: Path) -> tuple[Series, Layout]:
    origin = folder / ABOUT
    try:
        raw = json.loads(origin.read_text(encoding="utf-8"))
        name = str(raw["name"])
        layout = Layout(**{each.name: _typed(raw[each.name], str(each.type)) for each in fields(Layout)})
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{origin} is missing or damaged ({error}): this run cannot be used without it") from None
    saved = read_series([folder / NUMBERS], "value", "time" if raw.get("timed") else None)
    possible = 0 < layout.window < layout.train < layout.valid < len(saved)
    if not possible or min(layout.scale, layout.season, layout.horizon) <= 0:
        raise BadInput(f"{origin} does not fit {NUMBERS}: one of them was changed")
    return Series(name, saved.values, saved.times), layout


def _typed(value: Any, kind: str) -> Any:
    """A number of the right kind, and nothing else: the file may come from anywhere."""
    right = isinstance(value, int if kind == "int" else int | float) and not isinstance(value, bool)
    if not right or not math.isfinite(value):
        raise ValueError(f"{value!r} is not a number")
    return value
