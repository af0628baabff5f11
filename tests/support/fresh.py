"""Random inputs: other ones after every change, the same ones whenever the same tree is tested.

A test that fails for one draw in a thousand must be found by whoever changed the tree, not by the next one to run it:
so everything that tests draw from (`secrets.randbelow`, `random`, NumPy's and PyTorch's generators, Hypothesis) begins
at a number made of the files under src and tests and of the test's own name, whatever ran before it.
`JUMOK_TEST_SEED=…` (any text) draws others from the same tree.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import torch

ROOT = Path(__file__).resolve().parents[2]


def _of_the_tree() -> str:
    digest = hashlib.sha256(os.environ.get("JUMOK_TEST_SEED", "").encode())
    for folder in ("src", "tests"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()


TREE = _of_the_tree()
_default_rng = numpy.random.default_rng
_system = secrets.SystemRandom()  # until a test begins, and in processes that are not tests
_source: random.Random = _system


class Drawn(random.Random):
    """`random.SystemRandom()` and `random.SystemRandom()` of a test: begins where the test's own draws stand."""

    def __init__(self) -> None:
        super().__init__(_source.getrandbits(64))


def begin(name: str) -> None:
    """Everything drawn from here on follows from the tree and `name`."""
    global _source
    _source = random.Random(f"{TREE} {name}")
    random.seed(_source.getrandbits(64))
    numpy.random.seed(_source.getrandbits(32))
    torch.manual_seed(_source.getrandbits(63))


@contextlib.contextmanager
def aside(name: str) -> Iterator[None]:
    """Draws that follow from `name`; after it those from before go on."""
    global _source
    kept = _source, random.getstate(), numpy.random.get_state(), torch.get_rng_state()
    begin(name)
    try:
        yield
    finally:
        _source = kept[0]
        random.setstate(kept[1])
        numpy.random.set_state(kept[2])
        torch.set_rng_state(kept[3])


def install() -> None:
    """Instead of what the operating system would give."""

    def default_rng(seed: Any = None) -> numpy.random.Generator:
        return _default_rng(_source.getrandbits(64) if seed is None else seed)

    secrets.randbelow = lambda limit: _source.randrange(limit)
    random.SystemRandom = Drawn  # type: ignore[misc, assignment]
    numpy.random.default_rng = default_rng
    with contextlib.suppress(ImportError):  # the tests of a GPU do without it
        from hypothesis import core

        core.global_force_seed = int(TREE[:12], 16)
