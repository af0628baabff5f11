"""A store built shard by shard: each is whole or not there, so a kill costs one shard, and the next run goes on.

    cache/KEY/shards.json    where the shards begin (survey.py)
             /shard-00000/   the files of one and its meta.json; built under another name and renamed
             /…              the index: files over all shards, put together when they are done
             /meta.json      written last: who finds it finds a whole store

Whoever needs the store builds what is missing. A builder claims a shard with a lock, which the system frees when its
holder dies. So processes that want the same store at the same time share the work, a large one is given helpers, and
the shard that a helper fails on is built, or refused in words, by who is left.
"""

from __future__ import annotations

import contextlib
import errno
import json
import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

from filelock import FileLock, Timeout

from jumok.data.folders import (
    META,
    PLAN,
    TEMPORARY,
    UNREADABLE,
    clear_abandoned,
    disk_trouble,
    is_whole,
    make_whole,
    move_away,
    put,
    read_meta,
    write_files,
)
from jumok.data.hashes import signature
from jumok.data.helpers import helpers
from jumok.data.survey import Shard
from jumok.errors import BadInput, Failure

SHARD = 1 << 18  # items in a shard: some ten seconds of work
LOCKS = ".locks"
SAY_SECONDS = 10.0
WAIT_SECONDS = 0.1
UNLOCKED, LOCKED = 1, 2  # claims on a piece of work
HELPED_BY = 15  # at most: each takes 60 MB

Say = Callable[[str], None]
Items = Iterator[tuple[int, Any]]  # what is encoded (pairs, lines), each with the number of the file it is from


class Encoder(ABC):
    """What one kind of store makes of a corpus. To be made before the files are hashed: it sees later changes."""

    names: ClassVar[tuple[str, ...]]  # the files of a shard
    index: ClassVar[tuple[str, ...]]  # the files over all shards
    format: ClassVar[int]
    unit: ClassVar[str]  # of what is encoded, for messages
    files: list[tuple[str, ...]]  # of the corpus, those that are read side by side together; none of a generated one

    def __init__(self, files: list[tuple[str, ...]]) -> None:
        self.files = files
        self.signatures: dict[str, list[int]] = {}
        for file in (file for sides in files for file in sides):
            with contextlib.suppress(OSError):  # what cannot be read is refused in words by who reads it
                self.signatures[file] = signature(file)[:2]

    def check_unchanged(self) -> None:
        """Hours may lie between the hash of a file and its last line."""
        for file, before in self.signatures.items():
            with contextlib.suppress(OSError):
                if signature(file)[:2] == before:
                    continue
            raise Failure(f"{file}: changed while it was being encoded. Start again when it is complete")

    @abstractmethod
    def survey(self, size: int) -> list[Shard]:
        """Shards of `size` items."""

    @abstractmethod
    def items(self, number: int, before: int, at: Sequence[int]) -> Iterator[Any]:
        """What one of the files holds, from somewhere on."""

    @abstractmethod
    def write(self, files: Mapping[str, BinaryIO], items: Items, first: int) -> dict[str, Any]:
        """Fill a shard's files; `first` is its first item's number. What is given back goes into its meta.json."""

    @abstractmethod
    def join(self, shards: Sequence[tuple[Path, dict[str, Any]]], files: Mapping[str, BinaryIO]) -> dict[str, Any]:
        """Fill the index from the shards' folders and what their meta.json say."""


def build(folder: Path, encoder: Encoder, say: Say, processes: int = 1) -> None:
    """Make the store's folder whole: build what shards are missing or damaged, then what lies over them."""
    clear_abandoned(folder.parent)
    if _is_foreign(folder, encoder):
        move_away(folder)
    try:
        with disk_trouble(folder):
            shards = _plan(folder, encoder)
            missing = sum(not is_built(folder, shard) for shard in shards)
            if missing < len(shards):
                say(f"{len(shards) - missing} of {len(shards)} shards are encoded already")
            count = min(processes - 1, missing - 1, HELPED_BY) if encoder.files else 0
            with helpers(count, build_shards, folder, encoder, shards, _silent):
                build_shards(folder, encoder, shards, say)
            while not is_whole(folder):
                with _claim(folder, "index") as mine:
                    if mine:
                        build_shards(folder, encoder, shards, say)  # something may have happened to one meanwhile
                        _join(folder, encoder, shards)
                if not mine:
                    time.sleep(WAIT_SECONDS)
        shutil.rmtree(folder / LOCKS, ignore_errors=True)
    except BaseException:
        _give_up(folder, say)
        raise


def _is_foreign(folder: Path, encoder: Encoder) -> bool:
    """Of another version, and not to be read: what is there cannot be built on."""
    try:
        return bool(json.loads((folder / META).read_text(encoding="utf-8"))["format"] != encoder.format)
    except UNREADABLE:
        return not (folder / PLAN).exists() and any((folder / name).exists() for name in (*encoder.names, META))


def _give_up(folder: Path, say: Say) -> None:
    """Finished shards stay, for the next time. Where there are none, and nobody else is at work, nothing stays."""
    built = len(list(folder.glob("shard-*")))
    if built:
        say(f"what is encoded already ({built} shard{'s' * (built > 1)}) is kept in {folder}")
    elif not list(folder.glob(f"{TEMPORARY}*")):
        shutil.rmtree(folder, ignore_errors=True)


