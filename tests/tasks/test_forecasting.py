"""Forecasting as a task: what it learns, what it says, and that the future stays unseen."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from jumok import api
from jumok import recipe as recipes
from jumok.data.series_generated import tides
from jumok.errors import BadInput
from jumok.tasks.build import build_task
from jumok.tasks.forecasting import ForecastingTask
from jumok.training.run import RunFolder
from jumok.training.verify import differences

QUICK = [
    "threads=1", "data.series.length=1000", "data.series.horizon=12", "data.series.window=48", "model.width=32",
    "training.updates=250", "training.batch_tokens=3072", "training.validate_every=50",
]  # fmt: skip


def task(*overrides: str) -> ForecastingTask:
    return ForecastingTask(recipes.read("forecast", overrides), torch.device("cpu"), lambda message: None)


def csv(folder: Path, values: np.ndarray, name: str = "numbers.csv") -> Path:
    path = folder / name
    path.write_text("x\n" + "".join(f"{value!r}\n" for value in values.tolist()), encoding="utf-8")
    return path


def test_the_loss_is_the_mean_absolute_error() -> None:
    found = task(*QUICK)
    with torch.no_grad():
        loss = found.objective.eval()(found.batches(0)[0])
    batch = found.batches(0)[0]
    assert loss.count == batch.future.numel()
    # an untrained model says that nothing changes
    assert float(loss.sum) == pytest.approx(float((batch.future - batch.past[:, -1:]).abs().sum()), rel=1e-5)
    values = found.validate()
    origins = found.origins("valid")
    truth = found.series.values[origins[:, None] + np.arange(1, 13)]
    expected = np.abs(truth - found.series.values[origins][:, None]).mean()
    assert values["mae"] == pytest.approx(expected, rel=1e-4)
    assert values["loss"] == pytest.approx(expected / found.layout.scale, rel=1e-4)
    assert "that end with value" in found.name_batch(batch)


def test_the_future_is_never_looked_at(tmp_path: Path) -> None:
    """Whatever is put in the place of the test part: training gives the same weights, to the bit."""
    steps = np.arange(240)
    plain = np.sin(steps / 3) + 0.01 * steps
    spoiled = plain.copy()
    spoiled[192:] = -1e3 * np.cos(steps[192:])
    weights = []
    for number, values in enumerate((plain, spoiled)):
        keys = [f"data.series.csv={csv(tmp_path, values, f'{number}.csv')}", "data.series.horizon=4", *QUICK[-4:]]
        keys += ["training.updates=20", "training.validate_every=10", "threads=1"]
        run = tmp_path / f"run-{number}"
        model = api.train("forecast", run, keys, quiet=True, report=False)
        weights.append(model.model.state_dict())
        assert model.layout.valid == 192
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


def test_the_lstm_beats_what_costs_nothing(tmp_path: Path) -> None:
    """On the embedded series, at a third of its size: both naive errors at least halved."""
    model = api.train("forecast", tmp_path / "run", QUICK, quiet=True)
    scores = model.evaluate()
    naive = [method.mae for method in scores.methods[1:]]
    assert [method.name for method in scores.methods] == ["model", "last value", "seasonal naive"]
    assert scores.model.mae < 0.5 * min(naive), scores.summary()
    assert all(
        step < other for step, other in zip(scores.model.mae_by_step, scores.methods[2].mae_by_step, strict=True)
    )
    # the run is all that is needed, whatever becomes of the recipe's files
    again = api.load(tmp_path / "run")
    assert again.evaluate() == scores
    assert np.array_equal(again.series.values, tides(1000).values)


@pytest.mark.full
@pytest.mark.parametrize("name", ["forecast", "forecast-rnn", "forecast-transformer"])
def test_the_shipped_recipes_beat_what_costs_nothing(tmp_path: Path, name: str) -> None:
    """As they are shipped; the margin is the one in docs/forecast.md, with room for another machine's last bits."""
    scores = api.train(name, tmp_path / "run", quiet=True).evaluate()
    assert scores.model.mae < 0.4 * min(method.mae for method in scores.methods[1:]), scores.summary()


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> api.TrainedForecaster:
    """A run trained for a moment: good for every question but how good it is."""
    folder = tmp_path_factory.mktemp("small")
    values = 50 + 10 * np.sin(np.arange(200) / 2)
    keys = ["data.series.horizon=5", "data.series.window=20", "data.series.season=12", "model.width=8", "threads=1"]
    keys += [f"data.series.csv={csv(folder, values)}", "training.updates=4", "training.validate_every=4"]
    return api.train("forecast", folder / "run", keys, quiet=True, report=False)


def test_forecasts_of_any_length_agree(small: api.TrainedForecaster) -> None:
    series = small.series.values
    five = small.forecast()
    assert five.shape == (5,)
    assert np.array_equal(small.forecast(series, 3), five[:3])
    assert np.array_equal(small.forecast(series.tolist()), five)
    assert np.array_equal(small.forecast(series[-20:], 5), five), "only the window is read"
    # beyond the horizon: the forecast is read as if it had come true
    longer = small.forecast(series, 12)
    assert np.array_equal(longer[:5], five)
    assert np.allclose(longer[5:10], small.forecast(np.append(series, five)), atol=1e-6)
    batch = small.forecasts(series, np.array([50, 199]))
    assert np.allclose(batch[1], five, atol=1e-5)
    assert np.allclose(batch[0], small.forecast(series[:51]), atol=1e-5)


