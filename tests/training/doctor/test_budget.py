"""The largest budget that fits is found by trying, whatever it is."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from jumok.training.doctor.budget import CLOSE, SMALLEST, search


@given(budget=st.integers(64, 100_000), capacity=st.integers(1, 10_000_000))
def test_whatever_fits_is_found(budget: int, capacity: int) -> None:
    tried: list[int] = []

    def attempt(size: int) -> dict[str, Any]:
        tried.append(size)
        return {"fits": size <= capacity, "seconds": 0.0}

    found = search(attempt, budget, 10.0)
    assert found.fits == (budget <= capacity)
    assert found.bound == "memory"
    if found.largest is None:
        assert capacity < 2 * SMALLEST
    else:
        assert found.largest <= capacity
        assert found.largest * CLOSE + 64 >= capacity
    assert len(tried) == len(set(tried)) < 40


@given(budget=st.integers(64, 10_000), speed=st.floats(1e-5, 1e-2))
def test_nothing_is_tried_that_would_take_too_long(budget: int, speed: float) -> None:
    found = search(lambda size: {"fits": True, "seconds": size * speed}, budget, 10.0)
    assert found.fits
    assert found.bound == "time"
    assert all(size == budget or size * speed <= 10.0 for size in found.tried)


def test_a_batch_of_all_there_is_need_not_grow() -> None:
    found = search(lambda size: {"fits": True, "seconds": 0.0, "whole": size >= 4096}, 1024, 10.0)
    assert (found.largest, found.bound) == (4096, "data")


def test_one_that_never_answers_is_not_asked_for_less() -> None:
    found = search(lambda size: {"fits": False, "late": 60.0}, 4096, 10.0)
    assert (found.fits, found.largest, found.bound, list(found.tried)) == (False, None, "time", [4096])
