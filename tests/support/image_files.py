"""Small images made by numpy and written by Pillow, a model that has learned nothing of them, and its mistakes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from jumok.inspect.image_mistakes import Mistake
from jumok.models.vit import ImageLabeller
from jumok.recipe import VitSection
from jumok.tasks.image_classifier import ImageClassifier
from jumok.tasks.label_scores import LabelScores, label_scores, losses
from jumok.tasks.labelling import Classes

SMALL: dict[str, Any] = {"image": (8, 8), "patch": (4, 4), "width": 16, "heads": 2, "layers": 1, "feed_forward": 24}


def coloured(colour: int, size: tuple[int, int] = (8, 8), noise: int = 60) -> np.ndarray:
    """(H, W, 3): one of the eight corners of all colours, with noise."""
    chance = np.random.default_rng()
    base = np.array([255 * (colour >> bit & 1) for bit in range(3)])
    return np.clip(base + chance.integers(-noise, noise + 1, (*size, 3)), 0, 255).astype(np.uint8)


def write_images(folder: Path, labels: Sequence[str], each: int, size: tuple[int, int] = (8, 8)) -> Path:
    """A folder for each class, whose images have a colour of their own."""
    for colour, label in enumerate(labels):
        (folder / label).mkdir(parents=True, exist_ok=True)
        for number in range(each):
            Image.fromarray(coloured(colour, size)).save(folder / label / f"{number:03}.png")
    return folder


def classifier_of(labels: Sequence[str], **keys: Any) -> ImageClassifier:
    model = ImageLabeller(VitSection(**{**SMALL, **keys}), len(labels))
    with torch.no_grad():
        for parameter in model.parameters():  # off its start, so that it says different things
            parameter.add_(0.3 * torch.randn_like(parameter))
    return ImageClassifier(model.eval(), Classes(tuple(labels)), "crop", torch.device("cpu"))


def guessed(
    labels: Sequence[str], count: int, size: tuple[int, int] = (8, 8), channels: int = 3
) -> tuple[LabelScores, list[Mistake]]:
    """Scores of random guesses, better than chance, and all their mistakes in the order of the images."""
    chance = np.random.default_rng()
    gold = chance.integers(len(labels), size=count)
    probabilities = chance.dirichlet(np.ones(len(labels)) * 0.5, count)
    probabilities[np.arange(count), gold] += chance.random(count)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    loss, said = losses(gold, probabilities), probabilities.argmax(axis=1)
    mistakes = [
        Mistake(
            int(row) + 1, f"test/{labels[gold[row]]}/{row}.png", labels[gold[row]], labels[said[row]],
            float(probabilities[row].max()), float(loss[row]),
            chance.integers(0, 256, (*size, channels)).astype(np.uint8),
        )
        for row in np.flatnonzero(said != gold)
    ]  # fmt: skip
    return label_scores([labels[one] for one in gold], probabilities, labels), mistakes
