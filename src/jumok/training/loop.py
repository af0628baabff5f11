"""ONE training loop for every task.

    for each update:  batches(update) → objective → gradients / count → clip → AdamW → state

The position of a run is one number, the update. All randomness of an update comes from (seed, update, micro-batch), so
a run that was killed and resumed computes, to the bit, what the undisturbed one does.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from jumok.errors import Failure
from jumok.recipe import Recipe
from jumok.tasks.objective import Task
from jumok.training import checkpoint
from jumok.training.averaging import RunningAverage, mean_weights
from jumok.training.device import seed_for
from jumok.training.events import Events, MetricsFile
from jumok.training.optimizer import build_optimizer, learning_rate
from jumok.training.pace import Pace
from jumok.training.run import RunFolder
from jumok.training.state import TrainState


class Interrupted(Failure):
    """Ctrl-C (or SIGTERM): everything is saved."""

    exit_code = 130


class Loop:
    def __init__(
        self, task: Task, recipe: Recipe, run: RunFolder, device: torch.device, state: TrainState, events: Events
    ) -> None:
        self.task, self.recipe, self.run, self.device = task, recipe, run, device
        self.training = recipe.training
        self.objective = task.objective.to(device)
        self.optimizer = build_optimizer(self.objective, self.training)
        self.average = RunningAverage(self.objective.model, self.training.ema) if self.training.ema else None
        self.state, self.events = state, events
        self.looks_ahead = device.type == "cuda"  # the CPU is free while a GPU computes
        self._prepared: list[Any] | None = None

    def restore(self, folder: Path) -> TrainState:
        """Everything as it was when this checkpoint was written, but for the state, which is given back."""
        averaged = self.average.weights if self.average is not None else None
        return checkpoint.load(folder, self.objective.model, self.optimizer, averaged)

    def go(self) -> TrainState:
        """Train until the plan is done, early stopping says so, or someone interrupts."""
        state, training = self.state, self.training
        self.metrics = next(sink for sink in self.events.sinks if isinstance(sink, MetricsFile))
        self.pace = Pace(state)
        began = time.perf_counter() - state.seconds
        if state.update == 0 and state.minutes is not None:
            self._save()  # what was asked for must survive a kill before the first checkpoint
        with _interrupts() as interrupted:
            while state.stopped is None:
                if reason := self._reason_to_stop():  # known already: all that is left is the average
                    self._average_checkpoints(reason)
                    break
                started = time.perf_counter()
                self._note(self._update())
                seconds = time.perf_counter() - started
                self._log(seconds)
                state.seconds = time.perf_counter() - began
                save = state.update % training.checkpoint_every == 0 or interrupted.is_set()
                if self.pace.measured(seconds):
                    self._fix_plan(began)
                    save = True
                is_best = False
                if state.update == state.total or state.update % training.validate_every == 0:
                    is_best = self._validate()
                    save = True
                if not training.average:
                    state.stopped = self._reason_to_stop()
                state.seconds = time.perf_counter() - began
                if save or state.stopped:
                    self._save(best=is_best)
                if interrupted.is_set() and state.stopped is None:
                    raise Interrupted(
                        f"stopped after update {state.update}; everything is saved. "
                        f"Go on with: jumok train --resume --run {self.run.path}"
                    )
        return state

    def _reason_to_stop(self) -> str | None:
        state, patience = self.state, self.training.patience
        if state.update == state.total:
            return f"all {state.total} updates are done"
        if patience and state.stale >= patience:
            return f"no progress in {state.stale} validation{'s' * (state.stale > 1)}"
        return None

    def _update(self) -> dict[str, float]:
        """One update: θ ← AdamW(θ, clip(∇ Σ loss / count))."""
        state, training = self.state, self.training
        batches, self._prepared = self._prepared or self.task.batches(state.update), None
        count = sum(batch.tokens for batch in batches)
        sums: dict[str, torch.Tensor] = {}
        self.objective.train()
        self.optimizer.zero_grad(set_to_none=True)
        for micro, batch in enumerate(batches):
            torch.manual_seed(seed_for(self.recipe.seed, state.update, micro))
            loss = self.objective(batch.to(self.device))
            (loss.sum / count).backward()
            for name, value in {"loss": loss.sum, **loss.parts}.items():
                sums[name] = sums.get(name, torch.zeros((), device=self.device)) + value.detach()
        norm = torch.nn.utils.clip_grad_norm_(self.objective.parameters(), training.clip or math.inf)
        names, numbers = [*sums, "gradient_norm"], torch.stack([*sums.values(), norm.float()])
        if self.looks_ahead:  # all is launched and being computed; only the next line waits for it
            self._prepared = self.task.batches(state.update + 1)
        values = dict(zip(names, numbers.tolist(), strict=True))
        if not all(math.isfinite(value) for value in values.values()):
            self._stop_at_nan(batches, values, count)
        rate = learning_rate(training, state.update, state.total, state.plateau_scale, self.recipe.model.width)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()
        if self.average is not None:
            self.average.note(state.update)
        state.update += 1
        state.tokens += count
        return {**values, "tokens": count}

    def _stop_at_nan(self, batches: list[Any], values: dict[str, float], count: int) -> None:
        """The weights are still those of the last good update: keep them, say where it happened, stop."""
        self._save()
        where = "; ".join(self.task.name_batch(batch) for batch in batches)
        shown = ", ".join(
            f"{name} {value / (1 if name == 'gradient_norm' else count):g}" for name, value in values.items()
        )
        raise Failure(
            f"update {self.state.update + 1} is not a number ({shown}) on {where}. "
            f"The state before it is saved (checkpoint of update {self.state.update}). Look at those lines, or start "
            f"again with a lower training.learning_rate (now {self.training.learning_rate:g}) or training.clip "
            f"(now {self.training.clip:g})."
        )

    def _note(self, values: dict[str, float]) -> None:
        """Add an update to the sums since the last line of progress. They are state: a kill must not lose them."""
        window = self.state.window
        for name, value in values.items():
            # the norm has no tokens of its own: weighted by them, dividing by their sum gives its mean
            weight = values["tokens"] if name == "gradient_norm" else 1
            window[name] = window.get(name, 0.0) + value * weight

    def _log(self, seconds: float) -> None:
        window = self.state.window
        window["seconds"] = window.get("seconds", 0.0) + seconds
        if self.state.update % self.training.log_every == 0:
            tokens, spent = window.pop("tokens"), window.pop("seconds")
            means = {name: value / tokens for name, value in window.items()}
            rate = self.optimizer.param_groups[0]["lr"]
            speed = tokens / max(spent, 1e-9)
            self.events("train", self.state.update, **means, learning_rate=rate, tokens_per_second=speed)
            window.clear()

    def _fix_plan(self, began: float) -> None:
        """`--minutes`: the speed is known now, so the number of updates is fixed, once, and stored."""
        validation_began = time.perf_counter()
        self._validation()
        validation = time.perf_counter() - validation_began
        self.pace.fix(time.perf_counter() - began, validation, self.training)
        self.events("plan", self.state.update, updates=self.state.total, reason=self.pace.reason)

    def _validation(self) -> dict[str, float]:
        """The numbers of the validation set, or why there are none."""
        try:
            with self.average.applied() if self.average is not None else nullcontext():
                values = self.task.validate()
            if math.isfinite(values["loss"]):
                return values
            problem = f"its loss is {values['loss']}"
        except Failure as error:  # the search meets the same numbers
            problem = str(error)
        rate, clip = self.training.learning_rate, self.training.clip
        raise Failure(
            f"the validation after update {self.state.update} is not a number: {problem}. The training has diverged; "
            f"the checkpoint of update {self.run.pointed('last')} is kept. Start again with a lower "
            f"training.learning_rate (now {rate:g}) or training.clip (now {clip:g})."
        )

    def _validate(self) -> bool:
        """Measure on the validation set; True when this is the best so far."""
        state, training = self.state, self.training
        values = self._validation()
        is_best = state.note_validation(self._value(values), training.plateau_patience, training.plateau_factor)
        state.validated = [*state.validated, state.update][-training.average :] if training.average else []
        self.events("valid", state.update, **values, best=is_best)
        return is_best

    def _value(self, values: dict[str, float]) -> float:
        """What decides which is the best: larger is better."""
        return -values["loss"] if self.training.metric == "loss" else values[self.training.metric]

    def _average_checkpoints(self, reason: str) -> None:
        """The mean of the last validated checkpoints, validated too: the best, unless it is worse than the best.

        It is one more step of the run, with a checkpoint of its own. So a kill before that is written leaves the
        checkpoint of the last update to resume from, and everything here is done again.
        """
        state = self.state
        folders = []
        for update in state.validated:
            folder = self.run.checkpoints / f"step-{update}"
            if wrong := checkpoint.problem(folder):
                self.events.say(f"checkpoint {folder}: {wrong}; it is left out of the average")
            else:
                folders.append(folder)
        if not folders:
            raise Failure(f"none of the checkpoints to be averaged in {self.run.checkpoints} is intact")
        checkpoint.load_weights(self.objective.model, mean_weights(folders), str(self.run.checkpoints))
        self.average = None
        values = self._validation()
        state.update += 1
        state.stopped = f"{reason}; the last {len(folders)} validated checkpoints are averaged"
        state.validated, state.averaged = [], len(folders)
        value = self._value(values)
        is_best = state.best is None or value >= state.best
        if is_best:
            state.best, state.best_update = value, state.update
        self.events("valid", state.update, **values, best=is_best, averaged=len(folders))
        self._save(best=is_best)

    def _save(self, best: bool = False) -> None:
        self.state.metrics_bytes = self.metrics.bytes
        model, averaged = self.objective.model, self.average.weights if self.average is not None else None
        checkpoint.save(self.run, model, self.optimizer, self.state, self.training.keep, best, averaged)


@contextmanager
def _interrupts() -> Iterator[threading.Event]:
    """The first Ctrl-C or SIGTERM asks for a clean stop after the current update; the second is immediate."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked  # signals belong to the main thread; a notebook's worker just trains
        return

    def ask(number: int, frame: FrameType | None) -> None:
        asked.set()
        signal.signal(number, previous[number])

    previous: dict[int, Any] = {}
    for stop in (signal.SIGINT, signal.SIGTERM):
        previous[stop] = signal.signal(stop, ask)
    try:
        yield asked
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
