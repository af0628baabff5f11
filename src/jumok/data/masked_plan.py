"""Batches of texts with hidden words, as a pure function of the update's number: which stretches of which corpus, which
of their words are hidden, and where two halves of a stretch are asked about, how they stand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from jumok.data.dealing import Deal, deal_lengths
from jumok.data.documents import Stretches, stretches, words_of
from jumok.data.layout import lay_out_lengths
from jumok.data.masked_batch import MaskedBatch
from jumok.data.masking import Hider
from jumok.data.packing import NOTHING
from jumok.data.plan import LayoutPlan
from jumok.data.text_store import TextStore
from jumok.errors import BadInput
from jumok.recipe import Masking
from jumok.text.tokenizer import Tokenizer

HIDING = 11  # what is drawn, part of the key
TRIES = 16  # stretches that are asked for a foreign part
Integers = npt.NDArray[np.int64]


class MaskedTexts:
    """Stretches of a store, framed and hidden."""

    def __init__(
        self,
        store: TextStore,
        tokenizer: Tokenizer,
        masking: Masking,
        window: int,
        documents: str,
        lines: tuple[int, int] | None = None,
    ) -> None:
        self.store, self.masking = store, masking
        self.specials = tokenizer.specials
        if self.specials.mask is None:
            raise BadInput(
                f"pretraining hides words, and a vocabulary of kind {tokenizer.kind} has no [MASK]: use "
                "tokenizer.kind=wordpiece"
            )
        self.added = 2 if masking.sentences == "none" else 3
        if window <= self.added + 1:
            raise BadInput(f"data.window {window} leaves no room for words")
        self.found: Stretches = stretches(store, window - self.added, documents, lines)
        self.lengths: Integers = np.asarray(self.found.lengths) + self.added
        words = np.array([id for id in range(tokenizer.size) if not tokenizer.is_special(id)], np.int64)
        self.hide = Hider(masking, self.specials.mask, words, tokenizer.continues())

    def batch(
        self, chosen: Integers, generator: np.random.Generator, size: int | None, packed: bool, corpus: int = 0
    ) -> MaskedBatch:
        if self.masking.sentences == "none":
            flat, lengths = words_of(self.store, self.found, chosen, self.specials.end)
            ids, lengths = self._framed(flat, lengths)
            hidden = self.hide(ids, lengths, generator)
            return MaskedBatch.of(hidden, lengths, None, None, size, packed, tuple(chosen.tolist()), corpus)
        rows, segments, order = [], [], []
        for number in chosen.tolist():
            first, second, stands = self._halves(number, generator)
            row = [self.specials.start, *first, self.specials.end, *second, self.specials.end]
            rows.append(np.array(row, np.int64))
            segments.append(np.repeat(np.array([0, 1]), [len(first) + 2, len(second) + 1]))
            order.append(stands)
        lengths = np.array([len(row) for row in rows], np.int64)
        hidden = self.hide(np.concatenate(rows), lengths, generator)
        parts, told = np.concatenate(segments), np.array(order, np.int64)
        return MaskedBatch.of(hidden, lengths, parts, told, size, packed, tuple(chosen.tolist()), corpus)

    def _framed(self, flat: Integers, lengths: Integers) -> tuple[Integers, Integers]:
        """[CLS] words [SEP] for each row, all at once."""
        ends = np.cumsum(lengths + 2)
        ids = np.full(int(ends[-1]), self.specials.end, np.int64)
        ids[ends - lengths - 2] = self.specials.start
        inner = np.ones(len(ids), bool)
        inner[ends - 1] = inner[ends - lengths - 2] = False
        ids[inner] = flat
        return ids, lengths + 2

    def _halves(self, number: int, generator: np.random.Generator) -> tuple[list[int], list[int], int]:
        """Two parts of a stretch, cut at a line's end (or anywhere, where there is none inside), and how they stand: as
        they did (0), in each other's place (order) or with a second one from another document (next) (1), or that there
        are no two. How long they are must not tell: the cut is drawn, and a foreign part is as long as the own one.
        """
        words, ends = self._words(number)
        if len(words) < 2:
            return words, [], NOTHING
        cut = int(ends[generator.integers(0, len(ends))]) if len(ends) else int(generator.integers(1, len(words)))
        first, second = words[:cut], words[cut:]
        if generator.random() < 0.5:
            return first, second, 0
        if self.masking.sentences == "order":
            return second, first, 1
        for _ in range(TRIES):
            other = int(generator.integers(0, len(self.found)))
            longer = int(self.found.lengths[other]) - len(second)
            if longer >= 0 and self.found.document[other] != self.found.document[number]:
                begin = int(generator.integers(0, longer + 1))
                return first, self._words(other)[0][begin : begin + len(second)], 1
        return first, second, 0  # there is no other document that is long enough

    def _words(self, number: int) -> tuple[list[int], Integers]:
        """The words of a stretch, and after how many of them a line ends inside of it."""
        span = np.asarray(self.store.ids[int(self.found.begin[number]) : int(self.found.end[number])], np.int64)
        is_end = span == self.specials.end
        words, cuts = span[~is_end], np.flatnonzero(is_end)
        before = cuts - np.arange(len(cuts))
        return words.tolist(), np.unique(before[(before > 0) & (before < len(words))])


class MaskedPlan:
    """All batches of a run."""

    def __init__(
        self,
        texts: Sequence[MaskedTexts],
        weights: Sequence[int],
        batch_tokens: int,
        seed: int,
        accumulate: int = 1,
        packed: bool = False,
    ) -> None:
        self.texts, self.seed, self.packed = list(texts), seed, packed
        lay = deal_lengths if packed else lay_out_lengths
        self.plan = LayoutPlan([lay(text.lengths, batch_tokens) for text in self.texts], weights, seed, accumulate)

    @property
    def batches_per_epoch(self) -> int:
        return self.plan.batches_per_epoch

    def at(self, update: int, only: Sequence[int] | None = None) -> list[MaskedBatch]:
        """The batches of an update (counted from 0); with `only`, those of them with these numbers."""
        numbers = list(range(self.plan.accumulate)) if only is None else list(only)
        batches = []
        for number, micro in zip(numbers, self.plan.at(update, only), strict=True):
            generator = np.random.default_rng([self.seed, update, number, HIDING])
            layout = self.plan.layouts[micro.corpus]
            size = _size(layout, self.texts[micro.corpus].lengths[micro.indices]) if isinstance(layout, Deal) else None
            batches.append(self.texts[micro.corpus].batch(micro.indices, generator, size, self.packed, micro.corpus))
        return batches


def _size(layout: Deal, lengths: Integers) -> int:
    """The row that all batches of a corpus have; a larger batch gets an eighth more, until it fits."""
    size, tokens = layout.budget[0], int(lengths.sum())
    step = max(1, size // 8)
    return size + max(0, -((size - tokens) // step)) * step
