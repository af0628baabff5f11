"""A folder that is being made, beside the place that it will have: nobody takes it for whole before it is.

A file beside it is locked for as long as its maker lives. So what makers that were killed have left is known, and goes
when the next one comes.
"""

from __future__ import annotations

import contextlib
import glob
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from jumok.errors import BadInput
from jumok.files import remove_folder

LOCK = ".lock"


def check_not_here(place: Path, option: str) -> None:
    """Who stands in a folder that another takes the place of stands nowhere."""
    if Path.cwd().is_relative_to(place.resolve()):
        raise BadInput(f"{option} {place}: you are in this folder. Name one to be made, as {option} {place / 'model'}")


@contextlib.contextmanager
def growing(place: Path, doing: str) -> Iterator[Path]:
    """The name of a new folder, for the caller to make, and to rename to `place` when it is whole. What is still there
    in the end is removed; after an error so are folders that were made on the way to it."""
    made = [parent for parent in place.parents if not parent.exists()]  # the nearest first
    place.parent.mkdir(parents=True, exist_ok=True)
    for lock in place.parent.glob(f".{doing}-{glob.escape(place.name)}-*{LOCK}"):
        _clear(lock)
    temporary = place.with_name(f".{doing}-{place.name}-{os.getpid()}-{secrets.token_hex(4)}")
    held = _lock_of(temporary)
    try:
        held.touch()  # where that is not possible the lock would be waited for, forever
        with FileLock(held):
            yield temporary
    except BaseException:
        remove_folder(temporary)
        held.unlink(missing_ok=True)
        for parent in made:
            with contextlib.suppress(OSError):  # somebody else has put something there
                parent.rmdir()
        raise
    finally:
        remove_folder(temporary)
        held.unlink(missing_ok=True)


def _lock_of(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}{LOCK}")


def _clear(lock: Path) -> None:
    """What a maker has left, if it is no more."""
    with contextlib.suppress(Timeout, OSError), FileLock(lock, timeout=0):
        remove_folder(lock.with_name(lock.name.removesuffix(LOCK)))
        lock.unlink(missing_ok=True)
