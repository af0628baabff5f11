"""ONE training loop for every task.

    for each update:  batches(update) → Step: objective → gradients / count → clip → AdamW → state

The position of a run is one number, the update. All randomness of an update comes from (seed, update, micro-batch), so
a run that was killed and resumed computes, to the bit, what the undisturbed one does.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from jumok.errors import Failure, JumokError
from jumok.recipe import Recipe
from jumok.tasks.objective import Task
from jumok.training import checkpoint, recovery
from jumok.training.ahead import Ahead
from jumok.training.averaging import RunningAverage, mean_weights
from jumok.training.distributed import Ranks
from jumok.training.events import Events, MetricsFile
from jumok.training.meter import Meter
from jumok.training.optimizer import build_optimizer, learning_rate
from jumok.training.pace import Pace
from jumok.training.precision import Precision, choose_precision
from jumok.training.run import RunFolder
from jumok.training.sharding import Sharded, make_whole, on_device
from jumok.training.state import TrainState
from jumok.training.step import Outcome, Step

WORST = -1.0  # the lowest that a score which is told as it is can be: a correlation's


class Interrupted(Failure):
    """Ctrl-C (or SIGTERM): everything is saved."""

    exit_code = 130


class Loop:
    def __init__(
        self,
        task: Task,
        recipe: Recipe,
        run: RunFolder,
        device: torch.device,
        state: TrainState,
        events: Events,
        ranks: Ranks | None = None,
    ) -> None:
        self.task, self.recipe, self.run, self.device = task, recipe, run, device
        self.training, self.ranks = recipe.training, ranks or Ranks()
        self.ranks.equalise(list(task.objective.state_dict().values()))
        shard = self.training.shard and not self.ranks.alone
        self.objective = Sharded(task.objective, device, self.ranks.world) if shard else task.objective.to(device)
        self.optimizer = build_optimizer(self.objective, self.training, getattr(recipe.model, "layers", 0))
        self.average = RunningAverage(self.objective.model, self.training.ema) if self.training.ema else None
        self.state, self.events = state, events
        precision = Precision(choose_precision(self.training.precision, device), device)
        say = self.ranks.voice(events.say)
        self.step = Step(self.objective, self.optimizer, self.training, recipe.seed, precision, say, self.ranks)
        self.meter = Meter(task.objective, device, precision.dtype, told=self.ranks.rank == 0)
        batches = self.ranks.dealt(task.batches, self.training.accumulate, shard)
        self.ahead = Ahead(batches, thread=device.type == "cuda")  # the CPU is free while a GPU computes
        self.under_way: deque[Outcome] = deque()
        self.late = 1 if device.type == "cuda" else 0  # updates whose values are not waited for

    def restore(self, folder: Path) -> TrainState:
        """Everything as it was when this checkpoint was written, but for the state, which is given back."""
        averaged = self.average.weights if self.average is not None else None
        state = checkpoint.load(folder, self.objective.model, self.optimizer, averaged, self.ranks)
        self.step.precision.restore(state.scale, state.scale_good)
        return state

    def go(self) -> TrainState:
        """Train until the plan is done, early stopping says so, or someone interrupts."""
        training = self.training
        self.metrics = next((sink for sink in self.events.sinks if isinstance(sink, MetricsFile)), None)
        self.pace = Pace(self.state)
        began = time.perf_counter() - self.state.seconds
        if self.state.update == 0 and self.state.minutes is not None:
            self._save()  # what was asked for must survive a kill before the first checkpoint
        with _interrupts(self.ranks), closing(self.ahead):
            while self.state.stopped is None:
                if reason := self._reason_to_stop():  # known already: all that is left is the average
                    self._average_checkpoints(reason)
                    break
                started = self.clock = time.perf_counter()
                computed = self._launch()
                state, stopping = self.state, self.ranks.stopping
                validate = state.update == state.total or state.update % training.validate_every == 0
                save = validate or state.update % training.checkpoint_every == 0 or stopping
                self._read(all_but=0 if save else self.late)
                if self.state is not state:
                    continue  # it went back to a checkpoint
                state.seconds = time.perf_counter() - began
                if (
                    state.total is None
                    and computed
                    and self.pace.measured(self.ranks.share(time.perf_counter() - started))
                ):
                    self._read()
                    self._fix_plan(began)
                    save = True
                is_best = validate and self._validate()
                if not training.average:
                    state.stopped = self._reason_to_stop()
                state.seconds = time.perf_counter() - began
                if save or state.stopped:
                    self._save(best=is_best)
                if stopping and state.stopped is None:
                    again = "jumok" if self.ranks.alone else "torchrun … -m jumok --"
                    raise self.ranks.told(
                        Interrupted(
                            f"stopped after update {state.update}; everything is saved. "
                            f"Go on with: {again} train --resume --run {self.run.path}"
                        )
                    )
        return self.state

    def _reason_to_stop(self) -> str | None:
        state, patience = self.state, self.training.patience
        if state.update == state.total:
            return f"all {state.total} updates are done"
        if patience and state.stale >= patience:
            return f"no progress in {state.stale} validation{'s' * (state.stale > 1)}"
        return None

    def _launch(self) -> bool:
        """Set the next update going, unless it is passed over."""
        state = self.state
        computed = state.update not in state.left_out
        if computed:
            rate = learning_rate(self.training, state.update, state.total, state.plateau_scale, self.recipe.model.width)
            outcome = self.step(self.ahead.at(state.update), state.update, rate)
            self.under_way.append(outcome)
            if self.average is not None:
                self.average.note(state.update)
            state.tokens += outcome.count
        state.update += 1
        return computed

    def _read(self, all_but: int = 0) -> None:
        """What the updates under way say of themselves, but for the newest `all_but`, which may still be computed."""
        while len(self.under_way) > all_but:
            outcome = self.under_way.popleft()
            values = outcome.values()
            loss = values["loss"] / max(1, outcome.count)
            if not recovery.is_number(values):
                self._leave_out(outcome, values)
                continue
            self._note({**values, "tokens": outcome.count, "flops": self.meter.work(outcome.batches)})
            self._log(outcome.update + 1, outcome.rate)
            if recovery.has_gone_astray(self.state, loss, outcome.update):
                self._go_back(outcome, loss)

    def _leave_out(self, outcome: Outcome, values: dict[str, float]) -> None:
        """Not a number: the weights are still those of the update before. Go on without these sentences, or stop."""
        state, training = self.state, self.training
        if self.step.precision.forgives():
            return  # float16 finds its scale this way; nothing is wrong
        state.recovered += 1
        where = "; ".join(self.ranks.each("; ".join(self.task.name_batch(batch) for batch in outcome.batches)))
        shown = ", ".join(
            f"{name} {value / (1 if name == 'gradient_norm' else outcome.count):g}" for name, value in values.items()
        )
        problem = f"update {outcome.update + 1} is not a number ({shown}) on {where}."
        if state.recovered <= training.skip_bad:
            self.events("recovered", outcome.update + 1, problem="not a number", count=state.recovered)
            self.events.say(f"{problem} It is left out ({state.recovered} of at most {training.skip_bad})")
            return
        if not self.under_way:  # nothing came after it: these are the weights from before it
            state.update, state.tokens = outcome.update, state.tokens - outcome.count
        self.under_way.clear()
        self._save()
        raise self._diverged(
            f"{problem} It has not touched the weights, which are saved (checkpoint of update {state.update}). Look at "
            "those lines, or start again"
        )

    def _go_back(self, outcome: Outcome, loss: float) -> None:
        """The loss stays far too large: the weights have gone astray. Back to a checkpoint, and round the place."""
        state, training = self.state, self.training
        problem = f"update {outcome.update + 1}: the loss is {loss:.3f}, after {state.loss_mean:.3f} on the average"
        if state.recovered >= training.skip_bad:
            kept = f"the checkpoint of update {self.run.pointed('last')} is kept"
            raise self._diverged(f"{problem}. The training has diverged; {kept}. Start again")
        state.recovered += 1
        count = f"{state.recovered} of at most {training.skip_bad}"
        found = checkpoint.go_back(self.run, state.high_since - recovery.BEFORE, self.ranks)
        if found is None:
            self.events("recovered", outcome.update + 1, problem="loss too large", count=state.recovered)
            state.loss_mean = None  # a new one is formed from here on
            self.events.say(f"{problem}. There is no checkpoint from before, so the run goes on ({count})")
            return
        self.under_way.clear()
        self.state = self.pace.state = recovery.go_round(state, self.restore(found), outcome.update)
        if self.ranks.first(lambda: checkpoint.lost_best(self.run, self.state)):
            self.state.best = self.state.best_update = None
        self.ranks.first(lambda: checkpoint.repair_pointers(self.run, self.state))
        if self.metrics is not None:
            self.metrics.cut(self.state.metrics_bytes)
        self.events("recovered", outcome.update + 1, problem="loss too large", count=state.recovered)
        passed = [update + 1 for update in self.state.left_out if update <= outcome.update]
        self.events.say(
            f"{problem}. Back to the checkpoint of update {self.state.update}; updates {passed[0]} to {passed[-1]} are "
            f"passed over ({count})"
        )

    def _diverged(self, problem: str) -> JumokError:
        rate, clip = self.training.learning_rate, self.training.clip
        advice = f"with a lower training.learning_rate (now {rate:g}) or training.clip (now {clip:g})."
        return self.ranks.told(Failure(f"{problem} {advice}"))

    def _note(self, values: dict[str, float]) -> None:
        """Add an update to the sums since the last line of progress. They are state: a kill must not lose them."""
        window = self.state.window
        for name, value in values.items():
            # the norm has no tokens of its own: weighted by them, dividing by their sum gives its mean
            weight = values["tokens"] if name == "gradient_norm" else 1
            window[name] = window.get(name, 0.0) + value * weight

    def _log(self, update: int, rate: float) -> None:
        window, now = self.state.window, time.perf_counter()
        window["seconds"] = window.get("seconds", 0.0) + now - self.clock
        self.clock = now
        if update % self.training.log_every == 0:
            tokens, spent, work = window.pop("tokens"), window.pop("seconds"), window.pop("flops", 0.0)
            means = {name: value / tokens for name, value in window.items()}
            machine = {"tokens_per_second": tokens / max(spent, 1e-9), **self.meter.values(work, spent)}
            self.events("train", update, **means, learning_rate=rate, **machine)
            window.clear()

    def _fix_plan(self, began: float) -> None:
        """`--minutes`: the speed is known now, so the number of updates is fixed, once, and stored."""
        validation_began = time.perf_counter()
        self._validation()
        now = time.perf_counter()
        elapsed, validation = self.ranks.share([now - began, now - validation_began])
        self.pace.fix(elapsed, validation, self.training)
        self.events("plan", self.state.update, updates=self.state.total, reason=self.pace.reason)

    def _validation(self) -> dict[str, float]:
        """The numbers of the validation set, or why there are none. The first process finds them, the others wait."""
        if isinstance(self.objective, Sharded):
            return self._validation_of_shards(self.objective)
        with self.average.applied() if self.average is not None else nullcontext():
            return self.ranks.first(self._measure)

    def _validation_of_shards(self, objective: Sharded) -> dict[str, float]:
        first, averaged = self.ranks.rank == 0, self.average
        with on_device(self.task.objective, self.device if first else torch.device("cpu")):
            shards = objective.model.named_parameters() if averaged is None else averaged.weights.items()
            make_whole(self.task.objective.model, shards, first)
            return self.ranks.first(self._measure)

    def _measure(self) -> dict[str, float]:
        try:
            values = self.task.validate()
            if math.isfinite(values["loss"]):
                return values
            problem = f"its loss is {values['loss']}"
        except Failure as error:  # the search meets the same numbers
            problem = str(error)
        raise self._diverged(
            f"the validation after update {self.state.update} is not a number: {problem}. The training has diverged; "
            f"the checkpoint of update {self.run.pointed('last')} is kept. Start again"
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
        """What decides which is the best: larger is better. A score that is not defined is the worst there is."""
        return -values["loss"] if self.training.metric == "loss" else values.get(self.training.metric, WORST)

    def _average_checkpoints(self, reason: str) -> None:
        """The mean of the last validated checkpoints, validated too: the best, unless it is worse than the best.

        It is one more step of the run, with a checkpoint of its own. So a kill before that is written leaves the
        checkpoint of the last update to resume from, and everything here is done again.
        """
        state = self.state
        self.objective, self.average = self.task.objective.to(self.device), None  # if it was split, it is whole now
        count = self.ranks.first(self._put_mean)
        values = self._validation()
        state.update += 1
        state.stopped = f"{reason}; the last {count} validated checkpoints are averaged"
        state.validated, state.averaged = [], count
        value = self._value(values)
        is_best = state.best is None or value >= state.best
        if is_best:
            state.best, state.best_update = value, state.update
        self.events("valid", state.update, **values, best=is_best, averaged=count)
        self._save(best=is_best)

    def _put_mean(self) -> int:
        """The mean of the validated checkpoints that are intact into the model; how many there are."""
        folders = []
        for update in self.state.validated:
            folder = self.run.checkpoints / f"step-{update}"
            if wrong := checkpoint.problem(folder):
                self.events.say(f"checkpoint {folder}: {wrong}; it is left out of the average")
            else:
                folders.append(folder)
        if not folders:
            raise Failure(f"none of the checkpoints to be averaged in {self.run.checkpoints} is intact")
        checkpoint.load_weights(self.objective.model, mean_weights(folders), str(self.run.checkpoints))
        return len(folders)

    def _save(self, best: bool = False) -> None:
        self.state.metrics_bytes = self.metrics.bytes if self.metrics is not None else 0
        self.state.scale, self.state.scale_good = self.step.precision.state()
        model, averaged = self.objective.model, self.average.weights if self.average is not None else None
        checkpoint.save(self.run, model, self.optimizer, self.state, self.training.keep, best, averaged, self.ranks)


@contextmanager
def _interrupts(ranks: Ranks) -> Iterator[None]:
    """The first Ctrl-C or SIGTERM asks for a clean stop after the current update; the second is immediate.

    Not so for one of several processes: torchrun passes on what it is sent, and what it was sent may have reached us
    already. It kills who does not end in time by itself.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # signals belong to the main thread; a notebook's worker just trains
        return

    def ask(number: int, frame: FrameType | None) -> None:
        ranks.asked.set()
        if ranks.alone:
            signal.signal(number, previous[number])

    previous: dict[int, Any] = {}
    for stop in (signal.SIGINT, signal.SIGTERM):
        previous[stop] = signal.signal(stop, ask)
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
