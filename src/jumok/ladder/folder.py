"""The folder of a ladder: what was asked for, one tokenizer for all rungs, and an ordinary run folder for each attempt.

ladder.json        the settings that must not change while the ladder grows; how many runs trained side by side
tokenizer/         trained once, copied into every run
lstm-1, gru-1 …    run folders: a rung with a seed; test.txt and test.json in them are its translations and scores
results.json       all numbers        table.md  the table        report.html  the page
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from jumok.errors import BadInput
from jumok.files import check_folder_place, disk_errors_named, remove_folder, replace_file
from jumok.ladder.plan import Attempt, Plan
from jumok.ladder.rungs import COMMON_SECTIONS, UPDATE_SIZE
from jumok.tasks.vocabulary import save_tokenizers, train_tokenizers
from jumok.training.comparison import summarise
from jumok.training.resuming import with_choices
from jumok.training.run import RunFolder

Say = Callable[[str], None]
SHOWN = 6  # settings that differ, in a message


@dataclass(frozen=True)
class LadderFolder:
    path: Path

    @property
    def settings_file(self) -> Path:
        return self.path / "ladder.json"

    @property
    def tokenizer(self) -> Path:
        return self.path / "tokenizer"

    @property
    def results(self) -> Path:
        return self.path / "results.json"

    @property
    def table(self) -> Path:
        return self.path / "table.md"

    @property
    def report(self) -> Path:
        return self.path / "report.html"

    def run(self, attempt: Attempt) -> RunFolder:
        return RunFolder(self.path / attempt.name)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One ladder at a time in a folder. The system frees the lock when its holder dies."""
        lock = FileLock(self.path / ".lock", timeout=0)
        try:
            with disk_errors_named("making the ladder's folder", self.path, "Choose another --out."):
                self.path.mkdir(parents=True, exist_ok=True)
                lock.acquire()
        except Timeout:
            raise BadInput(f"another ladder is going on in {self.path}: wait for it, or choose another --out") from None
        try:
            yield
        finally:
            lock.release()

    def check(self, settings: dict[str, Any]) -> None:
        """This ladder may begin here, or go on: what is there is nothing, or a ladder with the same settings."""
        check_folder_place(self.path)
        if not self.settings_file.is_file():
            if self.path.is_dir() and not all(_is_rest(child.name) for child in self.path.iterdir()):
                raise BadInput(
                    f"--out {self.path}: there is something in this folder that is no ladder. Choose another"
                )
            return
        before = self._settings()
        differing = list(_differences(before, settings))
        if differing:
            more = f" and {len(differing) - SHOWN} more" if len(differing) > SHOWN else ""
            raise BadInput(
                f"--out {self.path} holds another ladder; these settings differ: {'; '.join(differing[:SHOWN])}{more}. "
                "Give the same as before to go on with it, or choose another --out"
            )

    def check_jobs(self, attempts: Sequence[Attempt], jobs: int) -> None:
        """For a budget in minutes: those that are left train as many side by side as those before, or a minute would
        be worth more to some."""
        before = max(self.side_by_side().values(), default=jobs)
        if before not in (jobs, min(jobs, len(attempts))) and self.left(attempts):
            raise BadInput(
                f"--jobs {jobs}: the runs in {self.path} trained {before} side by side, and a minute is worth more "
                f"where fewer do. Give --jobs {before} to go on with them, or choose another --out"
            )

    def left(self, attempts: Sequence[Attempt]) -> list[Attempt]:
        """Those that are not trained to their end."""
        return [attempt for attempt in attempts if not is_done(self.run(attempt))]

    def side_by_side(self) -> dict[str, int]:
        """By run: how many trained beside each other when its budget was fixed. Those that have none yet are not here.

        A time becomes a number of updates by the speed at that moment, so this is what a minute was worth.
        """
        if not self.settings_file.is_file():
            return {}
        kept = self._settings().get("side_by_side", {})
        if isinstance(kept, int):  # version 0.1.0: one number for all
            kept = dict.fromkeys((file.parent.name for file in self.path.glob("*/recipe.yaml")), kept)
        return {name: int(count) for name, count in kept.items() if _is_planned(RunFolder(self.path / name))}

    def begin(self, plan: Plan, settings: dict[str, Any], jobs: int, say: Say) -> dict[str, int]:
        """Keep the settings (of rungs that are no longer asked for, those from before), and have the tokenizer; by run,
        how many train or trained side by side.

        It is trained before anything is written (keys with which it fails are not kept) and saved after the settings: a
        kill in between leaves a ladder without a tokenizer, which gets one, and not a tokenizer that nobody knows.
        """
        tokenizers = None if self.tokenizer.is_dir() else train_tokenizers(plan.common, say)
        before = self._settings() if self.settings_file.is_file() else {"rungs": {}}
        rungs = {**before["rungs"], **settings["rungs"]}
        beside = {**_in_waves(self.left(plan.attempts), jobs), **self.side_by_side()}
        kept = {**settings, "rungs": rungs, "side_by_side": beside}
        with disk_errors_named("beginning the ladder", self.path, "Free some space and start again."):
            replace_file(self.settings_file, json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
            if tokenizers is not None:
                source, target = tokenizers
                joint = plan.common.tokenizer.joint
                save_tokenizers(self.tokenizer, {"source": source} if joint else {"source": source, "target": target})
        return beside

    def _settings(self) -> dict[str, Any]:
        try:
            found = json.loads(self.settings_file.read_text(encoding="utf-8"))
            if not isinstance(found, dict) or not isinstance(found.get("rungs"), dict):
                raise ValueError("it holds no settings")
        except (OSError, ValueError) as error:
            raise BadInput(f"{self.settings_file} cannot be read: {error}. Choose another --out") from None
        return found

    def prepare_run(self, attempt: Attempt) -> RunFolder:
        """A run that has not begun is one to go on with: from then on nothing distinguishes beginning and resuming.

        The recipe comes last: a kill in between leaves nothing that would be taken for a run.
        """
        run = self.run(attempt)
        with disk_errors_named("preparing a run", run.path, "Free some space and start again."):
            run.path.mkdir(parents=True, exist_ok=True)
            if not run.tokenizer.is_dir():
                temporary = run.path / f".tokenizer-{os.getpid()}"
                for abandoned in run.path.glob(".tokenizer-*"):
                    remove_folder(abandoned)
                shutil.copytree(self.tokenizer, temporary)
                temporary.rename(run.tokenizer)
        if not run.recipe_file.is_file():
            RunFolder.create(run.path, with_choices(attempt.recipe))
        return run


def is_done(run: RunFolder) -> bool:
    return run.recipe_file.is_file() and summarise(run.path).state == "done"


def _is_planned(run: RunFolder) -> bool:
    """How many updates it will have is fixed: under a budget in minutes, once its speed is measured."""
    return run.pointed("last") is not None and summarise(run.path).planned is not None


def _in_waves(left: Sequence[Attempt], jobs: int) -> dict[str, int]:
    """How many train beside each other: `jobs`, and in the last wave those that remain."""
    return {attempt.name: min(jobs, len(left) - place // jobs * jobs) for place, attempt in enumerate(left)}


def _is_rest(name: str) -> bool:
    """What a ladder leaves that was killed before it had settings."""
    return name == ".lock" or fnmatch(name, ".ladder.json.*.tmp")


def _differences(before: dict[str, Any], now: dict[str, Any]) -> Iterator[str]:
    """What changed, each in a few words; rungs that only one of them has are no difference."""
    if before.get("format") != now["format"]:
        yield f"the format ({before.get('format')} there, {now['format']} now)"
    for name, what in (("data", "the content of the training or validation data"), ("test", "the test data")):
        if before.get(name) != now[name]:
            yield what
    for key, value in now["budget"].items():
        earlier = (before.get("budget") or {}).get(key)
        if earlier != value:
            yield f"--{key} ({_shown(earlier)} there, {_shown(value)} now)"
    told = set()
    some: dict[str, Any] = next(iter(before["rungs"].values()), {})
    of_updates = UPDATE_SIZE if now["budget"]["updates"] is not None else ()
    common = {key: value for key, value in some.items() if key.split(".")[0] in COMMON_SECTIONS or key in of_updates}
    for rung, keys in now["rungs"].items():
        earlier_keys = before["rungs"].get(rung, {**keys, **common})  # a new rung shares what all of them share
        for key in dict.fromkeys([*earlier_keys, *keys]):
            pair = earlier_keys.get(key), keys.get(key)
            if pair[0] != pair[1] and (key, *map(_shown, pair)) not in told:
                told.add((key, *map(_shown, pair)))  # what is the same for all rungs is said once
                yield f"{key} ({_shown(pair[0])} there, {_shown(pair[1])} now)"


def _shown(value: Any) -> str:
    return "none" if value is None else json.dumps(value, ensure_ascii=False)
