"""A batch kept full over any number of rows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumok.data.batch import Sequences
from jumok.errors import BadInput
from jumok.search import SearchOptions, generate, refill


def sources(count: int) -> list[list[int]]:
    """Row n begins with n, which is its name, and is 1 to 5 long."""
    return [[name] * (1 + name * 7 % 5) for name in range(count)]


@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 10**9),
    st.integers(0, 30),
    st.integers(1, 9),
    st.integers(1, 3),
    st.sampled_from([0.01, 0.25, 0.9, 1.0]),
)
def test_every_row_comes_once_with_its_own_result(oracle, seed, count, capacity, ahead, share):
    stepper = oracle(seed, 9)
    rows = [(row, SearchOptions(beam=1 + row[0] % 3, max_length=2 + row[0] % 7)) for row in sources(count)]
    found = list(refill(stepper, rows, capacity, ahead, share, batch_of=Sequences.pad))
    assert sorted(place for place, _ in found) == list(range(count))
    for place, hypotheses in found:
        row, options = rows[place]
        assert hypotheses == generate(stepper, Sequences.pad([row]), options)[0]


def test_the_batch_stays_full_and_new_rows_are_read_in_groups(oracle):
    stepper = oracle(2, 20)
    rows = [(row, SearchOptions(max_length=3 + row[0] % 9, min_length=3 + row[0] % 9)) for row in sources(200)]
    assert len(list(refill(stepper, rows, capacity=16, batch_of=Sequences.pad))) == 200
    assert max(stepper.rows_per_step) == 16
    busy = stepper.rows_per_step[: -12 + len(stepper.rows_per_step)]
    assert min(busy) > 12, "never more than a quarter free while there are rows"
    assert stepper.encoded[0] == 16
    assert min(stepper.encoded[1:-1]) >= 4
    tokens = sum(3 + row % 9 for row in range(200))
    assert sum(stepper.rows_per_step) == tokens


def test_a_new_batch_when_all_are_done_needs_no_joining(oracle):
    class Alone(oracle):
        def join(self, parts):
            raise AssertionError("nothing to join")

    stepper = Alone(2, 20)
    rows = [(row, SearchOptions(max_length=5)) for row in sources(30)]
    assert len(list(refill(stepper, rows, capacity=8, share=1.0, batch_of=Sequences.pad))) == 30
    assert stepper.encoded == [8, 8, 8, 6]


def test_rows_are_pulled_only_when_there_is_room(oracle):
    pulled = 0

    def endless() -> Iterator[tuple[list[int], SearchOptions]]:
        nonlocal pulled
        while True:
            pulled += 1
            yield [pulled % 50], SearchOptions(max_length=6)

    found = refill(oracle(1, 9), endless(), capacity=8, batch_of=Sequences.pad)
    for count in range(1, 101):
        next(found)
        assert pulled <= count + 2 * 8
    found.close()


def test_looking_ahead_takes_the_longest_first(oracle):
    stepper = oracle(1, 9)
    options = SearchOptions(max_length=1)
    rows = [([0] * length, options) for length in (1, 5, 3, 2, 4, 9, 8, 7)]
    found = [place for place, _ in refill(stepper, rows, capacity=1, ahead=4, batch_of=Sequences.pad)]
    assert found == [1, 2, 3, 0, 5, 6, 7, 4]


def test_a_batch_of_nothing(oracle):
    with pytest.raises(BadInput, match="capacity 0"):
        next(refill(oracle(0, 9), [], capacity=0))
    with pytest.raises(BadInput, match=r"share 0\.0"):
        next(refill(oracle(0, 9), [], share=0.0))
    assert list(refill(oracle(0, 9), [])) == []
