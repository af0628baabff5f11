"""The report that training on images ends with: curves, and what the model says about some images."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from jumok import recipe as recipes
from jumok.data.images.raw import Pixels
from jumok.inspect.html import escape
from jumok.inspect.image_mistakes import kept_pixels
from jumok.inspect.image_page import data_uri, is_small
from jumok.inspect.report import ExtraSection, write_report
from jumok.recipe import Recipe
from jumok.tasks.image_classifier import ImageClassifier
from jumok.tasks.vision import Labels, VisionTask
from jumok.training.run import RunFolder

SHOWN = 24
LOOKED_AT = 1000  # validation images, among which those that went wrong are shown first


def write_vision_report(model: ImageClassifier, recipe: Recipe, run: RunFolder, task: VisionTask) -> Path:
    title, counted = f"jumok: {run.path.name}", task.objective.counted
    section = validation_images(model, task)
    write_report(run.report, title, recipes.dump(recipe), run.events(), extra=[section], counted=counted)
    return run.report


def validation_images(model: ImageClassifier, task: VisionTask) -> ExtraSection:
    """Those that went wrong first, the most confident before others; then right ones, the least sure before others."""
    images, gold = _looked_at(task)
    probabilities = model.probabilities(images)
    said, sure = probabilities.argmax(axis=1), probabilities.max(axis=1)
    right = said == gold
    order = np.lexsort((np.where(right, sure, -sure), right))[:SHOWN]
    wrong, count = int((~right).sum()), len(gold)
    told = f"<p>{wrong:,} of {count:,} validation images went wrong{'; these come first' if wrong else ''}.</p>\n"
    shown = "\n".join(
        _figure(images[place].transpose(1, 2, 0), model.labels[gold[place]], model.labels[said[place]], sure[place])
        for place in order
    )
    small = " enlarged" * is_small(images[0].transpose(1, 2, 0))
    return ExtraSection("examples", "Validation images", f'{told}<ul class="images{small}">\n{shown}\n</ul>')


def _looked_at(task: VisionTask) -> tuple[Pixels, Labels]:
    """Images (N, C, H, W) and their classes, evenly from all that there are: they lie in the order of their classes."""
    sizes = [len(numbers) for _, _, numbers in task.held]
    chosen = np.unique(np.linspace(0, sum(sizes) - 1, min(LOOKED_AT, sum(sizes))).round().astype(np.int64))
    images, gold = [], []
    for (store, labels, numbers), end in zip(task.held, np.cumsum(sizes), strict=True):
        own = numbers[chosen[(chosen >= end - len(numbers)) & (chosen < end)] - (end - len(numbers))]
        images.append(store.images[own])
        gold.append(labels[own])
    return np.concatenate(images), np.concatenate(gold)


def _figure(pixels: Pixels, gold: str, said: str, sure: float) -> str:
    name = escape(gold)
    given = name if gold == said else f'<mark class="extra">{escape(said)}</mark>'
    words = f"{given} ({sure:.1%})" if gold == said else f"{name}<br>{given} ({sure:.1%})"
    alt = name if gold == said else f"{name}, taken for {escape(said)}"
    return f'<li><img src="{data_uri(kept_pixels(pixels))}" alt="{alt}"><p>{words}</p></li>'
