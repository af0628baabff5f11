"""What tests of pages and pictures share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from jumok.inspect.attention import Attention

EVIL = ('<script>window.hacked="a"</script>', "</script><img src=x onerror='window.hacked=\"b\"'>", "a&b\"q'", "<!--")


@pytest.fixture
def make_attention() -> Callable[..., Attention]:
    """Random weights whose rows sum to 1, for the given words (or that many of them)."""

    def make(source: Any = 5, target: Any = 4, seed: int = 0) -> Attention:
        keys = [f"key{i}" for i in range(source)] if isinstance(source, int) else list(source)
        queries = [f"query{i}" for i in range(target)] if isinstance(target, int) else list(target)
        weights = np.random.default_rng(seed).dirichlet(np.ones(max(len(keys), 1)), len(queries))
        return Attention(tuple(keys), tuple(queries), weights[:, : len(keys)], score=-1.25)

    return make


@pytest.fixture
def evil() -> tuple[str, ...]:
    return EVIL
