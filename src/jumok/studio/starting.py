"""What the page may start: a shipped recipe by name, with keys that its schema accepts and that name no files.

Everything is checked before a process starts. A name is looked up in the list, and never used as a path; a run's folder
gets its name here, and a folder that exists is never taken.
"""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from jumok import recipe as recipes
from jumok.errors import BadInput, did_you_mean
from jumok.files import check_folder_place
from jumok.recipe import Recipe
from jumok.recipe.reading import BROUGHT

KEY = re.compile(r"[a-z_]+(\.[a-z_0-9]+)*")
VALUE = re.compile(r"[\w.,:+\- \[\]{}'\"]*")  # no path, no pattern of files, nothing that refers
MOST_KEYS, LONGEST_VALUE = 40, 200
OURS = ("start", "imported", "format", "task")  # keys of a recipe that the page does not change
FREE = ("max_length", "pairs", "grammar", "drawn", "rendered")  # all that it changes in `data`, where files are named
FILES = {"tokenizer": ("source", "target"), "render": ("fonts", "words"), "training": ("wandb",)}
NAMING = (*BROUGHT, "alignments")  # … of a corpus
NOT_HERE = "use jumok train in a terminal for that"


def listed() -> list[dict[str, Any]]:
    """All shipped recipes, with what each says of itself."""
    return [{"name": name, "about": recipes.about(name), "task": recipes.task_of(name)} for name in recipes.names()]


def recipe_of(name: str, overrides: Sequence[str]) -> Recipe:
    """A shipped recipe with these keys, checked as `jumok train` checks it."""
    known = recipes.names()
    if name not in known:
        raise BadInput(f'no recipe "{name[:60]}" ships with jumok.{did_you_mean(name[:60], known)}')
    if len(overrides) > MOST_KEYS:
        raise BadInput(f"{len(overrides)} keys are too many: give {MOST_KEYS} at most, or {NOT_HERE}")
    for override in overrides:
        _check(override)
    found = recipes.read(name, overrides)
    own = recipes.read(name)
    if _files_of(found) != _files_of(own):
        raise BadInput(f"files and folders cannot be named from the page: {NOT_HERE}")
    return found


def _check(override: str) -> None:
    """One KEY=VALUE; what could name a file is refused before anything looks for it."""
    key, equals, value = override.partition("=")
    shown = override[:80]
    if not equals or not KEY.fullmatch(key):
        raise BadInput(f'"{shown}" is not an override: write key=value, for example model.width=64')
    if len(value) > LONGEST_VALUE or not VALUE.fullmatch(value):
        raise BadInput(f'"{shown}": the page takes numbers, words and lists as values; {NOT_HERE}')
    parts = key.split(".")
    first, last = parts[0], parts[-1]
    if first in OURS or (first == "data" and last not in FREE) or key in FILES or last in FILES.get(first, ()):
        raise BadInput(f'"{key}" cannot be changed from the page: {NOT_HERE}')
    if first == "data" and any(mark in value for mark in "{}[]:"):
        raise BadInput(f'"{key}" takes one number or one word here')


def _files_of(recipe: Recipe) -> list[Any]:
    """All that names files in it; whatever way it came in, it must be what the recipe had."""
    corpora = [*recipe.data.train, *(recipe.data.valid or ())]
    named = [getattr(corpus, name, None) or None for corpus in corpora for name in NAMING]
    whole = recipe.model_dump(mode="json")
    series = (whole["data"].get("series") or {}).get("csv")
    others = [(whole.get(section) or {}).get(name) for section, names in FILES.items() for name in names]
    return [value for value in (*named, series, *others, whole.get("start"), whole.get("imported")) if value]


def free_folder(runs: Path, name: str, taken: Collection[str] = ()) -> Path:
    """A new folder for a run of this recipe: NAME, or NAME-2 …, of which no run has the name. It is made here, so that
    nobody else takes it."""
    check_folder_place(runs)
    runs.mkdir(parents=True, exist_ok=True)
    for number in itertools.count(1):
        path = runs / (name if number == 1 else f"{name}-{number}")
        if path.name not in taken:
            with contextlib.suppress(FileExistsError):
                path.mkdir()
                return path
    raise AssertionError


def let_go(path: Path) -> None:
    """A folder in which no run came into being is taken away, if nothing is in it."""
    if not (path / "recipe.yaml").exists():
        (path / ".lock").unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            path.rmdir()
