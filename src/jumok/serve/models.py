"""The runs that a service answers with: loaded once, each with a name, a queue and a thread of its own."""

from __future__ import annotations

import asyncio
import gc
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from jumok import api
from jumok.errors import BadInput, did_you_mean
from jumok.inspect.healthy import require_numbers
from jumok.interop.engines import check_engine, engine_of
from jumok.layers.packed import Precision, known_precision
from jumok.serve.batching import Batcher
from jumok.serve.computing import Told, Work, computing, cost, kinds_of
from jumok.serve.translating import TranslationWorker
from jumok.serve.waiting import Room
from jumok.tasks.text_reader import Way
from jumok.tasks.wishes import Wishes
from jumok.trained import TrainedTranslator
from jumok.training.run import RunFolder

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
PAIR = re.compile(r"[A-Za-z]{2,8}(?:_[A-Za-z]+)?-[A-Za-z]{2,8}(?:_[A-Za-z]+)?")
SERVED = ("translation", "classification", "regression", "tagging", "answering", "pretraining", "vision", "recognition")

Say = Callable[[str], None]


class Unknown(LookupError):
    """No model of this name, or none that can do what is asked; the message says which there are."""

    def __init__(self, message: str, names: Sequence[str]) -> None:
        super().__init__(message)
        self.message, self.names = message, tuple(names)

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True)
class Served:
    """A loaded run."""

    name: str
    task: str
    run: RunFolder
    model: Any  # what api.load gives
    worker: Batcher[Work, Told] | TranslationWorker
    languages: tuple[str, str] | None  # source and target, where they are known
    engine: str  # torch, ct2, onnx
    precision: str
    device: str

    @property
    def kinds(self) -> tuple[type[Work], ...]:
        """What `worker.accept` takes; nothing of translators, who take texts."""
        return kinds_of(self.model)

    @property
    def tags(self) -> tuple[str, ...]:
        """Of a translator that writes several languages, their tags (2de)."""
        return tuple(self.model.source.tags) if isinstance(self.model, TrainedTranslator) else ()

    def about(self) -> dict[str, Any]:
        """For people and programs who ask what there is: plain values, nothing about this machine's folders."""
        recipe = self.model.recipe
        about: dict[str, Any] = {
            "name": self.name,
            "task": self.task,
            "model": recipe.model.kind,
            "parameters": sum(parameter.numel() for parameter in self.model.model.parameters()),
            "engine": self.engine,
            "precision": self.precision,
            "device": self.device,
        }
        if isinstance(self.model, TrainedTranslator):
            source, target = self.languages or (None, None)
            about |= {"source": source, "target": target, "tags": list(self.tags), "max_tokens": self.model.max_length}
        elif hasattr(self.model, "limit"):
            about["max_tokens"] = self.model.limit
        labels = getattr(self.model, "labels", None)
        if labels:
            about["labels"] = list(labels)
        pairs = getattr(self.model, "pairs", None)
        if pairs is not None:
            about["pairs"] = pairs
        return about


class Models:
    """All that is served, by name, in the order they were given."""

    def __init__(self, served: Sequence[Served]) -> None:
        if not served:
            raise BadInput("there is nothing to serve: give a run with --run DIR")
        self._served: dict[str, Served] = {}
        for one in served:
            if one.name in self._served:
                raise BadInput(f'two runs have the name "{one.name}": give one of them another, --run NAME=DIR')
            self._served[one.name] = one

    @classmethod
    def load(
        cls,
        specs: Sequence[str],
        device: str = "auto",
        precision: str = "float32",
        engine: str = "torch",
        room: Room = Room(),
        threads: int | None = None,
        languages: Mapping[str, str] | None = None,
        say: Say = api.warn,
    ) -> Models:
        """Runs by their folders, "DIR" or "NAME=DIR"; without any, the run in the package.

        `languages`: of translators, by their names, as "en-fr". `threads`: of the CPU, for each; None: PyTorch's.
        """
        check_engine(engine)
        if threads is not None:
            if threads < 1:
                raise BadInput(f"--threads {threads}: give 1 or more")
            torch.set_num_threads(threads)
        given = [_named(spec) for spec in specs] or [_packaged()]
        names = [name for name, _ in given]
        for name in names:
            if names.count(name) > 1:
                raise BadInput(f'two runs have the name "{name}": give one of them another, --run NAME=DIR')
        pairs = {name: _pair(name, text, names) for name, text in (languages or {}).items()}
        for _, path in given:  # what is wrong with the last of them is said before the first is loaded
            _task(path)
        served = [_loaded(name, path, device, precision, engine, room, pairs.get(name), say) for name, path in given]
        if precision != "float32" and all(one.precision == "float32" for one in served):
            raise BadInput(
                f"--precision {precision} is for runs that translate or read words in pictures; there is none"
            )
        if engine != "torch" and not any(one.task == "translation" for one in served):
            raise BadInput(f"--engine {engine} is for runs that translate; there is none")
        for one in served:
            if isinstance(one.worker, TranslationWorker) and len(served) > 1 and one.worker.count > 1:
                one.worker.threads = one.worker.count  # the others keep threads too: one for each lane, then
        gc.collect()
        gc.freeze()  # what is loaded stays: looking through it for garbage again and again costs time
        return cls(served)

    def __iter__(self) -> Iterator[Served]:
        return iter(self._served.values())

    def __len__(self) -> int:
        return len(self._served)

    @property
    def names(self) -> list[str]:
        return list(self._served)

    def get(self, name: str | None, tasks: str | Collection[str]) -> Served:
        """The model of this name, if it has one of these tasks; without a name, the first that has."""
        wanted = (tasks,) if isinstance(tasks, str) else tuple(tasks)
        fitting = [one.name for one in self if one.task in wanted]
        if name is None:
            if not fitting:
                raise Unknown(f"no model here has learned {' or '.join(wanted)}", fitting)
            return self._served[fitting[0]]
        found = self._served.get(name)
        if found is None:
            raise Unknown(f'there is no model "{_short(name)}".{did_you_mean(_short(name), fitting)}', fitting)
        if found.task not in wanted:
            there = f" There is: {', '.join(fitting)}." if fitting else ""
            raise Unknown(f'the model "{name}" has learned {found.task}, not {" or ".join(wanted)}.{there}', fitting)
        return found

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        for one in self:
            one.worker.start(loop)

    async def drain(self) -> None:
        """All that was accepted is answered, and nothing more is accepted."""
        await asyncio.gather(*(one.worker.drain() for one in self))

    def close(self) -> None:
        for one in self:
            one.worker.close()