def test_an_outlook_has_the_naive_forecasts_beside_it(small: api.TrainedForecaster) -> None:
    outlook = small.outlook(horizon=6)
    assert outlook.naive["last value"].tolist() == [small.series.values[-1]] * 6
    assert outlook.naive["seasonal naive"].tolist() == small.series.values[-12:-6].tolist()
    assert outlook.truth is None
    assert outlook.to_csv().splitlines()[0] == "step,forecast,last_value,seasonal_naive"
    known = small.outlook(known=150)
    assert known.truth is not None
    assert known.truth.tolist() == small.series.values[150:155].tolist()
    assert known.forecast.tolist() == small.forecast(small.series.values[:150]).tolist()


@pytest.mark.parametrize(
    ("values", "horizon", "words"),
    [
        (np.zeros(19), 5, "19 values are too few"),
        (np.zeros((20, 2)), 5, "2 dimensions"),
        (np.full(20, np.nan), 5, "value 1 is nan"),
        (np.append(np.zeros(19), np.inf), 5, "value 20 is inf"),
        (np.zeros(20), 0, "horizon of 0"),
        (np.zeros(20), -3, "horizon of -3"),
        (["a", "b"], 3, "numbers"),
    ],
)
def test_what_cannot_be_forecast(small: api.TrainedForecaster, values: object, horizon: int, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        small.forecast(values, horizon)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("series.json", "{}", "damaged"),
        ("series.json", "[", "damaged"),
        ("series.json", '{"name": "x", "window": "y"}', "damaged"),
        ("series.csv", "value\n1\n2\n", "does not fit"),
        ("series.csv", "value\n1\nx\n", "line 3"),
    ],
)
def test_a_damaged_run_is_refused_in_words(
    small: api.TrainedForecaster, tmp_path: Path, name: str, text: str, words: str
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(small.run.path, copy)
    (copy / name).write_text(text, encoding="utf-8")
    with pytest.raises(BadInput, match=words):
        api.load(copy)


def test_a_resumed_run_keeps_its_series_and_refuses_another(small: api.TrainedForecaster, tmp_path: Path) -> None:
    values = np.sin(np.arange(200.0))
    file = csv(tmp_path, values)
    keys = [f"data.series.csv={file}", "data.series.horizon=5", "model.width=8", "training.updates=4", "threads=1"]
    api.train("forecast", tmp_path / "run", keys, quiet=True, report=False)
    before = (tmp_path / "run" / "series.csv").read_bytes()
    csv(tmp_path, values + 1)
    with pytest.raises(BadInput, match="data has changed"):
        api.train(None, tmp_path / "run", resume=True, quiet=True)
    assert (tmp_path / "run" / "series.csv").read_bytes() == before
    file.unlink()
    assert api.load(tmp_path / "run").forecast().shape == (5,)


def test_recipes_that_do_not_fit_together() -> None:
    for key, words in {
        "task=translation": "data.train",
        "data.series=null": "data.series",
        "data.series.column=x": "belong to csv",
        "data.series.test=0.85": "too little to train on",
        "data.train.grammar=en-fr": "not from text",
        "training.metric=bleu": "is not measured by task: forecasting",
        "data.series.horizons=3": 'Did you mean "data.series.horizon"',
    }.items():
        with pytest.raises(BadInput, match=words):
            recipes.read("forecast", [key])
    with pytest.raises(BadInput, match="seq2seq cannot learn task: forecasting; use forecaster"):
        build_task(recipes.read("forecast", ["model.kind=seq2seq"]), torch.device("cpu"), print)


class Stop:
    """Ends a run in the middle, after a checkpoint, as a kill would."""

    def event(self, event: str, update: int, values: dict[str, object]) -> None:
        if event == "train" and update == 8:
            raise KeyboardInterrupt

    def close(self) -> None: ...


@pytest.mark.parametrize("cell", ["lstm", "transformer"])
def test_a_resumed_run_is_the_undisturbed_one(tmp_path: Path, cell: str) -> None:
    keys = ["data.series.length=300", "data.series.horizon=6", "data.series.window=16", "model.width=8", "threads=1"]
    keys += [f"model.cell={cell}", "model.heads=2", "model.dropout=0.2", "training.updates=12", "training.log_every=1"]
    keys += ["training.batch_tokens=512", "training.validate_every=6", "training.checkpoint_every=6"]
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    api.train("forecast", whole, keys, quiet=True, report=False)
    with pytest.raises(KeyboardInterrupt):
        api.train("forecast", cut, keys, quiet=True, report=False, sinks=[Stop()])
    assert RunFolder(cut).pointed("last") == 6
    api.train(None, cut, resume=True, quiet=True, report=False)
    assert differences(RunFolder(whole), RunFolder(cut)) == []
