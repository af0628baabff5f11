"""What was learned about questions, used: the stretch of a text that answers, the next best ones, or that none does.

    score(i, j) = u · h_i + v · h_j        p = exp score / Σ exp score        over all stretches that are possible

Possible is what begins before it ends, is not longer than the longest answer and lies inside of a window; and no answer
at all, where the run knows such questions. Of a stretch that several windows hold the best score counts, of no answer
the lowest (Devlin et al. 2019: each window must say so).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

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
AT_ONCE = 256  # questions whose stretches are all in memory
Integers = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float32]


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
    probability: float = 0.0  # among all stretches that are possible


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
    spans: Integers  # (N, 2) where the first answer begins and ends in the row; 0, 0: not in this window
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
        ids = ids[: question_limit(limit)]
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


def long_questions(tokenizer: Tokenizer, questions: Sequence[Question], limit: int) -> int:
    """How many questions are cut off, so that there is room for their context."""
    asked = tokenizer.encode([question.question for question in questions])
    return sum(len(ids) > question_limit(limit) for ids in asked)


def question_limit(limit: int) -> int:
    return max(1, limit // QUESTION_SHARE)


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

    def _answers(self, questions: Sequence[Question], best: int) -> tuple[list[Answered], float]:
        answers: list[Answered] = []
        total, windows = 0.0, 0
        for start in range(0, len(questions), AT_ONCE):
            part = questions[start : start + AT_ONCE]
            found = question_rows(self.tokenizer, part, self.limits.max_length, self.limits.stride)
            spans, none, loss = self._scores(found)
            for question, context, scores, without in zip(part, found.contexts, spans, none.tolist(), strict=True):
                answers.append(self._best(question, context, scores, without, best))
            total, windows = total + loss, windows + len(found.rows)
        return answers, total / max(1, windows)

    @torch.inference_mode()
    def _scores(self, found: QuestionRows) -> tuple[list[Scores], npt.NDArray[np.float64], float]:
        """Of each question the scores of all spans, (T, L): from token t of the context on, l more; −∞ where a span is
        not possible. The scores of no answer; and the sum of the windows' losses."""
        self.model.eval()
        longest = min(self.limits.longest, self.limits.max_length)
        sizes = [(len(context.ids), min(longest, len(context.ids))) for context in found.contexts]
        spans = [np.full(size, -np.inf, np.float32) for size in sizes]
        none = np.full(len(spans), np.inf)
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
                none[number] = min(none[number], float(table[row, 0].sum()))
                begin, end = table[row, shift : int(found.rows.lengths[index]) - 1].T
                for more in range(min(longest, len(begin))):
                    here = spans[number][first : first + len(begin) - more, more]
                    np.maximum(here, begin[: len(begin) - more] + end[more:], out=here)
        return spans, none, total

    def _best(self, question: Question, context: Encoded, scores_TL: Scores, without: float, best: int) -> Answered:
        text = question.context
        stretches, scores = _stretches(text, context, scores_TL)
        ranked = np.lexsort((stretches[:, 1], stretches[:, 0], -scores))[:best]
        candidates = [
            Found(text[start:end], start, score)
            for (start, end), score in zip(stretches[ranked].tolist(), scores[ranked].tolist(), strict=True)
        ]
        if self.limits.unanswerable or not candidates:
            candidates.append(Found("", -1, without))
            candidates.sort(key=lambda one: -one.score)
            scores = np.append(scores, without)
        whole = float(np.logaddexp.reduce(scores))
        told = [replace(one, probability=float(np.exp(one.score - whole))) for one in candidates[:best]]
        return Answered(told[0], tuple(told[1:]))


def _stretches(text: str, context: Encoded, scores_TL: Scores) -> tuple[Integers, npt.NDArray[np.float64]]:
    """The different stretches of a context without blanks at their ends, (N, 2), and the best score of each: spans of
    tokens may differ in blanks alone, and blanks are no answer."""
    trimmed = [trim(text, start, end) for start, end in context.offsets]
    filled = np.array([bool(text[start:end].strip()) for start, end in trimmed], bool)
    # a token of blanks begins where the next word does, and ends where the one before did
    places = np.arange(len(filled))
    following = np.minimum.accumulate(np.where(filled, places, len(filled))[::-1])[::-1]
    before = np.maximum.accumulate(np.where(filled, places, -1))
    begin, more = np.nonzero(~np.isneginf(scores_TL))
    end = begin + more
    real = following[begin] <= before[end]
    begin, end, more = begin[real], end[real], more[real]
    edges = np.array(trimmed, np.int64).reshape(-1, 2)
    keys, same = np.unique(edges[following[begin], 0] * (len(text) + 1) + edges[before[end], 1], return_inverse=True)
    scores = np.full(len(keys), -np.inf)
    np.maximum.at(scores, same, scores_TL[begin, more].astype(np.float64))
    return np.stack(np.divmod(keys, len(text) + 1), axis=1), scores
