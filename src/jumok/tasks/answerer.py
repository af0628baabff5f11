"""What was learned about questions, used: the stretch of a text that answers, the next best ones, or that none does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional as F

from jumok.data.examples import Question
from jumok.data.plan import length_batches
from jumok.data.rows import Rows
from jumok.errors import BadInput
from jumok.models.reader import WordLabeller
from jumok.tasks.classifier import TOKENS
from jumok.text.tokenizer import Encoded, Tokenizer
from jumok.text.words import trim

QUESTION_SHARE = 3  # a question takes at most one in so many tokens of a row
KEPT = 100  # spans of a window that may be among the best of a question; some differ in blanks alone
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class AnswerLimits:
    max_length: int
    stride: int
    longest: int  # tokens of an answer
    unanswerable: bool  # whether "there is none" may be the answer


@dataclass(frozen=True)
class Found:
    """A stretch of the context; of no answer, the empty text at −1."""

    text: str
    start: int
    score: float
    probability: float = 0.0  # among the best of the question


@dataclass(frozen=True)
class Answered:
    best: Found
    others: tuple[Found, ...]  # the next best

    @property
    def text(self) -> str:
        return self.best.text


@dataclass(frozen=True)
class QuestionRows:
    """Windows of questions: row n belongs to question `question[n]`; its context tokens are `first[n]` … of the whole
    context's, from place `shift[n]` of the row on."""

    rows: Rows
    question: Integers
    shift: Integers
    first: Integers
    spans: npt.NDArray[np.int64]  # (N, 2) where the first answer begins and ends in the row; 0, 0: not in this window
    contexts: list[Encoded]  # of each question
    longest: int  # tokens of an answer


