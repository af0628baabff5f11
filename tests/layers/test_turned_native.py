"""A matrix turned on its side, and its sums, exactly and by any number of threads."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from jumok.layers import c_library, turned_native
from jumok.layers.turned_native import turned, turned_with_sums


@pytest.fixture(autouse=True)
def _of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    if turned_native.library() is None:
        pytest.skip("no C compiler here")
    monkeypatch.setattr(turned_native, "LEAST", 1)


@settings(max_examples=50, deadline=None)
@given(rows=st.integers(1, 150), columns=st.integers(1, 100), more=st.integers(0, 5), number=st.integers(0, 2**31))
def test_rows_become_columns(rows: int, columns: int, more: int, number: int) -> None:
    torch.manual_seed(number)
    x = torch.randn(rows, columns + more)[:, :columns]
    found, sums = turned_with_sums(x)
    assert torch.equal(found, x.t())
    assert torch.equal(turned(x), x.t())
    assert found.is_contiguous()
    torch.testing.assert_close(sums, x.double().sum(0).float(), rtol=1e-5, atol=1e-5)


def test_all_threads_give_the_same() -> None:
    x, before = torch.randn(700, 130), torch.get_num_threads()
    results = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        results.append(turned_with_sums(x))
    torch.set_num_threads(before)
    for one, other in zip(*results, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("x", [torch.randn(9, 20).t(), torch.randn(20, 9).double(), torch.randn(20, 9).bfloat16()])
def test_what_it_does_not_take_goes_through_pytorch(x: torch.Tensor) -> None:
    found, sums = turned_with_sums(x)
    assert torch.equal(found, x.t())
    assert torch.equal(sums, x.sum(0))


def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    turned_native.library.cache_clear()
    try:
        monkeypatch.setattr(c_library.shutil, "which", lambda name: None)
        x = torch.randn(20, 33)
        found, sums = turned_with_sums(x)
        assert torch.equal(found, x.t())
        assert torch.equal(sums, x.sum(0))
    finally:
        turned_native.library.cache_clear()
