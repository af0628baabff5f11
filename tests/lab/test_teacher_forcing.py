"""Experiment 3: teacher forcing, free running, scheduled sampling."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jumok.data.batch import PairBatch
from jumok.lab.experiment import Verdict
from jumok.lab.report import drawn
from jumok.lab.teacher_forcing import ARMS, EXPERIMENT, LEAST_TRUTH, POSITIONS, SECTION, accuracy
from jumok.lab.translating import Corpus, learned, sentences

TINY = 0.005


@pytest.fixture(scope="module")
def numbers() -> Any:
    return json.loads(json.dumps(EXPERIMENT.measure(1, TINY), allow_nan=False))


def test_the_whole_way(numbers: Any) -> None:
    assert json.loads(json.dumps(EXPERIMENT.measure(1, TINY))) == numbers  # the seed decides
    assert list(numbers) == ["updates", *ARMS]
    for arm in ARMS:
        for past in ("true past", "own past"):
            assert len(numbers[arm][f"{past} by position"]) == POSITIONS
            assert all(0 <= share <= 1 for share in (numbers[arm][past], *numbers[arm][f"{past} by position"]))
    assert len(EXPERIMENT.judge([numbers, numbers])) == 4
    assert drawn(EXPERIMENT, [numbers, numbers])


def test_how_much_truth_is_read() -> None:
    teacher, free, scheduled = ARMS.values()
    assert [teacher(0.0), teacher(1.0), free(0.0), free(1.0)] == [1.0, 1.0, 0.0, 0.0]
    assert [scheduled(0.0), scheduled(0.5), scheduled(1.0)] == [1.0, 0.5, LEAST_TRUTH]


def test_accuracy_is_counted_word_by_word(seed: int) -> None:
    """One sentence at a time, with the search for its own words, gives the same numbers."""
    pairs = sentences("train", 12, seed % 1000, size=6)
    translator = learned(Corpus.of(pairs, 20), SECTION, 25, seed, 12, 0.01)
    translator.model.double()  # so that no tie is decided by rounding, which is another one in a batch
    found = accuracy(translator, pairs)
    right = {"true past": 0, "own past": 0}
    words = 0
    for pair in pairs:
        batch = PairBatch.of(translator.source.encode([pair.source]), translator.target.encode([pair.target]))
        true = batch.target.ids[0, 1:].tolist()
        hidden = translator.model(batch.source, batch.target.ids[:, :-1])
        forced = translator.model.head(hidden)[0].argmax(dim=-1).tolist()
        own = [*translator.nbest([pair.source])[0][0].ids, true[-1]]  # and <eos>
        own += [-1] * (len(true) - len(own))
        right["true past"] += sum(a == b for a, b in zip(forced, true, strict=True))
        right["own past"] += sum(a == b for a, b in zip(own, true, strict=False))
        words += len(true)
    assert found["true past"] == pytest.approx(right["true past"] / words)
    assert found["own past"] == pytest.approx(right["own past"] / words)
    assert found["true past by position"][0] == found["own past by position"][0]  # nothing was read yet


def test_both_outcomes() -> None:
    def arm(true: float, own: float, late: float, bleu: float) -> dict[str, Any]:
        by_position = [own] * 5 + [late] * (POSITIONS - 5)
        shares = {"true past": true, "own past": own, "true past by position": [true] * POSITIONS}
        return {**shares, "own past by position": by_position, "bleu": bleu}

    def verdicts(*arms: dict[str, Any]) -> list[Verdict]:
        one = {"updates": 9, **dict(zip(ARMS, arms, strict=True))}
        return EXPERIMENT.judge([one, one])

    def outcome(*arms: dict[str, Any]) -> list[bool]:
        return [verdict.holds for verdict in verdicts(*arms)]

    teacher, free = arm(0.8, 0.7, 0.6, 50.0), arm(0.5, 0.5, 0.5, 30.0)
    assert outcome(teacher, free, arm(0.8, 0.75, 0.7, 55.0)) == [True, True, True, True]
    assert outcome(arm(0.8, 0.8, 0.8, 50.0), arm(0.9, 0.9, 0.9, 60.0), arm(0.8, 0.7, 0.7, 40.0)) == [False] * 4
    # BLEU and the words that are right may disagree: then nothing is called better
    found = verdicts(teacher, arm(0.75, 0.75, 0.75, 30.0), arm(0.8, 0.75, 0.7, 45.0))
    assert [found[1].holds, found[3].holds] == [False, False]
    assert found[1].claim.startswith("After 9 updates ")
    for told in (found[1].because, found[3].because):
        assert "disagree" in told
        assert "teacher forcing 50.0, free running 30.0, scheduled sampling 45.0" in told
        assert "teacher forcing 0.700, free running 0.750, scheduled sampling 0.750" in told
