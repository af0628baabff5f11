"""Going on with a run: with the recipe it began with, and told where it will not be exactly the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from jumok.data.plan import KEPT_BACK
from jumok.errors import BadInput
from jumok.recipe import Recipe
from jumok.tasks import pretraining
from jumok.tasks.build import check_model
from jumok.tasks.translation import chooses_packing
from jumok.training.device import choose_device
from jumok.training.precision import choose_precision
from jumok.training.run import RunFolder
from jumok.training.starting import with_start
from jumok.training.state import TrainState

Say = Callable[[str], None]


def with_absolute_paths(recipe: Recipe) -> Recipe:
    train = [corpus.resolved() for corpus in recipe.data.train]
    valid = [corpus.resolved() for corpus in recipe.data.valid]
    series = recipe.data.series.resolved() if recipe.data.series is not None else None
    named = {"train": train, "valid": valid, "series": series}
    return recipe.model_copy(update={"data": recipe.data.model_copy(update=named)})


def recipe_to_train(given: Recipe | None, folder: RunFolder, resume: bool) -> Recipe:
    """The recipe of a new run, or that of the run to go on with."""
    if resume:
        return recipe_to_resume(RunFolder.open(folder.path), given)
    if given is None:
        raise BadInput("nothing to train: give a recipe (see: jumok recipes), or --resume with --run")
    if given.imported is not None:
        raise BadInput("imported: this recipe tells of weights from elsewhere, and has nothing to learn from")
    RunFolder.check_free(folder.path)
    return with_choices(with_absolute_paths(with_start(given)))


def with_choices(recipe: Recipe) -> Recipe:
    """What `auto` means on this machine: a run goes on with it wherever it is resumed, or batches would differ."""
    device = choose_device(recipe.device)
    precision = str(choose_precision(recipe.training.precision, device)).removeprefix("torch.")
    chosen: dict[str, Any] = {"precision": precision}
    if recipe.task == "translation":
        chosen["pack"] = chooses_packing(recipe, device)
    elif recipe.task == "pretraining":
        check_model(recipe)
        chosen["pack"] = pretraining.chooses_packing(recipe, device)
    return recipe.model_copy(update={"training": recipe.training.model_copy(update=chosen)})


def recipe_to_resume(folder: RunFolder, given: Recipe | None) -> Recipe:
    """A run goes on with the recipe it began with; a different one on the command line is refused, key by key."""
    stored = folder.recipe()
    if stored.imported is not None:
        another = f"jumok train RECIPE --start {folder.path} --run ANOTHER"
        raise BadInput(f"{folder.path} was imported, and there is nothing to go on with. Start from it: {another}")
    if given is not None:
        before, now = _flat(stored.model_dump()), _flat(_as_begun(given, stored).model_dump())
        differing = sorted(key for key in before.keys() | now.keys() if before.get(key) != now.get(key))
        if differing:
            raise BadInput(
                f"{folder.path} was begun with another recipe; these keys differ: {', '.join(differing[:8])}. "
                f"Resume without naming a recipe, or start a new run in another folder."
            )
    return stored


def _as_begun(given: Recipe, stored: Recipe) -> Recipe:
    """What a recipe becomes when a run begins. Where it started from may be gone: what it brought is in the run. Runs
    from before `render.relatives` go on without it, unless it is asked for."""
    if "relatives" not in given.render.model_fields_set:
        render = given.render.model_copy(update={"relatives": stored.render.relatives})
        given = given.model_copy(update={"render": render})
    if given.start is not None and not RunFolder(Path(given.start)).recipe_file.exists():
        if str(Path(given.start).absolute()) != stored.start:
            raise BadInput(f"start: there is no run in {given.start}")
        brought = {"model": stored.model, "tokenizer": stored.tokenizer, "start": stored.start}
        return with_choices(with_absolute_paths(given.model_copy(update=brought)))
    return with_choices(with_absolute_paths(with_start(given)))


def _flat(value: Any, path: str = "") -> dict[str, Any]:
    if isinstance(value, dict):
        return {key: leaf for name, part in value.items() for key, leaf in _flat(part, f"{path}.{name}").items()}
    return {path.lstrip("."): value}


def restored(saved: TrainState, fresh: TrainState, say: Say) -> TrainState:
    """The state of a checkpoint, to go on with in the circumstances of now."""
    if saved.data != fresh.data:
        if saved.data == [key for key in fresh.data if not key.startswith(KEPT_BACK)]:
            raise BadInput(
                "this run was begun by an older version of jumok, which kept other data back for validation (also the "
                "last image of a class), so it cannot be continued exactly. Go on with that version, or start a new "
                "run in another folder."
            )
        raise BadInput(
            "the training or validation data has changed since this run began, so it cannot be continued exactly. "
            "Put the old files back, or start a new run in another folder."
        )
    if saved.device != fresh.device:
        say(f"note: this run used {saved.device} and goes on with {fresh.device}: results will differ in the last bits")
    for name, before, now in (("thread", saved.threads, fresh.threads), ("process", saved.world, fresh.world)):
        if before != now:
            many = f"{name}{'es' if name == 'process' else 's'}" if before != 1 else name
            say(f"note: this run used {before} {many} and goes on with {now}: results may differ in the last bits")
    saved.device, saved.threads, saved.world = fresh.device, fresh.threads, fresh.world
    if saved.total is None:
        saved.minutes = fresh.minutes or saved.minutes
    elif fresh.minutes is not None:
        say(f"--minutes is ignored: this run's plan was fixed at {saved.total} updates when it began")
    return saved
