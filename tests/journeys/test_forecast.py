"""A user's way with numbers: a CSV file, a trained forecaster, its errors, a picture; and what can be wrong on it.

The first command runs in a process of its own, as a user's does; the others in this one, which has torch already.
"""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

import pytest
from journey import jumok, refused

from jumok.cli.main import run as run_command

Jumok = Callable[..., "subprocess.CompletedProcess[str]"]
SMALL = [
    "threads=1", "model.width=12", "training.updates=40", "training.validate_every=20", "training.warmup=5",
    "training.batch_tokens=2048",
]  # fmt: skip


def write_days(path: Path, count: int = 300, first: date = date(2023, 1, 1), start: int = 0) -> Path:
    """A shop's sales: seven days that repeat, and a slow rise. German style: semicolons and decimal commas."""
    lines = ["Tag;Wetter;Umsatz"]
    for number in range(start, start + count):
        value = 100 + 0.1 * number + 20 * math.sin(2 * math.pi * number / 7) + (number * 37 % 11)
        lines.append(f"{first + timedelta(days=number)};{number % 5};{value:.2f}".replace(".", ","))
    path.write_bytes(("\ufeff" + "\r\n".join(lines) + "\r\n").encode())
    return path


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str]) -> Jumok:
    """`jumok …` in this process."""

    def command(*arguments: object) -> subprocess.CompletedProcess[str]:
        capsys.readouterr()
        code = run_command([str(argument) for argument in arguments])
        told = capsys.readouterr()
        return subprocess.CompletedProcess(arguments, code, told.out, told.err)

    return command


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("forecast")
    run, file = folder / "run", write_days(folder / "sales.csv")
    result = jumok("train", "forecast", "--csv", file, "--column", "Umsatz", "--horizon", 7, "--run", run, *SMALL)
    assert result.returncode == 0, result.stderr
    assert "season 7 (found in the autocorrelation), window 28" in result.stderr
    assert "values/s" in result.stderr
    assert "tokens/s" not in result.stderr
    for word in ("Umsatz, test part", "MAE", "RMSE", "MASE", "last value", "seasonal naive", "jumok forecast --run"):
        assert word in result.stdout, result.stdout
    return run, file


def test_evaluate(here: Jumok, trained: tuple[Path, Path]) -> None:
    run, file = trained
    found = json.loads(here("evaluate", "--run", run, "--json").stdout)
    assert found["season"] == 7
    assert found["forecasts"] == 60 - 7 + 1
    by_name = {method["name"]: method for method in found["methods"]}
    assert all(len(method["mae_by_step"]) == 7 for method in by_name.values())
    # a sine of amplitude 20: its mean absolute difference over a step is far above what is left after a season
    assert by_name["last value"]["mae"] > 3 * by_name["seasonal naive"]["mae"]
    whole = json.loads(here("evaluate", "--run", run, "--csv", file, "--json").stdout)
    assert whole["forecasts"] == 300 - 28 - 7 + 1, "the recipe's column is taken"
    refused(here("evaluate", "--run", run, "--source", file, "--reference", file), "forecaster", "--csv")
    refused(here("translate", "--run", run, "Hello"), "not a translation run", "forecasting")
    refused(here("evaluate", "--csv", file), "--run")


