"""Training the attempts: one after the other in this process, or several side by side in processes of their own.

A run that is complete is not touched, one that was stopped goes on where it was: `jumok train --resume` does both.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from jumok.ladder.folder import LadderFolder, is_done
from jumok.ladder.plan import Attempt, Budget
from jumok.ladder.progress import Progress
from jumok.training.comparison import is_running
from jumok.training.run import RunFolder

Say = Callable[[str], None]
POLL = 0.3  # seconds between two looks at the processes
TELL = 2.0  # seconds between two looks at what they write
PATIENCE = 60.0  # seconds in which a process that was asked to stop should have saved
LOG = "train.log"
LAST_LINES = 12


def minutes_for(run: RunFolder, budget: Budget) -> float | None:
    """The time is told once: what it came to in updates is part of the run from then on."""
    return budget.minutes if run.pointed("last") is None else None


def train_here(folder: LadderFolder, attempt: Attempt, budget: Budget, say: Say) -> None:
    """One attempt in this process, with its own progress."""
    from jumok import api

    run = folder.prepare_run(attempt)
    waiting = False
    while is_running(run):  # of a ladder that was killed while several trained side by side
        if not waiting:
            say(f"{attempt}: another process is training in {run.path}; waiting for it")
        waiting = True
        time.sleep(POLL)
    if not is_done(run):
        api.train(None, run.path, resume=True, minutes=minutes_for(run, budget))


def train_side_by_side(
    folder: LadderFolder,
    attempts: Sequence[Attempt],
    budget: Budget,
    jobs: int,
    progress: Progress,
    plugins: Sequence[Path] = (),
) -> dict[str, str]:
    """All attempts, at most `jobs` at a time; for each that failed, what its process said at the end."""
    waiting = folder.left(attempts)
    running: dict[str, tuple[Attempt, subprocess.Popen[bytes]]] = {}
    failed: dict[str, str] = {}
    looked = 0.0
    with _asked_to_stop():
        try:
            while waiting or running:
                for attempt in list(waiting):
                    run = folder.prepare_run(attempt)
                    if len(running) < jobs and not is_running(run):
                        running[attempt.name] = attempt, _start(run, budget, jobs, plugins)
                        waiting.remove(attempt)
                        progress.begin(attempt.name, str(attempt))
                time.sleep(POLL)
                looking = time.monotonic() - looked >= TELL
                looked = time.monotonic() if looking else looked
                for name, (attempt, process) in list(running.items()):
                    run, code = folder.run(attempt), process.poll()
                    if looking or code is not None:
                        progress.tell(name, *how_far(run, budget))
                    if code is not None:
                        del running[name]
                        if code:
                            failed[str(attempt)] = _last_words(run)
                        progress.end(name, "failed" if code else "trained")
        except BaseException:
            _stop(process for _, process in running.values())
            raise
    return failed


def _start(run: RunFolder, budget: Budget, jobs: int, plugins: Sequence[Path]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "jumok", *(word for path in plugins for word in ("--plugin", str(path)))]
    command += ["train", "--resume", "--run", str(run.path)]
    minutes = minutes_for(run, budget)
    command += [] if minutes is None else ["--minutes", str(minutes)]
    # without it every process would take all cores, and they would wait for each other
    threads = str(max(1, (os.cpu_count() or 1) // jobs))
    environment = {"OMP_NUM_THREADS": threads, **os.environ, "NO_COLOR": "1"}
    with (run.path / LOG).open("ab") as log:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)


def _stop(processes: Iterator[subprocess.Popen[bytes]]) -> None:
    """Let each save what it has; whoever does not end is ended. Either way it can go on later."""
    asked = list(processes)
    for process in asked:
        process.terminate()
    for process in asked:
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def _asked_to_stop() -> Iterator[None]:
    """SIGTERM is treated as Ctrl-C is: the processes that train are stopped too."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _last_words(run: RunFolder) -> str:
    log = run.path / LOG
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.is_file() else []
    said = [place for place, line in enumerate(lines) if line.startswith("jumok: ")]
    return "\n".join(lines[said[-1] :] if said else lines[-LAST_LINES:]).removeprefix("jumok: ")


def how_far(run: RunFolder, budget: Budget) -> tuple[int, int | None, str]:
    """Updates done, updates planned (None while the speed is still measured), and how well it does."""
    done, total, about = 0, budget.updates, ""
    for event in run.events():
        done = max(done, int(event.get("step") or 0))
        if event.get("event") == "plan":
            total = int(event["updates"])
        elif event.get("event") == "train" and event.get("loss") is not None:
            about = f"loss {event['loss']:.3f}  {event.get('tokens_per_second', 0):,.0f} tokens/s"
        elif event.get("event") == "valid" and event.get("bleu") is not None:
            about = f"valid BLEU {event['bleu']:.2f}"
    return done, total, about
