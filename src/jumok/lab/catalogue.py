"""Which experiments there are, in the order of their numbers. One is imported when it is needed, not before."""

from __future__ import annotations

from importlib import import_module

from jumok.errors import BadInput, did_you_mean
from jumok.lab.experiment import Experiment

PACKAGE = "jumok.lab"
MODULES = (
    "long_term_dependency",
    "bottleneck",
    "teacher_forcing",
    "score_functions",
    "scaling",
    "projections",
    "causal_mask",
    "position",
    "add_and_norm",
    "heads",
    "parallelism",
    "clipping",
    "forget_gate",
    "bidirectional",
    "pronoun",
    "study_notes",
    "both_sides",
    "shuffled_patches",
)


def modules() -> list[str]:
    """All experiments, as modules: "jumok.lab.scaling" …"""
    return [f"{PACKAGE}.{name}" for name in MODULES]


def name_of(module: str) -> str:
    """What one types for it: "causal-mask"."""
    return module.rpartition(".")[2].replace("_", "-")


def find(word: str) -> str:
    """The module of the experiment with this name or number."""
    known = {name_of(module): module for module in modules()}
    if word.isdecimal() and 1 <= int(word) <= len(MODULES):
        word = MODULES[int(word) - 1]
    name = word.lower().replace("_", "-")
    if name not in known:
        raise BadInput(f'no experiment "{word}".{did_you_mean(name, known)} (`jumok lab list` tells them all.)')
    return known[name]


def load(module: str) -> Experiment:
    return import_module(module).EXPERIMENT
