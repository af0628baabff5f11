"""The processes that the studio has started: trainings and experiments, a few at a time, each with its last lines.

Each is a real `jumok` command in a session of its own (a Ctrl-C in the terminal is the studio's, which then lets go of
them one by one). To stop one is what Ctrl-C is: see child.py.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.applications import Starlette

from jumok.errors import BadInput

AT_ONCE = 2
LINES, LONGEST = 200, 400  # that are kept of what a process prints, and of a line
PATIENCE = 20.0  # seconds in which a process may save what it has, when the studio ends
CONTROLS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")


@dataclass
class Job:
    """One process. `kind`: "train" or "lab"; `name`: the run, or the experiment."""

    kind: str
    name: str
    process: subprocess.Popen[bytes]
    folder: Path  # of what it makes
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=LINES))
    printed: int = 0  # lines so far, also those that are not kept any more
    began: float = field(default_factory=time.time)
    asked: bool = False  # to stop
    reader: threading.Thread | None = None

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None

    @property
    def state(self) -> str:
        """running, stopping, stopped (because it was asked to), done or failed"""
        code = self.process.poll()
        if code is None:
            return "stopping" if self.asked else "running"
        return "stopped" if self.asked else "done" if code == 0 else "failed"

    def lines_after(self, count: int) -> list[str]:
        """What was printed after the first `count` lines, as far as it is kept."""
        lines = list(self.lines)
        return lines[len(lines) - max(0, min(len(lines), self.printed - count)) :]

    def stop(self) -> None:
        self.asked = self.asked or self.is_running
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            self.process.stdin.close()

    def told(self) -> dict[str, Any]:
        return {"state": self.state, "lines": list(self.lines), "printed": self.printed, "began": self.began}


class Processes:
    """All of them, by kind and name; of each name the last one stays known when it has ended."""

    def __init__(self) -> None:
        self._jobs: dict[tuple[str, str], Job] = {}
        self._lock = threading.Lock()
        self.is_closed = False

    def find(self, kind: str, name: str) -> Job | None:
        return self._jobs.get((kind, name))

    def of(self, kind: str) -> list[Job]:
        return [job for (found, _), job in list(self._jobs.items()) if found == kind]

    @property
    def running(self) -> list[Job]:
        return [job for job in list(self._jobs.values()) if job.is_running]

    def start(
        self,
        kind: str,
        name: str,
        folder: Path,
        arguments: Sequence[str],
        ended: Callable[[Job], None] = lambda job: None,
    ) -> Job:
        """`jumok ARGUMENTS`; `ended` is called when it has, in a thread of its own."""
        with self._lock:
            before = self._jobs.get((kind, name))
            if before is not None and before.is_running:
                raise BadInput(f"{name} is running already")
            if self.is_closed or len(self.running) >= AT_ONCE:
                names = ", ".join(job.name for job in self.running)
                raise BadInput(f"{AT_ONCE} processes run already ({names}): stop one, or wait until it has ended")
            job = Job(kind, name, _started(arguments), folder)
            self._jobs.pop((kind, name), None)  # the newest is the last
            self._jobs[kind, name] = job
        job.reader = threading.Thread(target=_read, args=(job, ended), daemon=True, name=f"jumok-{kind}")
        job.reader.start()
        return job

    def close(self) -> None:
        """The studio ends: all are asked to stop, and have a while to save what they have."""
        with self._lock:
            self.is_closed = True
        left = self.running
        for job in left:
            job.stop()
        limit = time.monotonic() + PATIENCE
        for job in left:
            try:
                job.process.wait(max(0.1, limit - time.monotonic()))
            except subprocess.TimeoutExpired:
                job.process.kill()
                job.process.wait(10)
        for job in left:
            if job.reader is not None:
                job.reader.join(5)


def _started(arguments: Sequence[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "jumok.studio.child", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8"},
    )


def _read(job: Job, ended: Callable[[Job], None]) -> None:
    assert job.process.stdout is not None
    with job.process.stdout as output:
        for line in output:
            text = CONTROLS.sub("", line.decode(errors="replace")).rstrip()[:LONGEST]
            job.lines.append(text)
            job.printed += 1
    job.process.wait()
    job.stop()  # lets go of its input
    ended(job)


def processes_of(app: Starlette) -> Processes:
    """Those of this studio, made at the first need."""
    found: Processes | None = getattr(app.state, "processes", None)
    if found is None:
        found = app.state.processes = Processes()
    return found


def close(app: Starlette) -> None:
    if getattr(app.state, "processes", None) is not None:
        processes_of(app).close()
