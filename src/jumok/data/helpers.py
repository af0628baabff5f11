"""Other processes that do the same work, and end with us however we end.

`multiprocessing` would run the user's own script again in every process; these are plain interpreters that get their
work through a pipe, and take the pipe's end for ours.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any


@contextlib.contextmanager
def helpers(count: int, work: Callable[..., None], *arguments: Any) -> Iterator[None]:
    """While this block runs, `count` processes call `work(*arguments)`. What becomes of it is for the block to see."""
    command = [sys.executable or "", "-c", f"import sys; sys.path[:] = {sys.path!r}; import {__name__} as h; h.serve()"]
    environment = {**os.environ, "TOKENIZERS_PARALLELISM": "false"}  # there are processes in the place of its threads
    message = pickle.dumps((work, arguments)) if count > 0 else b""
    started: list[subprocess.Popen[bytes]] = []
    try:
        with contextlib.suppress(OSError):  # no more processes to be had: those there are will do
            for _ in range(count if sys.executable else 0):
                started.append(
                    subprocess.Popen(
                        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                        env=environment,
                    )
                )  # fmt: skip
                assert started[-1].stdin is not None
                started[-1].stdin.write(message)
                started[-1].stdin.flush()
        yield
    finally:
        for process in started:
            process.kill()
        for process in started:
            with contextlib.suppress(OSError):
                process.communicate()


def serve() -> None:
    """In the other process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is told to all of us; who began the work decides
    work, arguments = pickle.load(sys.stdin.buffer)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        work(*arguments)
    finally:
        os._exit(0)  # the thread still reads, which keeps an interpreter from ending


def _end_with_parent() -> None:
    os.read(sys.stdin.fileno(), 1)
    os._exit(1)
