"""Trying it out: the worst batch, a few updates and a validation, in a process of its own.

    python -m jumok.training.doctor.trial          one JSON object a line in, one out; the first says what to build

What does not fit must not take the machine down with it. So the process that tries is another one, it may take no more
than a share of the memory that is free (where the system can limit that), and the system may end it before any other.
"""

from __future__ import annotations

import contextlib
import json
import os
import runpy
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

import torch
import yaml

from jumok import recipe as recipes
from jumok.errors import Failure, JumokError
from jumok.recipe import Recipe
from jumok.tasks.build import build_task
from jumok.training.averaging import RunningAverage
from jumok.training.device import choose_device, repeatable
from jumok.training.doctor.worst import few_rows, worst_batch
from jumok.training.memory import available, forget_peak, limit_memory, peak_resident, resident
from jumok.training.meter import Meter
from jumok.training.optimizer import build_optimizer
from jumok.training.precision import Precision, choose_precision
from jumok.training.step import Step

SHARE = 0.8  # of the CPU's free memory may be tried: others live there too
COUNTED_ROWS = 4
WARM = 2  # updates that are not timed: memory is being claimed


class DidNotFit(Exception):
    """The batch would have had to be split."""


class Patient:
    """A run as training would begin it, on which things are tried."""

    def __init__(self, recipe: Recipe, saved: Path | None, device: torch.device) -> None:
        plain = recipe.training.model_copy(update={"compile": False, "graphs": False})
        self.recipe, self.device = recipe.model_copy(update={"training": plain}), device
        self.task = build_task(self.recipe, device, lambda message: None, saved)
        self.objective = self.task.objective.to(device)
        self.optimizer = build_optimizer(self.objective, plain)
        precision = Precision(choose_precision(plain.precision, device), device)
        self.step = Step(self.objective, self.optimizer, plain, recipe.seed, precision, _refuse)
        self.meter = Meter(self.objective, device, precision.dtype)
        self.average = RunningAverage(self.objective.model, plain.ema) if plain.ema else None  # it takes room

    def limit_memory(self, memory: int | None) -> tuple[int | None, bool]:
        """The most bytes that this process takes from now on: what was asked for, else (nearly) all that is free; and
        whether it cannot take more."""
        if self.device.type == "cuda":
            free, total = torch.cuda.mem_get_info(self.device)
            if memory is not None:
                torch.cuda.set_per_process_memory_fraction(min(1.0, memory / total))  # of the GPU in use
            return memory or free, True
        now, there = resident() or 0, available(self.device)
        limit = memory or (None if there is None else now + int(SHARE * there))
        return limit, limit is not None and limit_memory(max(0, limit - now))

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """`do`: count, try, time or validate."""
        kinds: dict[str, Callable[..., dict[str, Any]]] = {
            "count": self.count, "try": self.attempt, "time": self.time, "validate": self.validate,
        }  # fmt: skip
        try:
            return kinds[str(request.pop("do"))](**request)
        except (MemoryError, RuntimeError) as error:
            if not is_memory_trouble(error):
                raise
            return {"no_memory": str(error).partition("\n")[0]}

    def count(self) -> dict[str, Any]:
        """Bytes of the parameters, and of what a row of the worst batch keeps for its backward pass."""
        parameters = [parameter for parameter in self.objective.parameters() if parameter.requires_grad]
        weights = sum(parameter.nbytes for parameter in parameters)
        numbers = sum(parameter.numel() for parameter in parameters)
        self._prepare()
        state = (value for one in self.optimizer.state.values() for value in one.values())
        optimiser = sum(value.nbytes for value in state if value.dim())  # not the count of its steps
        libraries = 0 if self.device.type == "cuda" else (resident() or 0) - weights - optimiser
        worst = worst_batch(self.task, self.recipe.batch_size)
        batch = self.task.batches(0)[0] if worst is None else worst.batch
        some = [few_rows(batch, COUNTED_ROWS, after) for after in (0.0, 0.5, 1.0)]  # rows may differ in length
        activations, largest = map(max, zip(*(self._of_all(part, len(batch)) for part in some), strict=True))
        return {
            "parameters": numbers,
            "weights": weights,
            "gradients": weights,
            "optimiser": optimiser,
            "average": weights if self.recipe.training.ema else 0,
            "activations": activations,
            "working": largest,
            "libraries": max(0, libraries),
            "rows": len(batch),
            "tokens": _tokens(batch),
        }

    def _of_all(self, few: Any, rows: int) -> tuple[int, int]:
        """What `rows` such rows keep, and the largest piece of it: each adds as much as these do."""
        first = few_rows(few, 1)
        kept, largest = self._kept(first)
        if len(few) > len(first):
            times = (rows - len(first)) / (len(few) - len(first))
            more, larger = self._kept(few)
            kept, largest = kept + int((more - kept) * times), largest + int((larger - largest) * times)
        return kept, largest

    def _kept(self, batch: Any) -> tuple[int, int]:
        """Bytes that autograd keeps of a forward pass, parameters aside, and the largest piece of it."""
        own = {parameter.untyped_storage().data_ptr() for parameter in self.objective.parameters()}
        kept: dict[int, int] = {}

        def note(tensor: torch.Tensor) -> torch.Tensor:
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in own:
                kept[storage.data_ptr()] = storage.nbytes()
            return tensor

        self.objective.train()
        with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor), self.step.precision.context():
            loss = self.objective(batch.to(self.device))
        del loss
        return sum(kept.values()), max(kept.values(), default=0)

    def attempt(self, budget: int) -> dict[str, Any]:
        """One update on the worst batch that a batch of this size can be."""
        worst = worst_batch(self.task, budget)
        if worst is None:
            worst_one, whole = self.task.batches(0)[0], True
        else:
            worst_one, whole = worst.batch, worst.whole
        self._prepare()
        began = time.perf_counter()
        try:
            outcome = self.step([worst_one], 0, 0.0)
            finite = all(value == value and abs(value) < float("inf") for value in outcome.values().values())
            fits = True
        except (DidNotFit, MemoryError, RuntimeError, Failure) as error:
            if isinstance(error, RuntimeError) and not is_memory_trouble(error):
                raise
            fits = finite = False
        self._wait()
        seconds = time.perf_counter() - began
        self.optimizer.zero_grad(set_to_none=True)
        peak = torch.cuda.max_memory_allocated(self.device) if self.device.type == "cuda" else peak_resident()
        told = {"rows": len(worst_one), "tokens": _tokens(worst_one), "whole": whole}
        return {"fits": fits, "finite": finite, "peak": peak, "seconds": seconds, **told}

    def _prepare(self) -> None:
        """The optimiser's state is there, as it will be from the second update on; the peak is forgotten."""
        if not self.optimizer.state:
            self.step([few_rows(self.task.batches(0)[0], 1)], 0, 0.0)
            self.optimizer.zero_grad(set_to_none=True)
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats(self.device)
        forget_peak()

    def time(self, seconds: float) -> dict[str, Any]:
        """Updates as in training, for about so long; the first ones are not counted."""
        spent = preparing = 0.0
        work = tokens = updates = number = 0
        while spent < seconds or updates < 1:
            began = time.perf_counter()
            batches = self.task.batches(number)
            prepared = time.perf_counter()
            outcome = self.step(batches, number, 1e-5)
            outcome.values()
            self._wait()
            ended = time.perf_counter()
            number += 1
            if number > WARM or ended - began > seconds:
                spent, preparing = spent + ended - began, preparing + prepared - began
                work, tokens, updates = work + self.meter.work(batches), tokens + outcome.count, updates + 1
        mfu = self.meter.values(work, spent).get("mfu")
        told = {"tokens": tokens / updates, "mfu": mfu, "peak_flops": self.meter.peak}
        return {"update": spent / updates, "preparing": preparing / max(spent, 1e-9), "updates": updates, **told}

    def validate(self) -> dict[str, Any]:
        began = time.perf_counter()
        self.task.validate()
        return {"seconds": time.perf_counter() - began}

    def _wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


