"""Experiment 17: a hidden word, found from both sides or from the left alone."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest
import torch

from jumok.data.batch import END, START, Sequences
from jumok.lab import both_sides
from jumok.lab.both_sides import (
    BATCH,
    BOTH,
    CAUSAL,
    EXPERIMENT,
    FIRST_WORD,
    FREQUENCY,
    HIDDEN,
    LEFT,
    MASK,
    PLACES,
    WAYS,
    Batches,
    Network,
    Place,
    Text,
    found_by,
    hide,
    question,
    weighed,
)
from jumok.lab.report import drawn
from jumok.lab.training import seeded

TINY = 0.004


@pytest.fixture(scope="module")
def numbers() -> Any:
    return json.loads(json.dumps(EXPERIMENT.measure(1, TINY), allow_nan=False))


@pytest.fixture(scope="module")
def text() -> Text:
    return Text(1, TINY)


def test_the_whole_way(numbers: Any) -> None:
    assert json.loads(json.dumps(EXPERIMENT.measure(1, TINY))) == numbers  # the seed decides
    assert numbers["parameters"][BOTH] == numbers["parameters"][CAUSAL]
    assert set(numbers["found"]) == set(numbers["nats"]) == set(WAYS)
    assert all(len(values) == PLACES for values in numbers["by place"].values())
    assert len(EXPERIMENT.judge([numbers, numbers])) == 6
    assert all(picture.startswith(b"\x89PNG") for picture in drawn(EXPERIMENT, [numbers, numbers]))


def test_only_words_are_hidden_and_as_often_as_the_paper_says(seed: int) -> None:
    ids = torch.randint(FIRST_WORD, 500, (400, 50))
    ids[:, 0], ids[:, -5], ids[:, -4:] = START, END, 0
    shown, asked = hide(Sequences(ids, torch.full((400,), 46)), 500)
    assert not asked[ids < FIRST_WORD].any()
    assert torch.equal(shown.ids[~asked], ids[~asked])
    assert asked[ids >= FIRST_WORD].float().mean().item() == pytest.approx(HIDDEN, abs=0.015), f"seed {seed}"
    masked, kept = shown.ids[asked] == MASK, shown.ids[asked] == ids[asked]
    assert masked.float().mean().item() == pytest.approx(0.8, abs=0.04), f"seed {seed}"
    assert kept.float().mean().item() == pytest.approx(0.1, abs=0.03), f"seed {seed}"
    assert (shown.ids[asked][~masked] >= FIRST_WORD).all()


def test_what_is_read_in_each_way() -> None:
    place = Place([START, 7, 8, 9, END], 2, 1, 0, False)
    assert place.word == 8
    assert question(place, BOTH) == ([START, 7, MASK, 9, END], 2)
    assert question(place, LEFT) == ([START, 7, MASK], 2)
    assert question(place, CAUSAL) == ([START, 7], 1)


def test_places_are_the_words_of_held_out_sentences(text: Text) -> None:
    names = {number: word for word, number in text.ids.items()}
    whole: dict[int, list[Place]] = {}
    for place in text.places:
        assert names[place.word][0].isalnum()
        assert not text.marks[place.word]
        whole.setdefault(place.sentence, []).append(place)
    assert len(whole) > 30
    for places in whole.values():
        assert [one.column for one in places] == sorted({one.column for one in places})
        assert all(not one.last for one in places[:-1])
        assert all(one.row == places[0].row and one.row[0] == START and one.row[-1] == END for one in places)
    assert text.marks[text.ids["."]]
    assert text.marks[:FIRST_WORD].all()
    assert text.frequencies().exp().sum().item() == pytest.approx(1.0, abs=1e-5)


def test_both_begin_alike_and_only_one_sees_the_right_side(seed: int) -> None:
    networks = []
    for causal in (False, True):
        with seeded(seed):
            networks.append(Network.build(30, causal))
    states = [network.words.state_dict() for network in networks]
    assert states[0].keys() == states[1].keys()
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    rows = torch.randint(FIRST_WORD, 30, (2, 8))
    other = rows.clone()
    other[:, 5] = (rows[:, 5] - FIRST_WORD + 1) % 20 + FIRST_WORD
    for network, sees in zip(networks, (True, False), strict=True):
        before, after = (
            network.log_probabilities(Sequences(ids, torch.tensor([8, 8])), (slice(None), slice(0, 5)))
            for ids in (rows, other)
        )
        assert torch.allclose(before, after, atol=1e-5) is not sees, f"seed {seed}"


def test_both_read_the_same_batches(text: Text, seed: int) -> None:
    one, other = Batches(text.learned, seed), Batches(text.learned, seed)
    for _ in range(20):
        first, second = one.next(), other.next()
        assert torch.equal(first.ids, second.ids)
        assert (len(first), first.ids.size(1)) == (BATCH, int(first.lengths.max()))


def test_whole_sentences_are_weighed_by_what_all_their_words_have(
    text: Text, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(both_sides, "CANDIDATES", 5)
    with seeded(seed):
        network = Network.build(text.vocabulary, causal=True)
    places = text.places[:12]
    found, listed = weighed(network, places, text.marks)
    for place, right, known in zip(places, found.tolist(), listed.tolist(), strict=True):
        left = place.row[: place.column]
        with torch.inference_mode():
            after = network.log_probabilities(Sequences.pad([left]), (0, len(left) - 1)).masked_fill(text.marks, -1e9)
            best = after.sort(descending=True).indices[:5].tolist()
            scores = {}
            for word in best:
                row = [*left, word, *place.row[place.column + 1 :]]
                scores[word] = sum(
                    float(network.log_probabilities(Sequences.pad([row[:end]]), (0, end - 1))[row[end]])
                    for end in range(1, len(row))
                )
        assert known is (place.word in best), f"seed {seed}"
        assert right is (max(scores, key=lambda word: scores[word]) == place.word), f"seed {seed}"


def test_found_is_the_likeliest_word_and_never_a_mark(text: Text, seed: int) -> None:
    with seeded(seed):
        network = Network.build(text.vocabulary, causal=False)
    with torch.no_grad():
        network.words.bias[text.ids["."]] = 50.0  # likelier than any word
        network.words.bias[text.ids["the"]] = 40.0
    found, nats = found_by(network, text.places, BOTH, text.marks)
    assert found.tolist() == [place.word == text.ids["the"] for place in text.places]
    assert (nats[found] < 0.01).all()
    assert (nats[~found] > 10).all()


def with_numbers(numbers: Any, both: float, causal: float, left: float, whole: float, early: float) -> Any:
    changed = deepcopy(numbers)
    changed["found"] |= {BOTH: both, CAUSAL: causal, LEFT: left, FREQUENCY: 0.1}
    changed["by place"][BOTH] = [both + 0.1, *[both] * (PLACES - 1)]
    changed["by place"][CAUSAL] = [causal] * PLACES
    changed["last word"] = dict.fromkeys(WAYS, 0.05)
    changed["whole sentence"] |= {"found": whole, BOTH: both, CAUSAL: causal}
    changed["while learning"] = {BOTH: [early, early, both, both, both], CAUSAL: [causal] * 5}
    return changed


def test_verdicts_follow_the_numbers(numbers: Any) -> None:
    good = with_numbers(numbers, both=0.4, causal=0.3, left=0.2, whole=0.38, early=0.31)
    assert [one.holds for one in EXPERIMENT.judge([good, good])] == [True] * 6
    bad = with_numbers(numbers, both=0.3, causal=0.4, left=0.5, whole=0.4, early=0.1)
    bad["by place"][BOTH] = [0.1] * PLACES
    assert [one.holds for one in EXPERIMENT.judge([bad])] == [False] * 6
    late = with_numbers(numbers, both=0.4, causal=0.3, left=0.2, whole=0.31, early=0.2)
    assert [one.holds for one in EXPERIMENT.judge([late])] == [True, True, True, True, False, False]
    # in one seed far ahead, in the other hardly: the gap is no larger than its spread
    assert not EXPERIMENT.judge(
        [with_numbers(numbers, 0.6, 0.3, 0.2, 0.5, 0.3), with_numbers(numbers, 0.3, 0.3, 0.2, 0.3, 0.3)]
    )[0].holds
