"""The runs that can be looked at, by name. A client only ever names one of the list; it never gives a path."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator, Sequence
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
EVERY = 1.0  # seconds between looks for runs that have come
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
        self._loaded: OrderedDict[tuple[str, int | None], tuple[Hashable, Any]] = OrderedDict()
        self._lock = threading.Lock()
        self._watched: list[Path] = []  # folders in which runs may come into being
        self._reserved: set[Path] = set()  # … of which somebody else tells
        self._looked = -EVERY
        self._looking = threading.Lock()
        for name, path in folders:
            self.add(name, path)

    @classmethod
    def of(cls, named: Sequence[Path], device: str = "auto", usual: Sequence[Path] = ()) -> Shelf:
        """All runs in and below the folders that somebody named, in that order; the run in the package; and those in
        and below the usual folders, which need not be there yet. One that cannot be read is listed, too."""
        shelf = cls(device=device)
        shelf.add(PACKAGED, api.packaged_run(), "English → French, LSTM")  # first: the name is its own
        for path in set(find(named)[0]).intersection(named):
            RunFolder.open(path)  # what was named and holds no run is told at once
        shelf._watched = list(named)
        shelf.look_again()
        shelf._places[PACKAGED] = shelf._places.pop(PACKAGED)
        shelf._watched += usual
        shelf._looked = -EVERY
        shelf.look_again()
        return shelf

    def look_again(self) -> None:
        """Runs that have come into being since we looked last (in a terminal, say) are put on the shelf."""
        with self._looking:
            if time.monotonic() - self._looked < EVERY:
                return
            here = {place.run.path.resolve() for place in list(self._places.values())} | self._reserved
            for name, path in _come(self._watched):
                if path.resolve() not in here:
                    here.add(path.resolve())
                    self.add(name, path)
            self._looked = time.monotonic()

    def reserve(self, path: Path) -> None:
        """Who makes the run that comes into being here puts it on the shelf, too, under a name that is promised."""
        self._reserved.add(path.resolve())

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
            self.look_again()
        if name not in self._places:
            raise BadInput(f'there is no run "{name[:60]}" here.{did_you_mean(name[:60], self._places)}')
        return self._places[name]

    # ------------------------------------------------------------ what there is

    def entries(self) -> list[dict[str, Any]]:
        """All runs that are there, in the order they came; of one that cannot be read, `problem` says why."""
        self.look_again()
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
        return _updates(self._place(name).run)

    # ------------------------------------------------------------ loading

    def load(self, name: str, update: int | None = None) -> Any:
        """The run, loaded, as `api.load` gives it: its best checkpoint, or the one of an update."""
        place = self._place(name)
        if update is not None and update not in self.checkpoints(name):
            raise BadInput(f'the run "{name}" has no checkpoint of update {update}: choose one of its list')
        with place.lock:
            # the stamp before the weights: what changes while they are read is read again the next time
            key, stamp = (name, update), _weights_of(place.run, update)
            with self._lock:
                found = self._loaded.get(key)
                if found is not None and found[0] == stamp:
                    self._loaded.move_to_end(key)
                    return found[1]
                self._loaded.pop(key, None)
            model = _loaded(place.run, update, self.device)
            with self._lock:
                self._loaded[key] = stamp, model
                while len(self._loaded) > KEPT:
                    self._loaded.popitem(last=False)
            return model

    def stamp(self, name: str, update: int | None = None) -> Hashable:
        """Changes whenever `load` would give other weights: whoever keeps what a run has said, keeps it by this."""
        return _weights_of(self._place(name).run, update)

    def forget(self, name: str) -> None:
        """What is loaded of a run has changed on the disk."""
        with self._lock:
            for key in [key for key in self._loaded if key[0] == name]:
                del self._loaded[key]


def _come(watched: Sequence[Path]) -> Iterator[tuple[str, Path]]:
    """Runs, with names that stay the same whatever comes beside them: a run that was named has its own, one that was
    found has its path below the folder that was named."""
    found: list[tuple[Path, Path]] = []
    for folder in watched:
        with contextlib.suppress(BadInput):  # it is not there, or not any more
            found += [(folder, path) for path in find([folder])[0]]
    own = [folder for folder, path in found if folder == path]
    names = dict(zip(own, short_names(own), strict=True))
    holding = list(dict.fromkeys(folder for folder, path in found if folder != path))
    before = dict(zip(holding, short_names(holding), strict=True)) if len(holding) > 1 else {}
    for folder, path in found:
        if folder != path:
            yield "/".join((*filter(None, [before.get(folder)]), *path.relative_to(folder).parts)), path
        elif RunFolder(path).recipe_file.is_file():  # else an empty folder, of which `find` gives itself
            yield names[folder], path


def _updates(run: RunFolder) -> list[int]:
    folders = run.checkpoints.glob("step-*")
    return sorted(int(path.name[5:]) for path in folders if path.name[5:].isdecimal())


def _weights_of(run: RunFolder, update: int | None) -> Hashable:
    """Which file of weights is loaded for an update, or without one (as checkpoint.newest_good chooses); and what
    tells it from another one in its place."""
    for step in [run.pointed("best"), *reversed(_updates(run))] if update is None else [update]:
        file = run.checkpoints / f"step-{step}" / checkpoint.MODEL
        try:
            about = file.stat()
        except OSError:
            continue
        return str(file.resolve()), about.st_mtime_ns, about.st_size, about.st_ino
    return None


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
