"""How well the vocabulary covers the text: tokens it does not know, words it can only spell letter by letter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from jumok.data.batch import Sequences
from jumok.data.rows import PairRows, Rows
from jumok.tasks.example_task import ExampleTask
from jumok.tasks.language import LanguageTask
from jumok.tasks.objective import Task
from jumok.tasks.pretraining import PretrainingTask
from jumok.tasks.sources import texts_of
from jumok.tasks.translation import TranslationTask
from jumok.text.special import SPECIAL_TOKENS
from jumok.text.tokenizer import Tokenizer
from jumok.training.doctor.findings import Report

SAMPLE = 200_000  # pairs of a corpus, evenly spaced
ROWS = 2048  # read at once
TEXT = 20_000_000  # tokens of a text
TOO_MANY_UNKNOWN = 0.01
TOO_MANY_LETTERS = 0.35  # words such as "a" and "I" are 3 to 8 % of the tokens
FEW_USED = 0.25  # bpe needs some entries only on the way to others
FIRST_SYLLABLE = 0x1100  # from here on a character of its own is nothing unusual: Hangul, Kana, Han

Counts = npt.NDArray[np.int64]


def check_vocabulary(task: Task, report: Report) -> None:
    if isinstance(task, TranslationTask):
        tokenizers = {"source": task.source, "target": task.target}
        learned = {side: _count(_pair_ids(task.stores, side), one) for side, one in tokenizers.items()}
        # without files of its own the validation is a part of what was counted already
        stores = [part.store for part in task.held] if task.recipe.data.valid else []
        for side, tokenizer in tokenizers.items():
            _judge(side, tokenizer, learned[side], _count(_pair_ids(stores, side), tokenizer), report)
        if task.source is task.target:
            _judge_size("both sides", task.source, learned["source"] + learned["target"], report)
        else:
            for side, tokenizer in tokenizers.items():
                _judge_size(f"{side} side", tokenizer, learned[side], report)
    elif isinstance(task, LanguageTask):
        counts = _count((np.asarray(store.ids[:TEXT]) for store in task.stores), task.tokenizer)
        texts = [np.asarray(ids[:TEXT]) for ids in task.valid_ids] if task.recipe.data.valid else []
        _judge("text", task.tokenizer, counts, _count(iter(texts), task.tokenizer), report)
        _judge_size("text", task.tokenizer, counts, report)
    elif isinstance(task, PretrainingTask):
        counts = _count((np.asarray(store.ids[:TEXT]) for store in task.stores), task.tokenizer)
        texts = [np.asarray(store.ids[:TEXT]) for store in task.held]
        _judge("text", task.tokenizer, counts, _count(iter(texts), task.tokenizer), report)
        if task.recipe.start is None:  # what was learned elsewhere is as large as it is
            _judge_size("text", task.tokenizer, counts, report)
    elif isinstance(task, ExampleTask):
        counts = _count((side.ids for rows in task.rows for side in _sides(rows)), task.tokenizer)
        held = [text for part in task.kept for item in part[:SAMPLE] for text in texts_of(item)]
        encoded = (np.array(ids, np.int64) for ids in task.tokenizer.encode(held))
        _judge("text", task.tokenizer, counts, _count(encoded, task.tokenizer), report)
        if task.recipe.start is None:
            _judge_size("text", task.tokenizer, counts, report)


def _sides(rows: Rows | PairRows) -> tuple[Rows, ...]:
    return (rows.first, rows.second) if isinstance(rows, PairRows) else (rows,)


def _pair_ids(stores: Sequence[Any], side: str) -> Iterator[npt.NDArray[Any]]:
    """All token ids of an evenly spaced sample."""
    for store in stores:
        rows = np.arange(0, len(store), -(-len(store) // SAMPLE))
        for start in range(0, len(rows), ROWS):
            batch: Sequences = getattr(store.batch(rows[start : start + ROWS]), side)
            yield batch.ids[batch.mask].numpy()


def _count(parts: Iterator[npt.NDArray[Any]], tokenizer: Tokenizer) -> Counts:
    """How often each entry occurs; <sos> and <eos> are no text and do not count, <unk> does."""
    total = np.zeros(tokenizer.size, np.int64)
    for ids in parts:
        total += np.bincount(ids.astype(np.int64), minlength=tokenizer.size)
    special = _special(tokenizer)
    special[tokenizer.specials.unknown] = False
    total[special] = 0
    return total


def _special(tokenizer: Tokenizer) -> npt.NDArray[np.bool_]:
    """Which entries stand for something else than text."""
    if tokenizer.kind == "wordpiece":  # other people's have them in other places
        return np.array([tokenizer.is_special(id) for id in range(tokenizer.size)])
    found = np.zeros(tokenizer.size, bool)
    found[[*range(len(SPECIAL_TOKENS)), *tokenizer.tags.values()]] = True
    return found


def single_letters(tokenizer: Tokenizer) -> npt.NDArray[np.bool_]:
    """Which entries are one letter of an alphabet, with or without the blank before it."""
    found = np.zeros(tokenizer.size, bool)
    for id in range(tokenizer.size):
        text = tokenizer.written(id, first=False).decode("utf-8", "replace").strip()
        found[id] = len(text) == 1 and text.isalpha() and ord(text) < FIRST_SYLLABLE
    return found


def _judge(side: str, tokenizer: Tokenizer, learned: Counts, held: Counts, report: Report) -> None:
    tokens = int(learned.sum())
    if not tokens:
        return
    place = tokenizer.specials.unknown
    unknown, letters = int(learned[place]) / tokens, int(learned[single_letters(tokenizer)].sum()) / tokens
    where = f"{side} side (tokenizer.kind: {tokenizer.kind}, {tokenizer.size:,} entries)"
    facts = {"kind": tokenizer.kind, "size": tokenizer.size, "tokens": tokens, "unknown": unknown}
    report.know("vocabulary", **{side: {**facts, "single_letters": letters}})
    if unknown > 0:
        many = unknown > TOO_MANY_UNKNOWN
        todo = "the model cannot learn them: use tokenizer.kind=bpe (or byte, which knows every text)"
        if tokenizer.kind not in ("word", "space"):
            todo = "the model cannot learn them: use tokenizer.kind=byte, or a tokenizer trained on this text"
        if tokenizer.kind == "wordpiece":
            todo = "the model cannot learn them: start from a run that knows such texts, or from none"
        told = f"{unknown:.2%} of the tokens in training are unknown words (<unk>)"
        report.add("warning" if many else "note", "vocabulary", told, where, todo)
    if held.sum() and held[place] / held.sum() > max(TOO_MANY_UNKNOWN, 2 * unknown):
        told = f"{held[place] / held.sum():.1%} of the tokens in the validation data are unknown (<unk>)"
        report.add("warning", "vocabulary", told, where, "validate on text of the same kind, or use tokenizer.kind=bpe")
    if tokenizer.kind in ("bpe", "unigram", "byte") and letters > TOO_MANY_LETTERS:
        told = f"{letters:.0%} of the tokens are single letters: words are spelled, not known"
        todo = "raise tokenizer.vocabulary, or train the tokenizer on this text; sequences would be needlessly long"
        report.add("warning", "vocabulary", told, where, todo)


def _judge_size(where: str, tokenizer: Tokenizer, learned: Counts, report: Report) -> None:
    """Entries that never occur cost memory and time, and are never learned."""
    words = ~_special(tokenizer)
    used, entries = int((learned[words] > 0).sum()), int(words.sum())
    if used < FEW_USED * entries:
        told = f"only {used:,} of {entries:,} entries occur in the training data"
        todo = "a smaller tokenizer.vocabulary saves memory and time, and loses nothing"
        report.add("note", "vocabulary", told, where, todo)
