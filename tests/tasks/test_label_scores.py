"""Scores of classifiers, against their definitions counted out one by one."""

from __future__ import annotations

import json
import math
import random
import secrets

import numpy as np
import pytest

from jumok.errors import BadInput, Failure
from jumok.tasks.label_scores import LabelScores, label_scores

LABELS = ["부정", "중립", "긍정", "never"]


def made(seed: int, count: int = 200, labels: list[str] = LABELS, met: int = 3) -> tuple[list[str], np.ndarray]:
    chance = np.random.default_rng(seed)
    gold = [labels[place] for place in chance.integers(met, size=count)]
    probabilities = chance.dirichlet(np.ones(len(labels)), count)
    for row, label in zip(probabilities, gold, strict=True):
        row[labels.index(label)] += chance.random()
    return gold, probabilities / probabilities.sum(axis=1, keepdims=True)


def brute(gold: list[str], predicted: list[str], labels: list[str]) -> dict[str, float]:
    """Every definition written out, with no formula shared with what is tested."""
    pairs = list(zip(gold, predicted, strict=True))
    found = {"accuracy": sum(one == other for one, other in pairs) / len(pairs)}
    means = []
    for label in labels:
        right = sum(one == other == label for one, other in pairs)
        given, wanted = predicted.count(label), gold.count(label)
        precision = right / given if given else math.nan
        recall = right / wanted if wanted else math.nan
        f1 = 2 * precision * recall / (precision + recall) if right else (0.0 if wanted else math.nan)
        found |= {f"precision {label}": precision, f"recall {label}": recall, f"f1 {label}": f1}
        means += [f1] if wanted else []
    found["macro"] = sum(means) / len(means)
    # Matthews: the correlation of the two one-hot matrices
    ours, theirs = (
        np.array([[each == label for label in labels] for each in side], float) for side in (gold, predicted)
    )
    ours, theirs = ours - ours.mean(axis=0), theirs - theirs.mean(axis=0)
    spread = math.sqrt((ours * ours).sum() * (theirs * theirs).sum())
    found["matthews"] = (ours * theirs).sum() / spread if spread else math.nan
    return found


def flat(scores: LabelScores) -> dict[str, float]:
    found = {
        "accuracy": scores.accuracy.score,
        "macro": scores.macro_f1.score,
        "matthews": scores.matthews.score,
    }
    for each in scores.by_label:
        found |= {f"{name} {each.label}": getattr(each, name).score for name in ("precision", "recall", "f1")}
    return found


@pytest.mark.parametrize("count", [3, 40, 300])
def test_scores_are_their_definitions(count: int) -> None:
    seed = secrets.randbelow(2**31)
    gold, probabilities = made(seed, count)
    predicted = [LABELS[place] for place in probabilities.argmax(axis=1)]
    scores, expected = label_scores(gold, probabilities, LABELS), brute(gold, predicted, LABELS)
    found = flat(scores)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, nan_ok=True), f"seed {seed}: {name}"
    for one, gold_label in enumerate(LABELS):
        for two, given in enumerate(LABELS):
            count_of_cell = sum(pair == (gold_label, given) for pair in zip(gold, predicted, strict=True))
            assert scores.confusion[one, two] == count_of_cell, f"seed {seed}"


def test_intervals_are_the_middle_of_scores_of_drawn_examples() -> None:
    """Examples drawn and scored one draw after the other, by the definitions, with draws of our own."""
    seed = secrets.randbelow(2**31)
    gold, probabilities = made(seed, 150)
    predicted = [LABELS[place] for place in probabilities.argmax(axis=1)]
    scores, chance, drawn = label_scores(gold, probabilities, LABELS), random.Random(seed), []
    for _ in range(400):
        places = chance.choices(range(len(gold)), k=len(gold))
        drawn.append(brute([gold[place] for place in places], [predicted[place] for place in places], LABELS))
    estimates = {"macro": scores.macro_f1, "matthews": scores.matthews, "f1 중립": scores.by_label[1].f1}
    for name, estimate in estimates.items():
        low, high = np.percentile([each[name] for each in drawn], [2.5, 97.5])
        tolerance = 0.25 * (high - low)
        assert abs(estimate.low - low) < tolerance, f"seed {seed}: {name}"
        assert abs(estimate.high - high) < tolerance, f"seed {seed}: {name}"
        assert estimate.low < estimate.score < estimate.high


def test_the_same_outputs_have_the_same_intervals() -> None:
    gold, probabilities = made(5)
    assert label_scores(gold, probabilities, LABELS).to_json() == label_scores(gold, probabilities, LABELS).to_json()


