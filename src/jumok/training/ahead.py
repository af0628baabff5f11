"""The next update's batches, prepared while the GPU is busy with this one's."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from jumok.training.batches import mapped


class Ahead:
    """Batches by the number of the update. With `thread`, the one after it is made meanwhile, in pinned memory."""

    def __init__(self, batches: Callable[[int], list[Any]], thread: bool) -> None:
        self.batches = batches
        self.pool = ThreadPoolExecutor(1, "batches") if thread else None
        self.coming: tuple[int, Future[list[Any]]] | None = None

    def at(self, update: int) -> list[Any]:
        if self.pool is None:
            return self.batches(update)
        number, future = self.coming or (update, self.pool.submit(self._pinned, update))
        if number != update:  # the run went back
            future.cancel()
            future = self.pool.submit(self._pinned, update)
        found = future.result()
        self.coming = update + 1, self.pool.submit(self._pinned, update + 1)
        return found

    def _pinned(self, update: int) -> list[Any]:
        return [pinned(batch) for batch in self.batches(update)]

    def close(self) -> None:
        if self.pool is not None:
            self.pool.shutdown(cancel_futures=True)


def pinned(batch: Any) -> Any:
    """A batch in memory that a GPU can fetch by itself."""
    return mapped(batch, lambda tensor: tensor if tensor.is_cuda else tensor.pin_memory())
