"""Experiment 2: the bottleneck."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jumok.data.batch import END, START
from jumok.lab.bottleneck import ARMS, BUCKETS, COPY_LENGTHS, EXPERIMENT, by_length, letters
from jumok.lab.experiment import Verdict
from jumok.lab.report import drawn
from jumok.lab.translating import Corpus, sentences

TINY = 0.005


@pytest.fixture(scope="module")
def numbers() -> Any:
    return json.loads(json.dumps(EXPERIMENT.measure(1, TINY), allow_nan=False))


def test_the_whole_way(numbers: Any) -> None:
    assert json.loads(json.dumps(EXPERIMENT.measure(1, TINY))) == numbers  # the seed decides
    for arm in ARMS:
        assert [len(numbers["copy"][arm]), len(numbers["bleu"][arm])] == [len(COPY_LENGTHS), len(BUCKETS)]
        assert all(0 <= share <= 1 for share in numbers["copy"][arm])
        assert all(0 <= bleu <= 100 for bleu in numbers["bleu"][arm])
    assert len(EXPERIMENT.judge([numbers, numbers])) == 3
    assert drawn(EXPERIMENT, [numbers, numbers])


def test_letters_are_to_be_written_as_they_are_read(seed: int) -> None:
    batch = letters(7, 5)
    read, write = batch.source.ids, batch.target.ids
    assert (read[:, :-1] == write[:, 1:-1]).all()
    assert (read[:, -1] == END).all()
    assert (write[:, 0] == START).all()
    assert (write[:, -1] == END).all()
    assert batch.source.lengths.tolist() == [6] * 7
    assert batch.target.lengths.tolist() == [7] * 7


def test_sentences_lie_in_the_bucket_of_their_length() -> None:
    pairs = sentences("test", 60, 1, size=14)
    corpus = Corpus.of(pairs, longest=99)
    buckets = by_length(corpus, pairs)
    for (low, high), bucket in zip(BUCKETS, buckets, strict=True):
        assert all(low <= len(corpus.source.encode([pair.source])[0]) <= high for pair in bucket)
    assert sum(map(len, buckets)) > 40


def test_both_outcomes() -> None:
    none, attention = ARMS

    def verdicts(copy: dict[str, float], bleu: dict[str, tuple[float, float, float]]) -> list[Verdict]:
        """copy: letters right in the longest copy it learned from; bleu: of short, of trained, of longer sentences."""
        one = {
            "copy": {arm: [1.0 if length < 10 else copy[arm] for length in COPY_LENGTHS] for arm in ARMS},
            "bleu": {arm: [*bleu[arm][:1] * 2, *bleu[arm][1:2] * 2, *bleu[arm][2:] * 2] for arm in ARMS},
        }
        return EXPERIMENT.judge([one, one])

    def outcome(copy: dict[str, float], bleu: dict[str, tuple[float, float, float]]) -> list[bool]:
        return [verdict.holds for verdict in verdicts(copy, bleu)]

    fallen = {none: (50.0, 25.0, 5.0), attention: (90.0, 80.0, 40.0)}
    assert outcome({none: 0.5, attention: 0.95}, fallen) == [True, True, False]
    level = {none: (80.0, 75.0, 70.0), attention: (90.0, 80.0, 79.0)}
    assert outcome({none: 0.95, attention: 0.95}, level) == [False, False, True]
    smaller = {none: (33.8, 19.3, 3.3), attention: (81.8, 62.9, 19.0)}  # by points attention loses more
    assert outcome({none: 0.5, attention: 0.9}, smaller) == [True, True, False]
    told = verdicts({none: 0.5, attention: 0.9}, smaller)[1].because
    assert "keeps 57%, loses 14.5 points" in told
    assert "keeps 77%, loses 18.9 points" in told
    untrained = {none: (0.1, 0.1, 0.1), attention: (0.1, 0.1, 0.1)}
    assert outcome({none: 0.03, attention: 0.03}, untrained) == [False, False, False]
    nothing = {none: (5.0, 0.1, 0.1), attention: (90.0, 80.0, 40.0)}  # it has not learned: no verdict on length
    assert outcome({none: 0.5, attention: 0.55}, nothing) == [False, False, False]
