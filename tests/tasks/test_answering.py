"""Answers: the best of all spans wherever it stands, exact places in any script, and a task that learns to find."""

from __future__ import annotations

import json
import random
import secrets
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from seeded import seed  # noqa: F401
from torch.nn import functional as F

from jumok import api
from jumok import recipe as recipes
from jumok.data.batch import Sequences
from jumok.data.examples import Answer, Question
from jumok.errors import BadInput
from jumok.models.reader import WordLabeller
from jumok.recipe import BertSection, Recipe
from jumok.tasks.answerer import QUESTION_SHARE, Answerer, AnswerLimits, question_rows
from jumok.tasks.build import build_task
from jumok.text.tokenizer import Tokenizer, train_tokenizer

CPU = torch.device("cpu")
WORDS = [
    "the",
    "cat",
    "Café",
    "naïve",
    "고양이가",
    "서울에서",
    "잔다.",
    "🙂",
    "👩‍👩‍👧",
    "x=1,",
    "(no)",
    "e\u0301t\u00e9",
    "—",
    "fluffier",
]
SMALL = [
    "tokenizer.vocabulary=150", "training.batch_tokens=700", "training.updates=80", "training.warmup=10",
    "training.validate_every=40", "training.checkpoint_every=40", "training.learning_rate=0.004",
    "data.max_length=32", "data.stride=8", "model.dropout=0.0", "model.attention_dropout=0.0", "model.width=32",
    "model.layers=1", "model.heads=2", "model.feed_forward=64",
]  # fmt: skip


@pytest.fixture(scope="module", params=["wordpiece", "bpe", "character"])
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    return train_tokenizer([" ".join(WORDS)] * 3, request.param, 90)


def random_text(chance: random.Random, words: int) -> str:
    return (
        "".join(chance.choice(WORDS) + chance.choice([" ", " ", "  ", "\n", "\t"]) for _ in range(words)).rstrip()
        or "x"
    )


def answerer_of(tokenizer: Tokenizer, limits: AnswerLimits) -> Answerer:
    section = BertSection(width=16, heads=2, layers=1, feed_forward=24)
    model = WordLabeller(section, tokenizer.size, 2)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return Answerer(model.eval(), tokenizer, limits, CPU)


Spans = dict[tuple[int, int], float]