def question_rows(tokenizer: Tokenizer, questions: Sequence[Question], limit: int, stride: int) -> QuestionRows:
    specials = tokenizer.specials
    asked = tokenizer.encode([question.question for question in questions])
    known: dict[str, Encoded] = {}
    rows: list[list[int]] = []
    segments: list[list[int]] = []
    about: list[tuple[int, int, int, int, int]] = []
    contexts, longest = [], 0
    for number, (question, ids) in enumerate(zip(questions, asked, strict=True)):
        if question.context not in known:
            known[question.context] = tokenizer.encode_with_offsets(question.context)
        context = known[question.context]
        contexts.append(context)
        ids = ids[: max(1, limit // QUESTION_SHARE)]
        room = limit - 3 - len(ids)
        if room < 1:
            raise BadInput(f"data.max_length {limit} leaves no room for a context")
        begin, end = _tokens_of(question, context)
        longest = max(longest, end - begin)
        step, shift = max(1, room - min(stride, room // 2)), len(ids) + 2
        for first in range(0, max(1, len(context.ids)), step):
            part = context.ids[first : first + room]
            rows.append([specials.start, *ids, specials.end, *part, specials.end])
            segments.append([0] * shift + [1] * (len(part) + 1))
            inside = begin < end and first <= begin and end <= first + len(part)
            span = (shift + begin - first, shift + end - 1 - first) if inside else (0, 0)
            about.append((number, shift, first, *span))
            if first + room >= len(context.ids):
                break
    table = np.array(about, np.int64).reshape(-1, 5)
    columns = table[:, 0], table[:, 1], table[:, 2], table[:, 3:]
    return QuestionRows(Rows.of(rows, segments), *columns, contexts, longest)


def _tokens_of(question: Question, context: Encoded) -> tuple[int, int]:
    """The tokens of a context that its first answer lies in; none: 0, 0."""
    if not question.answers:
        return 0, 0
    answer = question.answers[0]
    inside = [
        place
        for place, (start, end) in enumerate(context.offsets)
        if start < answer.start + len(answer.text) and end > answer.start
    ]
    return (inside[0], inside[-1] + 1) if inside else (0, 0)


class Answerer:
    """Answers questions about texts."""

    def __init__(self, model: WordLabeller, tokenizer: Tokenizer, limits: AnswerLimits, device: torch.device) -> None:
        self.model, self.tokenizer, self.limits, self.device = model, tokenizer, limits, device

    def answer(self, question: str, context: str, best: int = 5) -> Answered:
        if not question.strip() or not context.strip():
            raise BadInput("a question and a context are needed, and one of them is empty")
        return self.answers([Question(question, context)], best)[0]

    def answers(self, questions: Sequence[Question], best: int = 5) -> list[Answered]:
        if best < 1:
            raise BadInput(f"{best} answers: ask for one at least")
        return self._answers(questions, best)[0]

    def answer_with_loss(self, questions: Sequence[Question]) -> tuple[list[Answered], float]:
        """The same, and ½ (−log p(begin) − log p(end)) of a window on the average."""
        return self._answers(questions, 1)

    @torch.inference_mode()
    def _answers(self, questions: Sequence[Question], best: int) -> tuple[list[Answered], float]:
        self.model.eval()
        limits = self.limits
        found = question_rows(self.tokenizer, questions, limits.max_length, limits.stride)
        spans: list[dict[tuple[int, int], float]] = [{} for _ in questions]  # by place in the context: the score
        none = np.full(len(questions), np.inf)
        total = 0.0
        for chosen in length_batches(found.rows.lengths, np.zeros(len(found.rows), np.int64), TOKENS):
            words, segments = found.rows.batch(chosen)
            scores = self.model(words.to(self.device), None if segments is None else segments.to(self.device))
            scores = scores.float().masked_fill(~words.mask.to(self.device)[..., None], torch.finfo(torch.float32).min)
            wanted = torch.from_numpy(found.spans[chosen]).to(self.device)
            rivals = scores.transpose(1, 2).flatten(0, 1)
            total += float(F.cross_entropy(rivals, wanted.flatten(), reduction="sum")) / 2
            table = scores.cpu().numpy()
            for row, index in enumerate(chosen.tolist()):
                number, shift, first = (int(part[index]) for part in (found.question, found.shift, found.first))
                length = int(found.rows.lengths[index])
                none[number] = min(none[number], float(table[row, 0].sum()))
                self._note(spans[number], table[row, shift : length - 1], first, max(KEPT, best))
        return [
            self._best(question, context, here, float(without), best)
            for question, context, here, without in zip(questions, found.contexts, spans, none, strict=True)
        ], total / max(1, len(found.rows))

    def _note(
        self, spans: dict[tuple[int, int], float], scores_T2: npt.NDArray[np.float32], first: int, kept: int
    ) -> None:
        """The best spans of a window, by their place in the whole context."""
        tokens = len(scores_T2)
        if not tokens:
            return
        both = scores_T2[:, 0][:, None] + scores_T2[:, 1][None, :]
        apart = np.arange(tokens)[None, :] - np.arange(tokens)[:, None]
        both = np.where((apart >= 0) & (apart < self.limits.longest), both, -np.inf)
        flat = both.ravel()
        top = np.argpartition(-flat, min(kept, len(flat) - 1))[:kept]
        for place in top.tolist():
            begin, end = divmod(place, tokens)
            if np.isfinite(flat[place]):
                span = (first + begin, first + end)
                spans[span] = max(spans.get(span, -np.inf), float(flat[place]))

    def _best(
        self, question: Question, context: Encoded, spans: dict[tuple[int, int], float], without: float, best: int
    ) -> Answered:
        by_text: dict[tuple[int, int], float] = {}
        for (begin, end), score in spans.items():
            stretch = trim(question.context, context.offsets[begin][0], context.offsets[end][1])
            if question.context[slice(*stretch)].strip():  # blanks are no answer
                by_text[stretch] = max(by_text.get(stretch, -np.inf), score)
        ranked = sorted(by_text.items(), key=lambda item: (-item[1], item[0]))[:best]
        candidates = [Found(question.context[start:end], start, score) for (start, end), score in ranked]
        if self.limits.unanswerable or not candidates:
            candidates.append(Found("", -1, without))
            candidates.sort(key=lambda one: -one.score)
        scores = np.array([one.score for one in candidates])
        shares = np.exp(scores - scores.max())
        shares /= shares.sum()
        told = [
            Found(one.text, one.start, one.score, float(share)) for one, share in zip(candidates, shares, strict=True)
        ]
        return Answered(told[0], tuple(told[1:best]))
