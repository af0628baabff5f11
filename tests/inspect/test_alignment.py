from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumok.data.pharaoh import format_pharaoh, parse_pharaoh, read_pharaoh
from jumok.errors import BadInput
from jumok.inspect.alignment import (
    READINGS,
    alignment_error_rate,
    argmax_links,
    balanced_links,
    both_links,
    check_range,
    read_gold,
    reading_named,
)

LINKS = st.sets(st.tuples(st.integers(0, 300), st.integers(0, 300)), max_size=12)


def test_sure_and_possible_links() -> None:
    sure, possible = parse_pharaoh("0-0 1?2  2p1\t3-3\n")
    assert sure == {(0, 0), (3, 3)}
    assert possible == {(0, 0), (1, 2), (2, 1), (3, 3)}
    assert parse_pharaoh("  \n") == (set(), set())


def test_published_sets_count_from_one() -> None:
    assert parse_pharaoh("1-1 2p3", one_based=True) == ({(0, 0)}, {(0, 0), (1, 2)})
    with pytest.raises(BadInput, match=r"gold.*0-1.*from 1"):
        parse_pharaoh("0-1", one_based=True, where="gold, line 7")


@given(LINKS, LINKS, st.booleans())
def test_round_trip(sure: set[tuple[int, int]], possible: set[tuple[int, int]], one_based: bool) -> None:
    line = format_pharaoh(sure, possible, one_based)
    assert parse_pharaoh(line, one_based) == (sure, sure | possible)


@pytest.mark.parametrize("bad", ["0", "0-", "a-b", "0--1", "-1-0", "0-1-2", "0:1", "١-٢", "9999999999-0"])
def test_what_is_no_link_is_named(bad: str) -> None:
    with pytest.raises(BadInput) as error:
        parse_pharaoh(f"0-0 {bad}", where="gold.txt, line 3")
    assert bad in str(error.value)
    assert "gold.txt, line 3" in str(error.value)


def test_a_file_names_its_bad_line(tmp_path: Path) -> None:
    file = tmp_path / "gold.txt"
    file.write_bytes(b"\xef\xbb\xbf0-0\r\n\n1-1 0?1\n")
    assert read_pharaoh(file) == [({(0, 0)}, {(0, 0)}), (set(), set()), ({(1, 1)}, {(1, 1), (0, 1)})]
    file.write_text("0-0\nfoo\n", encoding="utf-8")
    with pytest.raises(BadInput, match=r"gold\.txt, line 2"):
        read_pharaoh(file)
    file.write_bytes(b"0-0\n\xff-1\n")
    with pytest.raises(BadInput, match="line 2"):
        read_pharaoh(file)
    with pytest.raises(BadInput, match="nowhere"):
        read_pharaoh(tmp_path / "nowhere.txt")


def test_links_outside_the_sentence_are_named() -> None:
    check_range({(0, 0), (2, 1)}, 3, 2)
    with pytest.raises(BadInput, match=r"gold, line 4.*source word 3.*3 word"):
        check_range({(3, 0)}, 3, 2, "gold, line 4")
    with pytest.raises(BadInput, match=r"target word 2"):
        check_range({(0, 2)}, 3, 2)


def test_each_target_word_gets_its_strongest_source_word() -> None:
    weights = np.array([[0.1, 0.7, 0.2], [0.6, 0.3, 0.1], [np.nan, np.nan, np.nan]], dtype=np.float32)
    assert argmax_links(weights) == {(1, 0), (0, 1)}
    assert argmax_links(np.zeros((0, 3), dtype=np.float32)) == set()
    assert argmax_links(np.zeros((2, 0), dtype=np.float32)) == set()


def test_error_rate_against_a_count_by_hand() -> None:
    # A = {00, 11, 22}, S = {00}, P = {00, 11, 12}: |A∩S| = 1, |A∩P| = 2, so AER = 1 − 3 / 4
    score = alignment_error_rate([{(0, 0), (1, 1), (2, 2)}], [{(0, 0)}], [{(1, 1), (1, 2)}])
    assert score.error_rate == pytest.approx(0.25)
    assert score.precision == pytest.approx(2 / 3)
    assert score.recall == 1.0


def test_a_corpus_is_counted_before_it_is_divided() -> None:
    good, bad = {(i, i) for i in range(9)}, {(0, 1)}
    score = alignment_error_rate([good, bad], [good, {(0, 0)}], [good, {(0, 0)}])
    assert score.error_rate == pytest.approx(1 - 18 / 20)  # the mean over sentences would be 0.5
    with pytest.raises(ValueError, match=r"shorter|longer"):
        alignment_error_rate([good], [good, bad], [good, bad])


@given(st.lists(st.tuples(LINKS, LINKS, LINKS), max_size=5))
def test_error_rate_is_a_share_and_zero_exactly_when_perfect(
    corpus: list[tuple[set[tuple[int, int]], set[tuple[int, int]], set[tuple[int, int]]]],
) -> None:
    score = alignment_error_rate([a for a, _, _ in corpus], [s for _, s, _ in corpus], [p for _, _, p in corpus])
    assert 0.0 <= score.error_rate <= 1.0
    perfect = all(s <= a <= (p | s) for a, s, p in corpus)
    assert (score.error_rate < 1e-12) == perfect


def test_along_both_axes() -> None:
    # "pas" (row 1) looks at "the" a little more than at "not", which nobody else looks at; "the" is of "le" (row 2)
    weights = np.array([[0.9, 0.05, 0.05], [0.1, 0.4, 0.5], [0.05, 0.05, 0.9]])
    assert argmax_links(weights) == {(0, 0), (2, 1), (2, 2)}
    assert (1, 1) in both_links(weights)
    assert balanced_links(weights) == {(0, 0), (1, 1), (2, 2)}


@given(st.integers(0, 5), st.integers(0, 5), st.integers(0, 2**31))
def test_every_reading_of_anything(rows: int, columns: int, seed: int) -> None:
    """Links lie within the words; where rows and columns agree is always there; nothing fails on nothing."""
    weights = np.random.default_rng(seed).dirichlet(np.ones(max(columns, 1)), rows)[:, :columns].astype(np.float32)
    weights[rows // 2 :: 3] = 0
    for reading in READINGS.values():
        assert all(0 <= source < columns and 0 <= target < rows for source, target in reading(weights))
    agreed = argmax_links(weights) & {(source, target) for target, source in argmax_links(weights.T)}
    assert agreed <= both_links(weights)
    if rows and columns:
        assert both_links(np.eye(max(rows, columns))) == {(i, i) for i in range(max(rows, columns))}


def test_an_unknown_reading_is_answered() -> None:
    with pytest.raises(BadInput, match='Did you mean "rows"'):
        reading_named("row")


def test_gold_that_does_not_fit_is_named(tmp_path: Path) -> None:
    file = tmp_path / "gold"
    file.write_text("0-0\n1-1\n", encoding="utf-8")
    assert read_gold(file, ["a", "a b"], ["x", "x y"])[1] == ({(1, 1)}, {(1, 1)})
    with pytest.raises(BadInput, match="2 lines, but there are 1"):
        read_gold(file, ["a"], ["x"])
    with pytest.raises(BadInput, match=r"line 2.*source word 1"):
        read_gold(file, ["a", "a"], ["x", "x y"])
