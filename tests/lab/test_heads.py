"""Experiment 10: one head against many."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jumok.lab.heads import EXPERIMENT, HEADS, IN_SENTENCES, Sentences
from jumok.lab.pronoun_sentences import examples
from jumok.lab.report import drawn

TINY = 0.005


@pytest.fixture(scope="module")
def numbers() -> Any:
    return json.loads(json.dumps(EXPERIMENT.measure(1, TINY)))


def test_the_whole_way(numbers: Any) -> None:
    assert list(numbers["words_before"]) == [str(heads) for heads in HEADS]
    assert len({one["parameters"] for one in numbers["words_before"].values()}) == 1  # only the heads differ
    assert len({one["parameters"] for one in numbers["sentences"].values()}) == 1
    assert json.loads(json.dumps(EXPERIMENT.measure(1, TINY))) == numbers  # the seed decides
    assert len(EXPERIMENT.judge([numbers, numbers])) == 3
    assert drawn(EXPERIMENT, [numbers, numbers])


def test_words_and_their_labels_stay_together(seed: int) -> None:
    sentences = Sentences(seed, 40)
    words, labels = sentences.parts["train"]
    names = {number: word for word, number in sentences.words.items()}
    french = {number: label for label, number in sentences.labels.items()}
    for row, example in enumerate(examples("train", 40, seed)):
        size = len(example.words)
        assert tuple(names[int(number)] for number in words.ids[row, :size]) == example.words
        assert tuple(french[int(number) + 1] for number in labels[row, :size]) == example.labels
        assert (labels[row, size:] == -1).all()


def test_both_outcomes(numbers: Any) -> None:
    def outcome(four: dict[int, float], right: dict[int, float]) -> list[bool]:
        before = {str(heads): {**numbers["words_before"]["1"], "all_four": value} for heads, value in four.items()}
        labelled = {str(heads): {"right": value} for heads, value in right.items()}
        one = {"words_before": before, "sentences": labelled}
        return [verdict.holds for verdict in EXPERIMENT.judge([one, one])]

    assert IN_SENTENCES == (1, 8)
    assert outcome({1: 0.1, 2: 0.5, 4: 0.98, 8: 0.99}, {1: 0.8, 8: 0.9}) == [True, True, True]
    assert outcome({1: 0.9, 2: 0.9, 4: 0.5, 8: 0.9}, {1: 0.9, 8: 0.89}) == [False, False, False]
    assert outcome({1: 0.01, 2: 0.01, 4: 0.01, 8: 0.01}, {1: 0.1, 8: 0.1}) == [False, False, False]  # nothing learned
    assert outcome({1: 0.1, 2: 0.5, 4: 0.98, 8: 0.99}, {1: 1.0, 8: 1.0})[2] is False
