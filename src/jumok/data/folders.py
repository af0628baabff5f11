"""Folders that are either whole or not there, in a cache that several processes use at once."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from jumok.errors import Failure

META = "meta.json"
PLAN = "shards.json"
TEMPORARY = ".building-"
ABANDONED_SECONDS = 3600.0
UNFINISHED_SECONDS = 7 * 24 * 3600.0  # shards are worth keeping for who comes back
UNREADABLE = (OSError, ValueError, KeyError, TypeError, AttributeError)


def default_cache() -> Path:
    """Where encoded corpora are kept: $JUMOK_CACHE, else the platform's folder for such things."""
    chosen = os.environ.get("JUMOK_CACHE")
    if chosen:
        return Path(chosen)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "jumok"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "jumok"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "jumok"


def sizes_of(folder: Path, names: Iterable[str]) -> dict[str, int]:
    """Sizes of those files that are there."""
    return {name: (folder / name).stat().st_size for name in names if (folder / name).is_file()}


def put(path: Path, text: str) -> None:
    """A small file, whole or not there. Not flushed to the disk: what a power cut damages here is made again."""
    temporary = path.with_name(f"{TEMPORARY}{path.name}-{uuid.uuid4().hex}")
    try:
        temporary.write_text(text, encoding="utf-8", newline="\n")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def read_meta(folder: Path) -> tuple[dict[str, Any], list[str]]:
    """What a folder's meta.json says, and which of its files are missing or not as large as it says.

    Raises one of `UNREADABLE`.
    """
    meta = json.loads((folder / META).read_text(encoding="utf-8"))
    sizes = sizes_of(folder, meta["sizes"])
    return meta, [name for name, size in meta["sizes"].items() if sizes.get(name) != size]


@contextlib.contextmanager
def disk_trouble(parent: Path, name: str = "any") -> Iterator[Path]:
    """A fresh path in `parent` to write to, gone afterwards unless renamed; trouble with the disk said in words."""
    temporary = parent / f"{TEMPORARY}{name}-{uuid.uuid4().hex}"
    try:
        parent.mkdir(parents=True, exist_ok=True)
        yield temporary
    except OSError as error:
        reason = error.strerror or str(error)
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        todo = "Free some space there" if full else "Make it writable"
        raise Failure(
            f"{parent}: cannot write the encoded corpus: {reason}. {todo}, or name another folder in the environment "
            f"variable JUMOK_CACHE."
        ) from error
    finally:
        if temporary.is_dir():
            shutil.rmtree(temporary, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)


def reserve(path: Path, size: int) -> None:
    """Write zeros before mapping: a disk that fills up under a memory map would kill the process without a word."""
    with open(path, "wb") as file:
        for start in range(0, size, 1 << 20):
            file.write(bytes(min(1 << 20, size - start)))


def make_whole(
    folder: Path,
    names: Iterable[str],
    write: Callable[[Mapping[str, BinaryIO]], dict[str, Any]],
) -> None:
    """A folder of files that is either whole or not there: `write` fills them and returns what meta.json will say."""
    with disk_trouble(folder.parent, folder.name) as temporary:
        write_files(temporary, names, write)
        _put_in_place(temporary, folder)


def write_files(
    folder: Path, names: Iterable[str], write: Callable[[Mapping[str, BinaryIO]], dict[str, Any]]
) -> dict[str, Any]:
    """A new folder with these files and a meta.json that knows their sizes."""
    folder.mkdir()
    with contextlib.ExitStack() as stack:
        files = {name: stack.enter_context(open(folder / name, "wb")) for name in names}
        meta = write(files)
    meta["sizes"] = sizes_of(folder, names)
    (folder / META).write_text(json.dumps(meta, indent=1), encoding="utf-8", newline="\n")
    return meta


def is_whole(folder: Path) -> bool:
    try:
        return not read_meta(folder)[1]
    except UNREADABLE:
        return False


def _put_in_place(temporary: Path, folder: Path) -> None:
    """When someone else finished the same one meanwhile, theirs is kept."""
    while True:
        try:
            temporary.rename(folder)
            return
        except OSError:
            if not folder.exists():
                raise
        if is_whole(folder):
            return
        move_away(folder)


def move_away(folder: Path) -> None:
    """Remove a folder; what is left of it when we are killed meanwhile has a name that says so."""
    damaged = folder.parent / f"{TEMPORARY}{uuid.uuid4().hex}"
    with contextlib.suppress(FileNotFoundError):  # another process moved it away first
        folder.rename(damaged)
    shutil.rmtree(damaged, ignore_errors=True)


def clear_abandoned(cache: Path) -> None:
    """Remove what builders that were killed left behind: nothing written there for an hour, for a week where whole
    shards are among it."""
    places = [(folder, ABANDONED_SECONDS) for folder in cache.glob(f"{TEMPORARY}*")]
    places += [(p.parent, UNFINISHED_SECONDS) for p in cache.glob(f"*/{PLAN}") if not (p.parent / META).exists()]
    for folder, seconds in places:
        with contextlib.suppress(OSError):  # someone else clears it too, or is just finishing
            if time.time() - max(path.stat().st_mtime for path in (folder, *folder.glob("*"))) > seconds:
                shutil.rmtree(folder, ignore_errors=True)
