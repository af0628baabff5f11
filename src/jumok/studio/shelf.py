"""The runs that can be looked at, by name. A client only ever names one of the list; it never gives a path."""

from __future__ import annotations

import logging
import os
import re
import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safetensors.torch import load_file

from jumok import api
from jumok.errors import BadInput, JumokError, did_you_mean
from jumok.inspect.healthy import require_numbers
from jumok.recipe import Recipe
from jumok.studio.taps import bare, is_recurrent, taps_of
from jumok.trained import TrainedTranslator
from jumok.training import checkpoint
from jumok.training.comparison import Summary, describe_model, find, short_names, summarise
from jumok.training.run import RunFolder

KEPT = 4  # loaded runs
PASSING = ("running", "damaged")  # states that end without another file being there: they are looked up each time
PACKAGED = "en-fr"
CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")  # in names of folders, which may have anything but /

log = logging.getLogger("jumok.studio")


@dataclass
class _Place:
    """A run's folder, and what was found out about it."""

    run: RunFolder
    title: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)
    known: tuple[Any, dict[str, Any]] | None = None  # of the recipe: when it was written, and what follows from it
    listed: tuple[Any, dict[str, Any]] | None = None  # of the whole entry: when its files changed


class Shelf:
    """`load` may be called from any thread; what it gives is used in the studio's one worker (answers.computed)."""

    def __init__(self, folders: Iterable[tuple[str, Path]] = (), device: str = "auto") -> None:
        self.device = device
        self._places: dict[str, _Place] = {}
        self._loaded: OrderedDict[tuple[str, int | None], Any] = OrderedDict()
        self._lock = threading.Lock()
        for name, path in folders:
            self.add(name, path)

    @classmethod
    def of(cls, folders: Sequence[Path], device: str = "auto") -> Shelf:
        """The run in the package, and all runs in and below these folders. One that cannot be read is listed, too."""
        shelf = cls(device=device)
        shelf.add(PACKAGED, api.packaged_run(), "English → French, LSTM")
        found, _ = find(folders)
        for path in set(found).intersection(folders):
            RunFolder.open(path)  # what was named and holds no run is told at once
        for name, path in zip(short_names(found), found, strict=True):
            shelf.add(name, path)
        return shelf

    def add(self, name: str, path: Path, title: str = "") -> str:
        """Put a run on the shelf; where the name is taken by another folder, it gets a number. Gives the name."""
        name = CONTROLS.sub("\ufffd", name)
        with self._lock:
            chosen, number = name, 2
            while chosen in self._places and self._places[chosen].run.path.resolve() != path.resolve():
                chosen, number = f"{name}-{number}", number + 1
            self._places.setdefault(chosen, _Place(RunFolder(path), title))
        return chosen

    @property
    def names(self) -> list[str]:
        return list(self._places)

    def folder(self, name: str) -> RunFolder:
        return self._place(name).run

    def _place(self, name: str) -> _Place:
        if name not in self._places:
            raise BadInput(f'there is no run "{name[:60]}" here.{did_you_mean(name[:60], self._places)}')
        return self._places[name]

    # ------------------------------------------------------------ what there is

    def entries(self) -> list[dict[str, Any]]:
        """All runs that are there, in the order they came; of one that cannot be read, `problem` says why."""
        found = ((self._places[name].run.path, self.entry(name)) for name in self.names)
        return [entry for path, entry in found if entry["state"] != "damaged" or os.path.lexists(path)]

    def entry(self, name: str) -> dict[str, Any]:
        """What a page needs to know of a run to tell whether it can show it."""
        place = self._place(name)
        with place.lock:
            stamp = _stamp(place.run)
            if place.listed is None or place.listed[0] != stamp or place.listed[1]["state"] in PASSING:
                place.listed = stamp, self._readable(name, place)
            return place.listed[1]

    def _readable(self, name: str, place: _Place) -> dict[str, Any]:
        """Whatever is wrong with a folder (half written, changed while it is read) is told of that one run."""
        try:
            return self._entry(name, place)
        except Exception as error:  # files of others may hold anything, and all other runs are to be listed
            problem = str(error) or type(error).__name__
            told = place.listed is not None and place.listed[1]["problem"] == problem
            if not told and not isinstance(error, JumokError | OSError):
                log.exception("%s", place.run.path)
            return {"name": name, "title": place.title or name, **NOTHING, "state": "damaged", "problem": problem}

    def _entry(self, name: str, place: _Place) -> dict[str, Any]:
        summary = summarise(place.run.path)
        about: dict[str, Any] = {"name": name, "title": place.title or name, "state": summary.state, **_known(place)}
        if not place.title:
            about["title"] = f"{name} ({about['network']})"
        return {**about, "problem": summary.problem or None, "checkpoints": self.checkpoints(name), **_numbers(summary)}

    def checkpoints(self, name: str) -> list[int]:
        """The updates of which there is a checkpoint, from the first to the last."""
        folders = self._place(name).run.checkpoints.glob("step-*")
        return sorted(int(path.name[5:]) for path in folders if path.name[5:].isdecimal())

    # ------------------------------------------------------------ loading

    def load(self, name: str, update: int | None = None) -> Any:
        """The run, loaded, as `api.load` gives it: its best checkpoint, or the one of an update."""
        place = self._place(name)
        if update is not None and update not in self.checkpoints(name):
            raise BadInput(f'the run "{name}" has no checkpoint of update {update}: choose one of its list')
        with place.lock:
            key = name, update
            with self._lock:
                if key in self._loaded:
                    self._loaded.move_to_end(key)
                    return self._loaded[key]
            model = _loaded(place.run, update, self.device)
            with self._lock:
                self._loaded[key] = model
                while len(self._loaded) > KEPT:
                    self._loaded.popitem(last=False)
            return model

    def forget(self, name: str) -> None:
        """What is loaded of a run has changed on the disk."""
        with self._lock:
            for key in [key for key in self._loaded if key[0] == name]:
                del self._loaded[key]


