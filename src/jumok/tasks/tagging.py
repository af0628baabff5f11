"""Tagging: a tag for each word of a sentence, −Σ log softmax(W h_w + b)_y over the words, where h_w is the vector of a
word's first token (Devlin et al. 2019)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional as F

from jumok.data.conll import WHAT_IT_IS
from jumok.data.examples import Tagged
from jumok.data.labelled_batch import LabelledBatch
from jumok.data.rows import Rows, spread
from jumok.layers.loss import IGNORED
from jumok.models.reader import WordLabeller
from jumok.recipe import BertSection, RecurrentReaderSection
from jumok.tasks.example_task import ExampleTask
from jumok.tasks.labelling import Classes
from jumok.tasks.objective import Loss, Objective
from jumok.tasks.sources import place_of_word
from jumok.tasks.tag_scores import tag_scores
from jumok.tasks.tagger import Tagger, windows


class TaggingObjective(Objective):
    model: WordLabeller
    counted = "words"

    def __init__(self, model: WordLabeller, weights: Sequence[float] | None, label_smoothing: float = 0.0) -> None:
        super().__init__()
        self.model, self.label_smoothing = model, label_smoothing
        self.register_buffer("weights", None if weights is None else torch.tensor(weights), persistent=False)

    def forward(self, batch: LabelledBatch) -> Loss:
        scores_NL = self.model(batch.words, batch.segments).float().flatten(0, 1)
        weights = self.weights if isinstance(self.weights, torch.Tensor) else None
        options = {"ignore_index": IGNORED, "reduction": "sum", "label_smoothing": self.label_smoothing}
        return Loss(F.cross_entropy(scores_NL, batch.labels.flatten(), weights, **options), batch.tokens)  # type: ignore[arg-type]


class TaggingTask(ExampleTask):
    """Everything `jumok train` needs to know about tags."""

    objective: TaggingObjective
    unit = "sentences"

    def is_empty(self, item: Tagged) -> bool:
        return not item.words

    def labels_in(self, item: Tagged) -> set[str]:
        return set(item.tags)

    def about_single(self, item: Tagged) -> str:
        return f"a single sentence of {len(item.words):,} words. {WHAT_IT_IS}"

    def learn_labels(self, items: Sequence[Tagged]) -> None:
        self.labelling = Classes.learned([tag for item in items for tag in item.tags], self.labels_read_from)
        self.origins: list[list[int]] = []

    def encode(self, items: Sequence[Tagged]) -> tuple[Rows, npt.NDArray[Any]]:
        known = {name: number for number, name in enumerate(self.labelling.names)}
        rows: list[list[int]] = []
        labels: list[int] = []
        origins: list[int] = []
        limit = self.recipe.data.max_length
        for number, (item, window) in enumerate_windows(self.tokenizer, items, limit):
            row = [self.tokenizer.specials.start, *window.ids, self.tokenizer.specials.end]
            here = [IGNORED] * len(row)
            for word, place in zip(window.words, window.places, strict=True):
                tag = item.tags[word]
                here[place + 1] = known[tag] if tag in known else self.labelling.index(tag, place_of_word(item, word))
            rows.append(row)
            labels += here
            origins.append(number)
        self.origins.append(origins)
        return Rows.of(rows), np.array(labels, np.int64)

    def build(self) -> None:
        section, training = self.recipe.model, self.recipe.training
        assert isinstance(section, BertSection | RecurrentReaderSection)
        for part in self.kept:
            for item in part:
                for word, tag in enumerate(item.tags):
                    self.labelling.index(tag, place_of_word(item, word))
        model = WordLabeller(section, self.tokenizer.size, self.labelling.size)
        self.objective = TaggingObjective(model, self.labelling.weights(training), training.label_smoothing)
        data = self.recipe.data
        self.tagger = Tagger(model, self.tokenizer, self.labelling, data.max_length, data.stride, self.device)

    def about(self) -> str:
        return json.dumps(self.labelling.to_json(), ensure_ascii=False, indent=1) + "\n"

    def batch(self, corpus: int, indices: npt.NDArray[np.int64]) -> LabelledBatch:
        rows = self.rows[corpus]
        words, segments = rows.batch(indices)
        places, lengths = rows.places(indices)
        labels = self.labels[corpus][places]
        counted = int((labels != IGNORED).sum())
        return LabelledBatch(
            words, spread(labels, lengths, IGNORED), counted, segments, tuple(indices.tolist()), corpus
        )

    def item_of(self, corpus: int, row: int) -> Tagged:
        return self.items[corpus][self.origins[corpus][row]]

    def validate(self) -> dict[str, float]:
        return self.weighted([self._measure(part) for part in self.kept])

    def _measure(self, items: Sequence[Tagged]) -> dict[str, float]:
        tags, loss = self.tagger.predict_with_loss([item.words for item in items], [item.tags for item in items])
        found = tag_scores([item.tags for item in items], tags)
        f1 = found.macro_f1 if found.spans is None else found.spans.f1
        return {"loss": loss, "accuracy": found.accuracy.score, "f1": f1.score}


def enumerate_windows(tokenizer: Any, items: Sequence[Tagged], limit: int) -> Any:
    """Each sentence with its number, as often as it takes windows that do not overlap."""
    for number, (item, found) in enumerate(
        zip(items, windows(tokenizer, [item.words for item in items], limit - 2, 0), strict=True)
    ):
        for window in found:
            yield number, (item, window)
