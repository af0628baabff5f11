"""The whole examination, with the trial in this process: what is found, and that nothing is left behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from in_process import InProcess, try_in_process
from runs import make_run
from seeded import seed  # noqa: F401

from jumok import recipe as recipes
from jumok.training.doctor import examine as module
from jumok.training.doctor.examine import examine
from jumok.training.doctor.findings import Report
from jumok.training.doctor.trial import Patient

SMALL = {
    "lstm-luong": ["data.train.pairs=300", "data.valid.pairs=20", "model.embedding=8"],
    "lstm-lm": ["data.train.pairs=300", "data.valid.pairs=20"],
    "forecast": ["data.series.length=400"],
}
KEYS = [
    "model.width=16",
    "model.layers=1",
    "training.updates=20",
    "training.batch_tokens=256",
    "threads=1",
    "device=cpu",
]


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, Any]]:
    return try_in_process(monkeypatch)


def examined(*keys: str, name: str = "lstm-luong", run: Path | None = None, **options: Any) -> Report:
    options = {"patience": 0.001, **options}
    return examine(recipes.read(name, [*SMALL[name], *KEYS, *keys]), run, **options)


def errors(report: Report) -> list[tuple[str, str]]:
    return [(finding.topic, finding.what) for finding in report.findings if finding.level == "error"]


@pytest.mark.parametrize("name", list(SMALL))
def test_every_task_can_be_examined(answers: Any, name: str) -> None:
    report = examined(name=name)
    assert not report.would_fail
    memory, time = report.facts["memory"], report.facts["time"]
    assert memory["predicted"] == sum(memory["parts"].values())
    assert memory["fits"]
    assert memory["largest"] >= 256
    assert time["total"] >= 20 * time["update"]
    assert time["validations"] == 1
    assert report.facts["data"]["epochs"] == pytest.approx(20 / report.facts["data"]["batches_per_epoch"])
    assert all(finding.what and finding.where and finding.todo for finding in report.findings)


def test_nothing_is_written_where_the_run_will_be(answers: Any, tmp_path: Path) -> None:
    examined(run=tmp_path / "below" / "run", trial=False)
    assert list(tmp_path.iterdir()) == []


def test_what_would_stop_the_run_at_its_beginning(
    answers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = make_run(tmp_path / "taken")
    before = sorted(path.name for path in taken.rglob("*"))
    monkeypatch.setattr(module, "find_spec", lambda package: None)
    report = examined("training.wandb=true", run=taken, trial=False)
    (first, second) = [finding for finding in report.findings if finding.level == "error"]
    assert "holds a run already" in first.what
    assert (second.where, second.todo) == ("training.wandb=true", 'pip install "jumok[wandb]"')
    assert sorted(path.name for path in taken.rglob("*")) == before


def test_a_prediction_that_is_too_large(answers: Any) -> None:
    report = examined(trial=False, memory=1000)
    ((topic, what),) = errors(report)
    assert topic == "memory"
    assert "by prediction (1 kB may be used)" in what
    assert "time" not in report.facts
    assert not errors(examined(trial=False))


@pytest.mark.parametrize(
    ("asked", "answer", "topic", "words"),
    [
        ("count", {"no_memory": "x"}, "memory", "not even a few rows"),
        ("count", {"problem": "no such scorer"}, "model", "no such scorer"),
        ("try", {"fits": False, "peak": 3e9, "seconds": 1.0}, "memory", "it had 3 GB when it failed"),
        ("try", {"died": -9, "told": ""}, "memory", "the worst batch does not fit"),
        ("try", {"fits": True, "finite": False, "seconds": 1.0, "peak": 5}, "model", "not a number"),
        ("time", {"died": 1, "told": "RuntimeError: boom"}, "model", "RuntimeError: boom"),
        ("validate", {"no_memory": "can't allocate"}, "model", "out of memory"),
    ],
)
def test_what_goes_wrong_when_it_is_tried(answers: Any, asked: str, answer: Any, topic: str, words: str) -> None:
    answers[asked] = answer
    ((found, what),) = errors(examined())
    assert found == topic
    assert words in what


@pytest.mark.parametrize(
    ("asked", "words"), [("try", "takes more than 60 s"), ("validate", "one validation takes more")]
)
def test_what_takes_too_long_is_slow_but_would_work(answers: Any, asked: str, words: str) -> None:
    answers[asked] = {"late": 60.0}
    report = examined()
    assert not report.would_fail
    assert any(words in finding.what and finding.level == "warning" for finding in report.findings)


def test_the_budget_that_fits_is_named(answers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def limited(self: Patient, budget: int) -> dict[str, Any]:
        return {"fits": budget <= 100, "finite": True, "seconds": 0.0, "peak": 10**6, "whole": False}

    monkeypatch.setattr(Patient, "attempt", limited)
    report = examined(patience=10.0)
    largest = report.facts["memory"]["largest"]
    assert 85 <= largest <= 100
    (finding,) = [finding for finding in report.findings if finding.level == "error"]
    assert finding.where == "training.batch_tokens=256"
    assert finding.todo.startswith(f"training.batch_tokens={int(0.9 * largest)} fits")
    monkeypatch.setattr(InProcess, "device", "cuda")
    on_gpu = examined(patience=10.0)
    assert not on_gpu.would_fail  # there the batch is split, and the run goes on
    assert any("in pieces" in finding.what for finding in on_gpu.findings)


def test_where_nothing_holds_it_back_only_what_should_fit_is_tried(
    answers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[int] = []

    def needs(self: Patient, budget: int) -> dict[str, Any]:
        tried.append(budget)
        return {"fits": True, "finite": True, "seconds": 0.0, "peak": 1000 * budget, "whole": False}

    monkeypatch.setattr(Patient, "attempt", needs)
    monkeypatch.setattr(InProcess, "enforced", False)
    report = examined(patience=10.0, memory=1_500_000)
    assert max(tried) <= 1500
    assert 1024 <= report.facts["memory"]["largest"] <= 1500


def test_a_short_run_is_told_what_it_does_not_see(answers: Any) -> None:
    report = examined("training.updates=1", trial=False)
    assert any("1 updates see only" in finding.what for finding in report.findings)
    assert report.to_json()["would_fail"] is False
    report.add("error", "x", "a", "b", "c")
    assert report.ordered()[0].topic == "x"
