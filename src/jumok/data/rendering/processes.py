"""Work that holds Python's lock, done by other interpreters, a part each; what comes of it comes in the order of the
parts, whoever did it.

FreeType and fontTools keep the lock while they work, so threads gain nothing. `multiprocessing` would run the user's
own script again. So each part gets a plain interpreter, which ends with it; the part comes through one pipe, and its
result goes through another. A part that no other process could do is done here; but not one that has killed the other
process (a font that FreeType crashes on, or that needs all memory): it would kill this one as well. It is told, with
the file that it was.
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
from typing import NoReturn, TypeVar

from jumok.errors import Failure

Part = TypeVar("Part")
Result = TypeVar("Result")
MOST = 32  # processes: more cannot be fed with files through one pipe each
NAMED = 3  # files of a part that has killed its process
REFUSED = 1  # how Python ends after an error
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
    try:
        found = future.result()
    except _Killed as killed:
        _tell(work, part, killed)
    try:
        if found is not None:
            result: Result = pickle.loads(found)
            return result
    except (pickle.UnpicklingError, EOFError):  # something else was written there, too
        pass
    return work(part)


class _Killed(Exception):
    """The other process has ended in a way that this one should not."""


def _tell(work: Callable[[Part], Result], part: Part, killed: _Killed) -> NoReturn:
    """Each of the files once more by itself, to name the one that it was."""
    files = list(part) if isinstance(part, Sequence) and not isinstance(part, str | bytes) else [part]
    for file in files if len(files) > 1 else []:
        try:
            _elsewhere(pickle.dumps((work, [file])))
        except _Killed as again:
            killed, files = again, [file]
            break
    named = ", ".join(str(getattr(file, "path", file)) for file in files[:NAMED]) + " …" * (len(files) > NAMED)
    raise Failure(
        f"{named}: {work.__name__.replace('_', ' ')} has ended its process ({killed}). The file is broken, or the "
        "memory is full: take it away, or name the fonts to be used (render.fonts)"
    ) from None


def _elsewhere(message: bytes) -> bytes | None:
    """What another interpreter makes of it; None when it could not. Raises `_Killed`."""
    command = [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}; import {__name__} as p; p.serve()"]
    try:
        done = subprocess.run(command, input=message, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    except OSError:  # no more processes to be had
        return None
    if done.returncode not in (0, REFUSED):
        raise _Killed(_ending(done.returncode))
    return done.stdout if done.returncode == 0 else None


def _ending(code: int) -> str:
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"code {code}"


def serve() -> None:
    """In the other process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is told to all of us; who began the work decides
    work, part = pickle.load(sys.stdin.buffer)
    result = pickle.dumps(work(part), protocol=pickle.HIGHEST_PROTOCOL)
    sys.stdout.buffer.write(result)
    sys.stdout.buffer.flush()
