"""Attention in C against the one written out, forwards and backwards; and when it is left alone."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from jumok.inspect.record import record
from jumok.layers import attention as layers_attention
from jumok.layers import attention_native, c_library
from jumok.layers.attention import ScaledDot, attention, attention_weights
from jumok.layers.attention_native import native_attention, suits
from jumok.layers.multihead import Look, MultiHeadAttention

SCORER = ScaledDot(16, 16, 16, 0)


@pytest.fixture(autouse=True)
def _of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    if attention_native.library() is None:
        pytest.skip("no C compiler here")
    monkeypatch.setattr(attention_native, "LEAST", 1)


def heads(batch: int, count: int, words: int, width: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """(B, H, T, D), as multi-head attention has them: the heads of a word side by side."""
    return torch.randn(batch, words, count, width).to(dtype).transpose(1, 2).requires_grad_()


def with_gradients(out: Tensor, *of: Tensor, upstream: Tensor) -> list[Tensor]:
    return [out.detach(), *torch.autograd.grad(out, of, upstream.to(out.dtype))]


def compare(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool) -> None:
    """Against the equations, in float64."""
    upstream, scorer = torch.randn(query.shape).to(query.dtype), ScaledDot(query.size(-1), query.size(-1), 0, 0)
    assert suits(query, key, value, mask)
    assert scorer.inner_scale is not None
    out = native_attention(query, key, value, mask, scorer.inner_scale, causal)
    assert out.dtype == query.dtype
    found = with_gradients(out, query, key, value, upstream=upstream)
    exact = [x.detach().double().requires_grad_() for x in (query, key, value)]
    weights = attention_weights(exact[0], exact[1], mask, scorer, None, causal)
    expected = with_gradients(weights @ exact[2], *exact, upstream=upstream)
    rounded = query.dtype == torch.bfloat16  # what comes out, and nothing on the way
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=5e-3 if rounded else 2e-5, atol=1e-4 if rounded else 2e-5)


@settings(max_examples=60, deadline=None)
@given(
    batch=st.integers(1, 4),
    count=st.integers(1, 3),
    queries=st.integers(1, 40),
    keys=st.integers(1, 40),
    width=st.sampled_from([16, 32, 48, 64, 80, 128]),
    masked=st.sampled_from(["no", "lengths", "anywhere"]),
    causal=st.booleans(),
    low=st.booleans(),
    number=st.integers(0, 2**31),
)
def test_what_is_seen_and_its_gradients(
    batch: int, count: int, queries: int, keys: int, width: int, masked: str, causal: bool, low: bool, number: int
) -> None:
    torch.manual_seed(number)
    dtype = torch.bfloat16 if low else torch.float32
    mask = None
    if masked == "lengths":  # of 0 too: a query that may look nowhere sees nothing
        mask = torch.arange(keys) < torch.randint(keys + 1, (batch, 1))
    elif masked == "anywhere":
        mask = torch.rand(batch, keys) < 0.7
    source = (heads(batch, count, keys, width, dtype) for _ in range(2))
    compare(heads(batch, count, queries, width, dtype), *source, mask, causal)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_the_longest_with_several_threads(threads: int, causal: bool, dtype: torch.dtype) -> None:
    longest = attention_native.LONGEST
    mask = torch.arange(longest) < torch.tensor([[longest], [longest - 30], [3]])
    query, key, value = (heads(3, 2, longest, 32, dtype) for _ in range(3))
    compare(query, key, value, mask, causal)
    once, again = (native_attention(query, key, value, mask, 0.2, causal) for _ in range(2))
    assert torch.equal(once, again)


def test_numbers_that_lie_anyhow() -> None:
    query = torch.randn(2, 3, 16, 9).transpose(2, 3).requires_grad_()  # (B, H, T, D) with D far apart
    key = torch.randn(3, 2, 11, 32)[..., ::2].transpose(0, 1).requires_grad_()
    value = torch.randn(11, 3, 2, 16).permute(2, 1, 0, 3).requires_grad_()
    mask = (torch.rand(11, 2) < 0.8).t()
    compare(query, key, value, mask, causal=False)
    shared = torch.randn(2, 1, 11, 16, requires_grad=True).expand(2, 3, 11, 16)
    compare(query, shared, value, mask, causal=True)


def test_what_is_no_number_is_seen() -> None:
    query, key, value = (heads(2, 2, 5, 16).detach() for _ in range(3))
    query[0, 1, 2] = torch.nan
    out = native_attention(query.requires_grad_(), key, value, None, 0.25, False)
    assert out.isnan().any(dim=-1).nonzero().tolist() == [[0, 1, 2]]


def test_what_it_does_not_take(monkeypatch: pytest.MonkeyPatch) -> None:
    query, key, value = (heads(2, 2, 5, 16) for _ in range(3))
    assert suits(query, key, value, None)
    assert not suits(query, key, value, torch.ones(2, 5, 5, dtype=torch.bool))
    assert not suits(query[:, 0], key[:, 0], value[:, 0], None)
    assert not suits(*(x.double() for x in (query, key, value)), None)
    assert not suits(*(heads(2, 2, 5, 24) for _ in range(3)), None)
    assert not suits(query, *(heads(2, 2, attention_native.LONGEST + 1, 16) for _ in range(2)), None)
    assert not suits(*(x.detach() for x in (query, key, value)), None)
    with torch.no_grad():
        assert not suits(query, key, value, None)
    with torch.autocast("cpu", torch.bfloat16):  # what autocast would have rounded
        assert not suits(query, key, value, None)
    monkeypatch.setattr(attention_native, "LEAST", query.numel() * 5 + 1)
    assert not suits(query, key, value, None)


def test_only_plain_inner_products_come_here(calls: list[None]) -> None:
    query, key, value = (heads(2, 2, 5, 16) for _ in range(3))
    attention(query, key, value, None, SCORER, bias=torch.zeros(1, 2, 5, 5))
    attention(query, key, value, None, SCORER, dropout=0.1)
    attention(query, key, value, None, SCORER, fused=False)
    assert not calls
    attention(query, key, value, None, SCORER)
    assert len(calls) == 1


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    made: list[None] = []

    def counted(*arguments: Any) -> Tensor:
        made.append(None)
        return native_attention(*arguments)

    monkeypatch.setattr(layers_attention, "native_attention", counted)
    return made


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("autocast", [False, True])
def test_a_layer_learns_the_same_and_to_watch_it_changes_nothing(
    groups: int, autocast: bool, calls: list[None], monkeypatch: pytest.MonkeyPatch
) -> None:
    layer = MultiHeadAttention(64, 4, groups, 0.0, "self", "encoder.0.self")
    x = torch.randn(3, 7, 64, requires_grad=True)
    angles = torch.randn(7, 8).repeat(1, 2)  # turned, not stretched: large scores would be rounded too coarsely
    turns = torch.stack((angles.cos(), angles.sin()), dim=1)
    look = Look(torch.arange(7) < torch.tensor([[7], [5], [2]]), causal=True, turns=turns)
    upstream = torch.randn(3, 7, 64)

    def result() -> list[Tensor]:
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            out = layer(x, look)
        return with_gradients(out, x, *layer.parameters(), upstream=upstream)

    found = result()
    assert len(calls) == 1
    with record(layer) as seen:
        watched = result()
    assert len(calls) == 2
    assert all(torch.equal(one, other) for one, other in zip(found, watched, strict=True))
    assert seen.max_difference < (0.1 if autocast else 1e-5)
    monkeypatch.setattr(layers_attention, "suits", lambda *given: False)
    for one, other in zip(found, result(), strict=True):
        if autocast:  # both round, each in its own places: only the whole can be compared
            assert (one - other).norm() < 3e-2 * other.norm()
        else:
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
    assert len(calls) == 2


def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch, calls: list[None]) -> None:
    attention_native.library.cache_clear()
    try:
        monkeypatch.setattr(c_library.shutil, "which", lambda name: None)
        query, key, value = (heads(2, 2, 5, 16) for _ in range(3))
        assert not suits(query, key, value, None)
        found = attention(query, key, value, None, SCORER)
        torch.testing.assert_close(found, attention(query, key, value, None, SCORER, fused=False))
        assert not calls
    finally:
        attention_native.library.cache_clear()
