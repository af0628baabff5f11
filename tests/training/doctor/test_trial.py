"""Trying: what a batch keeps is counted, what does not fit is noticed, a trial that dies takes nobody with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from forked import fork_instead
from seeded import seed  # noqa: F401

from jumok import recipe as recipes
from jumok.errors import BadInput
from jumok.recipe import Recipe
from jumok.tasks.vocabulary import save_tokenizers
from jumok.training.doctor import session as sessions
from jumok.training.doctor.session import Session
from jumok.training.doctor.trial import Patient
from jumok.training.doctor.worst import worst_batch
from jumok.training.meter import Meter

CPU = torch.device("cpu")
TRANSFORMER = [
    "data.train.pairs=300", "data.valid.pairs=20", "model.width=32", "model.heads=2", "model.feed_forward=64",
    "model.encoder_layers=1", "model.decoder_layers=1", "training.batch_tokens=512", "training.validate_sentences=4",
    "threads=1", "device=cpu",
]  # fmt: skip


def recipe_of(*keys: str, name: str = "transformer-tiny") -> Recipe:
    return recipes.read(name, [*TRANSFORMER, *keys])


def test_what_is_kept_for_the_backward_pass_grows_with_the_rows() -> None:
    patient = Patient(recipe_of("training.ema=0.9"), None, CPU)
    counted = patient.count()
    numbers = sum(parameter.numel() for parameter in patient.objective.parameters())
    assert counted["parameters"] == numbers
    sizes = [counted[name] for name in ("weights", "gradients", "optimiser", "average")]
    assert sizes == [4 * numbers, 4 * numbers, 8 * numbers, 4 * numbers]
    worst = worst_batch(patient.task, 512)
    assert worst is not None
    assert counted["rows"] == len(worst.batch)
    assert counted["activations"] == pytest.approx(patient._kept(worst.batch)[0], rel=0.15)


def test_checkpointed_activations_are_not_kept() -> None:
    plain, saving = (
        Patient(recipe_of(f"training.checkpoint_activations={flag}", "model.encoder_layers=4"), None, CPU)
        for flag in ("false", "true")
    )
    assert saving.count()["activations"] < 0.7 * plain.count()["activations"]


def test_an_update_on_the_worst_batch() -> None:
    patient = Patient(recipe_of(), None, CPU)
    before = [parameter.detach().clone() for parameter in patient.objective.parameters()]
    tried = patient.answer({"do": "try", "budget": 512})
    assert tried["fits"]
    assert tried["finite"]
    assert tried["peak"] > 1e6
    assert not tried["whole"]
    for was, parameter in zip(before, patient.objective.parameters(), strict=True):
        assert torch.equal(was, parameter)  # a rate of zero: trying changes nothing
    assert patient.answer({"do": "try", "budget": 10**6})["whole"]


def test_what_does_not_fit_is_not_split_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    patient = Patient(recipe_of(), None, CPU)
    plain = patient.objective.forward

    def limited(batch: Any) -> Any:
        if batch.tokens > 200:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 123 bytes")
        return plain(batch)

    monkeypatch.setattr(patient.objective, "forward", limited)
    assert not patient.attempt(2048)["fits"]
    assert patient.attempt(128)["fits"]

    def broken(batch: Any) -> Any:
        raise RuntimeError("something else")

    monkeypatch.setattr(patient.objective, "forward", broken)
    with pytest.raises(RuntimeError, match="something else"):
        patient.attempt(128)


def test_updates_and_validations_are_timed() -> None:
    patient = Patient(recipe_of(), None, CPU)
    timed = patient.answer({"do": "time", "seconds": 0.05})
    assert timed["update"] > 0
    assert timed["tokens"] > 100
    assert 0 <= timed["preparing"] <= 1
    assert patient.answer({"do": "validate"})["seconds"] > 0
    assert isinstance(patient.meter, Meter)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """The tokenizers of a task, as the doctor hands them on."""
    patient = Patient(recipe_of(), None, CPU)
    save_tokenizers(tmp_path / "tokenizer", dict(patient.task.tokenizers))
    return tmp_path / "tokenizer"


def test_a_process_of_its_own_that_dies_and_is_started_again(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fork_instead(monkeypatch, sessions)
    with Session(recipe_of(), saved) as session:
        assert session.start()["device"] == "cpu"
        assert session.ask(60, do="try", budget=256)["fits"]
        assert session.process is not None
        session.process.kill()
        assert session.ask(60, do="try", budget=256)["died"] != 0
        assert session.ask(60, do="try", budget=256)["fits"]
        assert "late" in session.ask(0.0, do="validate")
        assert session.process is None


def test_a_trial_that_cannot_begin_says_why(tmp_path: Path) -> None:
    with Session(recipe_of(), tmp_path / "nothing") as session:
        assert "not a tokenizer folder" in session.ask(60, do="count")["problem"]  # started as usual, not forked
    with pytest.raises(BadInput):
        recipe_of("training.precision=float17")
