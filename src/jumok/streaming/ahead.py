"""Work that is begun before it is asked for, and handed out in its order.

An engine whose threads compute without Python stands still while a chunk is cut into tokens and its translations are
put together. With the next chunk already under way it does not.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from typing import TypeVar

Given = TypeVar("Given")
Made = TypeVar("Made")


def ahead(work: Callable[[Given], Made], items: Iterable[Given], count: int) -> Iterator[tuple[Given, Made]]:
    """Each item and what came of it; `count` of them are under way at a time. An error comes at its item's turn, one of
    getting an item, too: what was begun before is handed out first.

    With a count of 1 nothing is begun before the one before it has been handed out.
    """
    if count == 1:
        yield from ((item, work(item)) for item in items)
        return
    running: deque[tuple[Given, Future[Made]]] = deque()
    waiting, failed = iter(items), None
    while True:
        try:
            item = next(waiting)
        except StopIteration:
            break
        except Exception as error:
            failed = error
            break
        running.append((item, _begun(work, item)))
        if len(running) == count:
            given, future = running.popleft()
            yield given, future.result()
    for given, future in running:
        yield given, future.result()
    if failed is not None:
        raise failed


def _begun(work: Callable[[Given], Made], item: Given) -> Future[Made]:
    """In a thread that nobody waits for when the program ends."""
    future: Future[Made] = Future()

    def run() -> None:
        try:
            future.set_result(work(item))
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True, name="jumok-ahead").start()
    return future
