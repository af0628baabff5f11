"""Measuring, each seed of each experiment in a process of its own with one thread.

A process that crashes takes nothing else with it, memory is measured from a clean start, and a number does not depend
on what ran before it. Interrupted, all processes end; and should this one be killed, the others notice and end too.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from jumok.lab.catalogue import load
from jumok.lab.experiment import Numbers


@dataclass(frozen=True)
class Task:
    module: str
    seed: int
    effort: float


@dataclass(frozen=True)
class Measured:
    task: Task
    numbers: Numbers
    seconds: float  # of one thread's work


@dataclass(frozen=True)
class Broken:
    task: Task
    problem: str  # one line
    details: str = ""  # where it happened


def measure_all(tasks: Sequence[Task], jobs: int) -> Iterator[Measured | Broken]:
    """Each outcome as soon as it is there; at most `jobs` processes at a time."""
    waiting = list(reversed(tasks))
    running: dict[Any, tuple[Task, BaseProcess]] = {}  # by the end of a pipe, whose class is the system's affair
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                task = waiting.pop()
                end, process = _start(task)
                running[end] = task, process
            for ready in wait(list(running)):
                yield _collect(ready, *running.pop(ready))
    finally:
        for _, process in running.values():
            process.terminate()
        for _, process in running.values():
            process.join(5)
            if process.is_alive():
                process.kill()


def _start(task: Task) -> tuple[Connection, BaseProcess]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_in_process, args=(task, theirs), daemon=True)
    with _ctrl_c_is_for_us():
        process.start()
    theirs.close()  # else the pipe would not tell us when the process ends
    return ours, process


@contextlib.contextmanager
def _ctrl_c_is_for_us() -> Iterator[None]:
    """A terminal sends Ctrl-C to all processes; one that is started while it is held back never gets it, and we get it
    afterwards."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _collect(end: Any, task: Task, process: BaseProcess) -> Measured | Broken:
    try:
        fine, first, second = end.recv()
    except (EOFError, OSError):
        process.join()
        return Broken(task, f"its process ended with exit code {process.exitcode} and no result")
    finally:
        end.close()
    process.join()
    return Measured(task, json.loads(first), second) if fine else Broken(task, first, second)


# ---------------------------------------------------------------- in the process


def _in_process(task: Task, end: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"  # read when the libraries are loaded, which happens after this
    try:
        experiment = load(task.module)
        begun = time.process_time()
        numbers = experiment.measure(task.seed, task.effort)
        seconds = time.process_time() - begun
        # as text: what is judged now is what will be read from the file later
        end.send((True, json.dumps(numbers, allow_nan=False), seconds))
    except BaseException as error:
        lines = str(error).strip().splitlines()
        problem = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
        end.send((False, problem, traceback.format_exc()))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
