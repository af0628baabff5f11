"""Rank correlations against their textbook definitions, and by properties."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumok.inspect.agreement import kendall, rank_agreement, ranks, spearman

NUMBERS = st.lists(st.tuples(st.integers(-4, 4), st.integers(-4, 4)), min_size=2, max_size=9)


@given(NUMBERS)
def test_kendall_counts_pairs(pairs: list[tuple[int, int]]) -> None:
    one, other = np.array([a for a, _ in pairs]), np.array([b for _, b in pairs])
    same = reverse = untied_one = untied_other = 0
    for i in range(len(pairs)):
        for j in range(i):
            product = (one[i] - one[j]) * (other[i] - other[j])
            same, reverse = same + (product > 0), reverse + (product < 0)
            untied_one, untied_other = untied_one + (one[i] != one[j]), untied_other + (other[i] != other[j])
    found = kendall(one, other)
    if untied_one and untied_other:
        assert found == pytest.approx((same - reverse) / math.sqrt(untied_one * untied_other))
        assert spearman(one, other) == pytest.approx(np.corrcoef(ranks(one), ranks(other))[0, 1])
    else:
        assert math.isnan(found)


def test_ties_share_a_place() -> None:
    assert ranks(np.array([3.0, 1.0, 3.0, 2.0])).tolist() == [3.5, 1.0, 3.5, 2.0]


def test_the_mean_is_over_rows_that_say_something() -> None:
    one = np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [0.0, 0.0, 0.0]])
    other = np.array([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0], [1.0, 2.0, 3.0]])
    assert rank_agreement(one, other) == (0.0, 0.0, 2)
    assert rank_agreement(one[2:], other[2:]) == (None, None, 0)
