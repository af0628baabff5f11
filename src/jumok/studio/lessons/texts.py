"""The lessons' words, in English and Korean, from words.en.yaml and words.ko.yaml."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml

from jumok.lab import catalogue
from jumok.lab.experiment import Experiment
from jumok.studio.lessons.measured import stored

LANGUAGES = ("en", "ko")
TEXTS = ("claimed", "measured", "read")


@cache
def words(language: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = yaml.safe_load(
        Path(__file__).with_name(f"words.{language}.yaml").read_text(encoding="utf-8")
    )
    return found


def names() -> list[str]:
    return [catalogue.name_of(module) for module in catalogue.modules()]


def experiment_of(name: str) -> Experiment:
    return catalogue.load(catalogue.find(name))


def title(name: str, language: str) -> str:
    """… without loading the experiment, which has the English one."""
    return str(words(language)[name].get("title") or stored()[name].title)