def _silent(message: str) -> None:
    """For helpers: who began the work speaks."""


def _plan(folder: Path, encoder: Encoder) -> list[Shard]:
    """The shards, surveyed once. They follow from the content alone, as does the folder's name."""
    with contextlib.suppress(*UNREADABLE):
        return [Shard.from_json(raw) for raw in json.loads((folder / PLAN).read_text(encoding="utf-8"))]
    shards = encoder.survey(SHARD)
    put(folder / PLAN, json.dumps([shard.to_json() for shard in shards]) + "\n")
    return shards


def is_built(folder: Path, shard: Shard) -> bool:
    try:
        meta, wrong = read_meta(folder / shard.name)
        return not wrong and (meta["first"], meta["count"]) == (shard.first, shard.count)
    except UNREADABLE:
        return False


def build_shards(folder: Path, encoder: Encoder, shards: Sequence[Shard], say: Say) -> None:
    """Return when every shard is built, by this process or by another."""
    reader, missing, spoken = Reader(encoder), list(shards), time.monotonic()
    total = shards[-1].first + shards[-1].count

    def told(items: Items) -> Items:
        nonlocal spoken
        done = total - sum(shard.count for shard in missing)
        for count, item in enumerate(items, 1):
            yield item
            if count % 4096 == 0 and time.monotonic() - spoken > SAY_SECONDS:
                say(f"encoding: {done + count:,} of {total:,} {encoder.unit}")
                spoken = time.monotonic()

    while missing:
        for shard in tuple(missing):
            if not is_built(folder, shard):
                with _claim(folder, shard.name) as mine:
                    if not mine:
                        continue
                    if not is_built(folder, shard):
                        _build_shard(folder, encoder, shard, told(reader.shard(shard)), alone=mine == LOCKED)
            missing.remove(shard)
        if missing:  # others are at them
            time.sleep(WAIT_SECONDS)


def _build_shard(folder: Path, encoder: Encoder, shard: Shard, items: Items, alone: bool) -> None:
    def write(files: Mapping[str, BinaryIO]) -> dict[str, Any]:
        meta = encoder.write(files, items, shard.first)
        encoder.check_unchanged()
        return {**meta, "first": shard.first, "count": shard.count}

    if alone:  # what is unfinished is of a builder that was killed: we have its claim
        for unfinished in folder.glob(f"{TEMPORARY}{shard.name}-*"):
            shutil.rmtree(unfinished, ignore_errors=True)
    make_whole(folder / shard.name, encoder.names, write)


def _join(folder: Path, encoder: Encoder, shards: Sequence[Shard]) -> None:
    """The index, and at last meta.json. It takes seconds; processes that do it at once write the same bytes."""
    parts = [(folder / shard.name, read_meta(folder / shard.name)[0]) for shard in shards]
    with disk_trouble(folder, "index") as temporary:
        try:
            meta = write_files(temporary, encoder.index, lambda files: encoder.join(parts, files))
        except BadInput:  # nothing will ever come of this content
            move_away(folder)
            raise
        meta["shards"] = [shard.name for shard in shards]
        for part, about in parts:
            meta["sizes"] |= {f"{part.name}/{name}": size for name, size in about["sizes"].items()}
        for name in encoder.index:
            (temporary / name).replace(folder / name)
        put(folder / META, json.dumps(meta, indent=1) + "\n")


@contextlib.contextmanager
def _claim(folder: Path, name: str) -> Iterator[int]:
    """Whether this process may do a piece of work (not 0), and no other meanwhile (`LOCKED`)."""
    (folder / LOCKS).mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / LOCKS / name, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        yield 0
        return
    except (NotImplementedError, OSError) as error:
        if isinstance(error, OSError) and error.errno not in (errno.ENOLCK, errno.EOPNOTSUPP):
            raise
        yield UNLOCKED  # a file system without locks: the work may be done twice, which does no harm
        return
    try:
        yield LOCKED
    finally:
        lock.release()


class Reader:
    """Goes through a corpus. A shard that follows the one before it is read on from where that ended."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self.place: int | None = None
        self.file = 0
        self.stream: Items = iter(())

    def shard(self, shard: Shard) -> Items:
        can_go_there = bool(shard.at) or shard.file > self.file
        if self.place is None or self.place > shard.first or (self.place < shard.first and can_go_there):
            self.stream, self.place = self._from(shard), shard.first
        passed_over = shard.first - self.place  # what can only be read through
        self.place = None  # until all went well
        left = shard.count
        for item in islice(self.stream, passed_over, passed_over + shard.count):
            left -= 1
            self.file = item[0]
            yield item
        if left:
            raise Failure(f"{left} {self.encoder.unit} fewer than were counted: the files have changed. Start again")
        self.place = shard.first + shard.count

    def _from(self, shard: Shard) -> Items:
        before, at = shard.before, shard.at
        for number in range(shard.file, max(1, len(self.encoder.files))):
            for item in self.encoder.items(number, before, at):
                yield number, item
            before, at = 0, ()
