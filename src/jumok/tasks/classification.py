"""Classification and regression: a text or two → a label or a number.

    classification   −Σ log softmax(W c + b)_y          regression   Σ (w · c + b − (y − mean) / scale)²

where c stands for the text (`models/reader.py`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional as F

from jumok.data.examples import Example
from jumok.data.labelled_batch import LabelledBatch
from jumok.data.rows import PairRows, Rows
from jumok.errors import BadInput
from jumok.models.reader import TextLabeller, reads_apart
from jumok.recipe import BertSection, RecurrentReaderSection
from jumok.tasks.classifier import text_rows, text_scores
from jumok.tasks.example_task import ExampleTask
from jumok.tasks.label_scores import f1_of, macro_f1, matthews
from jumok.tasks.labelling import Classes, Numbers, number_of
from jumok.tasks.number_scores import Ranks, rank_correlation
from jumok.tasks.objective import Loss, Objective
from jumok.tasks.sources import place_of


class ClassificationObjective(Objective):
    """With R-Drop (Liang et al. 2021) each batch goes through twice, and both predictions p, q must agree:
    the loss is the mean of both, and α/4 · (KL(p‖q) + KL(q‖p))."""

    model: TextLabeller
    counted = "examples"

    def __init__(
        self, model: TextLabeller, weights: Sequence[float] | None, label_smoothing: float = 0.0, r_drop: float = 0.0
    ) -> None:
        super().__init__()
        self.model, self.label_smoothing, self.r_drop = model, label_smoothing, r_drop
        self.register_buffer("weights", None if weights is None else torch.tensor(weights), persistent=False)

    def forward(self, batch: LabelledBatch) -> Loss:
        if not self.training or not self.r_drop:
            return Loss(self.entropy(self.model(batch.words, batch.segments).float(), batch.labels), batch.tokens)
        if self.model.apart:  # whose rows stand in an order of their own
            scores_2BL = torch.cat([self.model(batch.words) for _ in range(2)]).float()
        else:
            segments = None if batch.segments is None else batch.segments.repeat(2, 1)
            scores_2BL = self.model(batch.words.twice(), segments).float()
        entropy = self.entropy(scores_2BL, batch.labels.repeat(2)) / 2
        first, second = F.log_softmax(scores_2BL, dim=-1).chunk(2)
        apart = 0.5 * ((first.exp() - second.exp()) * (first - second)).sum()
        return Loss(entropy + self.r_drop / 2 * apart, batch.tokens, {"nll": entropy.detach(), "kl": apart.detach()})

    def entropy(self, scores_BL: Tensor, labels_B: Tensor) -> Tensor:
        weights = self.weights if isinstance(self.weights, Tensor) else None
        return F.cross_entropy(scores_BL, labels_B, weights, reduction="sum", label_smoothing=self.label_smoothing)


class RegressionObjective(Objective):
    model: TextLabeller
    counted = "examples"

    def __init__(self, model: TextLabeller) -> None:
        super().__init__()
        self.model = model

    def forward(self, batch: LabelledBatch) -> Loss:
        scores_B = self.model(batch.words, batch.segments).float()[:, 0]
        return Loss((scores_B - batch.labels.float()).square().sum(), batch.tokens)


class ClassificationTask(ExampleTask):
    """Everything `jumok train` needs to know about labels and numbers for texts."""

    def is_empty(self, item: Example) -> bool:
        return is_empty(item)

    def labels_in(self, item: Example) -> set[str]:
        return {str(item.label)} if self.recipe.task == "classification" else set()

    def learn_labels(self, items: Sequence[Example]) -> None:
        pairs = {item.second is not None for item in items}
        if len(pairs) > 1:
            raise BadInput("data.train: some examples are two texts and some are one; all must be alike")
        (self.pairs,) = pairs
        for item in (item for part in self.kept for item in part):
            if (item.second is not None) != self.pairs:
                two, one = ("two texts", "one") if self.pairs else ("one text", "two")
                raise BadInput(f"{place_of(item)}: the training examples are {two} each, and this is {one}")
        self.labelling: Classes | Numbers
        if self.recipe.task == "regression":
            self.labelling = Numbers.learned([number_of(item, place_of(item)) for item in items])
        else:
            self.labelling = Classes.learned([str(item.label) for item in items], self.labels_read_from)

    def encode(self, items: Sequence[Example]) -> tuple[Any, npt.NDArray[Any]]:
        """A label that training has not seen is named."""
        section = self.recipe.model
        assert isinstance(section, BertSection | RecurrentReaderSection)
        texts = [(item.text, item.second) for item in items]
        rows, cut = text_rows(self.tokenizer, texts, self.recipe.data.max_length, reads_apart(section))
        self.tell_cut(cut, len(items))
        if isinstance(rows, Rows) and rows.segments is not None and section.segments == 1:
            raise BadInput("model.segments 1: pairs of texts need a vector for each (2), or none (0)")
        return rows, labels_of(items, self.labelling)

    def build(self) -> None:
        section, training = self.recipe.model, self.recipe.training
        assert isinstance(section, BertSection | RecurrentReaderSection)
        self.held = [self.encode(part) for part in self.kept]
        if isinstance(self.labelling, Numbers):
            self.objective = RegressionObjective(TextLabeller(section, self.tokenizer.size, 1))
        else:
            model = TextLabeller(section, self.tokenizer.size, self.labelling.size)
            weights = self.labelling.weights(training)
            self.objective = ClassificationObjective(model, weights, training.label_smoothing, training.r_drop)

    def about(self) -> str:
        about = {**self.labelling.to_json(), "pairs": self.pairs}
        return json.dumps(about, ensure_ascii=False, indent=1) + "\n"

    def batch(self, corpus: int, indices: npt.NDArray[np.int64]) -> LabelledBatch:
        words, segments = self.rows[corpus].batch(indices)
        labels = torch.from_numpy(self.labels[corpus][indices])
        return LabelledBatch(words, labels, len(indices), segments, tuple(indices.tolist()), corpus)

    def validate(self) -> dict[str, float]:
        self.objective.eval()
        return self.weighted([self._measure(rows, labels) for rows, labels in self.held])

    def _measure(self, rows: Rows | PairRows, labels: npt.NDArray[Any]) -> dict[str, float]:
        model = self.objective.model
        assert isinstance(model, TextLabeller)
        scores = text_scores(model, rows, self.device)
        if isinstance(self.labelling, Numbers):
            given = scores[:, 0].astype(np.float64)
            ranks = rank_correlation(Ranks.of(labels), Ranks.of(given), np.ones(len(labels), np.int64))
            varies = len(labels) > 1 and labels.std() > 0 and given.std() > 0
            pearson = float(np.corrcoef(labels, given)[0, 1]) if varies else math.nan
            return defined(
                {"loss": float(np.square(given - labels).mean()), "pearson": pearson, "spearman": float(ranks)}
            )
        log_p = torch.log_softmax(torch.from_numpy(scores), dim=-1).numpy()
        loss = float(-log_p[np.arange(len(labels)), labels].mean())
        said, size = log_p.argmax(axis=-1), self.labelling.size
        right, gold, predicted = (np.bincount(each, minlength=size) for each in (labels[labels == said], labels, said))
        counts = right, gold, predicted
        f1 = float(f1_of(*counts)[1] if size == 2 and gold[1] else macro_f1(*counts))
        accuracy, agreement = float(right.sum() / len(labels)), float(matthews(*counts))
        return defined({"loss": loss, "accuracy": accuracy, "f1": f1, "matthews": agreement})


def defined(scores: dict[str, float]) -> dict[str, float]:
    """Without those that few examples, or examples that are all alike, say nothing about. A loss is never left out."""
    return {name: score for name, score in scores.items() if name == "loss" or not math.isnan(score)}


def is_empty(item: Example) -> bool:
    """Whether a text is missing; of two, either one."""
    return not item.text.strip() or (item.second is not None and not item.second.strip())


def labels_of(items: Sequence[Example], labelling: Classes | Numbers) -> npt.NDArray[Any]:
    """As the objective wants them. A label that was not seen in training is named with its place."""
    if isinstance(labelling, Numbers):
        values = [(number_of(item, place_of(item)) - labelling.mean) / labelling.scale for item in items]
        return np.array(values, np.float32)
    known = {name: number for number, name in enumerate(labelling.names)}
    return np.array(
        [
            known[label] if (label := str(item.label)) in known else labelling.index(label, place_of(item))
            for item in items
        ],
        np.int64,
    )