def test_calibration_and_loss_by_hand() -> None:
    gold = ["a", "a", "b", "b"]
    probabilities = np.array([[0.75, 0.25], [0.25, 0.75], [0.3, 0.7], [0.0, 1.0]])
    scores = label_scores(gold, probabilities, ["a", "b"])
    filled = {(each.low, each.high): (each.count, each.confidence, each.accuracy) for each in scores.bins if each.count}
    assert filled == {(0.6, 0.7): (1, 0.7, 1.0), (0.7, 0.8): (2, 0.75, 0.5), (0.9, 1.0): (1, 1.0, 1.0)}
    assert scores.calibration_error == pytest.approx((0.3 + 2 * 0.25 + 0.0) / 4)
    assert scores.log_loss.score == pytest.approx(-(math.log(0.75) + math.log(0.25) + math.log(0.7)) / 4)
    assert len(scores.bins) == 10
    assert [each.confidence for each in scores.bins[:5]] == [None] * 5
    wrong_and_sure = label_scores(["a"], np.array([[0.0, 1.0]]), ["a", "b"])
    assert wrong_and_sure.log_loss.score == pytest.approx(-math.log(1e-15))


def test_of_two_labels_the_last_is_positive() -> None:
    seed = secrets.randbelow(2**31)
    labels = ["no", "yes"]
    gold, probabilities = made(seed, 60, labels, met=2)
    scores = label_scores(gold, probabilities, labels)
    predicted = [labels[place] for place in probabilities.argmax(axis=1)]
    assert scores.positive is not None
    assert scores.positive.label == "yes"
    assert scores.to_json()["positive"]["f1"]["score"] == pytest.approx(brute(gold, predicted, labels)["f1 yes"])
    assert "F1 of “yes”" in scores.summary()
    assert label_scores(["부정"], np.array([[1.0, 0, 0, 0]]), LABELS).positive is None


def test_a_label_without_examples_is_said_and_left_out() -> None:
    gold, probabilities = made(1)
    scores = label_scores(gold, probabilities, LABELS)
    assert scores.missing == ("never",)
    assert scores.macro_f1.score == pytest.approx(np.mean([each.f1.score for each in scores.by_label[:3]]))
    row = next(line for line in scores.summary().split("\n") if line.startswith("never"))
    assert "–" in row
    assert "“never”: left out of macro F1" in scores.summary()
    assert json.loads(json.dumps(scores.to_json(), allow_nan=False))["by_label"][3]["f1"]["score"] is None


def test_one_label_only_has_no_matthews() -> None:
    scores = label_scores(["a", "a"], np.array([[0.9, 0.1], [0.8, 0.2]]), ["a", "b"])
    assert scores.to_json()["matthews"] == {"score": None, "low": None, "high": None}
    assert "not defined" in scores.summary()


def test_many_labels_show_the_worst_confusions() -> None:
    labels = [f"label {number}" for number in range(20)]
    gold = ["label 3"] * 5 + ["label 7"] * 2 + ["label 1"]
    rows = np.full((8, 20), 0.01)
    rows[:5, 4], rows[5:7, 8], rows[7, 1] = 1, 1, 1
    scores = label_scores(gold, rows / rows.sum(axis=1, keepdims=True), labels)
    assert [(each.gold, each.predicted, each.count) for each in scores.confusions()] == [
        ("label 3", "label 4", 5),
        ("label 7", "label 8", 2),
    ]
    tail = scores.summary().split("\n")[-3:]
    assert [line.split() for line in tail[1:]] == [
        ["label", "3", "label", "4", "5"],
        ["label", "7", "label", "8", "2"],
    ]
    few, of_few = made(2)
    assert "down: gold, across: predicted" in label_scores(few, of_few, LABELS).summary()


def test_what_cannot_be_scored() -> None:
    with pytest.raises(BadInput, match="empty"):
        label_scores([], np.zeros((0, 2)), ["a", "b"])
    with pytest.raises(Failure, match="not numbers"):
        label_scores(["a"], np.array([[np.nan, 0.5]]), ["a", "b"])
    with pytest.raises(ValueError, match="shape"):
        label_scores(["a"], np.array([[0.5, 0.5]]), ["a", "b", "c"])


def test_as_scikit_learn() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    seed = secrets.randbelow(2**31)
    gold, probabilities = made(seed, 500, LABELS[:3])
    predicted = [LABELS[place] for place in probabilities.argmax(axis=1)]
    scores = label_scores(gold, probabilities, LABELS[:3])
    assert scores.macro_f1.score == pytest.approx(metrics.f1_score(gold, predicted, average="macro")), f"seed {seed}"
    assert scores.matthews.score == pytest.approx(metrics.matthews_corrcoef(gold, predicted)), f"seed {seed}"
    in_order = probabilities[:, [LABELS.index(label) for label in sorted(LABELS[:3])]]
    assert scores.log_loss.score == pytest.approx(metrics.log_loss(gold, in_order, labels=sorted(LABELS[:3])))
    assert (scores.confusion == metrics.confusion_matrix(gold, predicted, labels=LABELS[:3])).all()
