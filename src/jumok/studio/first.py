"""What is there with nothing trained: a tiny Transformer, trained on first start, in a process of its own.

It goes into the user's cache and stays there. Several studios that start at once train it once: whoever holds the lock
trains, the others wait and find it done. Progress is read from the run's own metrics, whoever writes them. A training
that was killed is resumed from its last checkpoint; where that is not possible, it begins anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from filelock import FileLock

from jumok import recipe as recipes
from jumok.data.folders import default_cache, put
from jumok.errors import JumokError
from jumok.files import remove_folder
from jumok.recipe import Recipe
from jumok.studio.shelf import Shelf
from jumok.training.run import RunFolder

NAME, TITLE = "tiny-transformer", "English → French, Transformer"
UPDATES = 1000
DONE = "studio-done"  # a file in the run's folder
KEYS = (
    "data.train.pairs=30000",
    "model.width=64",
    "model.feed_forward=128",
    f"training.updates={UPDATES}",
    "training.learning_rate=0.006",
    "training.validate_every=125",
    "training.checkpoint_every=125",
    "training.keep=8",  # all: its attention can be watched as it learns
    "device=cpu",
    "threads=1",  # the other core is for who looks; and two that are shared with others wait for each other
)


def first_recipe(keys: tuple[str, ...] = KEYS) -> Recipe:
    return recipes.read("demo-transformer", keys)


@dataclass
class First:
    """`keys` change the recipe, which tests need shorter."""

    keys: tuple[str, ...] = KEYS
    cache: Path = field(default_factory=default_cache)
    process: subprocess.Popen[bytes] | None = None
    added: str | None = None
    message: str = ""  # what it said as it failed

    def __post_init__(self) -> None:
        self.recipe = first_recipe(self.keys)
        # what is trained otherwise is another run
        key = hashlib.sha256(recipes.dump(self.recipe).encode()).hexdigest()[:16]
        self.run = RunFolder(self.cache / "studio" / f"{NAME}-{key}")

    @property
    def is_done(self) -> bool:
        return (self.run.path / DONE).is_file() and self.run.pointed("last") is not None

    def start(self) -> None:
        """Begin the training, unless there is nothing to train. It ends with this process, however that ends."""
        if self.is_done:
            return
        self.said = tempfile.TemporaryFile()  # noqa: SIM115  the process has it for as long as it lives
        command = [sys.executable, "-m", "jumok.studio.first", str(self.cache), *self.keys]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=self.said)

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait(10)

    def progress(self, shelf: Shelf) -> dict[str, Any]:
        """How far it is; once it is there, it is on the shelf."""
        if self.is_done:
            self.added = self.added or shelf.add(NAME, self.run.path, TITLE)
            return {"state": "ready", "share": 1.0, "name": self.added}
        if self.process is None:
            return {"state": "none"}
        code = self.process.poll()
        if code:
            return {"state": "failed", "share": 0.0, "message": self._last_words()}
        steps = []
        with contextlib.suppress(OSError):  # a folder that cannot be gone on with is taken away, while we read
            steps = [event["step"] for event in self.run.events() if event.get("event") == "train"]
        total = self.recipe.training.updates
        return {"state": "training" if steps else "waiting", "share": min(1.0, max(steps, default=0) / total)}

    def _last_words(self) -> str:
        if not self.message:
            self.said.seek(0)
            lines = self.said.read().decode(errors="replace").strip().splitlines()
            self.message = lines[-1][:500] if lines else "its process was ended"
        return self.message


def train(first: First) -> None:
    """In the process of its own."""
    from jumok import api

    folder = first.run.path
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_suffix(".lock")):
        if first.is_done:
            return
        if first.run.recipe_file.exists():
            try:
                api.train(None, folder, resume=True, quiet=True, report=False)
            except JumokError:  # nothing to go on with: damaged, or of another version
                remove_folder(folder)
        if not first.run.recipe_file.exists():
            remove_folder(folder)
            api.train(first.recipe, folder, quiet=True, report=False)
        put(folder / DONE, "")


def _end_with_parent() -> None:
    """The studio holds the other end of our input, and the system lets go of it when the studio dies."""
    with contextlib.suppress(OSError):
        while os.read(0, 1024):  # not through sys.stdin, whose lock would stop Python from ending
            pass
    os._exit(3)


def main(arguments: list[str]) -> int:
    if hasattr(os, "nice"):
        os.nice(5)  # who looks at the page goes first
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        train(First(tuple(arguments[1:]), Path(arguments[0])))
    except JumokError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
