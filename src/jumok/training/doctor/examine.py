"""One run examined before it begins. Nothing is written but the cache, which training would fill as well."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from jumok.errors import BadInput, JumokError
from jumok.recipe import Recipe
from jumok.recipe.whole import PICTORIAL
from jumok.tasks.build import build_task
from jumok.tasks.objective import Task
from jumok.tasks.vision import VisionTask
from jumok.tasks.vocabulary import save_tokenizers
from jumok.training.device import choose_device
from jumok.training.doctor.budget import Search, search
from jumok.training.doctor.corpora import check_corpora
from jumok.training.doctor.findings import Report
from jumok.training.doctor.images import check_images
from jumok.training.doctor.lengths import check_lengths, padding_share
from jumok.training.doctor.session import Session
from jumok.training.doctor.space import check_disk
from jumok.training.doctor.speed import Measured, check_speed, duration
from jumok.training.doctor.vocabulary import check_vocabulary
from jumok.training.memory import in_words
from jumok.training.run import RunFolder
from jumok.training.starting import with_start

PATIENCE = 20.0  # seconds that one try of a batch may take
TIMED = 6.0  # seconds of updates
VALIDATING = 90.0
SAFE = 0.9  # of the largest budget that fits: other batches, other moments

# of the memory: `working` is room for the largest piece of the activations once more, as the backward pass needs it
PARTS = ("weights", "gradients", "optimiser", "average", "activations", "working", "libraries")

Say = Callable[[str], None]


def examine(
    recipe: Recipe,
    run: Path | None = None,
    say: Say = lambda message: None,
    *,
    trial: bool = True,
    plugins: Sequence[Path] = (),
    memory: int | None = None,
    patience: float = PATIENCE,
) -> Report:
    """What is wrong, what will be slow, how long it will take and how much memory.

    `trial=False`: nothing is tried but a few rows. `memory`: the most bytes that may be used, instead of what is free.
    """
    report = Report()
    _check_place(recipe, run, report)
    try:
        device = choose_device(recipe.device)
        recipe = with_start(recipe)
        longest = {} if recipe.task in ("forecasting", *PICTORIAL) else check_corpora(recipe, report, say)
        task = build_task(recipe, device, say)
    except JumokError as error:
        where = "the recipe and its data"
        report.add(
            "error", "data", str(error), where, "mend it, then ask the doctor again: the rest could not be looked at"
        )
        return report
    _know_plan(recipe, task, report)
    check_vocabulary(task, report)
    check_lengths(task, recipe, longest, report)
    if isinstance(task, VisionTask):
        check_images(task, report)
    check_disk(recipe, task, run or Path("."), report)
    with tempfile.TemporaryDirectory(prefix="jumok-doctor-") as place:
        saved = Path(place) / "tokenizer"
        if task.tokenizers:
            save_tokenizers(saved, dict(task.tokenizers))
        with Session(recipe, saved if task.tokenizers else None, plugins, memory) as session:
            _try(recipe, task, session, report, say, trial, patience)
    return report


def _check_place(recipe: Recipe, run: Path | None, report: Report) -> None:
    """What would stop the run before its first update."""
    if run is not None:
        try:
            RunFolder.check_free(run)
        except BadInput as error:
            report.add("error", "run", str(error), str(run), "choose another --run, or continue that one with --resume")
    for name, package in (("tensorboard", "tensorboard"), ("wandb", "wandb")):
        if getattr(recipe.training, name) and find_spec(package) is None:
            what, todo = f"the package {package} is not installed", f'pip install "jumok[{name}]"'
            report.add("error", "run", what, f"training.{name}=true", todo)


def _know_plan(recipe: Recipe, task: Task, report: Report) -> None:
    training = recipe.training
    plan: Any = getattr(task, "plan", None)
    batches = int(getattr(plan, "batches_per_epoch", 0))
    epochs = training.updates * training.accumulate / batches if batches else None
    report.know("data", sizes=task.sizes(), batches_per_epoch=batches, updates=training.updates, epochs=epochs)
    report.know("model", kind=recipe.model.kind, parameters=sum(p.numel() for p in task.objective.parameters()))
    endless = any(getattr(layout, "endless", False) for layout in getattr(plan, "layouts", ()))
    if epochs is not None and epochs < 1 and not endless:
        what = f"{training.updates:,} updates see only {epochs:.0%} of the training data"
        todo = f"training.updates={-(-batches // training.accumulate)} sees all of it once"
        report.add("note", "data", what, "training.updates", todo)


def _try(recipe: Recipe, task: Task, session: Session, report: Report, say: Say, trial: bool, patience: float) -> None:
    """Everything that needs the model to run."""
    say("counting what a batch keeps in memory …")
    counted = session.ask(patience + 60, do="count")
    began = session.began
    if "no_memory" in counted:
        _does_not_fit(recipe, report, began, "not even a few rows of the worst batch fit into memory", None)
        return
    if failed := _failure(counted):
        report.add("error", "model", failed, "the first batch", "this would stop the run too: change what it names")
        return
    parts = {name: counted[name] for name in PARTS}
    predicted, limit = sum(parts.values()), began["limit"]
    report.know("memory", predicted=predicted, parts=parts, limit=limit, rows=counted["rows"], tokens=counted["tokens"])
    report.know("machine", device=began["device"], threads=began["threads"], precision=began["precision"])
    if not trial:
        if limit is not None and predicted > limit:
            _does_not_fit(recipe, report, began, f"{in_words(predicted)} are needed by prediction", None)
        return
    found = _find_budget(recipe, session, report, say, patience)
    if found.fits:
        _time(recipe, task, session, report, say, found)


def _find_budget(recipe: Recipe, session: Session, report: Report, say: Say, patience: float) -> Search:
    budget = recipe.batch_size
    peaks: dict[int, int] = {}

    def attempt(size: int) -> dict[str, Any]:
        if not session.began["enforced"] and dares_not(size):
            return {"fits": False}
        say(f"trying training.{recipe.batch_key}={size} …")
        answer = session.ask(max(10 * patience, 60), do="try", budget=size)
        if answer.get("peak"):
            peaks[size] = answer["peak"]
        return {"fits": False, **answer} if "died" in answer or "late" in answer else answer

    def dares_not(size: int) -> bool:
        """Where nobody holds the process back, only what should fit by what was measured is tried."""
        limit = session.began["limit"]
        return bool(peaks) and (limit is None or max(peaks.values()) * max(1.0, size / max(peaks)) > limit)

    found = search(attempt, budget, patience)
    own = found.own
    tried = {str(size): {key: one.get(key) for key in ("fits", "peak", "seconds")} for size, one in found.tried.items()}
    report.know(
        "memory",
        key=f"training.{recipe.batch_key}",
        measured=own.get("peak"),
        fits=found.fits,
        largest=found.largest,
        bound=found.bound,
    )
    report.know("memory", tried=tried)
    if "late" in own:
        what = f"one update on the worst batch takes more than {own['late']:.0f} s"
        todo = f"lower training.{recipe.batch_key}, or take a smaller model"
        report.add("warning", "speed", what, f"training.{recipe.batch_key}={budget}", todo)
    elif not found.fits:
        peak = own.get("peak")
        what = "the worst batch does not fit" + (f" (it had {in_words(peak)} when it failed)" if peak else "")
        _does_not_fit(recipe, report, session.began, what, found.largest)
    elif not own.get("finite", True):
        what = "the loss of the worst batch is not a number"
        report.add("error", "model", what, f"training.precision={recipe.training.precision}", "try float32 or bfloat16")
    return found


def _does_not_fit(recipe: Recipe, report: Report, began: dict[str, Any], what: str, largest: int | None) -> None:
    """On a GPU such a batch is done in pieces, if those fit; on the CPU the system ends who takes too much."""
    fitting = (
        f"training.{recipe.batch_key}={max(1, int(SAFE * largest))} fits" if largest else "not even a small batch fits"
    )
    if largest is None and "prediction" in what:
        fitting = "let it be tried (without --no-trial), which finds what fits"
    again = "" if recipe.training.align else ", or turn on training.checkpoint_activations"
    smaller = "model.image" if recipe.task in PICTORIAL else "data.max_length"
    todo = f"{fitting}; or lower {smaller} or model.width{again}"
    there = f" ({in_words(began['limit'])} may be used)" if began["limit"] is not None else ""
    in_pieces = began["device"] == "cuda" and largest is not None and not recipe.training.shard
    slow = ": the run would do it in pieces, which is slow" if in_pieces else ""
    where = f"training.{recipe.batch_key}={recipe.batch_size}"
    report.add("warning" if in_pieces else "error", "memory", f"{what}{there}{slow}", where, todo)


def _time(recipe: Recipe, task: Task, session: Session, report: Report, say: Say, found: Search) -> None:
    training = recipe.training
    say("timing updates …")
    timed = session.ask(600, do="time", seconds=TIMED)
    if failed := _failure(timed):
        report.add("error", "model", failed, "an update", "this would stop the run too: change what it names")
        return
    say("timing a validation …")
    checked = session.ask(VALIDATING, do="validate")
    if "late" not in checked and (failed := _failure(checked)):
        report.add("error", "model", failed, "the validation", "this would stop the run too: change what it names")
        return
    validation = checked.get("seconds")
    often = -(-training.updates // training.validate_every)
    total = training.updates * timed["update"] + often * (validation or VALIDATING)
    began = session.began
    padding = padding_share(task)
    report.know("time", update=timed["update"], tokens_per_second=timed["tokens"] / timed["update"], mfu=timed["mfu"])
    report.know(
        "time", counted=task.objective.counted, validation=validation, validations=often, total=total, padding=padding
    )
    if validation is None:
        what = f"one validation takes more than {duration(VALIDATING)}"
        where = f"training.validate_sentences={training.validate_sentences}"
        report.add("warning", "speed", what, where, "validate on fewer sentences, or less often")
    measured = Measured(
        began["device"], began["precision"], began["threads"], timed["update"], timed["preparing"], validation,
        timed["mfu"], padding, total,
    )  # fmt: skip
    check_speed(recipe, measured, report, found.largest)


def _failure(answer: dict[str, Any]) -> str | None:
    """What went wrong when it was tried, in words; None when nothing did."""
    if "problem" in answer:
        return str(answer["problem"])
    if "no_memory" in answer:
        return f"out of memory ({answer['no_memory']})"
    if "died" in answer:
        return f"the trial ended with code {answer['died']}: {answer['told']}"
    return f"no answer in {answer['late']:.0f} s" if "late" in answer else None
