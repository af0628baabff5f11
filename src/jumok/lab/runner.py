"""Runs experiments over seeds: measures side by side, keeps each seed's numbers as they come, judges, draws.

What is in the folder is whole at every moment: a run that was killed goes on with the seeds that are missing, and until
it is complete the result from before stands.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from filelock import FileLock, Timeout

from jumok.errors import BadInput
from jumok.files import check_folder_place, disk_errors_named, replace_file
from jumok.lab.catalogue import load, name_of
from jumok.lab.experiment import Experiment, Numbers, Verdict
from jumok.lab.report import Shown, drawn, shown, write_lab_page
from jumok.lab.results import Result, Seed, result_file, started, write_result
from jumok.lab.work import Broken, Task, measure_all


@dataclass(frozen=True)
class Progress:
    """One seed has been measured, or was there already."""

    done: int
    of: int
    name: str
    seed: int
    seconds: float


@dataclass(frozen=True)
class Finished:
    """An experiment with all its seeds, judged and drawn."""

    experiment: Experiment
    result: Result
    picture: Path


@dataclass(frozen=True)
class Failed:
    """An experiment (or one seed of it) that went wrong; the others go on."""

    name: str
    seed: int | None
    problem: str
    details: str


Event = Progress | Finished | Failed


def run_lab(
    modules: Sequence[str], seeds: int, folder: Path, jobs: int | None = None, effort: float = 1.0, again: bool = True
) -> Iterator[Event]:
    """Experiments with seeds 1 … `seeds`, `jobs` at a time (default: one for each core). Each leaves NAME.json and
    NAME.png in the folder, and all that is there together lab.html. Not `again`: seeds that were measured before, with
    the same code, are not measured anew. More seeds than are wanted stay where they are, and are not judged."""
    with _locked(folder):
        sitting = _Sitting(folder, range(1, seeds + 1))
        results: dict[str, Result] = {}
        tasks: list[Task] = []
        for module in modules:
            try:
                load(module)
            except Exception as error:
                yield _failed(name_of(module), error)
                continue
            results[module] = started(folder, module, sitting.wanted, effort, again)
            tasks += [Task(module, seed, effort) for seed in sitting.wanted if not results[module].has(seed)]
        of = len(results) * seeds
        done = of - len(tasks)
        for module, result in results.items():
            if sitting.complete(result):
                yield sitting.finish(load(module), result)
        for outcome in measure_all(tasks, jobs or cores()):
            task, result = outcome.task, results[outcome.task.module]
            if isinstance(outcome, Broken):
                yield Failed(result.name, task.seed, outcome.problem, outcome.details)
                continue
            result.add(Seed(task.seed, round(outcome.seconds, 2), outcome.numbers))
            sitting.keep(load(task.module), result)
            done += 1
            yield Progress(done, of, result.name, task.seed, outcome.seconds)
            if sitting.complete(result):
                yield sitting.finish(load(task.module), result)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One lab at a time in a folder, and one that can be written to: else it would be known after the first seed. The
    system frees the lock when its holder dies."""
    check_folder_place(folder)
    lock = FileLock(folder / ".lock", timeout=0)
    try:
        with disk_errors_named("making the lab's folder", folder, "Choose another --out."):
            folder.mkdir(parents=True, exist_ok=True)
            lock.acquire()
    except Timeout:
        raise BadInput(f"another lab is going on in {folder}: wait for it, or choose another --out") from None
    try:
        yield
    finally:
        lock.release()


class _Sitting:
    """One call of `run_lab`: its seeds, where its results go, and the page about all that is in the folder."""

    def __init__(self, folder: Path, wanted: Sequence[int]) -> None:
        self.folder = folder
        self.wanted = wanted
        self.shown: list[Shown] | None = None  # read at the first need

    def complete(self, result: Result) -> bool:
        return all(result.has(seed) for seed in self.wanted)

    def keep(self, experiment: Experiment, result: Result) -> None:
        """Beside the result from before, which stands until this one is complete."""
        with disk_errors_named("keeping the numbers", self.folder, "Choose another --out."):
            write_result(self.folder, result, experiment, partial=True)

    def finish(self, experiment: Experiment, result: Result) -> Finished | Failed:
        result.judged = list(self.wanted)
        try:
            result.verdicts = judged(experiment, result.numbers)
            pictures = drawn(experiment, result.numbers)
        except Exception as error:
            return _failed(result.name, error)
        picture = self.folder / f"{result.name}.png"
        if self.shown is None:
            self.shown = shown(self.folder)
        others = [each for each in self.shown if each.result.name != result.name]
        self.shown = sorted([*others, Shown(experiment, result, *pictures)], key=lambda each: each.experiment.number)
        with disk_errors_named("keeping the result", self.folder, "Choose another --out."):
            write_result(self.folder, result, experiment)
            result_file(self.folder, result.name, partial=True).unlink(missing_ok=True)
            replace_file(picture, pictures[0])
            write_lab_page(self.folder / "lab.html", self.shown)
        return Finished(experiment, result, picture)


def judged(experiment: Experiment, numbers: Sequence[Numbers]) -> list[Verdict]:
    """Verdicts on all seeds together, each with what it would be with one seed alone."""
    verdicts = experiment.judge(numbers)
    if len(numbers) == 1:
        return verdicts
    alone = zip(*(experiment.judge([each]) for each in numbers), strict=True)
    return [
        replace(verdict, alone=tuple(one.holds for one in same)) for verdict, same in zip(verdicts, alone, strict=True)
    ]


def _failed(name: str, error: Exception) -> Failed:
    lines = str(error).strip().splitlines()
    return Failed(name, None, f"{type(error).__name__}: {lines[0] if lines else ''}", traceback.format_exc())


def cores() -> int:
    usable = getattr(os, "sched_getaffinity", None)
    return len(usable(0)) if usable is not None else os.cpu_count() or 1
