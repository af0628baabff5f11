"""How good forecasts are, beside two that cost nothing: the last value, and the value of one season ago.

    MAE  = mean |y − ŷ|          RMSE = √ mean (y − ŷ)²
    MASE = MAE / mean over the training part of |y_t − y_(t−season)|        (Hyndman and Koehler 2006)

MASE is free of units: below 1 is better than the seasonal guess, one step ahead of what was known, was in training.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from jumok.data.series import Values
from jumok.data.shuffle import IntArray

Forecasts = npt.NDArray[np.float64]  # (origins, horizon)


def last_value(values: Values, origins: IntArray, horizon: int) -> Forecasts:
    """ŷ_(t+h) = y_t"""
    return np.repeat(values[origins][:, None], horizon, axis=1)


def seasonal_naive(values: Values, origins: IntArray, horizon: int, season: int) -> Forecasts:
    """ŷ_(t+h) = y_(t+h−km), with the smallest k that leads to a known value; without a season, the last value.

    Where not even one season is known, the last value stands in.
    """
    steps = np.arange(1, horizon + 1)
    places = origins[:, None] + steps - season * -(-steps // season)
    return np.where(places >= 0, values[np.maximum(places, 0)], values[origins][:, None])


@dataclass(frozen=True)
class MethodScore:
    """One way of forecasting: its errors over all steps, and the mean absolute error of each step ahead."""

    name: str
    mae: float
    rmse: float
    mase: float | None  # None where the series repeated itself exactly in training
    mae_by_step: list[float]


@dataclass(frozen=True)
class ForecastScores:
    """Forecasts from every moment of a part of a series, against what came."""

    part: str  # "test", or the name of a file
    series: str
    forecasts: int
    horizon: int
    season: int
    methods: list[MethodScore]  # the model first

    @property
    def model(self) -> MethodScore:
        return self.methods[0]

    @property
    def wins(self) -> bool:
        return all(self.model.mae < other.mae for other in self.methods[1:])

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def summary(self) -> str:
        """A table for people."""
        about = f"{self.series}, {self.part}: {self.forecasts:,} forecasts of {self.horizon} step"
        lines = [f"{about}{'s' * (self.horizon > 1)}, {described(self.season)}", ""]
        rows = [("", "MAE", "RMSE", "MASE"), *map(_row, self.methods)]
        widths = [max(len(row[place]) for row in rows) for place in range(4)]
        lines += [
            "  ".join([row[0].ljust(widths[0]), *(row[place].rjust(widths[place]) for place in range(1, 4))]).rstrip()
            for row in rows
        ]
        best = min(self.methods[1:], key=lambda method: method.mae)
        if self.wins and best.mae:
            lines += ["", f"the model's error is {1 - self.model.mae / best.mae:.0%} below that of {best.name}"]
        else:
            lines += ["", f"the model is not better than {best.name} here"]
        return "\n".join(lines)


def described(season: int) -> str:
    return f"season {season}" if season > 1 else "no season"


def _row(method: MethodScore) -> tuple[str, str, str, str]:
    mase = "–" if method.mase is None else f"{method.mase:.3f}"
    return method.name, f"{method.mae:.4g}", f"{method.rmse:.4g}", mase


def score(name: str, forecasts: Forecasts, truth: Forecasts, unit: float) -> MethodScore:
    """`unit`: what MASE divides by."""
    errors = np.abs(forecasts - truth)
    mae = float(errors.mean())
    rmse = float(np.sqrt((errors**2).mean()))
    return MethodScore(name, mae, rmse, mae / unit if unit > 0 else None, errors.mean(axis=0).tolist())


def compare(
    model: Forecasts,
    values: Values,
    origins: IntArray,
    training: Values,
    season: int,
    part: str,
    series: str,
) -> ForecastScores:
    """The model's forecasts from these origins beside the two naive ones, on the same values."""
    horizon = model.shape[1]
    truth = values[origins[:, None] + np.arange(1, horizon + 1)]
    unit = float(np.abs(training[season:] - training[:-season]).mean())
    naive = naive_forecasts(values, origins, horizon, season)
    methods = [score(name, forecasts, truth, unit) for name, forecasts in {"model": model, **naive}.items()]
    return ForecastScores(part, series, len(origins), horizon, season, methods)


def naive_forecasts(values: Values, origins: IntArray, horizon: int, season: int) -> Mapping[str, Forecasts]:
    """By name; without a season there is only one."""
    naive = {"last value": last_value(values, origins, horizon)}
    return naive | ({"seasonal naive": seasonal_naive(values, origins, horizon, season)} if season > 1 else {})
