"""Scores of answers: SQuAD's and KorQuAD's rules, case by case."""

from __future__ import annotations

import json
import random
import secrets

import numpy as np
import pytest

from jumok.errors import BadInput
from jumok.tasks.answer_scores import Language, answer_score, answer_scores, normalised


@pytest.mark.parametrize(
    ("text", "language", "left"),
    [
        ("The  Cat, the hat!", "en", "cat hat"),
        ("An apple a day", "en", "apple day"),
        ("theory of Anne", "en", "theory of anne"),
        ("U.S.-based", "en", "usbased"),  # punctuation leaves no blank behind
        ("“quoted”", "en", "“quoted”"),  # only ASCII punctuation goes
        ("the", "en", ""),
        ("《난중일기》", "ko", "난중일기"),
        ("'ABC'(에이비씨)", "ko", "abc 에이비씨"),  # brackets and quotation marks do leave one
        ('〈가〉 <나> ‘다’ "라"', "ko", "가 나 다 라"),
        ("1,000.5", "ko", "10005"),
        ("the 책", "ko", "the 책"),
    ],
)
def test_what_does_not_matter(text: str, language: Language, left: str) -> None:
    assert normalised(text, language) == left


@pytest.mark.parametrize(
    ("predicted", "gold", "language", "exact", "f1"),
    [
        ("the Denver Broncos", ["Denver Broncos", "Broncos"], "en", True, 1.0),
        ("Broncos of Denver", ["Denver Broncos"], "en", False, 2 * 2 / (3 + 2)),
        ("no no no", ["no yes"], "en", False, 2 * 1 / (3 + 2)),  # as often as both have it
        ("cat", ["dog", "a cat sat"], "en", False, 2 * 1 / (1 + 2)),  # the best of the gold answers
        ("", ["cat"], "en", False, 0.0),
        ("", [], "en", True, 1.0),
        ("cat", [], "en", False, 0.0),
        ("the", [], "en", True, 1.0),  # nothing is left of it
        ("", ["the"], "en", True, 1.0),  # nor of the gold answer: the question counts as one without
        ("이순신은", ["이순신"], "ko", False, 2 * 3 / (4 + 3)),
        ("조선 왕조", ["조선왕조"], "ko", False, 1.0),  # blanks differ: not exact, but every character is there
        ("《춘향전》", ["춘향전"], "ko", True, 1.0),
        ("", [], "ko", True, 1.0),
    ],
)
def test_one_answer(predicted: str, gold: list[str], language: Language, exact: bool, f1: float) -> None:
    assert answer_score(predicted, gold, language) == (exact, pytest.approx(f1))


def test_the_whole_is_the_mean_and_its_parts_are_told() -> None:
    gold = [["cat"], ["a dog"], [], []]
    scores = answer_scores(gold, ["cat sat", "dog", "", "bird"])
    assert scores.whole.exact.score == 0.5
    assert scores.whole.f1.score == pytest.approx((2 / 3 + 1 + 1 + 0) / 4)
    assert scores.answerable is not None
    assert scores.unanswerable is not None
    assert scores.answerable.f1.score == pytest.approx(5 / 6)
    assert scores.unanswerable.exact.score == 0.5
    assert scores.silent == 1
    written = json.loads(json.dumps(scores.to_json(), allow_nan=False))
    assert written["exact_match"]["score"] == 0.5
    assert written["unanswerable"]["questions"] == 2
    assert "2 of 4 questions have no answer" in scores.summary()
    one_kind = answer_scores(gold[:2], ["cat", "dog"])
    assert one_kind.answerable is None
    assert one_kind.to_json()["answerable"] is None
    assert "without an answer" not in one_kind.summary()


def test_intervals_draw_questions() -> None:
    seed = secrets.randbelow(2**31)
    chance = random.Random(seed)
    words = ["red", "green", "blue", "black", "white"]
    gold = [[" ".join(chance.choices(words, k=3))] for _ in range(90)]
    predicted = [" ".join(chance.choices(words, k=2)) for _ in gold]
    scores = answer_scores(gold, predicted)
    each = [answer_score(text, answers)[1] for text, answers in zip(predicted, gold, strict=True)]
    drawn = [np.mean(chance.choices(each, k=len(each))) for _ in range(400)]
    low, high = np.percentile(drawn, [2.5, 97.5])
    assert scores.whole.f1.score == pytest.approx(np.mean(each))
    assert abs(scores.whole.f1.low - low) < 0.25 * (high - low), f"seed {seed}"
    assert abs(scores.whole.f1.high - high) < 0.25 * (high - low), f"seed {seed}"


def test_what_cannot_be_scored() -> None:
    with pytest.raises(BadInput, match="empty"):
        answer_scores([], [])
    with pytest.raises(BadInput, match="ko"):
        answer_scores([["a"]], ["a"], "kr")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="argument"):
        answer_scores([["a"]], ["a", "b"])
