"""The other end of a trial: starts the process, asks it one thing after another, and survives its death."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from jumok import recipe as recipes
from jumok.recipe import Recipe

STARTING = 900.0  # seconds: a large corpus is hashed once more


class Session:
    """`ask` gives the answer; `{"died": …}` when the process was ended (by the system, or by itself), `{"late": …}`
    when it did not answer in time. Then it is started again for the next question."""

    def __init__(
        self, recipe: Recipe, saved: Path | None, plugins: Sequence[Path] = (), memory: int | None = None
    ) -> None:
        self.first = {
            "recipe": recipes.dump(recipe),
            "saved": str(saved) if saved is not None else None,
            "plugins": [str(path) for path in plugins],
            "memory": memory,
        }
        self.process: subprocess.Popen[str] | None = None
        self.began: dict[str, Any] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def start(self) -> dict[str, Any]:
        """What the process says of itself: device, threads, precision; or `problem`."""
        self.errors = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        self.process = subprocess.Popen(
            [sys.executable, "-m", "jumok.training.doctor.trial"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            encoding="utf-8",
        )
        self.lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._listen, args=(self.process,), daemon=True).start()
        self.began = self._exchange(self.first, STARTING)
        return self.began

    def _listen(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def ask(self, within: float, /, **request: Any) -> dict[str, Any]:
        if self.process is None:
            began = self.start()
            if "problem" in began or "died" in began or "late" in began:
                return began
        return self._exchange(request, within)

    def _exchange(self, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        assert self.process is not None
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            line = self.lines.get(timeout=seconds)
        except (BrokenPipeError, OSError):
            line = None
        except queue.Empty:
            self.end()
            return {"late": seconds}
        if line is not None:
            answer: dict[str, Any] = json.loads(line)
            return answer
        code = self.process.wait()
        self.errors.seek(0)
        told = self.errors.read().strip().splitlines()
        self.end()
        return {"died": code, "told": told[-1] if told else ""}

    def end(self) -> None:
        if self.process is None:
            return
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except OSError:
                    continue
        self.errors.close()
        self.process = None
