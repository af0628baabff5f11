"""The run folder: everything one training run leaves behind, and nothing that must be unpickled to be read.

recipe.yaml        resolved, every key present
tokenizer/source   tokenizer/target (the same folder for a joint vocabulary)
checkpoints/step-N weights, optimiser and state, with checksums
last.json best.json  one-line pointers, replaced atomically
metrics.jsonl      one event a line
report.html        for people
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from filelock import FileLock, Timeout

from jumok import recipe as recipes
from jumok.errors import BadInput
from jumok.files import check_folder_place, disk_errors_named, replace_file
from jumok.recipe import Recipe


@dataclass(frozen=True)
class RunFolder:
    path: Path

    @classmethod
    def check_free(cls, path: Path) -> None:
        """A run could come into being here: nothing would be overwritten, and the place can be written to."""
        if cls(path).recipe_file.exists():
            raise BadInput(
                f"{path} holds a run already. Continue it with --resume, or choose another folder with --run."
            )
        check_folder_place(path, "--run")

    @classmethod
    def create(cls, path: Path, recipe: Recipe) -> RunFolder:
        """A new run. An existing one is never overwritten."""
        cls.check_free(path)
        folder = cls(path)
        with disk_errors_named("making the run folder", path, "Choose another --run."):
            folder.checkpoints.mkdir(parents=True, exist_ok=True)
            replace_file(folder.recipe_file, recipes.dump(recipe))
        return folder

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """An existing run."""
        folder = cls(path)
        if not path.exists():
            raise BadInput(f"there is no run folder {path}. Make one with: jumok train RECIPE --run {path}")
        if not folder.recipe_file.is_file():
            raise BadInput(
                f"{path} is not a run folder: it has no recipe.yaml. Make one with: jumok train RECIPE --run DIR"
            )
        return folder

    @property
    def recipe_file(self) -> Path:
        return self.path / "recipe.yaml"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def tokenizer(self) -> Path:
        return self.path / "tokenizer"

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def report(self) -> Path:
        return self.path / "report.html"

    def recipe(self) -> Recipe:
        """What the run was told to do. No path that it names is opened here."""
        origin = str(self.recipe_file)
        try:
            raw = yaml.safe_load(self.recipe_file.read_text(encoding="utf-8"))
        except yaml.YAMLError as error:
            raise BadInput(f"{origin}{recipes.yaml_fault(error)}") from None
        except (OSError, UnicodeDecodeError) as error:
            raise BadInput(f"{origin} cannot be read: {error}") from None
        if not isinstance(raw, dict):
            raise BadInput(f"{origin} is damaged: it holds no keys")
        if raw.get("format") != recipes.FORMAT:
            raise BadInput(f"{origin}: format {raw.get('format')!r} is not one this version reads ({recipes.FORMAT})")
        if isinstance(raw.get("render"), dict):  # runs from before this key go on with the fonts that they have
            raw["render"].setdefault("relatives", "names")
        return recipes.check(raw, origin)

    @contextmanager
    def locked(self, patience: float = 0) -> Iterator[None]:
        """One process at a time may train here. The system frees the lock when its holder dies, however it dies.

        Somebody who is about to end is waited for this many seconds.
        """
        lock = FileLock(self.path / ".lock", timeout=patience)
        try:
            with disk_errors_named("making the run folder", self.path, "Choose another --run."):
                self.path.mkdir(parents=True, exist_ok=True)
                lock.acquire()
        except Timeout:
            message = f"another process is training in {self.path}: wait for it, or choose another --run"
            raise BadInput(message) from None
        try:
            yield
        finally:
            lock.release()

    def point(self, name: str, step: int, **details: Any) -> None:
        """Let `last` or `best` name a checkpoint."""
        replace_file(self.path / f"{name}.json", json.dumps({"step": step, **details}) + "\n")

    def forget(self, name: str) -> None:
        """Let `last` or `best` name nothing."""
        (self.path / f"{name}.json").unlink(missing_ok=True)

    def pointed(self, name: str) -> int | None:
        """The step that `last` or `best` names; None where there is no such (or a damaged) pointer."""
        try:
            return int(json.loads((self.path / f"{name}.json").read_text(encoding="utf-8"))["step"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def events(self) -> list[dict[str, Any]]:
        """What metrics.jsonl holds; a line that a kill left unfinished is passed over."""
        if not self.metrics.is_file():
            return []
        events = []
        for line in self.metrics.read_text(encoding="utf-8", errors="replace").split("\n"):
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if isinstance(event, dict):
                events.append(event)
        return events
