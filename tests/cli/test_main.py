"""What the command line says when something runs out."""

from __future__ import annotations

from typing import Any

import pytest

from jumok import api
from jumok.cli.main import run


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("CUDA out of memory. Tried\nto allocate")])
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("translate I", "--batch, --beam"),
        ("evaluate --source a --reference b", "--batch or --beam"),
        ("score --source a --target b", "less at once"),
    ],
)
def test_out_of_memory_is_answered_with_what_the_command_has(
    line: str, words: str, error: Exception, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def full(*arguments: Any, **options: Any) -> None:
        raise error

    monkeypatch.setattr(api, "load_translator", full)
    assert run(line.split()) == 1
    said = capfd.readouterr().err
    assert said.startswith("jumok: out of memory")
    assert words in said
    assert "training" not in said


def test_training_is_told_what_to_train(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    def full(*arguments: Any, **options: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(api, "train", full)
    assert run(["train", "lstm", "--run", "never-made"]) == 1
    assert "training.batch_tokens" in capfd.readouterr().err