def _short(name: str) -> str:
    return name if len(name) <= 60 else f"{name[:59]}…"


def _packaged() -> tuple[str, Path]:
    path = api.packaged_run()
    return path.name, path


def _named(spec: str) -> tuple[str, Path]:
    """ "NAME=DIR", or a folder that is called as its own name; a folder with = in its path that exists is a folder."""
    name, equals, folder = spec.partition("=")
    named = bool(equals) and not Path(spec).exists()
    if named:
        path = Path(folder)
        if not folder:
            raise BadInput(f"--run {spec}: the folder is missing, write NAME=DIR")
    else:
        path = Path(spec)
        name = path.resolve().name
    if not NAME.fullmatch(name):
        how = "" if named else f" Say what it shall be called: --run NAME={spec}"
        raise BadInput(f'--run {spec}: "{name}" is no name (letters, digits and . _ - , at most 100).{how}')
    return name, path


def _pair(name: str, text: str, names: Sequence[str]) -> tuple[str, str]:
    if name not in names:
        raise BadInput(f'--language {name}={text}: there is no model "{name}".{did_you_mean(name, names)}')
    if not PAIR.fullmatch(text):
        raise BadInput(f"--language {name}={text}: write source and target, as in {name}=en-fr")
    source, _, target = text.partition("-")
    return source, target


def _task(path: Path) -> str:
    task: str = api.task_of(path)
    if task not in SERVED:
        raise BadInput(f"{path} has learned {task}, which is not served. Served are: {', '.join(SERVED)}")
    return task


def _loaded(
    name: str,
    path: Path,
    device: str,
    precision: str,
    engine: str,
    room: Room,
    languages: tuple[str, str] | None,
    say: Say,
) -> Served:
    task = _task(path)
    if task == "translation":
        return _translator(name, path, device, precision, engine, room, languages, say)
    if languages is not None:
        raise BadInput(f"--language {name}=…: {path} has learned {task}, and languages are for translators")
    model = api.load(path, device, say)
    require_numbers(model.model)
    chosen: Precision = "float32"
    if task == "recognition":
        chosen = known_precision(precision)
        model.check(Way(precision=chosen))
    worker: Batcher[Work, Told] = Batcher(name, computing(model, chosen), cost, room)
    return Served(name, task, model.run, model, worker, None, "torch", chosen, model.device.type)


def _translator(
    name: str,
    path: Path,
    device: str,
    precision: str,
    engine: str,
    room: Room,
    languages: tuple[str, str] | None,
    say: Say,
) -> Served:
    model = api.load_translator(path, device, say, precision)
    require_numbers(model.model)
    if engine != "torch":
        model.engine = engine_of(engine, model, model.run, precision, Wishes(), False, say)
    found = languages or _learned(model)
    worker = TranslationWorker(name, model, room)
    return Served(name, "translation", model.run, model, worker, found, model.engine.name, precision, model.device.type)


def _learned(model: TrainedTranslator) -> tuple[str, str] | None:
    """The languages of a run that has learned from the embedded grammar alone, in one direction."""
    pairs = {corpus.grammar for corpus in model.recipe.data.train}
    if len(pairs) != 1 or model.source.tags:
        return None
    (pair,) = pairs
    source, dash, target = (pair or "").partition("-")
    return (source, target) if dash else None
