"""The doctor's trial without a process of its own: nothing has to be imported once more."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import pytest
import torch

from jumok.recipe import Recipe
from jumok.training.doctor import examine as module
from jumok.training.doctor.trial import Patient


class InProcess:
    """A session without a process: quick, and without a limit."""

    answers: dict[str, dict[str, Any]]  # what is answered instead, by what is asked
    device, enforced = "cpu", True

    def __init__(self, recipe: Recipe, saved: Path | None, plugins: Any = (), memory: int | None = None) -> None:
        self.patient = Patient(recipe, saved, torch.device("cpu"))
        self.began = {"device": self.device, "threads": 1, "precision": "float32", "limit": memory or 10**10}
        self.began["enforced"] = self.enforced

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def ask(self, within: float, /, **request: Any) -> dict[str, Any]:
        return self.answers.get(str(request["do"])) or self.patient.answer(request)


def try_in_process(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, Any]]:
    """Until the test ends; what is put into the dictionary is answered instead."""
    InProcess.answers = {}
    monkeypatch.setattr(module, "Session", InProcess)
    monkeypatch.setattr(module, "TIMED", 0.01)
    return InProcess.answers
