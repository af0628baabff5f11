"""What experiments that translate share: the embedded grammar as words, and a small model that has learned from it.

From French to English: English has fewer forms of each word, so its output layer, half of the work, is smaller.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from jumok.data import grammar
from jumok.data.batch import PairBatch
from jumok.data.grammar import Pair
from jumok.lab.training import seeded, train
from jumok.models.build import build
from jumok.recipe import Search, Seq2SeqSection
from jumok.tasks.translation import TranslationObjective
from jumok.tasks.translator import Translator
from jumok.text.tokenizer import Tokenizer, train_tokenizer

POOL = 8  # batches that are cut from one sorted heap: sentences of like lengths go together, with little padding


def sentences(split: str, count: int, seed: int, size: int = grammar.DEFAULT_SIZE) -> list[Pair]:
    """French sentences with their English translations and alignments. Other seeds, other sentences."""
    return list(grammar.pairs("fr", "en", split, count, seed=seed + 1, size=size))


@dataclass(frozen=True)
class Corpus:
    """Pairs to learn from, as numbers of words."""

    source: Tokenizer
    target: Tokenizer
    rows: list[tuple[list[int], list[int]]]

    @classmethod
    def of(cls, pairs: list[Pair], longest: int) -> Corpus:
        """Vocabularies of all pairs; to learn from are those whose source has at most `longest` words (punctuation
        counts)."""
        sources, targets = [pair.source for pair in pairs], [pair.target for pair in pairs]
        source, target = train_tokenizer(sources, "word", 10_000), train_tokenizer(targets, "word", 10_000)
        rows = zip(source.encode(sources), target.encode(targets), strict=True)
        return cls(source, target, [(read, write) for read, write in rows if len(read) <= longest])

    def within(self, pairs: Sequence[Pair], longest: int) -> list[Pair]:
        """Those whose source has at most `longest` words: for a test set as short as what was learned from."""
        read = self.source.encode([pair.source for pair in pairs])
        return [pair for pair, words in zip(pairs, read, strict=True) if len(words) <= longest]

    def batches(self, size: int, seed: int) -> Iterator[PairBatch]:
        """Without end, in an order that follows from the seed."""
        drawn = random.Random(seed)
        while True:
            pool = drawn.sample(self.rows, min(len(self.rows), POOL * size))
            pool.sort(key=lambda row: len(row[1]))
            starts = list(range(0, len(pool), size))
            drawn.shuffle(starts)
            for start in starts:
                read, write = zip(*pool[start : start + size], strict=True)
                yield PairBatch.of(read, write)


def learned(
    corpus: Corpus,
    section: Seq2SeqSection,
    updates: int,
    seed: int,
    batch: int,
    learning_rate: float,
    teacher_forcing: Callable[[int], float] = lambda update: 1.0,
) -> Translator:
    """A model after so many updates, ready to translate. `teacher_forcing(update)` is the share of true words it reads
    while it learns; the others are its own."""
    with seeded(seed):
        model = build(section, corpus.source.size, corpus.target.size)
        objective = TranslationObjective(model)
        stream = corpus.batches(batch, seed)

        def loss_of(update: int) -> Tensor:
            objective.teacher_forcing = teacher_forcing(update)
            loss = objective(next(stream))
            return loss.sum / loss.count

        train(objective, loss_of, updates, learning_rate)
    search = Search(beam=1, max_ratio=1.5, max_extra=10)
    return Translator(model.eval(), corpus.source, corpus.target, search, max_length=200, device=torch.device("cpu"))