def _loaded(run: RunFolder, update: int | None, device: str) -> Any:
    model = api.load(run.path, device, say=lambda message: None)
    if update is not None:
        folder = run.checkpoints / f"step-{update}"
        wrong = checkpoint.problem(folder)
        if wrong is not None:
            raise BadInput(f"the checkpoint of update {update} cannot be used: {wrong}")
        weights = {key: tensor.float() for key, tensor in load_file(folder / checkpoint.MODEL).items()}
        checkpoint.load_weights(model.model, weights, folder.name)
        if isinstance(model, TrainedTranslator):
            model = model.together([])  # what was prepared from the other weights is made anew
    require_numbers(model.model)
    return model


# ---------------------------------------------------------------- what an entry says

NOTHING: dict[str, Any] = {
    "task": "", "family": "", "network": "", "languages": None, "heads": [], "recurrent": False, "cell": None,
    "position": None, "image": None, "model": {}, "checkpoints": [], "updates": 0, "planned": None, "metric": "",
    "best": None, "best_update": None, "parameters": None,
}  # fmt: skip


def _known(place: _Place) -> dict[str, Any]:
    """What follows from the recipe alone, which no training changes."""
    stamp = _modified(place.run.recipe_file)
    if place.known is None or place.known[0] != stamp:
        place.known = stamp, described(place.run.recipe())
    return place.known[1]


def described(recipe: Recipe) -> dict[str, Any]:
    model, section = bare(recipe), recipe.model
    return {
        "task": recipe.task,
        "family": section.kind,
        "network": describe_model(recipe),
        "languages": _languages(recipe),
        "heads": taps_of(model),
        "recurrent": is_recurrent(model),
        "cell": getattr(section, "cell", None),
        "position": getattr(section, "position", None),
        "image": list(section.image) if hasattr(section, "image") else None,
        "model": section.model_dump(mode="json"),
    }


def _languages(recipe: Recipe) -> list[str] | None:
    """Of a translator that has learned from the embedded grammar in one direction; of others nobody has said them."""
    pairs = {corpus.grammar for corpus in recipe.data.train}
    pair = pairs.pop() if len(pairs) == 1 else None
    return pair.split("-") if pair and recipe.task == "translation" and pair.count("-") == 1 else None


def _numbers(summary: Summary) -> dict[str, Any]:
    return {
        "updates": summary.updates,
        "planned": summary.planned,
        "metric": summary.metric,
        "best": summary.best,
        "best_update": summary.best_update,
        "parameters": summary.parameters,
    }


def _stamp(run: RunFolder) -> tuple[Any, ...]:
    return tuple(_modified(path) for path in (run.recipe_file, run.metrics, run.checkpoints, run.path))


def _modified(path: Path) -> int | None:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None