def _tokens(batch: Any) -> int:
    """What is read of a batch; a labelled one counts examples."""
    words = getattr(batch, "words", None)
    return int(batch.tokens if words is None else words.tokens)


def is_memory_trouble(error: Exception) -> bool:
    """Under a limit the libraries below PyTorch fail too, each in its own words."""
    words = ("memory", "bad_alloc", "could not create a primitive", "could not execute a primitive")
    return isinstance(error, MemoryError) or any(word in str(error).lower() for word in words)


def _refuse(message: str) -> None:
    """What a step says is that it splits the batch."""
    raise DidNotFit(message)


def main() -> None:
    """Answer requests until there are none."""
    # whatever a library prints must not get between the answers
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    first = json.loads(sys.stdin.readline())
    for plugin in first["plugins"]:
        runpy.run_path(plugin)
    try:
        recipe = recipes.check(yaml.safe_load(first["recipe"]), "recipe")
        device = choose_device(recipe.device)
        with repeatable(recipe.threads, device, recipe.exact) as threads:
            patient = Patient(recipe, Path(first["saved"]) if first["saved"] else None, device)
            dtype = str(patient.step.precision.dtype).removeprefix("torch.")
            limit, enforced = patient.limit_memory(first["memory"])
            known = {"device": device.type, "threads": threads, "precision": dtype}
            _tell(answers, **known, limit=limit, enforced=enforced)
            for line in sys.stdin:
                _tell(answers, **patient.answer(json.loads(line)))
    except JumokError as error:
        _tell(answers, problem=str(error))


def _tell(answers: TextIO, **values: Any) -> None:
    answers.write(json.dumps(values) + "\n")
    answers.flush()


if __name__ == "__main__":
    main()
