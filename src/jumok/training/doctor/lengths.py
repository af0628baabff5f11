"""Long sentences: what `data.max_length` leaves out, what is far longer than the rest, and how much is padding."""

from __future__ import annotations

from typing import Any

import numpy as np

from jumok.data.layout import IntArray
from jumok.data.rows import PairRows
from jumok.recipe import Recipe
from jumok.tasks.classification import ClassificationTask
from jumok.tasks.example_task import ExampleTask
from jumok.tasks.objective import Task
from jumok.tasks.pretraining import PretrainingTask
from jumok.tasks.translation import TranslationTask
from jumok.text.tokenizer import Tokenizer
from jumok.training.doctor.corpora import place_of
from jumok.training.doctor.findings import Report

NAMED = 3  # of the longest lines
MANY = 0.01  # of the pairs left out
FAR = 4.0  # times as long as all but one in a hundred: an outlier
LOOKED_AT = 1_000_000  # pairs of a corpus whose lengths are looked at, evenly spaced
UPDATES = 20  # looked at for the share of padding

Longest = dict[int, list[tuple[int, str, str]]]


def check_lengths(task: Task, recipe: Recipe, longest: Longest, report: Report) -> None:
    if isinstance(task, ExampleTask):
        _check_rows(task, recipe, report)
    if not isinstance(task, TranslationTask):
        return
    limit = recipe.data.max_length
    for number, (corpus, store) in enumerate(zip(recipe.data.train, task.stores, strict=True)):
        left_out, seen = int(store.meta.get("skipped_long", 0)), int(store.meta.get("seen", len(store)))
        named = _tokens(longest.get(number, []), task.source, task.target)
        widths = widths_of(store)
        report.know("lengths", **{place_of(corpus): {"left_out": left_out, **_spread(widths)}})
        if left_out:
            worst = ", ".join(f"line {line} with {tokens:,} tokens" for line, tokens in named[:NAMED] if tokens > limit)
            needed = max((tokens for _, tokens in named), default=limit)
            report.add(
                "warning" if left_out > MANY * seen else "note",
                "lengths",
                f"{left_out:,} pair{'s' * (left_out > 1)} ({left_out / max(1, seen):.2%}) left out: longer than "
                f"data.max_length={limit} tokens",
                place_of(corpus) + (f", the longest: {worst}" if worst else ""),
                f"split such lines, or raise data.max_length (the longest needs {needed}), which costs memory",
            )
        usual, most = float(np.quantile(widths, 0.99)), int(widths.max())
        if most > FAR * usual and most > 50:
            line = store.line(int(widths.argmax()) * stride(store)) + int(store.meta.get("first_line", 1))
            rows = max(1, recipe.training.batch_tokens // most)
            report.add(
                "warning",
                "lengths",
                f"the longest pair has {most} tokens, 99 of 100 have at most {usual:.0f}: its batch holds {rows} "
                f"pair{'s' * (rows > 1)}, and the memory is set by it",
                f"{place_of(corpus)}, line {line}",
                f"data.max_length={_round(usual * 1.5)} would leave out {_share(widths, usual * 1.5):.2%} of the pairs",
            )


def _check_rows(task: ExampleTask, recipe: Recipe, report: Report) -> None:
    """Rows of labelled texts. Only texts as a whole are cut; words and contexts are read through windows."""
    limit = recipe.data.max_length
    for corpus, rows in zip(recipe.data.train, task.rows, strict=True):
        sides = (rows.first, rows.second) if isinstance(rows, PairRows) else (rows,)
        widths = np.concatenate([side.lengths for side in sides])
        cut = int((widths >= limit).sum()) if isinstance(task, ClassificationTask) else 0
        report.know("lengths", **{place_of(corpus): {"cut": cut, "left_out": 0, **_spread(widths)}})
        if cut > MANY * len(widths):
            share = f"{cut:,} texts ({cut / len(widths):.2%})"
            what = f"{share} reach data.max_length={limit} tokens, and are cut off there"
            todo = "raise data.max_length, which costs memory, if what is behind it matters"
            report.add("warning", "lengths", what, place_of(corpus), todo)


def _tokens(longest: list[tuple[int, str, str]], source: Tokenizer, target: Tokenizer) -> list[tuple[int, int]]:
    """Lines and their tokens on the longer side, the longest first."""
    if not longest:
        return []
    sides = source.encode([row[1] for row in longest]), target.encode([row[2] for row in longest])
    counted = [(row[0], max(len(one), len(other))) for row, one, other in zip(longest, *sides, strict=True)]
    return sorted(counted, key=lambda both: -both[1])


def stride(store: Any) -> int:
    return -(-len(store) // LOOKED_AT)


def widths_of(store: Any) -> IntArray:
    """Tokens of the longer side, of evenly spaced pairs."""
    rows = np.arange(0, len(store), stride(store))
    return np.maximum(store.source_lengths[rows], store.target_lengths[rows]).astype(np.int64)


def _spread(widths: IntArray) -> dict[str, int]:
    middle, high = np.quantile(widths, (0.5, 0.99))
    return {"median": int(middle), "p99": int(high), "longest": int(widths.max())}


def _share(widths: IntArray, limit: float) -> float:
    return float((widths > _round(limit)).mean())


def _round(value: float) -> int:
    return int(-(-value // 10) * 10)


def padding_share(task: Task) -> float | None:
    """Of what is computed in an update, how much is padding; None where there is none."""
    computed = real = 0
    if isinstance(task, PretrainingTask) and not task.plan.packed:
        for update in range(UPDATES):
            for masked in task.batches(update):
                computed, real = computed + masked.words.ids.numel(), real + masked.read
        return 1 - real / max(1, computed)
    if not isinstance(task, TranslationTask) or task.packed:
        return None
    for update in range(UPDATES):
        for batch in task.batches(update):
            computed += batch.source.ids.numel() + batch.target.ids.numel()
            real += batch.source.tokens + batch.target.tokens
    return 1 - real / max(1, computed)
