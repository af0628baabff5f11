"""Whoever wants to see searches as they run, such as inspect/record.py: told of every one, in the order of its doing.

The model's own hooks say what happened in `encode` and `step`; what they cannot know, whose rows those were and which
hypothesis went on from which, is told here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from jumok.search.events import Event
from jumok.search.scores import Integers
from jumok.search.stepper import Stepper


class Watcher(Protocol):
    def reading(self, search: object, stepper: Stepper, rows: Sequence[int], batch: Any) -> None:
        """`encode` is about to read a batch; its sentences will join the search under these numbers."""
        ...

    def stepping(self, search: object, tokens: Integers) -> None:
        """`step` is about to feed one token to each live hypothesis."""
        ...

    def chosen(self, search: object, happened: Sequence[Event], parents: Integers) -> None:
        """What became of them, and which of them each hypothesis that lives on continues."""
        ...


WATCHERS: list[Watcher] = []


@contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Inside the block the watcher is told of every search of this process."""
    WATCHERS.append(watcher)
    try:
        yield
    finally:
        WATCHERS.remove(watcher)
