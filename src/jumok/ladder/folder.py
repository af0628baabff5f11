"""The folder of a ladder: what was asked for, one tokenizer for all rungs, and an ordinary run folder for each attempt.

ladder.json        the settings that must not change while the ladder grows
tokenizer/         trained once, copied into every run
lstm-1, gru-1 …    run folders: a rung with a seed; test.txt and test.json in them are its translations and scores
results.json       all numbers        table.md  the table        report.html  the page
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from jumok.errors import BadInput
from jumok.files import disk_errors_named, remove_folder, replace_file
from jumok.ladder.plan import Attempt, Plan
from jumok.tasks.vocabulary import save_tokenizers, train_tokenizers
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
        if self.path.exists() and not self.path.is_dir():
            raise BadInput(f"--out {self.path}: is a file, not a folder")
        if not self.settings_file.is_file():
            if self.path.is_dir() and any(child.name != ".lock" for child in self.path.iterdir()):
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

    def begin(self, settings: dict[str, Any], jobs: int) -> int:
        """Keep the settings (of rungs that are no longer asked for, those from before); the most jobs there ever were.

        How many trained side by side decides how much a minute was worth, so the table has to say it.
        """
        before = self._settings() if self.settings_file.is_file() else {"rungs": {}}
        most = max(jobs, int(before.get("side_by_side", 1)))
        kept = {**settings, "rungs": {**before["rungs"], **settings["rungs"]}, "side_by_side": most}
        with disk_errors_named("beginning the ladder", self.path, "Choose another --out."):
            replace_file(self.settings_file, json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
        return most

    def _settings(self) -> dict[str, Any]:
        try:
            found = json.loads(self.settings_file.read_text(encoding="utf-8"))
            if not isinstance(found, dict) or not isinstance(found.get("rungs"), dict):
                raise ValueError("it holds no settings")
        except (OSError, ValueError) as error:
            raise BadInput(f"{self.settings_file} cannot be read: {error}. Choose another --out") from None
        return found

    # ---------------------------------------------------------------- what is ready before training

    def prepare_tokenizer(self, plan: Plan, say: Say) -> None:
        """Trained once, for all rungs and seeds."""
        if not self.tokenizer.is_dir():
            source, target = train_tokenizers(plan.common, say)
            joint = plan.common.tokenizer.joint
            with disk_errors_named("saving the tokenizer", self.path, "Free some space and start again."):
                save_tokenizers(self.tokenizer, {"source": source} if joint else {"source": source, "target": target})

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
    for rung, keys in now["rungs"].items():
        earlier_keys = before["rungs"].get(rung, keys)
        for key in dict.fromkeys([*earlier_keys, *keys]):
            pair = earlier_keys.get(key), keys.get(key)
            if pair[0] != pair[1] and (key, *map(_shown, pair)) not in told:
                told.add((key, *map(_shown, pair)))  # what is the same for all rungs is said once
                yield f"{key} ({_shown(pair[0])} there, {_shown(pair[1])} now)"


def _shown(value: Any) -> str:
    return "none" if value is None else json.dumps(value, ensure_ascii=False)
