"""Experiment 14: reading forward only, or in both directions."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch

from jumok.lab.bidirectional import (
    ARTICLES,
    ENCODERS,
    EXPERIMENT,
    LENGTH,
    WORDS,
    Tagger,
    articles,
    batch,
    texts,
)
from jumok.lab.report import drawn
from jumok.layers.loss import IGNORED


@pytest.fixture(scope="module")
def numbers() -> dict[str, Any]:
    return EXPERIMENT.measure(1, 0.01)


def test_the_way_from_seed_to_verdicts_and_figure(numbers: dict[str, Any]) -> None:
    assert json.loads(json.dumps(numbers, allow_nan=False)) == numbers
    assert len(EXPERIMENT.judge([numbers, numbers])) == 4
    assert all(picture.startswith(b"\x89PNG") for picture in drawn(EXPERIMENT, [numbers, numbers]))


def test_the_same_seed_gives_the_same_numbers(numbers: dict[str, Any]) -> None:
    assert EXPERIMENT.measure(1, 0.01) == numbers
    assert EXPERIMENT.measure(2, 0.01) != numbers


def test_a_meaning_is_decided_by_the_nearest_sign(seed: int) -> None:
    ids, meaning = texts(20, torch.Generator().manual_seed(seed))
    signs = ids > WORDS
    for row in range(20):
        for place in range(LENGTH):
            later = [p for p in range(place + 1, LENGTH) if signs[row, p]][:1]
            earlier = [p for p in range(place - 1, -1, -1) if signs[row, p]][:1]
            for question, found in enumerate((later, earlier)):
                told = int(meaning[row, place, question])
                if signs[row, place] or not found:
                    assert told == IGNORED
                else:
                    assert told == (int(ids[row, found[0]]) - 1 - WORDS + int(ids[row, place])) % 2


def test_only_one_direction_sees_what_comes_later(seed: int) -> None:
    ids = torch.randint(1, 9, (3, 10))
    other = ids.clone()
    other[:, 6:] = torch.randint(1, 9, (3, 4))
    other[:, 6] = ids[:, 6] % 8 + 1
    for name, both in ENCODERS.items():
        model = Tagger(9, 2, both).eval()
        same = torch.allclose(model(ids)[:, :6], model(other)[:, :6], atol=1e-7)
        assert same is (name == "forward")


def test_articles_are_those_of_the_gold_alignment() -> None:
    known: dict[str, int] = {}
    data = articles("train", 300, 1, known)
    names = {number: word for word, number in known.items()}
    told = [
        (names[word], ARTICLES[label])
        for row, labels in zip(data.rows, data.classes, strict=True)
        for word, label in zip(row, labels, strict=True)
        if label != IGNORED
    ]
    assert len(told) > 100
    assert {english for english, _ in told} == {"the", "a"}
    assert {french for english, french in told if english == "a"} == {"un", "une"}
    assert 0.3 < data.share < 0.7
    source, classes = batch(data, [0, 1, 2])
    assert source.ids.shape == classes.shape
    assert (classes[~source.mask] == IGNORED).all()


def made(forward: float, both: float, before: float = 1.0) -> dict[str, Any]:
    return {
        "accuracy": {
            "forward": {"sign after": forward, "sign before": before, "French article": forward},
            "bidirectional": {"sign after": both, "sign before": both, "French article": both},
        },
        "guessing": {"French article": 0.45},
        "parameters": {"forward": 2, "bidirectional": 1},
    }


def test_verdicts_follow_the_accuracy() -> None:
    assert [one.holds for one in EXPERIMENT.judge([made(0.5, 1.0)])] == [True] * 4
    assert [one.holds for one in EXPERIMENT.judge([made(0.9, 0.9)])] == [False] * 4
    assert [one.holds for one in EXPERIMENT.judge([made(0.5, 0.5, before=0.5)])] == [False] * 4  # nothing learned
