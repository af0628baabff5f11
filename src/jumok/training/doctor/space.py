"""Whether the disk has room for what the run will leave on it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from jumok.data.store import default_cache
from jumok.recipe import Recipe
from jumok.tasks.objective import Task
from jumok.training.doctor.findings import Report
from jumok.training.memory import in_words

TIGHT = 1.5  # times what is needed


def check_disk(recipe: Recipe, task: Task, run: Path, report: Report) -> None:
    training = recipe.training
    weights = sum(parameter.nbytes for parameter in task.objective.parameters())
    # model, AdamW's two averages (Muon has one of its matrices); with an average of the weights its own beside it
    checkpoint = weights * (4 if training.ema else 3)
    copies = {"newest": training.keep, "best": 1, "to be averaged": training.average, "being written": 1}
    needed = checkpoint * sum(copies.values())
    place, free = _free(run)
    cache = default_cache()
    stores = _stores(task, cache)
    report.know("disk", checkpoint=checkpoint, copies=sum(copies.values()), needed=needed, free=free, place=str(place))
    report.know("disk", token_stores=stores, cache=str(cache))
    kept = " + ".join(f"{count} {name}" for name, count in copies.items() if count)
    what = f"{in_words(needed)} needed ({sum(copies.values())} checkpoints of {in_words(checkpoint)}: {kept})"
    todo = "free some space, choose another --run, or keep fewer checkpoints (training.keep, training.average)"
    if needed > free:
        report.add("error", "disk", f"{what}, but only {in_words(free)} are free", str(place), todo)
    elif TIGHT * needed > free:
        report.add("warning", "disk", f"{what}, and only {in_words(free)} are free", str(place), todo)


def _free(run: Path) -> tuple[Path, int]:
    """The nearest folder that is there, and the room on its disk."""
    place = next(folder for folder in (run, *run.absolute().parents) if folder.exists())
    return place, shutil.disk_usage(place).free


def _stores(task: Task, cache: Path) -> int:
    """Bytes of the encoded data, which is there by now."""
    folders: list[Any] = [cache / key for key in dict.fromkeys(task.data_keys)]
    return sum(file.stat().st_size for folder in folders for file in folder.rglob("*") if file.is_file())
