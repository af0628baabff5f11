"""Scores of what was read: each held to its definition, on words that are new each time."""

from __future__ import annotations

import json
import math
import random
import unicodedata
from collections import Counter

import numpy as np
import pytest

from jumok.errors import BadInput
from jumok.tasks.edit_distance import written_out
from jumok.tasks.intervals import times_drawn, wilson
from jumok.tasks.reading_scores import of_36, reading_scores

ALPHABET = "abcABC019가나다!-é"


def damaged(text: str) -> str:
    letters = list(text)
    for _ in range(random.choice((0, 0, 1, 1, 2))):
        place = random.randrange(len(letters) + 1)
        letters[place : place + random.randrange(2)] = random.choice(("", random.choice(ALPHABET)))
    return "".join(letters)


def some_words(count: int) -> tuple[list[str], list[str]]:
    truth = ["".join(random.choices(ALPHABET, k=random.randrange(12))) for _ in range(count)]
    return truth, [damaged(text) for text in truth]


def test_each_score_is_its_definition() -> None:
    truth, read = some_words(150)
    found = reading_scores(truth, read)
    pairs = list(zip(truth, read, strict=True))
    right = sum(one == other for one, other in pairs)
    distances = [written_out(*pair) for pair in pairs]
    assert (found.count, found.right) == (150, right)
    assert found.accuracy == wilson(right, 150)
    shared = [1 - d / max(len(one), len(other), 1) for d, (one, other) in zip(distances, pairs, strict=True)]
    assert found.similarity.score == pytest.approx(sum(shared) / 150)
    assert found.error_rate.score == pytest.approx(sum(distances) / sum(map(len, truth)))
    compared = [(of_36(one), of_36(other)) for one, other in pairs if of_36(one)]
    assert found.accuracy_36 == wilson(sum(one == other for one, other in compared), len(compared))
    assert found.left_out_36 == 150 - len(compared) > 0


def test_intervals_are_of_words_drawn_again() -> None:
    truth, read = some_words(60)
    found = reading_scores(truth, read)
    distances = [written_out(*pair) for pair in zip(truth, read, strict=True)]
    rates = [
        sum(often * d for often, d in zip(times, distances, strict=True))
        / sum(often * len(one) for often, one in zip(times, truth, strict=True))
        for times in times_drawn(60)
    ]
    assert [found.error_rate.low, found.error_rate.high] == pytest.approx(np.percentile(rates, [2.5, 97.5]))
    assert found.similarity.low < found.similarity.score < found.similarity.high


def test_36_characters_as_the_field_has_them() -> None:
    assert of_36("Don't STOP-99") == "dontstop99"
    found = reading_scores(["Don't", "CAFÉ", "주목", "!?", "A1"], ["dont", "caf", "주옥", "", "A2"])
    assert found.accuracy.score == 0
    assert (found.accuracy_36.score, found.left_out_36) == (pytest.approx(2 / 3), 2)
    assert any("2 words have none" in note for note in found.notes())


def test_decomposed_text_is_the_same_text() -> None:
    words = ["주목", "café", "한글"]
    found = reading_scores([unicodedata.normalize("NFD", word) for word in words], words)
    assert found.accuracy.score == 1
    assert found.characters == 8
    assert found.confusions == ()
    assert "no character was read as another" in found.summary()


def test_pictures_without_text() -> None:
    found = reading_scores(["", "", "a"], ["", "xy", "a"])
    assert found.accuracy.score == pytest.approx(2 / 3)
    assert found.similarity.score == pytest.approx(2 / 3)
    assert found.error_rate.score == 2
    nothing = reading_scores(["", ""], ["", "x"])
    assert not nothing.error_rate.defined
    assert not nothing.accuracy_36.defined
    assert nothing.to_json()["cer"]["score"] is None
    assert "CER is not defined" in nothing.summary()
    with pytest.raises(BadInput, match="no words to score"):
        reading_scores([], [])


def test_parts_add_up() -> None:
    truth, read = some_words(200)
    found = reading_scores(truth, read)
    for parts in (found.by_length, found.by_script):
        assert sum(part.count for part in parts) == 200
        assert sum(round(part.accuracy.score * part.count) for part in parts) == found.right
        assert sum(part.similarity * part.count for part in parts) == pytest.approx(200 * found.similarity.score)
    only = reading_scores(["12", "34", "가나", "나가"], ["12", "35", "가나", "가"])
    assert [(part.name, part.count, part.accuracy.score) for part in only.by_script] == [
        ("digits", 2, 0.5),
        ("hangul", 2, 0.5),
    ]
    assert [part.error_rate for part in only.by_script] == [0.25, 0.25]
    assert [part.name for part in only.by_length] == ["2"]


def test_confusions_are_counted() -> None:
    found = reading_scores(["O0O", "lo", "ab", "b", "ok"], ["000", "l0", "abc", "", "ok"])
    counted = {(each.kind, each.truth, each.read): (each.count, each.of) for each in found.confusions}
    assert counted == {
        ("substituted", "O", "0"): (2, 2),
        ("substituted", "o", "0"): (1, 2),
        ("inserted", "", "c"): (1, 0),
        ("dropped", "b", ""): (1, 2),
    }
    assert found.confusions[0].truth == "O"
    assert "(nothing)" in found.summary()
    truth, read = some_words(100)
    many = reading_scores(truth, read)
    assert sum(each.count for each in many.confusions) == sum(
        written_out(*pair) for pair in zip(truth, read, strict=True)
    )
    written = Counter("".join(truth))
    assert all(each.of == written[each.truth] for each in many.confusions)


def test_how_far_it_can_be_trusted() -> None:
    truth, read = some_words(120)
    confidence = [random.random() ** 0.2 for _ in truth]
    found = reading_scores(truth, read, confidence)
    assert reading_scores(truth, read).by_confidence == ()
    for sure in found.by_confidence:
        right = [one == other for one, other, p in zip(truth, read, confidence, strict=True) if p >= sure.least]
        assert (sure.count, sure.accuracy) == (len(right), wilson(sum(right), len(right)))
        assert found.sure_row(sure)[1] in found.summary()
    assert found.to_json()["by_confidence"][0]["words"] == found.by_confidence[0].count
    unsure = reading_scores(["a"], ["a"], [0.1])
    assert unsure.by_confidence[0].count == 0
    assert not unsure.by_confidence[0].accuracy.defined
    json.dumps(unsure.to_json(), allow_nan=False)
    with pytest.raises(ValueError, match="2 confidences of 1"):
        reading_scores(["a"], ["a"], [0.1, 0.2])


def test_what_is_told() -> None:
    truth, read = some_words(80)
    found = reading_scores(truth, read)
    told = found.summary()
    assert told.startswith(f"80 words, {sum(map(len, truth))} characters")
    assert found.accuracy.percent() in told
    for part in (*found.by_length, *found.by_script):
        assert part.name in told
    as_json = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert as_json["accuracy"]["score"] == found.accuracy.score
    assert as_json["accuracy_36"]["words"] == 80 - found.left_out_36
    assert math.isclose(as_json["cer"]["score"], found.error_rate.score)
    assert "\x1b" not in reading_scores(["a\x1b[31m"], ["b"]).summary(), "a terminal would obey it"
