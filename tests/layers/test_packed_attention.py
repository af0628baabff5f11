"""Attention of packed sentences: each way of computing it gives the same."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch
from packed_checks import (
    KINDS,
    assert_as_dense,
    dense,
    random_inputs,
    random_pairs,
    some_lengths,
    spans_of,
    who_sees_whom,
)  # fmt: skip
from torch import Tensor

from jumok.data.packing import PackedPairs
from jumok.layers import flash as flash_file
from jumok.layers import packed_attention as ways
from jumok.layers.packed_attention import packed_attention


@pytest.fixture
def padded_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ways, "HAS_TRITON", False)


@pytest.mark.usefixtures("padded_only")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("filled", [False, True])
@pytest.mark.parametrize(("heads", "groups"), [(2, 2), (4, 2), (3, 1)])
def test_rows_side_by_side_are_all_against_all(kind: str, filled: bool, heads: int, groups: int) -> None:
    packed = PackedPairs.of(random_pairs(some_lengths(5, 11)), (90, 95) if filled else None)
    for batch in (packed, packed.twice()):
        spans = spans_of(kind, batch)
        inputs = random_inputs(spans, heads, groups, 6)
        assert_as_dense(lambda q, k, v, s=spans: packed_attention(q, k, v, s, 0.4), spans, inputs, 0.4)


@pytest.mark.usefixtures("padded_only")
def test_dropout_drops_a_share_of_the_weights() -> None:
    spans = spans_of("own", PackedPairs.of(random_pairs([(30, 0)] * 4)))
    query, key, value = random_inputs(spans, 4, 4, 8)
    drops = [packed_attention(query, key, value, spans, 0.1, dropout=0.3) for _ in range(200)]
    assert not torch.equal(drops[0], drops[1])
    torch.testing.assert_close(
        torch.stack(drops).mean(dim=0), packed_attention(query, key, value, spans, 0.1), atol=0.15, rtol=0.1
    )


def test_queries_and_keys_take_the_precision_of_the_values() -> None:
    """Rotary positions turn them in float32, also under autocast."""
    spans = spans_of("past", PackedPairs.of(random_pairs(some_lengths(3, 6))))
    query, key, value = random_inputs(spans, 2, 2, 16)
    assert packed_attention(query, key, value.bfloat16(), spans, 0.3).dtype == torch.bfloat16


# ------------------------------------------------------------ long sentences: flash attention, whose kernel is not here


def is_long(kind: str, filled: bool) -> Any:
    return spans_of(kind, PackedPairs.of(random_pairs(some_lengths(4, 9)), (70, 75) if filled else None).twice())


def reference(
    query: Tensor, key: Tensor, value: Tensor, queries: Tensor, keys: Tensor, causal: bool, scale: float
) -> Tensor:
    """What varlen_attn does, sequence by sequence. What belongs to none is left as it is found."""
    out = torch.full_like(query, torch.nan)
    for q, q_end, k, k_end in zip(*(edge.tolist() for x in (queries, keys) for edge in (x[:-1], x[1:])), strict=True):
        scores = torch.einsum("nhd,mhd->hnm", query[q:q_end], key[k:k_end]) * scale
        if causal:
            scores = scores.masked_fill(~torch.ones_like(scores, dtype=torch.bool).tril(), -torch.inf)
        out[q:q_end] = torch.einsum("hnm,mhd->nhd", scores.softmax(dim=-1), value[k:k_end])
    return out


def flash_2_10(
    query: Tensor, key: Tensor, value: Tensor, cu_seq_q: Tensor, cu_seq_k: Tensor, max_q: int, max_k: int,
    is_causal: bool = False,
) -> Tensor:  # fmt: skip
    assert key.size(1) == query.size(1)
    return flash(query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, is_causal, query.size(-1) ** -0.5)


def flash_2_11(
    query: Tensor, key: Tensor, value: Tensor, cu_seq_q: Tensor, cu_seq_k: Tensor, max_q: int, max_k: int, *,
    scale: float | None = None, window_size: tuple[int, int] = (-1, -1),
) -> Tensor:  # fmt: skip
    assert scale is not None
    assert key.size(1) == query.size(1)
    assert window_size in ((-1, -1), (-1, 0))
    return flash(query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, window_size == (-1, 0), scale)


def flash_2_13(
    query: Tensor, key: Tensor, value: Tensor, cu_seq_q: Tensor, cu_seq_k: Tensor, max_q: int, max_k: int, *,
    scale: float | None = None, window_size: tuple[int, int] = (-1, -1), enable_gqa: bool = False,
) -> Tensor:  # fmt: skip
    assert enable_gqa == (key.size(1) != query.size(1))
    key, value = (x.repeat_interleave(query.size(1) // x.size(1), dim=1) for x in (key, value))
    return flash_2_11(query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, scale=scale, window_size=window_size)


def flash(
    query: Tensor, key: Tensor, value: Tensor, queries: Tensor, keys: Tensor, max_q: int, max_k: int, causal: bool,
    scale: float,
) -> Tensor:  # fmt: skip
    assert queries.dtype == keys.dtype == torch.int32
    assert (int(queries[-1]), int(keys[-1])) == (len(query), len(key)), "what belongs to no sequence is not initialised"
    assert (int(queries.diff().max()), int(keys.diff().max())) <= (max_q, max_k)
    assert int(keys.diff().max()) <= max_k
    return reference(query, key, value, queries, keys, causal, scale)


@pytest.mark.parametrize("version", [flash_2_10, flash_2_11, flash_2_13])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("filled", [False, True])
def test_flash_attention_gets_what_it_needs(
    version: Any, kind: str, filled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flash_file, "varlen_attn", version)
    monkeypatch.setattr(flash_file, "OPTIONS", frozenset(inspect.signature(version).parameters))
    spans = is_long(kind, filled)
    query, key, value = random_inputs(spans, 4, 2, 8)
    found = flash_file.flash_attention(query, key, value, spans, 0.4)
    real = who_sees_whom(spans).any(dim=1)
    torch.testing.assert_close(found[real], dense(query, key, value, spans, 0.4)[real])
    assert found.isfinite().all() or kind == "across"  # padding that sees no padding: zeros in the real kernel


def test_flash_attention_is_for_long_sentences_on_a_gpu() -> None:
    spans = is_long("own", False)
    query, _, _ = random_inputs(spans, 2, 2, 8)
    assert not ways.suits_flash(query.bfloat16(), spans, 0.0)
