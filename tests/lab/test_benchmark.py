"""benchmarks/lab.py: what is committed is what it says it is."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest
from experiments import write_experiment

from jumok.lab import catalogue, results
from jumok.lab.runner import run_lab

FILE = Path(__file__).parents[2] / "benchmarks" / "lab.py"


@pytest.fixture
def benchmark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """For a lab of two made-up experiments."""
    if not FILE.exists():
        pytest.skip("the benchmarks are not part of this package")
    monkeypatch.syspath_prepend(str(tmp_path))
    names = [write_experiment(tmp_path, name, number) for number, name in enumerate(("first_of", "second_of"), 1)]
    monkeypatch.setattr(catalogue, "modules", lambda: names)
    monkeypatch.setattr(results, "package_code", lambda: b"whoever works on the package meanwhile")
    spec = importlib.util.spec_from_file_location("lab_benchmark", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_seeds_that_it_names_are_those_that_were_judged(
    benchmark: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lab, out = tmp_path / "lab", tmp_path / "out"

    def written(seeds: int) -> None:
        benchmark.main(["--lab", str(lab), "--out", str(out), "--seeds", str(seeds)])

    with pytest.raises(SystemExit, match=r"first-of.json cannot be read .* jumok lab all --seeds 3"):
        written(3)
    list(run_lab(["first_of", "second_of"], 3, lab))
    written(3)
    document = json.loads(out.with_suffix(".json").read_text(encoding="utf-8"))
    assert document["command"] == "jumok lab all --seeds 3"
    assert [len(each["seeds"]) for each in document["experiments"]] == [3, 3]
    page = out.with_suffix(".md").read_text(encoding="utf-8")
    assert "4 claims: 4 hold, 0 do not." in page
    assert "| the mean is 2.00 over 3 | 2 of 3 |" in page
    with pytest.raises(SystemExit, match=r"seeds \[1, 2, 3\] judged"):
        written(5)
    list(run_lab(["second_of"], 2, lab, again=False))
    with pytest.raises(SystemExit, match=r"second-of.json: seeds \[1, 2\] judged"):
        written(3)
    assert not capsys.readouterr().err
    write_experiment(tmp_path, "first_of", body="'other code'")
    with pytest.raises(SystemExit):
        written(3)
    assert "first-of.json: measured with other code" in capsys.readouterr().err
