"""Edit distances: the fast way, the equation and the edits that are named all say the same."""

from __future__ import annotations

import sys
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumok.tasks import edit_distance as module
from jumok.tasks.edit_distance import edit_distance, edits, written_out

WORDS = st.text(st.sampled_from("abAB01가각간ß😀 "), max_size=9)


def by_definition(truth: str, read: str) -> int:
    @cache
    def distance(i: int, j: int) -> int:
        if not i or not j:
            return i + j
        same = truth[i - 1] == read[j - 1]
        return min(distance(i - 1, j - 1) + (not same), distance(i - 1, j) + 1, distance(i, j - 1) + 1)

    return distance(len(truth), len(read))


@given(WORDS, WORDS)
def test_both_ways_are_the_definition(truth: str, read: str) -> None:
    assert edit_distance(truth, read) == written_out(truth, read) == by_definition(truth, read)


@given(WORDS, WORDS)
def test_the_edits_lead_from_one_to_the_other(truth: str, read: str) -> None:
    found = edits(truth, read)
    assert len(found) == by_definition(truth, read)
    letters = list(truth)
    for edit in reversed(found):  # from the right, so that places to the left stay what they are
        assert read[edit.read_place : edit.read_place + len(edit.read)] == edit.read
        assert "".join(letters[edit.truth_place : edit.truth_place + len(edit.truth)]) == edit.truth
        letters[edit.truth_place : edit.truth_place + len(edit.truth)] = edit.read
        assert {"substituted": (1, 1), "inserted": (0, 1), "dropped": (1, 0)}[edit.kind] == (
            len(edit.truth),
            len(edit.read),
        )
    assert "".join(letters) == read


def test_known_words() -> None:
    assert edit_distance("kitten", "sitting") == 3
    assert [(edit.kind, edit.truth, edit.read) for edit in edits("kitten", "sitting")] == [
        ("substituted", "k", "s"),
        ("substituted", "e", "i"),
        ("inserted", "", "g"),
    ]
    assert edits("Oslo", "Oslo") == []
    assert [tuple(edit) for edit in edits("STOP", "STP")] == [("dropped", "O", "", 2, 2)]


def test_without_rapidfuzz_it_is_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rapidfuzz", None)
    monkeypatch.setitem(sys.modules, "rapidfuzz.distance", None)
    assert module._fastest() is written_out
