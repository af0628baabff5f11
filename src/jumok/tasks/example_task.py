"""What all tasks with labelled examples have in common: reading, keeping some back, batches by length, names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from jumok.data.labelled_batch import LabelledBatch
from jumok.data.layout import lay_out_lengths
from jumok.data.plan import FEW, FEW_SAY_LITTLE, HELD_OUT, HELD_OUT_SHARE, LayoutPlan
from jumok.data.rows import PairRows, Rows, about_cut
from jumok.data.shuffle import Shuffle
from jumok.errors import BadInput
from jumok.files import replace_file
from jumok.recipe import Recipe
from jumok.tasks.objective import Objective
from jumok.tasks.sources import Item, example_tokenizer, items_key, labels_read_from, place_of, read_items
from jumok.text.tokenizer import Tokenizer

Say = Callable[[str], None]
LABELS = "labels.json"


class ExampleTask:
    """A subclass says what there is to learn (`learn_labels`), how examples become rows and labels (`encode`), what the
    objective is (`build`) and how well it does on what was kept back (`validate`)."""

    objective: Objective
    unit = "examples"

    def __init__(self, recipe: Recipe, device: torch.device, say: Say, saved: Path | None = None) -> None:
        self.recipe, self.device, self.say = recipe, device, say
        self.items: list[list[Any]] = [self._read(number, "train") for number in range(len(recipe.data.train))]
        self.kept: list[list[Any]] = [self._read(number, "valid") for number in range(len(recipe.data.valid))]
        everything = [item for part in self.items for item in part]
        if saved is None:
            self.tokenizer = example_tokenizer(recipe, everything, say)
        else:
            self.tokenizer = Tokenizer.load(saved / "text")
        if not self.kept:
            self._keep_back()
        self.learn_labels([item for part in self.items for item in part])
        self.rows: list[Any] = []  # `Rows`, or what has their `lengths` and `batch`
        self.labels: list[Any] = []
        for part in self.items:
            rows, labels = self.encode(part)
            self.rows.append(rows)
            self.labels.append(labels)
        self.tell_unknown()
        training = recipe.training
        layouts = [lay_out_lengths(rows.lengths, training.batch_tokens) for rows in self.rows]
        weights = [corpus.weight for corpus in recipe.data.train]
        self.plan = LayoutPlan(layouts, weights, recipe.seed, training.accumulate)
        torch.manual_seed(recipe.seed)
        self.build()

    # ------------------------------------------------------------ what a subclass says

    def learn_labels(self, items: Sequence[Any]) -> None:
        """Find out what there is to be said, from the training examples."""
        raise NotImplementedError

    def encode(self, items: Sequence[Any]) -> tuple[Rows, Any]:
        """Rows, and the labels of each; an example may become several rows, or none."""
        raise NotImplementedError

    def build(self) -> None:
        """Make the objective."""
        raise NotImplementedError

    def batch(self, corpus: int, indices: npt.NDArray[np.int64]) -> LabelledBatch:
        raise NotImplementedError

    def validate(self) -> dict[str, float]:
        raise NotImplementedError

    def about(self) -> str:
        """What a loaded run needs to know besides recipe, tokenizer and weights: the content of labels.json."""
        raise NotImplementedError

    def item_of(self, corpus: int, row: int) -> Item:
        """The example that a row comes from."""
        return self.items[corpus][row]

    # ------------------------------------------------------------ the same for all

    def _read(self, number: int, part: str) -> list[Any]:
        corpus = (self.recipe.data.train if part == "train" else self.recipe.data.valid)[number]
        items = read_items(self.recipe.task, corpus, part)
        kept = [item for item in items if not self.is_empty(item)]
        if len(kept) < len(items):
            self.say(f"{self._name(corpus)}: {len(items) - len(kept)} {self.unit} without text are left out")
        if not kept:
            raise BadInput(f"{self._name(corpus)}: there are no {self.unit} in it")
        return kept

    def is_empty(self, item: Any) -> bool:
        return not str(item.text).strip()

    def labels_in(self, item: Any) -> set[str]:
        """What is said about an example that the model must know from others, too."""
        return set()

    def labels_read_from(self) -> str:
        """Where the labels were found, in words."""
        return labels_read_from(self.recipe.task, self.recipe.data.train[0])

    def about_single(self, item: Any) -> str:
        """What a corpus of one example is."""
        return "a single example"

    @staticmethod
    def _name(corpus: Any) -> str:
        return f"the grammar ({corpus.grammar})" if corpus.grammar else ", ".join(corpus.examples)

    def _keep_back(self) -> None:
        first = self.items[0]
        if len(first) < 2:
            raise BadInput(
                f"{self._name(self.recipe.data.train[0])}: {self.about_single(first[0])}. None can be kept back for "
                "validation: add some, or name validation data (--valid)"
            )
        count = max(1, min(self.recipe.data.hold_out, len(first) // HELD_OUT_SHARE))
        chosen = self._choose(first, count)
        if not chosen:
            raise BadInput(
                f"{self._name(self.recipe.data.train[0])}: none of {len(first)} {self.unit} can be kept back for "
                "validation: each has a label that no other one has. Add some, or name validation data (--valid)"
            )
        self.kept = [[item for number, item in enumerate(first) if number in chosen]]
        self.items[0] = [item for number, item in enumerate(first) if number not in chosen]
        few = "" if len(chosen) >= FEW else FEW_SAY_LITTLE
        self.say(f"no validation data given: {len(chosen)} training {self.unit} are kept back for it{few}")

    def _choose(self, items: Sequence[Any], count: int) -> set[int]:
        """So many at random, but never the last one of a label: it could not be learned."""
        left = Counter(label for part in self.items for item in part for label in self.labels_in(item))
        chosen: set[int] = set()
        for number in Shuffle(len(items), self.recipe.seed, HELD_OUT)(np.arange(len(items))).tolist():
            labels = self.labels_in(items[number])
            if all(left[label] > 1 for label in labels):
                left.subtract(labels)
                chosen.add(number)
            if len(chosen) == count:
                break
        return chosen

    @property
    def tokenizers(self) -> dict[str, Tokenizer]:
        return {"text": self.tokenizer}

    @property
    def data_keys(self) -> list[str]:
        return [items_key(part) for part in (*self.items, *self.kept)]

    def keep(self, folder: Path) -> None:
        """Into the run folder."""
        if not (folder / LABELS).exists():
            replace_file(folder / LABELS, self.about())

    def sizes(self) -> str:
        learned, kept = (sum(map(len, parts)) for parts in (self.items, self.kept))
        return f"{learned:,} {self.unit}, {kept:,} for validation, {self.plan.batches_per_epoch:,} batches an epoch"

    def batches(self, update: int, only: Sequence[int] | None = None) -> list[LabelledBatch]:
        return [self.batch(micro.corpus, micro.indices) for micro in self.plan.at(update, only)]

    def name_batch(self, batch: LabelledBatch) -> str:
        places = [place_of(self.item_of(batch.corpus, index)) for index in batch.indices[:5]]
        more = f" and {len(batch.indices) - 5} more" if len(batch.indices) > 5 else ""
        return f"the batch of {'; '.join(places)}{more}"

    def tell_cut(self, cut: int, rows: int) -> None:
        """Texts over the limit are cut off at its end, which must be known."""
        if cut:
            self.say(about_cut(cut, rows, self.recipe.data.max_length))

    def tell_unknown(self) -> None:
        """Words that the vocabulary has no entry for are all the same to the model."""
        specials, words, unknown = self.tokenizer.specials, 0, 0
        for rows in self.rows:
            for side in (rows.first, rows.second) if isinstance(rows, PairRows) else (rows,):
                words += int(((side.ids != specials.start) & (side.ids != specials.end)).sum())
                unknown += int((side.ids == specials.unknown).sum())
        if 2 * unknown > words:
            self.say(
                f"{unknown:,} of {words:,} tokens ({unknown / words:.0%}) are not in the vocabulary, and the model "
                "cannot tell them apart: it was made from other texts"
            )

    def weighted(self, values: Sequence[dict[str, float]]) -> dict[str, float]:
        """The mean over all validation data, by their weights, of what each of them has."""
        weights = [corpus.weight for corpus in self.recipe.data.valid] or [1]
        return {
            name: sum(weight * one[name] for weight, one in zip(weights, values, strict=True)) / sum(weights)
            for name in values[0]
            if all(name in one for one in values)
        }
