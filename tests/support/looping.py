"""A coroutine run to its end in a thread of its own.

A browser that another test of this process has opened (Playwright) leaves an event loop running in the main thread,
where `asyncio.run` would refuse to begin another.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

Value = TypeVar("Value")


def looping(coroutine: Coroutine[Any, Any, Value]) -> Value:
    future: Future[Value] = Future()

    def run() -> None:
        try:
            future.set_result(asyncio.run(coroutine))
        except BaseException as error:
            future.set_exception(error)

    thread = threading.Thread(target=run, name="test-loop")
    thread.start()
    thread.join()
    return future.result()
