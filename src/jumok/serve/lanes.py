"""Several searches of one model side by side, each with a batch and a thread of its own.

A small model spends as much time between its operations as in them. Threads inside an operation do not help there: they
wait for each other some hundred times a step, and while the loop that talks to clients has one of the cores, all of
them stand still. Two batches of one thread each keep two cores busy and wait for nobody. One who asks alone still has
all threads: only the first lane works then.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from jumok.serve.searching import Asking, Running

if TYPE_CHECKING:
    from jumok.serve.worker import Entry


@dataclass
class Group:
    """Sentences that joined together, for those who measure."""

    jobs: int
    cost: int
    waited: float
    began: float
    left: int


class Lane:
    """One running search, and whose sentences are in it. All of it belongs to the lane's own thread."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.search: Running | None = None
        self.entries: dict[Asking, Entry[Any, Any]] = {}  # of those that are searched
        self.again: list[Asking] = []  # searches that have to be done once more
        self.groups: dict[Asking, Group] = {}
        self._threads = 0  # that operations of this lane take

    @property
    def live(self) -> int:
        """How many rows are being searched."""
        search = self.search
        return search.live if search is not None else 0

    @property
    def cost(self) -> int:
        """In tokens, of all that is searched."""
        return self.search.cost if self.search is not None else 0

    @property
    def busy(self) -> bool:
        return bool(self.entries)

    def use(self, threads: int) -> None:
        """Operations of this thread take so many from now on."""
        if threads != self._threads:
            torch.set_num_threads(threads)
            self._threads = threads

    def clear(self) -> None:
        self.search = None
        self.entries.clear()
        self.groups.clear()
        self.again.clear()


class Turns:
    """Lanes use the model at the same time; who changes it for a while (hooks that record) has it alone."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._using = 0
        self._alone = False

    @contextmanager
    def shared(self) -> Iterator[None]:
        with self._changed:
            self._changed.wait_for(lambda: not self._alone)
            self._using += 1
        try:
            yield
        finally:
            with self._changed:
                self._using -= 1
                self._changed.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        with self._changed:
            self._changed.wait_for(lambda: not self._alone)
            self._alone = True
            self._changed.wait_for(lambda: not self._using)
        try:
            yield
        finally:
            with self._changed:
                self._alone = False
                self._changed.notify_all()
