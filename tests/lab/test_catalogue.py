"""All experiments are there, in order, and each says what it is."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from jumok.errors import BadInput
from jumok.lab import catalogue


def test_found_by_name_number_and_either_dash() -> None:
    assert catalogue.find("scaling") == catalogue.find("5") == "jumok.lab.scaling"
    assert catalogue.find("causal-mask") == catalogue.find("causal_mask") == catalogue.find("Causal-Mask")
    assert catalogue.name_of(catalogue.find("7")) == "causal-mask"


@pytest.mark.parametrize(
    ("word", "hint"), [("scalling", 'Did you mean "scaling"'), ("19", "Known: "), ("0", "Known: ")]
)
def test_what_is_not_there_is_refused_with_a_hint(word: str, hint: str) -> None:
    with pytest.raises(BadInput, match=hint):
        catalogue.find(word)


@pytest.mark.parametrize("module", catalogue.modules())
def test_an_experiment_says_what_it_is(module: str) -> None:
    experiment = catalogue.load(module)
    assert experiment.name == catalogue.name_of(module)
    assert f"jumok.lab.{catalogue.MODULES[experiment.number - 1]}" == module
    assert sys.modules[module].__doc__
    for text in (experiment.title, experiment.source, experiment.about):
        assert len(text) > 10
        assert text == text.strip()
    assert all(isinstance(each, Callable) for each in (experiment.measure, experiment.judge, experiment.draw))  # type: ignore[arg-type]


def test_every_file_with_an_experiment_is_listed() -> None:
    room = Path(catalogue.__file__).parent
    files = {path.stem for path in room.glob("*.py") if "\nEXPERIMENT = " in path.read_text(encoding="utf-8")}
    assert files == set(catalogue.MODULES)
    assert len(catalogue.modules()) == 18
