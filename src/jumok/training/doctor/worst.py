"""The batch that needs the most memory, for any size of a batch (`Recipe.batch_key`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jumok.data.layout import IntArray
from jumok.data.packing import PackedPairs
from jumok.data.plan import length_batches
from jumok.data.windows import window_batch
from jumok.tasks.example_task import ExampleTask
from jumok.tasks.forecasting import ForecastingTask
from jumok.tasks.language import LanguageTask
from jumok.tasks.objective import Task
from jumok.tasks.pretraining import PretrainingTask
from jumok.tasks.recognition import RecognitionTask
from jumok.tasks.translation import TranslationTask
from jumok.tasks.vision import VisionTask
from jumok.training.doctor.lengths import stride, widths_of
from jumok.training.flops import flops_of


@dataclass(frozen=True)
class Worst:
    """`whole`: all that there is to learn from is in it."""

    batch: Any
    whole: bool


def worst_batch(task: Task, budget: int) -> Worst | None:
    """None for a task that is not known here: then only its own batches can be tried."""
    if isinstance(task, TranslationTask):
        return _worst_pairs(task, budget)
    if isinstance(task, LanguageTask):
        width, windows = task.plan.widths[0], task.plan.windows[0]
        rows = max(1, budget // width)
        starts = np.arange(rows) % windows * width
        return Worst(window_batch(task.plan.texts[0], starts, width), rows > windows)
    if isinstance(task, ForecastingTask):
        origins, rows = task.origins("train"), max(1, budget // task.layout.window)
        return Worst(task.plan.batch(np.resize(origins, rows)), rows > len(origins))
    if isinstance(task, ExampleTask):
        number, chosen, whole = _worst_rows(task, [rows.lengths for rows in task.rows], budget)
        return Worst(task.batch(number, chosen), whole)
    if isinstance(task, VisionTask):
        store = task.stores[0]
        return Worst(store.batch(np.arange(budget) % len(store), task.labels[0]), budget > len(store))
    if isinstance(task, RecognitionTask):
        return Worst(task.rows(budget), False)
    if isinstance(task, PretrainingTask):
        return _worst_masked(task, budget)
    return None


def _worst_rows(task: Task, lengths: Sequence[IntArray], budget: int) -> tuple[int, IntArray, bool]:
    """Of all corpora: the rows that cost the most operations side by side, as wide as the widest."""
    flops = flops_of(task.objective)
    each, looks = (1, 0) if flops is None else (max(1, flops.source), sum((flops.pairs or {}).values()))
    found = []
    for number, here in enumerate(lengths):
        groups = length_batches(here, np.zeros(len(here), np.int64), budget)
        widths = np.array([int(here[group].max()) for group in groups])
        costs = np.array([len(group) for group in groups]) * (each * widths + looks * widths * widths)
        best = int(np.argmax(costs))
        found.append((float(costs[best]), number, groups[best], len(groups) == 1))
    _, number, chosen, whole = max(found, key=lambda one: one[0])
    return number, chosen, whole and len(lengths) == 1


def _worst_masked(task: PretrainingTask, budget: int) -> Worst:
    """Packed rows are all alike: as many of them, from the short to the long, as the budget has room for."""
    texts, generator = task.plan.texts, np.random.default_rng(task.recipe.seed)
    if not task.plan.packed:
        number, chosen, whole = _worst_rows(task, [text.lengths for text in texts], budget)
        return Worst(texts[number].batch(chosen, generator, None, False, number), whole)
    lengths = texts[0].lengths
    count = max(1, int(budget / float(lengths.mean())))
    chosen = np.argsort(lengths, kind="stable")[np.linspace(0, len(lengths) - 1, count).astype(np.int64)]
    size = max(budget, int(lengths[chosen].sum()))
    return Worst(texts[0].batch(chosen, generator, size, True), count > len(lengths))


def _worst_pairs(task: TranslationTask, budget: int) -> Worst:
    """Packed batches are all alike. Padded ones differ: the worst is that whose rows, as wide as its widest, cost the
    most operations; the memory rises with these."""
    number = max(range(len(task.stores)), key=lambda index: int(widths_of(task.stores[index]).max()))
    store = task.stores[number]
    rows = np.arange(0, len(store), stride(store))
    lengths = store.source_lengths[rows], store.target_lengths[rows]
    if task.packed:
        count = max(1, int(budget / (1 + max(float(side.mean()) for side in lengths))))
        sorted_rows = rows[np.lexsort(lengths)]
        chosen = sorted_rows[np.linspace(0, len(rows) - 1, count).astype(np.int64)]
        return Worst(PackedPairs.of(store.batch(chosen, number)), count > len(store))
    groups = length_batches(*lengths, budget)
    counts = np.array([len(group) for group in groups])
    source, target = (np.array([side[group].max() for group in groups]) + 1 for side in lengths)
    flops = flops_of(task.objective)
    cost = source + target
    if flops is not None:
        pairs = {"self": source * source, "causal": target * target, "cross": source * target}
        looks = sum(each * pairs[kind] for kind, each in (flops.pairs or {}).items())
        cost = flops.source * source + flops.target * target + looks
    batch = store.batch(rows[groups[int(np.argmax(counts * cost))]], number)
    if task.dropouts is not None:  # words are cut smaller than the plan knows, so that rows are longer
        batch = task._cut_anew(batch, 0, 0)
    return Worst(batch, len(groups) == 1)


def few_rows(batch: Any, rows: int, after: float = 0.0) -> Any:
    """A batch of the same kind with about so many rows: its first ones, or those `after` a share of all (1: the last).

    Of a packed batch only those are packed anew: there may be a million tokens in it.
    """
    if len(batch) <= rows:
        return batch
    plain = batch.unpacked() if isinstance(batch, PackedPairs) else batch
    parts = plain.split(-(-len(plain) // rows))
    part = parts[min(len(parts) - 1, int(after * len(parts)))]
    return PackedPairs.of(part) if isinstance(batch, PackedPairs) else part
