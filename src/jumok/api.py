"""What a user types in a notebook: `load()`, `train()`, and the object they give."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from importlib import resources
from pathlib import Path
from typing import Any

import torch

from jumok import recipe as recipes
from jumok.errors import BadInput, Failure
from jumok.files import disk_errors_named
from jumok.recipe import Recipe
from jumok.tasks.objective import Keeps, Task
from jumok.tasks.vocabulary import save_tokenizers
from jumok.trained import (
    LOADERS,
    REPORTS,
    TrainedAnswerer,
    TrainedClassifier,
    TrainedFiller,
    TrainedForecaster,
    TrainedImageClassifier,
    TrainedLanguageModel,
    TrainedReader,
    TrainedTagger,
    TrainedTextReader,
    TrainedTranslator,
)
from jumok.training import checkpoint, meeting
from jumok.training.building import build_together, check
from jumok.training.device import choose_device, repeatable
from jumok.training.distributed import Ranks
from jumok.training.events import ConsoleProgress, Events, MetricsFile, Sink, TensorBoard, WeightsAndBiases
from jumok.training.loop import Loop
from jumok.training.resuming import recipe_to_train, restored
from jumok.training.run import RunFolder
from jumok.training.starting import put_weights, refuse_named
from jumok.training.state import TrainState

__all__ = [
    "TrainedAnswerer", "TrainedClassifier", "TrainedFiller", "TrainedForecaster", "TrainedImageClassifier",
    "TrainedLanguageModel", "TrainedReader", "TrainedTagger", "TrainedTextReader", "TrainedTranslator", "load",
    "train", "warn",
]  # fmt: skip

Say = Callable[[str], None]
COMMANDS = {  # what can be done with a run, by its task; with all others: predict
    "translation": ("translate", "attend"),
    "language": ("generate",),
    "forecasting": ("forecast",),
    "pretraining": ("fill", "embed"),
    "vision": ("predict", "look"),
    "recognition": ("read", "attend"),
}


def warn(message: str) -> None:
    print(message, file=sys.stderr)


def load(folder: str | Path | None = None, device: str = "auto", say: Say = warn) -> Any:
    """A trained run: the best checkpoint, or the newest good one. Without a folder, the run in the package.

    What it gives follows from the run's task: a translation run gives a `TrainedTranslator`, a language model a
    `TrainedLanguageModel`, a forecaster a `TrainedForecaster`; runs that read texts a `TrainedFiller` (pretraining), a
    `TrainedClassifier`, a `TrainedTagger` or a `TrainedAnswerer`.
    """
    run = RunFolder.open(packaged_run() if folder is None else Path(folder))
    recipe = run.recipe()
    return LOADERS[recipe.task](run, recipe, choose_device(device), say)


def task_of(folder: str | Path) -> str:
    """What a run has learned, before anything of it is loaded."""
    return RunFolder.open(Path(folder)).recipe().task


def other_task(task: str, folder: str | Path) -> str:
    """What a run has learned that is not what is asked for, and which commands are for it."""
    commands = " or ".join(f"jumok {command} --run {folder}" for command in COMMANDS.get(task, ("predict",)))
    return f"{task}. For that there is: {commands}"


def require_translation(folder: str | Path) -> None:
    """Refuse a run of another task, before anything of it is loaded."""
    if (task := task_of(folder)) != "translation":
        raise BadInput(f"{folder} is not a translation run but one of task: {other_task(task, folder)}")


def load_translator(
    folder: str | Path | Sequence[str | Path] | None = None,
    device: str = "auto",
    say: Say = warn,
    precision: str = "float32",
) -> TrainedTranslator:
    """As `load`, for who needs a translator; a run of another task is refused in words.

    Several folders give an ensemble: one translator that averages the probabilities of all of them.
    """
    folders = list(folder) if isinstance(folder, Sequence) and not isinstance(folder, str) else [folder]
    for one in folders:
        if one is not None:
            require_translation(one)
    models = [load(one, device, say) for one in folders or [None]]
    for one, model in zip(folders, models, strict=False):
        for side in ("source", "target"):
            if getattr(model, side).fingerprint != getattr(models[0], side).fingerprint:
                raise BadInput(
                    f"{folders[0]} and {one} have different {side} vocabularies, so they cannot translate together: "
                    "train them with the same tokenizer (tokenizer.source, tokenizer.target)"
                )
    first: TrainedTranslator = models[0]
    return first.together(models[1:], precision)


def load_language_model(folder: str | Path, device: str = "auto", say: Say = warn) -> TrainedLanguageModel:
    """As `load`, for who needs a language model."""
    model = load(folder, device, say)
    if not isinstance(model, TrainedLanguageModel):
        raise BadInput(f"{folder} is not a language model but a run of task: {other_task(model.recipe.task, folder)}")
    return model


def load_forecaster(folder: str | Path, device: str = "auto", say: Say = warn) -> TrainedForecaster:
    """As `load`, for who needs a forecaster."""
    model = load(folder, device, say)
    if not isinstance(model, TrainedForecaster):
        raise BadInput(f"{folder} is not a forecaster but a run of task: {other_task(model.recipe.task, folder)}")
    return model


def packaged_run() -> Path:
    """The small trained run that the package carries (English→French, the embedded grammar)."""
    path = Path(str(resources.files("jumok") / "pretrained" / "en-fr"))
    if not path.is_dir():
        raise Failure("this installation carries no trained run: give one with --run DIR")
    return path


def train(
    recipe: Recipe | str | None,
    run: str | Path,
    overrides: Sequence[str] = (),
    *,
    resume: bool = False,
    minutes: float | None = None,
    sinks: Sequence[Sink] = (),
    quiet: bool = False,
    report: bool = True,
) -> Any:
    """Train a recipe (or its name, with `key=value` overrides) into a run folder, or go on with one; then load it.

    Processes that torchrun has started train together: the first of them gets the model, the others None.
    """
    if minutes is not None and not 0 < minutes < math.inf:
        raise BadInput(f"--minutes {minutes:g}: give a time above zero")
    given = recipes.read(recipe, overrides) if isinstance(recipe, str) else recipe
    if isinstance(recipe, str) and given is not None:
        refuse_named(given, overrides)
    folder = RunFolder(Path(run))
    with meeting.joined() as ranks, ExitStack() as held:
        say = ranks.quiet((lambda message: None) if quiet else warn)
        ranks.same(recipe=given and given.model_dump(mode="json"), command=[resume, minutes])
        resume = resume or ranks.first(lambda: meeting.goes_on(folder.path, say))
        chosen = ranks.recipe(lambda: recipe_to_train(given, folder, resume))
        device = choose_device(chosen.device)
        meeting.check_devices(device)
        check(chosen, device, ranks, resume, say)
        threads = held.enter_context(repeatable(chosen.threads, device, chosen.exact))
        saved = folder.tokenizer if resume and folder.tokenizer.is_dir() else None
        task = build_together(chosen, device, say, saved, ranks)
        if chosen.start is not None and not resume:  # what cannot be started from is told before anything is written
            put_weights(task.objective.model, chosen.start)
        fresh = TrainState(
            total=None if minutes else chosen.training.updates,
            minutes=minutes,
            threads=threads,
            world=ranks.world,
            data=task.data_keys,
            device=device.type,
        )

        def begin() -> None:
            """Only now, when the data has been read and found good, does the run come into being."""
            held.enter_context(folder.locked(0 if ranks.alone else meeting.LINGERING))
            if not resume:
                RunFolder.create(folder.path, chosen)
                meeting.note_launch(folder.path)
            if saved is None and task.tokenizers:
                with disk_errors_named("saving the tokenizers", folder.path, "Free some space and start again."):
                    save_tokenizers(folder.tokenizer, dict(task.tokenizers))
            if isinstance(task, Keeps):
                task.keep(folder.path)

        ranks.first(begin)
        _run(task, chosen, folder, fresh, device, resume, sinks, say, quiet, ranks)
        if ranks.rank:
            return None
        model = load(folder.path, device.type, say)
        if report and not folder.report.exists():
            REPORTS[chosen.task](model, chosen, folder, task)
    return model


def _run(
    task: Task,
    recipe: Recipe,
    folder: RunFolder,
    fresh: TrainState,
    device: torch.device,
    resume: bool,
    sinks: Sequence[Sink],
    say: Say,
    quiet: bool,
    ranks: Ranks,
) -> None:
    """The training itself, from the newest good checkpoint or from the start. One process writes and tells."""
    with Events([]) as events:
        found = checkpoint.newest_good(folder, say, ranks=ranks) if resume else None
        if resume and found is None and recipe.start is not None:  # it was killed before its first checkpoint
            put_weights(task.objective.model, recipe.start)
        loop = Loop(task, recipe, folder, device, fresh, events, ranks)
        if found is not None:
            loop.state = restored(loop.restore(found), fresh, say)
        if ranks.rank:
            if not loop.state.stopped:
                loop.go()
            return
        if found is not None:
            checkpoint.repair_pointers(folder, loop.state)
        checkpoint.discard_unfinished(folder)
        if loop.state.stopped:
            say(f"this run is complete: {loop.state.stopped}")
            return
        events.sinks.append(MetricsFile(folder.metrics, loop.state.metrics_bytes))
        if recipe.training.tensorboard:
            events.sinks.append(TensorBoard(folder.path / "tensorboard", loop.state.update))
        if recipe.training.wandb:
            events.sinks.append(WeightsAndBiases(folder.path, recipe.model_dump(mode="json")))
        if not quiet:
            parameters = sum(p.numel() for p in loop.objective.parameters())
            threads = f"{fresh.threads} thread{'s' * (fresh.threads > 1)}"
            together = "" if ranks.alone else f"{ranks.world} processes, each "
            say(f"{parameters:,} parameters on {together}{device} ({threads}), {task.sizes()}")
            events.sinks.append(ConsoleProgress(loop.state.total, loop.state.update, task.objective.counted))
        if not quiet and recipe.start is None and recipe.training.layer_decay < 1:
            say("note: without --start all layers begin at random, and training.layer_decay holds the lower ones back")
        if loop.state.total is None:
            say("measuring the speed of the first updates …")
        events.sinks.extend(sinks)
        folder.report.unlink(missing_ok=True)  # an older one would speak of an earlier state
        state = loop.go()
        if state.total is None or state.update < state.total:
            say(f"stopped early after update {state.update}: {state.stopped}")
