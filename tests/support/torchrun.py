"""torchrun as a user starts it, and its processes by their numbers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import IO, Any

MOST_SECONDS = 120.0


class Torchrun:
    """`torchrun --nproc-per-node WORLD … -m jumok -- ARGUMENTS`, running."""

    def __init__(
        self, *arguments: object, world: int = 2, restarts: int = 0, machines: Sequence[str] = ("--standalone",)
    ) -> None:
        command = [sys.executable, "-m", "torch.distributed.run", *machines, "--nproc-per-node", str(world)]
        command += ["--max-restarts", str(restarts), "-m", "jumok", "--", *map(str, arguments)]
        self.log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        environment = {**os.environ, "NO_COLOR": "1", "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT, env=environment
        )
        self.seen: set[int] = set()

    def workers(self) -> dict[int, int]:
        """Those that live, by rank."""
        found = {}
        for process in Path("/proc").iterdir():
            if process.name.isdecimal() and _parent(process) == self.process.pid:
                variables = _read(process / "environ").split(b"\0")
                ranks = [int(text[5:]) for text in variables if text.startswith(b"RANK=")]
                if ranks:
                    found[ranks[0]] = int(process.name)
        self.seen |= set(found.values())
        return found

    def wait_for(self, moment: Callable[[], Any]) -> bool:
        """Wait until it is true; False when all was over before."""
        until = time.monotonic() + MOST_SECONDS
        while not moment():
            if self.process.poll() is not None:
                return False
            assert time.monotonic() < until, self.said()
            time.sleep(0.0005)
        return True

    def finish(self) -> int:
        """Its exit code; it and its workers are gone then."""
        self.workers()
        code = self.process.wait(MOST_SECONDS)
        self.wait_until_gone(self.seen)
        return code

    def wait_until_gone(self, workers: Iterable[int]) -> None:
        until = time.monotonic() + MOST_SECONDS
        while any(_lives(worker) for worker in workers):
            assert time.monotonic() < until, f"processes were left behind\n{self.said()}"
            time.sleep(0.01)

    def said(self) -> str:
        self.log.seek(0)
        return self.log.read().decode(errors="replace")

    def end(self) -> None:
        """Whatever is left of it."""
        self.workers()
        if self.process.poll() is None:
            self.process.kill()
        for worker in self.seen:
            if _lives(worker):
                os.kill(worker, 9)
        self.process.wait()
        self.log.close()


def progress(run: Path) -> int:
    """The last update that metrics.jsonl tells of; a line that is just being written does not count."""
    told = _read(run / "metrics.jsonl").split(b"\n")[:-1]
    return max((json.loads(line)["step"] for line in told if line.startswith(b'{"event": "train"')), default=0)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _parent(process: Path) -> int:
    fields = _read(process / "stat").rpartition(b") ")[2].split()
    return int(fields[1]) if fields and fields[0] != b"Z" else 0


def _lives(process: int) -> bool:
    state = _read(Path("/proc") / str(process) / "stat").rpartition(b") ")[2][:1]
    return state not in (b"", b"Z")
