"""Pictures of forecasts: what is drawn, always the same bytes, and names that would not be drawn."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib import font_manager

from jumok import recipe as recipes
from jumok.data.series import Series, read_series
from jumok.data.series_windows import lay_out
from jumok.errors import BadInput, Failure
from jumok.inspect.forecast_plot import check_forecast_path, draw_errors, draw_forecast, write_forecast
from jumok.inspect.forecast_report import write_forecast_report
from jumok.models.forecaster import Forecaster
from jumok.recipe import ForecasterSection, SeriesSection
from jumok.tasks.series_forecaster import Outlook, SeriesForecaster
from jumok.training.run import RunFolder

NAME = "<b>$\\alpha$ & 물</b>"  # neither HTML nor mathematics


def forecaster(times: bool = False, name: str = "x") -> SeriesForecaster:
    """Untrained: it says that nothing changes."""
    values = 5 + np.sin(np.arange(120) / 4)
    stamps = tuple(f"{2000 + n // 12}-{n % 12 + 1:02d}" for n in range(120)) if times else ()
    series = Series(name, values, stamps)
    layout = lay_out(series, SeriesSection(csv=["a.csv"], window=20, horizon=6, season=25))
    return SeriesForecaster(Forecaster(ForecasterSection(width=8), 20, 6).eval(), series, layout, torch.device("cpu"))


@pytest.fixture
def outlook() -> Outlook:
    return forecaster(times=True).outlook()


def polylines(svg: str) -> int:
    """How many lines of data an SVG has (matplotlib marks them as line2d with a clip path)."""
    return len(re.findall(r'<g id="line2d_\d+">\s*<path [^>]*clip-path', svg))


@pytest.mark.parametrize("dark", [False, True])
def test_pictures_are_the_same_every_time(outlook: Outlook, dark: bool) -> None:
    assert draw_forecast(outlook, dark=dark) == draw_forecast(outlook, dark=dark)
    svg = draw_forecast(outlook, "svg", dark=dark)
    assert svg == draw_forecast(outlook, "svg", dark=dark)
    assert draw_forecast(outlook, dark=dark)[:8] == b"\x89PNG\r\n\x1a\n"
    assert draw_forecast(outlook, "svg", dark=not dark) != svg


def test_history_forecast_and_both_naive_lines_are_drawn(outlook: Outlook) -> None:
    svg = draw_forecast(outlook, "svg").decode()
    grid = svg.count("stroke-opacity: 0.3")
    assert polylines(svg) - grid == 4
    with_truth = forecaster().outlook(known=100)
    assert with_truth.truth is not None
    drawn = draw_forecast(with_truth, "svg").decode()
    assert polylines(drawn) - drawn.count("stroke-opacity: 0.3") == 5


def test_errors_by_step_are_drawn() -> None:
    scores = forecaster().evaluate()
    svg = draw_errors(scores, "svg").decode()
    assert polylines(svg) - svg.count("stroke-opacity: 0.3") == 3
    assert draw_errors(scores)[:4] == b"\x89PNG"


@pytest.mark.parametrize("history", [2, 20, 10_000])
def test_any_stretch_of_history(outlook: Outlook, history: int) -> None:
    assert draw_forecast(outlook, history=history)


def test_numbers_into_files(outlook: Outlook, tmp_path: Path) -> None:
    write_forecast(outlook, tmp_path / "a.csv")
    again = read_series([tmp_path / "a.csv"], "forecast")
    assert again.times == ("2010-01", "2010-02", "2010-03", "2010-04", "2010-05", "2010-06")
    assert again.values == pytest.approx(outlook.forecast, rel=1e-9)
    write_forecast(outlook, tmp_path / "a.json")
    found = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    assert found["forecast"] == outlook.forecast.tolist()
    assert found["season"] == 25
    for kind in ("png", "svg"):
        write_forecast(outlook, tmp_path / f"a.{kind}")
        assert (tmp_path / f"a.{kind}").stat().st_size > 1000


@pytest.mark.parametrize("name", ["a.gif", "a", "nowhere/a.png", "."])
def test_paths_that_cannot_be_written(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadInput, match="--out"):
        check_forecast_path(tmp_path / name)


def test_a_name_that_no_font_can_draw_does_not_cost_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(font_manager, "findSystemFonts", list)  # a machine without Hangul
    monkeypatch.setattr("jumok.inspect.fonts._EXTRA", "no_such_package")
    model = forecaster(name="매출")
    with pytest.raises(Failure, match="no installed font"):
        draw_forecast(model.outlook())
    recipe = recipes.read("forecast")
    report = write_forecast_report(model, recipe, RunFolder.create(tmp_path / "run", recipe))
    assert report.read_text(encoding="utf-8").count("<img") == 3


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_report_shows_scores_and_pictures(tmp_path: Path, visit: Callable[..., Any], scheme: str) -> None:
    model = forecaster(times=True, name=NAME)
    recipe = recipes.read("forecast")
    run = RunFolder.create(tmp_path / "run", recipe)
    write_forecast_report(model, recipe, run)
    page = visit(run.report, color_scheme=scheme)
    page.wait_for_function("[...document.images].every(image => image.complete)")
    sizes = page.evaluate("[...document.images].map(image => image.naturalWidth)")
    assert len(sizes) == 3
    assert min(sizes) > 300, "all pictures are really drawn under the page's own policy"
    names = [cell.inner_text() for cell in page.query_selector_all("#errors ~ table tbody th")]
    assert names == ["model", "last value", "seasonal naive"]
    assert NAME in page.inner_text("main")
