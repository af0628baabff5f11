"""`jumok doctor` as a user types it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from asked import Ask
from forked import fork_instead
from journey import SMALL, jumok, refused, write_corpus

from jumok.training.doctor import session

Corpus = tuple[Path, Path, Path]
KEYS = [*SMALL, "training.updates=50", "training.validate_sentences=2", "data.hold_out=20", "device=cpu"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return write_corpus(tmp_path_factory.mktemp("corpus"), 400)


def files(corpus: Corpus) -> list[str]:
    return ["--source", str(corpus[0]), "--target", str(corpus[1])]


def test_a_run_that_will_work(corpus: Corpus, ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jumok.training.doctor.examine.TIMED", 0.1)
    fork_instead(monkeypatch, session)
    run = tmp_path / "run"
    code, told, errors = ask("doctor", "lstm-luong", *files(corpus), *KEYS, "--run", run)
    assert code == 0, told + errors
    for words in (
        "cpu, 1 thread, float32",
        "parameters",
        "checkpoints",
        "predicted",
        "measured:",
        "in all:",
        "tokens/s",
    ):
        assert words in told
    assert "training.batch_tokens up to" in told
    assert "nothing stands in the way" in told
    assert not run.exists()
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_does_not_fit(corpus: Corpus, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    fork_instead(monkeypatch, session)
    keys = [*KEYS, "training.batch_tokens=8192", "model.width=1024"]
    code, told, errors = ask("doctor", "lstm-luong", *files(corpus), *keys, "--memory", 0.6, "--json")
    assert code == 2, errors
    report: dict[str, Any] = json.loads(told)
    assert report["would_fail"]
    (error,) = [finding for finding in report["findings"] if finding["level"] == "error"]
    assert error["topic"] == "memory"
    assert error["where"] == "training.batch_tokens=8192"
    largest = report["facts"]["memory"]["largest"]
    assert largest is None or largest < 8192
    assert report["facts"]["memory"]["fits"] is False


def test_data_that_cannot_be_read_is_an_error_of_the_run(corpus: Corpus, tmp_path: Path) -> None:
    gone = jumok("doctor", "lstm-luong", "--source", tmp_path / "gone.en", "--target", corpus[1], *KEYS)
    assert gone.returncode == 2
    assert "✗ data:" in gone.stdout
    assert "gone.en" in gone.stdout
    assert "this run would fail" in gone.stdout
    assert "Traceback" not in gone.stderr


def test_what_is_wrong_with_the_command_is_told() -> None:
    refused(jumok("doctor"), "name a recipe to examine")
    refused(jumok("doctor", "lstm-luong", "--memory", "-1"), "--memory")
    refused(jumok("doctor", "lstm-luong", "model.widht=3"), 'Did you mean "model.width"')
