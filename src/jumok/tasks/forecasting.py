"""Forecasting: a series → windows, model → objective, forecasts → errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch

from jumok.data.series import Series, read_series
from jumok.data.series_generated import GENERATED
from jumok.data.series_windows import SeriesPlan, WindowBatch, lay_out
from jumok.data.shuffle import IntArray
from jumok.models.forecaster import Forecaster
from jumok.recipe import ForecasterSection, Recipe, SeriesSection
from jumok.tasks.forecast_scores import described
from jumok.tasks.objective import Loss, Objective
from jumok.tasks.series_forecaster import has_series, save_series
from jumok.text.tokenizer import Tokenizer

Say = Callable[[str], None]
ROWS = 512  # windows read at once where nothing is learned


class ForecastingObjective(Objective):
    """Σ |y − ŷ| over all steps of the horizon, in standard deviations of the training part."""

    model: Forecaster
    counted = "values"

    def __init__(self, model: Forecaster) -> None:
        super().__init__()
        self.model = model

    def forward(self, batch: WindowBatch) -> Loss:
        return Loss((self.model(batch.past) - batch.future).abs().sum(), batch.tokens)


class ForecastingTask:
    """Everything `jumok train` needs to know about forecasting."""

    objective: ForecastingObjective

    def __init__(self, recipe: Recipe, device: torch.device, say: Say) -> None:
        assert recipe.data.series is not None
        assert isinstance(recipe.model, ForecasterSection)
        self.recipe, self.device = recipe, device
        self.series = open_series(recipe.data.series)
        self.layout = lay_out(self.series, recipe.data.series)
        training = recipe.training
        self.plan = SeriesPlan(self.series, self.layout, training.batch_tokens, recipe.seed, training.accumulate)
        found = "" if recipe.data.series.season else " (found in the autocorrelation)"
        say(f'"{self.series.name}": {described(self.layout.season)}{found}, window {self.layout.window}')
        torch.manual_seed(recipe.seed)
        self.objective = ForecastingObjective(Forecaster(recipe.model, self.layout.window, self.layout.horizon))

    @property
    def tokenizers(self) -> Mapping[str, Tokenizer]:
        return {}

    @property
    def data_keys(self) -> list[str]:
        return [self.series.key]

    def keep(self, folder: Path) -> None:
        if not has_series(folder):
            save_series(folder, self.series, self.layout)

    def sizes(self) -> str:
        parts = [len(self.origins(part)) for part in ("train", "valid", "test")]
        epoch = f"{self.plan.batches_per_epoch:,} batch{'es' * (self.plan.batches_per_epoch > 1)} an epoch"
        return f"{len(self.series):,} values as {parts[0]:,}/{parts[1]:,}/{parts[2]:,} windows, {epoch}"

    def origins(self, part: str) -> IntArray:
        return self.layout.origins(part, len(self.series))

    def batches(self, update: int, only: Sequence[int] | None = None) -> list[WindowBatch]:
        return self.plan.at(update, only)

    def name_batch(self, batch: WindowBatch) -> str:
        shown = ", ".join(str(origin + 1) for origin in batch.origins[:5])
        more = f" and {len(batch.origins) - 5} more" if len(batch.origins) > 5 else ""
        return f'the windows of "{self.series.name}" that end with value {shown}{more}'

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """Mean absolute error on the validation part, in standard deviations ("loss") and in the series' own units."""
        self.objective.eval()
        origins = self.origins("valid")
        loss = torch.zeros((), dtype=torch.float64)
        for start in range(0, len(origins), ROWS):
            batch = self.plan.batch(origins[start : start + ROWS])
            loss += self.objective(batch.to(self.device)).sum.cpu().double()
        mean = float(loss) / (len(origins) * self.layout.horizon)
        return {"loss": mean, "mae": mean * self.layout.scale}


def open_series(section: SeriesSection) -> Series:
    """The numbers that a recipe names."""
    if section.generated is not None:
        return GENERATED[section.generated](section.length)
    return read_series(section.csv, section.column, section.time)
