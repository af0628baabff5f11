"""Scores of tags: by hand, against conlleval's rules written out, and against draws of our own."""

from __future__ import annotations

import json
import math
import random
import secrets

import numpy as np
import pytest

from jumok.errors import BadInput
from jumok.tasks.tag_scores import TagScores, tag_scores

GOLD = [["B-PER", "I-PER", "O", "B-LOC"], ["O", "B-ORG", "I-ORG", "O"]]
PREDICTED = [["B-PER", "I-PER", "O", "O"], ["O", "B-ORG", "O", "B-LOC"]]


def made(seed: int, sentences: int, tags: list[str]) -> tuple[list[list[str]], list[list[str]]]:
    chance = random.Random(seed)
    gold = [[chance.choice(tags) for _ in range(chance.randint(1, 12))] for _ in range(sentences)]
    return gold, [[tag if chance.random() < 0.8 else chance.choice(tags) for tag in sentence] for sentence in gold]


def conlleval(gold: list[list[str]], predicted: list[list[str]]) -> dict[str, tuple[int, int, int]]:
    """(right, gold, predicted) by type for IOB tags, with conlleval's own rules of where a chunk starts and ends."""
    found: dict[str, list[int]] = {}

    def parts(tag: str) -> tuple[str, str]:
        letter, _, kind = tag.partition("-")
        return letter, kind

    def starts(before: str, tag: str) -> bool:
        (old, old_kind), (new, kind) = parts(before), parts(tag)
        return new == "B" or (new == "I" and (old == "O" or old_kind != kind))

    def ends(before: str, tag: str) -> bool:
        (old, old_kind), (new, kind) = parts(before), parts(tag)
        return old != "O" and (new in ("O", "B") or old_kind != kind)

    for ours, theirs in zip(gold, predicted, strict=True):
        both_open, last = "", ("O", "O")
        for pair in zip([*ours, "O"], [*theirs, "O"], strict=True):
            ended = [ends(before, tag) for before, tag in zip(last, pair, strict=True)]
            if both_open and any(ended):
                if all(ended):
                    found[both_open][0] += 1
                both_open = ""
            started = [starts(before, tag) for before, tag in zip(last, pair, strict=True)]
            for number, (start, tag) in enumerate(zip(started, pair, strict=True)):
                if start:
                    found.setdefault(parts(tag)[1], [0, 0, 0])[number + 1] += 1
            if all(started) and parts(pair[0])[1] == parts(pair[1])[1]:
                both_open = parts(pair[0])[1]
            last = pair
    return {kind: (right, wanted, given) for kind, (right, wanted, given) in found.items()}


def test_spans_by_hand() -> None:
    scores = tag_scores(GOLD, PREDICTED)
    assert scores.spans is not None
    assert (scores.spans.right, scores.spans.gold, scores.spans.predicted) == (1, 3, 3)
    assert scores.spans.f1.score == scores.spans.precision.score == scores.spans.recall.score == pytest.approx(1 / 3)
    assert scores.accuracy.score == 5 / 8
    by_name = {score.name: (score.right, score.gold, score.predicted) for score in scores.by_name}
    assert by_name == {"LOC": (0, 1, 1), "ORG": (0, 1, 1), "PER": (1, 1, 1)}
    assert scores.most_frequent == ("O", 3 / 8)
    assert scores.f1 == scores.spans.f1


@pytest.mark.parametrize("tags", [["O", "B-A", "I-A", "B-B", "I-B"], ["O", "I-A", "I-B", "B-A"]], ids=["IOB2", "IOB1"])
def test_as_conlleval(tags: list[str]) -> None:
    seed = secrets.randbelow(2**31)
    gold, predicted = made(seed, 60, tags)
    scores, expected = tag_scores(gold, predicted), conlleval(gold, predicted)
    assert {score.name: (score.right, score.gold, score.predicted) for score in scores.by_name} == expected, (
        f"seed {seed}"
    )
    right, wanted, given = (sum(each) for each in zip(*expected.values(), strict=True))
    precision, recall = right / given, right / wanted
    assert scores.spans is not None
    assert scores.spans.f1.score == pytest.approx(2 * precision * recall / (precision + recall)), f"seed {seed}"


