"""Two directions made one, against the pseudo-code of Koehn et al. 2003 with all its loops written out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumok.data.pharaoh import Link
from jumok.errors import BadInput
from jumok.inspect.symmetric import METHODS, symmetrize, turned

WORDS = 7
LINKS = st.sets(st.tuples(st.integers(0, WORDS - 1), st.integers(0, WORDS - 1)), max_size=14)
NEIGHBOURS = [(-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1)]


def written_out(e2f: set[Link], f2e: set[Link], final: str | None) -> set[Link]:
    """GROW-DIAG, then FINAL(e2f) and FINAL(f2e); links are (source f, target e)."""
    alignment = e2f & f2e
    union = e2f | f2e

    def e_aligned(e: int) -> bool:
        return any((f, e) in alignment for f in range(WORDS))

    def f_aligned(f: int) -> bool:
        return any((f, e) in alignment for e in range(WORDS))

    added = True
    while added:
        added = False
        for e in range(WORDS):
            for f in range(WORDS):
                if (f, e) not in alignment:
                    continue
                for de, df in NEIGHBOURS:
                    e_new, f_new = e + de, f + df
                    if (not e_aligned(e_new) or not f_aligned(f_new)) and (f_new, e_new) in union:
                        alignment = alignment | {(f_new, e_new)}
                        added = True
    for direction in (e2f, f2e) if final else ():
        for e_new in range(WORDS):
            for f_new in range(WORDS):
                free = [not e_aligned(e_new), not f_aligned(f_new)]
                if (all(free) if final == "and" else any(free)) and (f_new, e_new) in direction:
                    alignment = alignment | {(f_new, e_new)}
    return alignment


@given(LINKS, LINKS)
def test_growing_is_what_the_paper_says(forward: set[Link], backward: set[Link]) -> None:
    assert symmetrize(forward, backward, "grow-diag") == written_out(forward, backward, None)
    assert symmetrize(forward, backward, "grow-diag-final") == written_out(forward, backward, "or")
    assert symmetrize(forward, backward) == written_out(forward, backward, "and")


@given(LINKS, LINKS)
def test_from_the_intersection_to_the_union(forward: set[Link], backward: set[Link]) -> None:
    every = {method: symmetrize(forward, backward, method) for method in METHODS}
    assert every["intersection"] == forward & backward
    assert every["union"] == forward | backward
    assert every["intersection"] <= every["grow-diag"] <= every["grow-diag-final-and"] <= every["union"]
    assert every["grow-diag"] <= every["grow-diag-final"] <= every["union"]
    assert turned(turned(forward)) == forward


def test_an_example_by_hand() -> None:
    # both say 0-0; next to it 1-1 fills two empty words; 3-3 has no neighbour, so that only `final` takes it
    forward, backward = {(0, 0), (1, 1), (3, 3)}, {(0, 0), (0, 1)}
    assert symmetrize(forward, backward, "grow-diag") == {(0, 0), (0, 1), (1, 1)}
    assert symmetrize(forward, backward) == {(0, 0), (0, 1), (1, 1), (3, 3)}


def test_an_unknown_way_is_answered_with_the_nearest() -> None:
    with pytest.raises(BadInput, match='Did you mean "intersection"'):
        symmetrize(set(), set(), "intersect")
