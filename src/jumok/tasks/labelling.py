"""What may be said about a text: one of several labels, or a number. Learned from the training examples, kept with the
run."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jumok.data.examples import Example
from jumok.errors import BadInput, did_you_mean
from jumok.recipe import Training

SHOWN = 12
LARGEST = 1e30


@dataclass(frozen=True)
class Classes:
    """The labels, in a fixed order: numbers by size, others by the alphabet."""

    names: tuple[str, ...]
    counts: tuple[int, ...] = ()  # of each in the training data

    @classmethod
    def learned(cls, labels: Sequence[str], read_from: Callable[[], str] = str) -> Classes:
        """`read_from` tells where the labels were found, in words, or nothing."""
        counted = Counter(labels)
        names = sorted(counted, key=_order)
        if len(names) < 2:
            place = read_from()
            where = f" in {place} (data.train.fields.label says another one)" if place else ""
            raise BadInput(
                f'data.train: there is only one label ("{names[0]}"){where}, so there is nothing to tell apart'
            )
        return cls(tuple(names), tuple(counted[name] for name in names))

    @property
    def size(self) -> int:
        return len(self.names)

    def index(self, label: str, where: str) -> int:
        if label not in self.names:
            known = ", ".join(self.names[:SHOWN]) + (" …" if len(self.names) > SHOWN else "")
            near = did_you_mean(label, self.names)
            hint = near if "?" in near else ""  # what is not a guess is the list of all
            raise BadInput(f'{where}: the label "{label}" was never seen in training.{hint} There are: {known}')
        return self.names.index(label)

    def weights(self, training: Training) -> list[float] | None:
        """How much an example of each label counts; a balanced one w_c = N / (C · n_c) on the average counts 1."""
        given = training.class_weights
        if given == "none":
            return None
        if given == "balanced":
            return [sum(self.counts) / (self.size * count) for count in self.counts]
        for label, weight in given.items():
            if label not in self.names:
                raise BadInput(
                    f'training.class_weights: the label "{label}" has no example in the training data.'
                    f"{did_you_mean(label, self.names)}"
                )
            if not (0 <= weight < LARGEST):
                raise BadInput(f'training.class_weights: the weight of "{label}" is {weight}: give a number from 0 on')
        weights = [given.get(name, 1.0) for name in self.names]
        if not any(weights):
            raise BadInput("training.class_weights: all labels have the weight 0: nothing would be learned")
        return weights

    def to_json(self) -> dict[str, Any]:
        return {"labels": list(self.names), "counts": list(self.counts)}


@dataclass(frozen=True)
class Numbers:
    """What is measured: learned as (y − mean) / scale."""

    mean: float
    scale: float
    lowest: float
    highest: float

    @classmethod
    def learned(cls, values: Sequence[float]) -> Numbers:
        array = np.asarray(values, np.float64)
        if float(array.std()) == 0:
            raise BadInput(f"all training examples have the same number ({values[0]:g}): there is nothing to learn")
        return cls(float(array.mean()), float(array.std()), float(array.min()), float(array.max()))

    def to_json(self) -> dict[str, Any]:
        return {"mean": self.mean, "scale": self.scale, "lowest": self.lowest, "highest": self.highest}


def number_of(example: Example, where: str) -> float:
    try:
        value = float(str(example.label))
    except ValueError:
        raise BadInput(
            f'{where}: "{str(example.label)[:40]}" is not a number; labels that are words are for task: classification'
        ) from None
    if not math.isfinite(value) or abs(value) > LARGEST:
        raise BadInput(f"{where}: {example.label} cannot be computed with")
    return value


def read_labels(file: Path) -> dict[str, Any]:
    """What a run keeps of its labels."""
    try:
        raw = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(raw, dict):
            raise ValueError("no keys")
        return raw
    except FileNotFoundError:
        raise BadInput(f"{file} is missing: the run does not know what its labels are") from None
    except (OSError, ValueError) as error:
        raise BadInput(f"{file} is damaged ({error}): the run does not know what its labels are") from None


def classes_of(raw: dict[str, Any], file: Path) -> Classes:
    names = raw.get("labels")
    if not isinstance(names, list) or len(names) < 1 or not all(isinstance(name, str) for name in names):
        raise BadInput(f'{file} is damaged: "labels" is no list of names')
    return Classes(tuple(names), tuple(raw.get("counts") or ()))


def numbers_of(raw: dict[str, Any], file: Path) -> Numbers:
    try:
        return Numbers(*(float(raw[name]) for name in ("mean", "scale", "lowest", "highest")))
    except (KeyError, TypeError, ValueError):
        raise BadInput(f"{file} is damaged: mean and scale of the numbers are missing") from None


def answers_of(raw: dict[str, Any], file: Path) -> tuple[int, bool]:
    """Tokens of the longest answer, and whether there may be none."""
    try:
        return int(raw["longest"]), bool(raw["unanswerable"])
    except (KeyError, TypeError, ValueError):
        raise BadInput(f"{file} is damaged: how long answers may be is missing") from None


def _order(label: str) -> tuple[int, float, str]:
    try:
        value = float(label)
    except ValueError:
        return 1, 0.0, label
    return (0, value, label) if math.isfinite(value) else (1, 0.0, label)