def test_the_schemes_say_the_same() -> None:
    rename = {"B-A": "B-A", "I-A": "I-A", "O": "O", "E-A": "L-A", "S-A": "U-A"}
    gold = [["B-A", "E-A", "O", "S-A"], ["B-A", "I-A", "E-A"]]
    predicted = [["B-A", "E-A", "O", "O"], ["B-A", "I-A", "E-A"]]
    other = [[[rename[tag] for tag in sentence] for sentence in side] for side in (gold, predicted)]
    assert tag_scores(gold, predicted).to_json() == tag_scores(*other).to_json()
    assert tag_scores(gold, predicted).f1.score == pytest.approx(0.8)


def test_nothing_predicted_is_zero_as_in_conlleval() -> None:
    scores = tag_scores(GOLD, [["O"] * 4] * 2)
    assert scores.spans is not None
    assert [scores.spans.precision.score, scores.spans.recall.score, scores.spans.f1.score] == [0, 0, 0]
    invented = tag_scores([["O", "O"]], [["O", "B-PER"]])
    assert invented.f1.score == 0
    assert math.isnan(invented.macro_f1.score)
    assert "no span in the test data" in invented.summary()
    json.dumps(invented.to_json(), allow_nan=False)


def test_parts_of_speech_have_no_spans() -> None:
    gold, predicted = [["N", "V", "D"], ["N"]], [["N", "V", "X"], ["V"]]
    scores = tag_scores(gold, predicted)
    assert scores.spans is None
    assert scores.accuracy.score == 0.5
    # N: 1 of 2 found and nothing else called so; V: found, and once too often; D: missed; X is in no gold
    assert scores.macro_f1.score == pytest.approx((2 / 3 + 2 / 3 + 0) / 3)
    assert scores.f1 == scores.macro_f1
    written = json.loads(json.dumps(scores.to_json(), allow_nan=False))
    assert written["spans"] is None
    assert {each["name"]: each["f1"]["score"] for each in written["by_tag"]}["X"] is None
    assert "“X”; left out of macro F1" in scores.summary()


def test_intervals_draw_whole_sentences() -> None:
    seed = secrets.randbelow(2**31)
    gold, predicted = made(seed, 60, ["O", "O", "B-A", "I-A", "B-B"])
    scores, chance, drawn = tag_scores(gold, predicted), random.Random(seed), []
    counted = [conlleval([ours], [theirs]) for ours, theirs in zip(gold, predicted, strict=True)]
    for _ in range(400):
        rows = [row for each in chance.choices(counted, k=len(counted)) for row in each.values()]
        right, wanted, given = (sum(each) for each in zip(*rows, strict=True))
        drawn.append(2 * right / (wanted + given))
    low, high = np.percentile(drawn, [2.5, 97.5])
    assert abs(scores.f1.low - low) < 0.25 * (high - low), f"seed {seed}"
    assert abs(scores.f1.high - high) < 0.25 * (high - low), f"seed {seed}"


def test_the_summary_lines_up() -> None:
    lines = tag_scores(GOLD, PREDICTED).summary().split("\n")
    head, *rows = lines[-4:]
    assert head.split()[:4] == ["type", "precision", "recall", "F1"]
    assert [row.split()[0] for row in rows] == ["LOC", "ORG", "PER"]
    assert len({len(line) for line in (head, *rows)}) == 1


def test_what_cannot_be_scored() -> None:
    with pytest.raises(BadInput, match="empty"):
        tag_scores([], [])
    with pytest.raises(ValueError, match="each word"):
        tag_scores([["O"]], [["O", "O"]])
    assert isinstance(tag_scores([["O"], []], [["O"], []]), TagScores)


def test_why_there_are_no_spans_is_told() -> None:
    gold, said = [["B-PER", "I-PER", "O", "X"]], [["B-PER", "O", "O", "O"]]
    scores = tag_scores(gold, said)
    assert scores.spans is None
    (note,) = [note for note in scores.notes() if "not spans" in note]
    assert "“X”" in note
    assert "“O”" not in note
    assert scores.to_json()["strange"] == ["X"]
    assert note in scores.summary()
    for tags in (["NOUN", "VERB", "I"], ["B-PER", "I-PER", "O"], ["B", "I", "O"]):
        assert not tag_scores([tags], [tags]).strange, "parts of speech never had spans"
