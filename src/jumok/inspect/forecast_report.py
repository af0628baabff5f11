"""The report that the training of a forecaster ends with: its errors, its forecasts drawn, and the curves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from jumok import recipe as recipes
from jumok.errors import Failure
from jumok.inspect.attention import visible
from jumok.inspect.fonts import families_for
from jumok.inspect.forecast_plot import draw_errors, draw_forecast
from jumok.inspect.html import escape, picture
from jumok.inspect.report import ExtraSection, write_report
from jumok.recipe import Recipe
from jumok.tasks.forecast_scores import ForecastScores, described
from jumok.tasks.forecasting import ForecastingObjective
from jumok.tasks.series_forecaster import SeriesForecaster
from jumok.training.run import RunFolder


def write_forecast_report(forecaster: SeriesForecaster, recipe: Recipe, run: RunFolder) -> Path:
    scores = forecaster.evaluate()
    extra = [
        ExtraSection("errors", "Errors", _errors(scores)),
        ExtraSection("forecasts", "Forecasts", _forecasts(forecaster)),
    ]
    title, counted = f"jumok: {run.path.name}", ForecastingObjective.counted
    write_report(run.report, title, recipes.dump(recipe), run.events(), extra=extra, counted=counted)
    return run.report


def _errors(scores: ForecastScores) -> str:
    names = ("", "MAE", "RMSE", "MASE")
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    rows = []
    for method in scores.methods:
        mase = "–" if method.mase is None else f"{method.mase:.3f}"
        numbers = zip(names[1:], (f"{method.mae:.4g}", f"{method.rmse:.4g}", mase), strict=True)
        cells = "".join(f'<td data-label="{name}" class="score">{value}</td>' for name, value in numbers)
        rows.append(f'<tr><th scope="row">{escape(method.name)}</th>{cells}</tr>')
    note = (
        f"<p>{scores.forecasts:,} forecasts of {scores.horizon} steps each, from every moment of the test part of "
        f"“{escape(scores.series)}” ({described(scores.season)}), which neither the weights nor the choice of the "
        "checkpoint have seen. MASE is the error in units of the seasonal guess in training.</p>"
    )
    table = (
        f'<table class="list scores"><thead><tr>{head}</tr></thead>\n<tbody>\n{chr(10).join(rows)}\n</tbody></table>'
    )
    told = f"Mean absolute error by the number of steps ahead, 1 to {scores.horizon}"
    labelled = replace(scores, series=_drawable(scores.series))
    errors = _picture(told, lambda dark: draw_errors(labelled, "svg", dark=dark))
    return f"{note}\n{table}\n{errors}"


def _forecasts(forecaster: SeriesForecaster) -> str:
    known = len(forecaster.series) - forecaster.layout.horizon
    label = _drawable(forecaster.series.name)
    past, coming = (replace(each, name=label) for each in (forecaster.outlook(known=known), forecaster.outlook()))
    name = forecaster.series.name
    first = _picture(
        f"The last forecast of the test part of {name}, beside what came",
        lambda dark: draw_forecast(past, "svg", dark=dark),
    )
    second = _picture(f"The forecast of {name} beyond its end", lambda dark: draw_forecast(coming, "svg", dark=dark))
    return (
        f"<p>The last {len(past.forecast)} values of the series, forecast from those before them, beside what came:</p>"
        f"\n{first}\n<p>What comes next:</p>\n{second}"
    )


def _drawable(name: str) -> str:
    """A trained run must not end without its report because no font here can draw the name of a column."""
    try:
        families_for(visible(name))
    except Failure:
        return "value"
    return name


def _picture(told: str, draw: Callable[[bool], bytes]) -> str:
    """An image for light pages and one for dark ones, both inside the page."""
    return f'<figure class="picture">{picture(draw(False), draw(True), told)}</figure>'
