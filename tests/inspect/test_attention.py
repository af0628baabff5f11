from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumok.errors import BadInput
from jumok.inspect.attention import Attention, merged, visible

TOKENS = st.lists(st.text(max_size=8), min_size=1, max_size=6)


def random_attention(source: list[str], target: list[str], seed: int) -> Attention:
    weights = np.random.default_rng(seed).dirichlet(np.ones(len(source)), len(target))
    return Attention(tuple(source), tuple(target), weights.astype(np.float32))


@given(TOKENS, TOKENS, st.integers(0, 2**32 - 1))
def test_json_brings_back_every_bit(source: list[str], target: list[str], seed: int) -> None:
    before = replace(random_attention(source, target, seed), kind="causal", name="decoder.1.causal, head 3")
    after = Attention.from_json(before.to_json())
    assert (after.source, after.target, after.score) == (before.source, before.target, before.score)
    assert (after.kind, after.name) == (before.kind, before.name)
    assert after.weights.dtype == np.float32
    np.testing.assert_array_equal(after.weights, before.weights)


def test_json_without_words_and_with_numbers_that_are_none() -> None:
    empty = Attention.from_json(Attention((), ("a",), np.zeros((1, 0))).to_json())
    assert (empty.source, empty.target, empty.weights.shape) == ((), ("a",), (1, 0))
    odd = Attention(("a", "b"), ("c",), np.array([[np.nan, 0.5]]), score=float("-inf"))
    assert json.loads(odd.to_json())["weights"] == [[None, 0.5]]
    again = Attention.from_json(odd.to_json())
    assert np.isnan(again.weights[0, 0])
    assert again.score is None


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"source": ["a"]}',
        '{"source": "a", "target": ["b"], "weights": [[1]]}',
        '{"source": ["a"], "target": [1], "weights": [[1]]}',
        '{"source": ["a"], "target": ["b"], "weights": [[1, 2]]}',
        '{"source": ["a", "b"], "target": ["b", "c"], "weights": [[1, 2], [3]]}',
        '{"source": ["a"], "target": ["b"], "weights": 3}',
        '{"source": ["a"], "target": ["b"], "weights": [["x"]]}',
        '{"source": ["a"], "target": ["b"], "weights": [[1]], "score": "high"}',
        '{"source": ["a"], "target": ["b"], "weights": [[1]], "kind": 3}',
        '{"source": ["a"], "target": ["b"], "weights": [[1]], "name": null}',
        '{"format": 99, "source": ["a"], "target": ["b"], "weights": [[1]]}',
    ],
)
def test_bad_json_is_named(text: str) -> None:
    with pytest.raises(BadInput, match=r"x\.json"):
        Attention.from_json(text, "x.json")


def test_pieces_become_words() -> None:
    weights = np.array([[0.1, 0.2, 0.6, 0.1], [0.3, 0.3, 0.2, 0.2], [0.0, 0.1, 0.1, 0.8]])
    pieces = Attention(("un", "do", "it", "<eos>"), ("dé", "fais", "<eos>"), weights, score=-2.0)
    words = pieces.merge([0, 0, 1, None], [0, 0, None], ["undo", "it"], ["défais"])
    assert (words.source, words.target, words.score) == (("undo", "it", "<eos>"), ("défais", "<eos>"), -2.0)
    # source pieces summed, target pieces averaged: (0.3 + 0.6) / 2, (0.6 + 0.2) / 2, (0.1 + 0.2) / 2
    np.testing.assert_allclose(words.weights, [[0.45, 0.4, 0.15], [0.1, 0.1, 0.8]], atol=1e-6)
    assert pieces.merge([0, 0, 1, None], [0, 0, None]).source == ("undo", "it", "<eos>")


@given(st.data(), st.integers(0, 2**32 - 1))
def test_rows_still_sum_to_one_after_merging(data: st.DataObject, seed: int) -> None:
    sizes = st.lists(st.integers(1, 3), min_size=1, max_size=4)
    source_words = [word for word, size in enumerate(data.draw(sizes)) for _ in range(size)]
    target_words = [word for word, size in enumerate(data.draw(sizes)) for _ in range(size)]
    pieces = random_attention(["a"] * len(source_words), ["b"] * len(target_words), seed)
    words = pieces.merge(source_words, target_words)
    assert words.weights.shape == (target_words[-1] + 1, source_words[-1] + 1)
    np.testing.assert_allclose(words.weights.sum(axis=1), 1.0, atol=1e-5)


def test_several_pictures_are_merged_as_one_and_a_missing_number_stays_in_its_word() -> None:
    random = np.random.default_rng(1)
    weights = random.dirichlet(np.ones(5), (3, 4)).astype(np.float32)  # three heads
    weights[0, 1, 2] = np.nan
    source_words, target_words = [0, 0, 1, 2, 2], [0, 1, 1, None]
    together = merged(weights, source_words, target_words)
    assert together.shape == (3, 3, 3)
    for head, words in zip(weights, together, strict=True):
        one = Attention(("x",) * 5, ("y",) * 4, head).merge(source_words, target_words)
        np.testing.assert_array_equal(one.weights, words)
        expected = [
            [head[rows][:, columns].sum(axis=1).mean() for columns in ([0, 1], [2], [3, 4])]
            for rows in ([0], [1, 2], [3])
        ]
        np.testing.assert_allclose(words, expected, rtol=1e-6)
    assert np.isnan(together).sum() == 1
    assert merged(weights[:, :0], source_words, []).shape == (3, 0, 3)


def test_an_older_file_without_a_kind_is_read() -> None:
    old = Attention.from_json('{"format": 1, "source": ["a"], "target": ["b"], "weights": [[1]], "score": null}')
    assert (old.kind, old.name) == ("cross", "")


def test_two_end_marks_are_not_one_word() -> None:
    attention = random_attention(["<s>", "<s>"], ["x"], 0)
    assert attention.merge([None, None], [0]).source == ("<s>", "<s>")


def test_shapes_must_agree(make_attention: Callable[..., Attention]) -> None:
    with pytest.raises(ValueError, match="ask for"):
        Attention(("a",), ("b",), np.zeros((2, 1)))
    with pytest.raises(ValueError, match="word numbers"):
        make_attention(3, 2).merge([0, 0], [0, 1])


def test_part_leaves_the_ends_out(make_attention: Callable[..., Attention]) -> None:
    whole = make_attention(5, 4)
    part = whole.part(3, 4)
    assert (part.target, part.source) == (whole.target[:3], whole.source[:4])
    np.testing.assert_array_equal(part.weights, whole.weights[:3, :4])


def test_what_cannot_be_seen_is_written_out() -> None:
    assert visible("주목 é ✓") == "주목 é ✓"
    assert visible("a\x1b[31m\n\u202eb\u200b\ud800") == "a\\x1b[31m\\n\\u202eb\\u200b\\ud800"


def test_a_word_without_text_is_called_by_its_pieces() -> None:
    """A hardly trained model may write nothing but a space."""
    picture = Attention(("A", "cat", "<eos>"), ("▁", "<eos>"), np.full((2, 3), 1 / 3, np.float32))
    merged = picture.merge([0, 1, None], [0, None], ["A", "cat"], [])
    assert merged.target == ("▁", "<eos>")
