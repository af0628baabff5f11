"""The batch that needs the most memory, for any `training.batch_tokens`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from jumok.data.packing import PackedPairs
from jumok.data.plan import length_batches
from jumok.data.windows import window_batch
from jumok.tasks.forecasting import ForecastingTask
from jumok.tasks.language import LanguageTask
from jumok.tasks.objective import Task
from jumok.tasks.translation import TranslationTask
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
    return None


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