@torch.no_grad()
def every_span(answerer: Answerer, question: str, context: str) -> tuple[Spans, float]:
    """By characters of the context: the best score of each stretch, over all windows and all pairs of tokens; and the
    score of no answer."""
    tokenizer, limits = answerer.tokenizer, answerer.limits
    asked = tokenizer.encode([question])[0][: max(1, limits.max_length // QUESTION_SHARE)]
    whole = tokenizer.encode_with_offsets(context)
    room = limits.max_length - 3 - len(asked)
    step = max(1, room - min(limits.stride, room // 2))
    best: Spans = {}
    none = float("inf")
    first = 0
    while True:
        part = whole.ids[first : first + room]
        head = [tokenizer.specials.start, *asked, tokenizer.specials.end]
        row = [*head, *part, tokenizer.specials.end]
        segments = torch.tensor([[0] * len(head) + [1] * (len(part) + 1)])
        scores = answerer.model(Sequences.pad([row]), segments)[0].tolist()
        none = min(none, sum(scores[0]))
        for begin in range(len(part)):
            for end in range(begin, min(len(part), begin + limits.longest)):
                score = scores[len(head) + begin][0] + scores[len(head) + end][1]
                stretch = whole.offsets[first + begin][0], whole.offsets[first + end][1]
                text = context[slice(*stretch)]
                stretch = stretch[1] - len(text.lstrip()), stretch[0] + len(text.rstrip())
                if text.strip():
                    best[stretch] = max(best.get(stretch, -float("inf")), score)
        if first + room >= len(whole.ids):
            return best, none
        first += step


@pytest.mark.parametrize("unanswerable", [False, True])
def test_it_is_the_best_of_all_spans(tokenizer: Tokenizer, unanswerable: bool) -> None:
    for _ in range(6):
        draw = secrets.randbelow(2**31)
        chance = random.Random(draw)
        limits = AnswerLimits(chance.randint(12, 40), chance.randint(1, 20), chance.randint(1, 6), unanswerable)
        answerer = answerer_of(tokenizer, limits)
        question, context = random_text(chance, 3), random_text(chance, chance.randint(1, 25))
        spans, none = every_span(answerer, question, context)
        found = answerer.answer(question, context, best=5)
        where = f"seed {draw}: {question!r} {context!r}"
        told = [found.best, *found.others]
        expected = sorted([*spans.values(), *([none] if unanswerable else [])], reverse=True)[:5]
        assert [one.score for one in told] == pytest.approx(expected, abs=1e-4), where
        everything = np.array([*spans.values(), *([none] if unanswerable or not spans else [])])
        whole = np.log(np.exp(everything - everything.max()).sum()) + everything.max()
        assert [one.probability for one in told] == pytest.approx(np.exp(np.array(expected) - whole), abs=1e-4), where
        for one in told:
            if one.start < 0:
                assert unanswerable, where
                assert (one.text, one.score) == ("", pytest.approx(none, abs=1e-4)), where
            else:
                assert context[one.start : one.start + len(one.text)] == one.text, where
                assert one.text, where
                assert one.text.strip() == one.text, where
                assert spans[one.start, one.start + len(one.text)] == pytest.approx(one.score, abs=1e-4), where


def test_a_probability_does_not_depend_on_how_many_are_told(tokenizer: Tokenizer) -> None:
    chance = random.Random(secrets.randbelow(2**31))
    answerer = answerer_of(tokenizer, AnswerLimits(24, 6, 4, True))
    question, context = random_text(chance, 2), random_text(chance, 12)
    alone = answerer.answer(question, context, best=1).best
    found = answerer.answer(question, context, best=10**6)
    told = [found.best, *found.others]
    assert alone.probability == pytest.approx(told[0].probability)
    assert sum(one.probability for one in told) == pytest.approx(1), "all that there are"
    assert len(told) > 3
    assert alone.probability < 1


def test_scores_that_are_far_apart_are_still_probabilities(tokenizer: Tokenizer) -> None:
    model: Any = Decided(-3e4, len(tokenizer.encode(["the"])[0]) + 2)
    model.most = 3e4
    found = Answerer(model, tokenizer, AnswerLimits(60, 8, 5, True), CPU).answer("the", "the cat Café", best=3)
    assert [one.probability for one in (found.best, *found.others)] == pytest.approx([1, 0, 0])


class Decided(torch.nn.Module):
    """All speaks for [CLS], or against it; of the others one place begins and ends best."""

    def __init__(self, none: float, place: int) -> None:
        super().__init__()
        self.none, self.place, self.most = none, place, 5.0

    def forward(self, words: Sequences, segments: torch.Tensor) -> torch.Tensor:
        scores = torch.zeros(*words.ids.shape, 2)
        scores[:, self.place] = self.most
        scores[:, 0] = self.none
        return scores


@pytest.mark.parametrize("allowed", [False, True])
@pytest.mark.parametrize("none", [9.0, -9.0])
def test_no_answer_only_where_it_is_allowed_and_likelier(tokenizer: Tokenizer, allowed: bool, none: float) -> None:
    context = "the cat Café"
    asked, whole = tokenizer.encode(["the"])[0], tokenizer.encode_with_offsets(context)
    model: Any = Decided(none, len(asked) + 2 + 1)  # the second token of the context
    found = Answerer(model, tokenizer, AnswerLimits(60, 8, 5, allowed), CPU).answer("the", context, best=3)
    told = [found.best, *found.others]
    begin, end = whole.offsets[1]
    expected = context[begin:end]
    assert found.text == ("" if allowed and none > 0 else expected)
    assert ("" in [one.text for one in told]) == (allowed and none > 0), "unlikely, it is not among the best"
    assert [one.score for one in told] == sorted((one.score for one in told), reverse=True)


def test_questions_do_not_depend_on_their_company(tokenizer: Tokenizer) -> None:
    chance = random.Random(secrets.randbelow(2**31))
    answerer = answerer_of(tokenizer, AnswerLimits(24, 6, 5, True))
    asked = [Question(random_text(chance, 2), random_text(chance, chance.randint(1, 30))) for _ in range(6)]
    together = answerer.answers(asked, 3)
    for one, found in zip(asked, together, strict=True):
        alone = answerer.answers([one], 3)[0]
        assert [f.score for f in (found.best, *found.others)] == pytest.approx(
            [f.score for f in (alone.best, *alone.others)], abs=1e-4
        )


def test_windows_hold_the_whole_context_and_the_answer(tokenizer: Tokenizer) -> None:
    for _ in range(40):
        draw = secrets.randbelow(2**31)
        chance = random.Random(draw)
        context = random_text(chance, chance.randint(1, 30))
        begin = chance.randrange(len(context))
        end = chance.randint(begin + 1, min(len(context), begin + 12))
        text = context[begin:end].strip()
        begin += len(context[begin:end]) - len(context[begin:end].lstrip())
        answers = (Answer(text, begin),) if text else ()
        question = Question(random_text(chance, 2), context, answers)
        limit, stride = chance.randint(10, 40), chance.randint(1, 20)
        found = question_rows(tokenizer, [question], limit, stride)
        whole = found.contexts[0]
        where = f"seed {draw}"
        covered: set[int] = set()
        for row in range(len(found.rows)):
            ids = found.rows.ids[found.rows.starts[row] : found.rows.starts[row + 1]].tolist()
            shift, first = int(found.shift[row]), int(found.first[row])
            part = ids[shift:-1]
            assert len(ids) <= limit, where
            assert part == whole.ids[first : first + len(part)], where
            covered |= set(range(first, first + len(part)))
            a, b = found.spans[row].tolist()
            if (a, b) == (0, 0):
                continue
            assert shift <= a <= b < len(ids) - 1, where
            start, stop = whole.offsets[first + a - shift][0], whole.offsets[first + b - shift][1]
            assert start <= begin, where
            assert begin + len(text) <= stop, f"{where}: the tokens hold the answer"
        assert covered == set(range(len(whole.ids))), where
        if text and len(text) < 4 and limit > 30 and stride > 8 and whole.ids:
            assert (found.spans != 0).any(), f"{where}: an answer shorter than the overlap is whole somewhere"


def test_an_empty_question_is_refused(tokenizer: Tokenizer) -> None:
    answerer = answerer_of(tokenizer, AnswerLimits(24, 6, 5, False))
    for asked in (("", "a text"), ("what", " \n ")):
        with pytest.raises(BadInput, match="one of them is empty"):
            answerer.answer(*asked)
    with pytest.raises(BadInput, match="max_length 4 leaves no room"):
        answerer_of(tokenizer, AnswerLimits(4, 1, 5, False)).answer("the cat", "Café")


# ------------------------------------------------------------ learning


NAMES = ["Minji", "Ada", "José", "하나", "Zürich"]


def asked_about(chance: random.Random, missing: float = 0.0) -> dict[str, Any]:
    """A name somewhere among other words, or nowhere."""
    words = chance.choices(["well", "then", "now", "so", "and"], k=chance.randint(1, 40))
    if chance.random() < missing:
        return {"question": "who ?", "context": " ".join(words), "answers": []}
    place, name = chance.randint(0, len(words)), chance.choice(NAMES)
    start = len(" ".join([*words[:place], ""]))
    context = " ".join([*words[:place], name, *words[place:]])
    return {"question": "who ?", "context": context, "answers": [{"text": name, "answer_start": start}]}


def squad(path: Path, count: int, missing: float = 0.0) -> Path:
    chance = random.Random(5)
    asked = [asked_about(chance, missing) for _ in range(count)]
    paragraphs = [
        {"context": one["context"], "qas": [{"id": str(n), "question": one["question"], "answers": one["answers"]}]}
        for n, one in enumerate(asked)
    ]
    path.write_text(json.dumps({"data": [{"title": "t", "paragraphs": paragraphs}]}), encoding="utf-8")
    return path


def recipe_of(file: Path, *keys: str) -> Recipe:
    return recipes.read("answer", [*SMALL, f"data.train.examples={file}", *keys])


def test_it_learns_to_answer(tmp_path: Path) -> None:
    """Where a name stands, in texts over the limit too; and that there is none."""
    file = squad(tmp_path / "train.json", 400, missing=0.2)
    model = api.train(recipe_of(file), tmp_path / "run", quiet=True, report=False)
    assert model.limits.unanswerable
    chance = random.Random(77)
    asked = [asked_about(chance, 0.2) for _ in range(40)]
    found = model.answers([Question(one["question"], one["context"]) for one in asked])
    right = sum(
        answer.text == (one["answers"][0]["text"] if one["answers"] else "")
        for one, answer in zip(asked, found, strict=True)
    )
    assert right > 30, right
    events = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert max(event["exact"] for event in events if event["event"] == "valid") > 0.4


def test_the_loss_is_of_where_answers_begin_and_end(tmp_path: Path) -> None:
    task: Any = build_task(recipe_of(squad(tmp_path / "train.json", 60)), CPU, lambda _: None)
    batch = task.batches(0)[0]
    objective = task.objective.eval()
    with torch.no_grad():
        scores, found = objective.model(batch.words, batch.segments), objective(batch)
    expected = 0.0
    for row, (begin, end) in enumerate(batch.labels.tolist()):
        length = int(batch.words.lengths[row])
        log_p = F.log_softmax(scores[row, :length], dim=0)
        expected -= 0.5 * float(log_p[begin, 0] + log_p[end, 1])
        item = task.item_of(0, batch.indices[row])
        if end:
            ids = batch.words.ids[row, begin : end + 1].tolist()
            assert task.tokenizer.decode([ids])[0] == item.answers[0].text
    assert (float(found.sum), found.count) == (pytest.approx(expected, rel=1e-4), len(batch))
    answers, loss = task.answerer.answer_with_loss(task.kept[0])
    values = task.validate()
    assert values["loss"] == pytest.approx(loss)
    exact = np.mean([one.text == item.answers[0].text for one, item in zip(answers, task.kept[0], strict=True)])
    assert values["exact"] in (pytest.approx(exact), pytest.approx(100 * exact))
    assert not task.unanswerable
