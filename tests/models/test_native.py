"""transformer.c: compiled once, missed by nobody, and the best of many numbers exactly."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from steppers import model_of

from jumok.layers import c_library
from jumok.models import native
from jumok.models.fast import fast_stepper
from jumok.models.fast_cpu import FastTransformer
from jumok.models.native import best_of
from jumok.search.scores import HostScores


def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    native.library.cache_clear()
    try:
        with monkeypatch.context() as patched:
            patched.setattr(c_library.shutil, "which", lambda name: None)
            assert isinstance(fast_stepper(model_of()), FastTransformer)
        native.library.cache_clear()
        with monkeypatch.context() as patched:
            patched.setenv("JUMOK_NATIVE", "0")
            assert isinstance(fast_stepper(model_of()), FastTransformer)
        native.library.cache_clear()
        with monkeypatch.context() as patched:  # one that does not know what to do
            patched.setattr(c_library, "FLAGS", ("--no-such-flag",))
            assert isinstance(fast_stepper(model_of()), FastTransformer)
    finally:
        native.library.cache_clear()


def test_compiled_once_for_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if native.library() is None:
        pytest.skip("no C compiler here")
    monkeypatch.setenv("JUMOK_CACHE", str(tmp_path))
    native.library.cache_clear()
    try:
        assert native.library() is not None
        (made,) = (tmp_path / "native").iterdir()
        before = made.stat().st_mtime_ns
        native.library.cache_clear()
        assert native.library() is not None
        assert made.stat().st_mtime_ns == before
    finally:
        native.library.cache_clear()


def test_a_change_in_any_part_makes_another_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if native.library() is None:
        pytest.skip("no C compiler here")
    sources = tmp_path / "sources"
    sources.mkdir()
    for folder in (native.SOURCE.parent, c_library.SHARED):
        for path in (native.SOURCE, *folder.glob("*.h")):
            shutil.copy(path, sources)
    monkeypatch.setenv("JUMOK_CACHE", str(tmp_path))
    monkeypatch.setattr(native, "SOURCE", sources / native.SOURCE.name)
    monkeypatch.setattr(c_library, "SHARED", sources)
    monkeypatch.setattr(c_library, "FLAGS", ("-O0", "-std=gnu11", "-fPIC", "-shared"))  # in less time
    try:
        made = set()
        for part in (None, *sorted(sources.iterdir())):
            if part is not None:
                part.write_text(part.read_text() + "/* changed */\n")
            native.library.cache_clear()
            assert native.library() is not None, part
            made = {path.name for path in (tmp_path / "native").iterdir()}
        assert len(made) == 1 + len(list(sources.iterdir())) >= 3
    finally:
        native.library.cache_clear()


def test_a_damaged_library_is_made_again_and_a_strange_one_not_loaded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if native.library() is None:
        pytest.skip("no C compiler here")
    monkeypatch.setenv("JUMOK_CACHE", str(tmp_path))
    try:
        native.library.cache_clear()
        assert native.library() is not None
        (made,) = (tmp_path / "native").iterdir()
        whole = made.read_bytes()
        made.unlink()
        made.write_bytes(whole[:20_000])
        native.library.cache_clear()
        assert native.library() is not None
        assert made.read_bytes() == whole
        if hasattr(os, "getuid"):
            (tmp_path / "native").chmod(0o777)
            native.library.cache_clear()
            assert native.library() is None
    finally:
        native.library.cache_clear()


@pytest.fixture
def loaded() -> None:
    if native.library() is None:
        pytest.skip("no C compiler here")


@pytest.mark.parametrize("words", [1, 5, 63, 64, 65, 1000])
def test_the_best_of_many(words: int, loaded: None) -> None:
    """Few different numbers, so that most are equal."""
    count = int(torch.randint(1, min(words, 9) + 1, ()))
    values = torch.randint(-9, 0, (7, words)).float()
    values[torch.rand(7, words) < 0.3] = -torch.inf
    found = best_of(values, count)
    assert found is not None
    order = values.argsort(dim=1, descending=True, stable=True)[:, :count]
    best = values.gather(1, order)
    assert torch.equal(found[0], best)
    possible = best > -torch.inf
    assert torch.equal(found[1][possible], order[possible])


def test_what_is_no_number_comes_first(loaded: None) -> None:
    values = -torch.rand(3, 200)
    values[1, 150] = torch.nan
    found = best_of(values, 4)
    assert found is not None
    assert found[0].isnan().tolist() == [[False] * 4, [True, False, False, False], [False] * 4]


@pytest.mark.parametrize("even", [0, 3])
def test_a_search_finds_the_same_with_and_without(even: int, loaded: None, monkeypatch: pytest.MonkeyPatch) -> None:
    row_N = np.repeat(np.arange(4), 3 if even else [1, 3, 2, 3])
    beam_R = np.full(4, 3) if even else np.array([1, 3, 5, 4])
    log_probs = torch.randint(-5, 0, (len(row_N), 700)).float()
    total_N = -np.random.default_rng().integers(0, 3, len(row_N)).astype(np.float64)
    fast = HostScores(log_probs.clone(), 3, (0, 2)).top(total_N, row_N, beam_R, even)
    monkeypatch.setattr("jumok.search.scores.best_of", lambda values, count: None)
    slow = HostScores(log_probs.clone(), 3, (0, 2)).top(total_N, row_N, beam_R, even)
    for mine, other in zip(fast, slow, strict=True):
        assert np.array_equal(mine, other)
