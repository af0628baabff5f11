"""Answering: where in a text is the answer to a question? (Rajpurkar et al. 2016)

    [CLS] question [SEP] context [SEP]      p(begin = i) = softmax_i(u · h_i)      p(end = j) = softmax_j(v · h_j)

A context that does not fit is read through windows that overlap; where a window holds no answer, [CLS] is the answer.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional as F

from jumok.data.examples import Question
from jumok.data.labelled_batch import LabelledBatch
from jumok.data.rows import Rows, about_cut
from jumok.models.reader import WordLabeller
from jumok.recipe import BertSection, RecurrentReaderSection
from jumok.tasks.answer_scores import Language, answer_score
from jumok.tasks.answerer import (
    Answerer,
    AnswerLimits,
    QuestionRows,
    long_questions,
    question_limit,
    question_rows,
)
from jumok.tasks.example_task import ExampleTask
from jumok.tasks.objective import Loss, Objective

LONGEST = 30  # tokens of an answer, at least: what is allowed grows with those that are learned from


class AnsweringObjective(Objective):
    """½ (−log p(begin) − log p(end)), the tokens of a window each other's rivals."""

    model: WordLabeller
    counted = "windows"

    def __init__(self, model: WordLabeller) -> None:
        super().__init__()
        self.model = model

    def forward(self, batch: LabelledBatch) -> Loss:
        scores_BT2 = self.model(batch.words, batch.segments).float()
        scores_BT2 = scores_BT2.masked_fill(~batch.words.mask[..., None], torch.finfo(torch.float32).min)
        # begin and end as rows of their own: over three dimensions the loss cannot be repeated exactly on a GPU
        scores_NT, places_N = scores_BT2.transpose(1, 2).flatten(0, 1), batch.labels.flatten()
        loss = F.cross_entropy(scores_NT, places_N, reduction="sum")
        return Loss(loss / 2, batch.tokens)


class AnsweringTask(ExampleTask):
    """Everything `jumok train` needs to know about questions and answers."""

    objective: AnsweringObjective
    unit = "questions"

    def is_empty(self, item: Question) -> bool:
        return not item.question.strip() or not item.context.strip()

    def learn_labels(self, items: Sequence[Question]) -> None:
        self.unanswerable = any(not item.answers for item in items)
        self.longest = LONGEST
        self.origins: list[npt.NDArray[np.int64]] = []

    def encode(self, items: Sequence[Question]) -> tuple[Rows, npt.NDArray[Any]]:
        found, limit = self._rows(items), self.recipe.data.max_length
        cut = long_questions(self.tokenizer, items, limit)
        if cut:
            self.say(about_cut(cut, len(items), question_limit(limit), "a third of data.max_length", self.unit))
        self.longest = max(self.longest, found.longest)
        self.origins.append(found.question)
        return found.rows, found.spans

    def _rows(self, items: Sequence[Question]) -> QuestionRows:
        return question_rows(self.tokenizer, items, self.recipe.data.max_length, self.recipe.data.stride)

    def build(self) -> None:
        section, data = self.recipe.model, self.recipe.data
        assert isinstance(section, BertSection | RecurrentReaderSection)
        model = WordLabeller(section, self.tokenizer.size, 2)
        self.objective = AnsweringObjective(model)
        limits = AnswerLimits(data.max_length, data.stride, self.longest, self.unanswerable)
        self.answerer = Answerer(model, self.tokenizer, limits, self.device)

    def about(self) -> str:
        return json.dumps({"unanswerable": self.unanswerable, "longest": self.longest}, indent=1) + "\n"

    def batch(self, corpus: int, indices: npt.NDArray[np.int64]) -> LabelledBatch:
        words, segments = self.rows[corpus].batch(indices)
        labels = torch.from_numpy(self.labels[corpus][indices])
        return LabelledBatch(words, labels, len(indices), segments, tuple(indices.tolist()), corpus)

    def item_of(self, corpus: int, row: int) -> Question:
        return self.items[corpus][int(self.origins[corpus][row])]

    def validate(self) -> dict[str, float]:
        return self.weighted([self._measure(part) for part in self.kept])

    def _measure(self, items: Sequence[Question]) -> dict[str, float]:
        answers, loss = self.answerer.answer_with_loss(items)
        language = language_of(items)
        scored = [
            answer_score(answer.text, [one.text for one in item.answers], language)
            for item, answer in zip(items, answers, strict=True)
        ]
        exact, f1 = (sum(float(one[part]) for one in scored) / len(scored) for part in (0, 1))
        return {"loss": loss, "exact": exact, "f1": f1}


def language_of(items: Sequence[Question]) -> Language:
    """Whose rules answers are compared by: KorQuAD's where most questions are written in Hangul, else SQuAD's."""
    korean = sum(any("가" <= letter <= "힣" for letter in item.question) for item in items)
    return "ko" if 2 * korean > len(items) else "en"
