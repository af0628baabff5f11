"""Work that holds Python's lock, done by other interpreters, a part each; what comes of it comes in the order of the
parts, whoever did it.

FreeType and fontTools keep the lock while they work, so threads gain nothing. `multiprocessing` would run the user's
own script again. So each part gets a plain interpreter, which ends with it; the part comes through one pipe, and its
result goes through another. A part that no other process could do is done here.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Part = TypeVar("Part")
Result = TypeVar("Result")
MOST = 32  # processes: more cannot be fed with files through one pipe each
AHEAD = 2  # parts of each process that are begun before the first of them is taken


def cores() -> int:
    """Those that this process may use."""
    usable = getattr(os, "sched_getaffinity", None)
    return max(1, min(MOST, len(usable(0)) if usable else os.cpu_count() or 1))


def in_processes(work: Callable[[Part], Result], parts: Sequence[Part], processes: int) -> Iterator[Result]:
    """`work` of each part. It must be a function of a module, and its parts and results must be picklable."""
    processes = min(processes, len(parts))
    if processes < 2 or not sys.executable:
        yield from map(work, parts)
        return
    waiting: deque[tuple[Part, Future[bytes | None]]] = deque()
    with ThreadPoolExecutor(processes, "parts") as pool:
        try:
            for part in parts:
                waiting.append((part, pool.submit(_elsewhere, pickle.dumps((work, part)))))
                if len(waiting) >= AHEAD * processes:
                    yield _result(work, *waiting.popleft())
            while waiting:
                yield _result(work, *waiting.popleft())
        finally:
            for _, future in waiting:
                future.cancel()


def _result(work: Callable[[Part], Result], part: Part, future: Future[bytes | None]) -> Result:
    found = future.result()
    if found is None:
        return work(part)
    result: Result = pickle.loads(found)
    return result


def _elsewhere(message: bytes) -> bytes | None:
    """What another interpreter makes of it; None when it could not."""
    command = [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}; import {__name__} as p; p.serve()"]
    try:
        done = subprocess.run(command, input=message, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    except OSError:  # no more processes to be had
        return None
    return done.stdout if done.returncode == 0 else None


def serve() -> None:
    """In the other process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is told to all of us; who began the work decides
    work, part = pickle.load(sys.stdin.buffer)
    result = pickle.dumps(work(part), protocol=pickle.HIGHEST_PROTOCOL)
    sys.stdout.buffer.write(result)
    sys.stdout.buffer.flush()
