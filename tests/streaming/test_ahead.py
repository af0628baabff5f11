"""Work begun before it is asked for: the order, the errors, and how much is under way."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator

import pytest
from seeded import seed as seed

from jumok.streaming.ahead import ahead


@pytest.mark.parametrize("count", [1, 2, 3])
def test_in_order_whatever_takes_how_long(count: int, seed: int) -> None:
    random.seed(seed)

    def work(item: int) -> int:
        time.sleep(random.random() / 200)
        return item * item

    assert list(ahead(work, range(20), count)) == [(item, item * item) for item in range(20)]


def test_so_many_are_under_way_and_no_more() -> None:
    """Two that wait for each other end only if both have begun; a third has not."""
    together, begun = threading.Barrier(2, timeout=20), list[int]()

    def work(item: int) -> int:
        begun.append(item)
        together.wait()
        return item

    found = ahead(work, range(4), 2)
    assert next(found)[0] == 0
    assert sorted(begun) == [0, 1]
    assert [item for item, _ in found] == [1, 2, 3]


def test_one_at_a_time_begins_nothing_before_it_is_asked_for() -> None:
    begun: list[int] = []
    found = ahead(begun.append, range(3), 1)
    next(found)
    assert begun == [0]


@pytest.mark.parametrize("count", [1, 2])
def test_an_error_comes_at_its_turn(count: int) -> None:
    def work(item: int) -> int:
        if item == 2:
            raise ValueError("two")
        return item

    found = ahead(work, range(5), count)
    assert [next(found)[1], next(found)[1]] == [0, 1]
    with pytest.raises(ValueError, match="two"):
        next(found)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_what_was_begun_comes_before_the_error_of_an_item(count: int) -> None:
    def items() -> Iterator[int]:
        yield from range(4)
        raise ValueError("line 5 is not text")

    found, seen = ahead(lambda item: item, items(), count), list[int]()
    with pytest.raises(ValueError, match="line 5"):
        seen.extend(item for item, _ in found)
    assert seen == [0, 1, 2, 3]
