"""`jumok runs` as a user types it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from journey import jumok, refused
from runs import make_run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "runs"
    make_run(place / "narrow", "model.width=64", losses=(3.0, 2.5))
    make_run(place / "wide", "model.width=256", losses=(2.0, 1.5), stopped=None, done=20)
    broken = make_run(place / "broken")
    (broken / "recipe.yaml").write_text("[red]not a recipe[/red]: [")
    (place / "notes").mkdir()
    return place


def test_runs_are_listed_and_compared(folder: Path) -> None:
    told = jumok("runs", cwd=folder.parent)
    assert told.returncode == 0, told.stderr
    lines = told.stdout.splitlines()
    rows = {line.split()[0]: line for line in lines if line}
    for word in ("done", "lstm luong 64×2", "40/40", "loss 2.5", "1,500"):
        assert word in rows["narrow"]
    assert "stopped" in rows["wide"]
    assert "20/40" in rows["wide"]
    assert "damaged  recipe.yaml" in rows["broken"]
    assert "no runs in: notes" in lines
    assert rows["model.width"].split() == ["model.width", "64", "256"]


def test_sorted_by_another_metric_and_drawn(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "compare.png"
    told = jumok("runs", folder / "narrow", folder / "wide", "--sort", "best", "--metric", "loss", "--out", out)
    assert told.returncode == 0, told.stderr
    assert told.stdout.index("wide") < told.stdout.index("narrow")
    assert out.read_bytes().startswith(b"\x89PNG")
    assert "Traceback" not in told.stderr


def test_json_for_programs(folder: Path) -> None:
    found = json.loads(jumok("runs", folder, "--json").stdout)
    states = {Path(run["path"]).name: run["state"] for run in found["runs"]}
    assert states == {"broken": "damaged", "narrow": "done", "wide": "stopped"}
    assert found["differences"]["model.width"] == {str(folder / "narrow"): 64, str(folder / "wide"): 256}


def test_what_is_wrong_is_told(folder: Path) -> None:
    refused(jumok("runs", "--sort", "bets", folder), 'Did you mean "best"')
    refused(jumok("runs", "--metric", "blue", folder), 'Did you mean "bleu"')
    refused(jumok("runs", "--out", "x.gif", folder), ".png")
    refused(jumok("runs", cwd=folder), "there is no folder runs")
    alone = jumok("runs", folder / "notes")
    assert alone.returncode == 0
    assert "not a run folder" in alone.stdout


def test_listing_does_not_wait_for_torch(folder: Path) -> None:
    code = "import sys; from jumok.cli.main import run; run(['runs', sys.argv[1]]); sys.exit('torch' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "narrow" in result.stdout