def test_forecast(here: Jumok, trained: tuple[Path, Path], tmp_path: Path) -> None:
    run, file = trained
    plain = here("forecast", "--run", run, "--horizon", 10)
    rows = [line.split(",") for line in plain.stdout.splitlines()]
    assert rows[0] == ["step", "time", "forecast", "last_value", "seasonal_naive"]
    assert rows[1][:2] == ["1", "2023-10-28"]
    assert len(rows) == 11
    # the model's own file given as a file: the same forecast
    again = here("forecast", "--run", run, "--csv", file, "--horizon", 10)
    assert again.stdout == plain.stdout
    # what came later, as a second part of the series
    later = write_days(tmp_path / "later.csv", 14, start=300)
    longer = here("forecast", "--run", run, "--csv", file, "--csv", later)
    assert longer.stdout.splitlines()[1].split(",")[1] == "2023-11-11"
    for name in ("f.png", "f.svg", "f.csv", "f.json"):
        result = here("forecast", "--run", run, "--out", tmp_path / name)
        assert result.returncode == 0, result.stderr
        assert (tmp_path / name).stat().st_size > 100
    refused(here("forecast", "--run", run, "--out", tmp_path / "f.gif"), ".png")
    refused(here("forecast", "--run", run, "--column", "x"), "--csv")
    refused(here("forecast", "--run", run, "--horizon", 0), "horizon of 0")
    refused(here("forecast", "--run", run, "--csv", write_days(tmp_path / "few.csv", 9)), "9 values", "28")
    refused(here("forecast", "--run", run, "--csv", tmp_path / "none.csv"), "none.csv")
    refused(here("forecast", "--run", tmp_path), "not a run folder")


def test_the_run_needs_nothing_else(here: Jumok, trained: tuple[Path, Path], tmp_path: Path) -> None:
    run, file = trained
    file.rename(tmp_path / "moved.csv")
    try:
        assert here("forecast", "--run", run).returncode == 0
        assert here("evaluate", "--run", run).returncode == 0
    finally:
        (tmp_path / "moved.csv").rename(file)
    assert "complete" in here("train", "--resume", "--run", run).stderr
    names = {path.name for path in run.iterdir()}
    assert {"series.csv", "series.json", "report.html", "recipe.yaml"} <= names


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("x\n" + "1\n" * 100, ["--horizon", 2], ["does not change"]),
        ("x\n1\n2\n3\n", ["--horizon", 2], ["too short", "3 values"]),
        ("x,y\n1,2\n1,\n", ["--column", "y"], ["bad.csv, line 3", "missing"]),
        ("x,y\n1,2\n1,a\n", ["--column", "y"], ["bad.csv, line 3", '"a" is not a number']),
        ("x,y\n1,2\n", [], ["which column"]),
        ("total,y\n1,2\n", ["--column", "totl"], ['Did you mean "total"']),
        ("x,x\n1,2\n", ["--column", "x"], ["both called"]),
        ("x\n1\n2\n", ["--horizon", 0], ["data.series.horizon", "greater than or equal to 1"]),
        ("x\n1\n2\n", ["--season", -1], ["data.series.season"]),
    ],
)
def test_bad_files_are_named_with_their_line(
    here: Jumok, tmp_path: Path, text: str, options: list[object], words: list[str]
) -> None:
    (tmp_path / "bad.csv").write_text(text, encoding="utf-8")
    result = here("train", "forecast", "--csv", tmp_path / "bad.csv", *options, "--run", tmp_path / "run")
    refused(result, *words)
    assert not (tmp_path / "run").exists(), "nothing comes into being before the data is found good"


def test_options_of_other_tasks(here: Jumok, tmp_path: Path) -> None:
    write_days(tmp_path / "a.csv", 20)
    refused(here("train", "lstm", "--csv", tmp_path / "a.csv", "--run", tmp_path / "r"), "data.series", "forecasting")
    refused(here("train", "--resume", "--run", tmp_path / "r", "--horizon", 3), "recipe")
    refused(here("train", "forecast", "--column", "x", "--run", tmp_path / "r"), "column", "csv")


@pytest.mark.full
@pytest.mark.parametrize("name", ["forecast", "forecast-rnn", "forecast-transformer"])
def test_a_killed_run_goes_on_exactly(name: str) -> None:
    keys = ["data.series.length=400", "data.series.horizon=8", "model.dropout=0.1", "threads=1"]
    result = jumok("verify-resume", name, *keys, "--updates", 24, "--kills", 2)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "identical" in result.stdout
