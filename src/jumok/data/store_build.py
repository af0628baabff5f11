"""Building a token store: stream, encode, write under a temporary name, rename. See `store.py` for the layout."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from jumok.data.readers import content_hash, first_line, read_pairs
from jumok.errors import BadInput, Failure
from jumok.recipe import Corpus
from jumok.text.tokenizer import Tokenizer

FORMAT = 1
CHUNK_PAIRS = 8192
CHUNK_CHARACTERS = 4 << 20  # lines of a megabyte come in small chunks
SHOWN_LINES = 5
TEMPORARY = ".building-"
ABANDONED_SECONDS = 3600.0
SAY_SECONDS = 10.0
FILES = (
    "source.bin",
    "source.offsets",
    "source.lengths",
    "target.bin",
    "target.offsets",
    "target.lengths",
    "lines.bin",
)


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


def store_key(corpus: Corpus, split: str, source: Tokenizer, target: Tokenizer, max_length: int) -> str:
    parts = [FORMAT, content_hash(corpus, split), source.fingerprint, target.fingerprint, max_length]
    if corpus.tag is not None:
        parts.append(corpus.tag)
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def sizes_of(folder: Path, names: Iterable[str]) -> dict[str, int]:
    """Sizes of those files that are there."""
    return {name: (folder / name).stat().st_size for name in names if (folder / name).is_file()}


@contextlib.contextmanager
def disk_trouble(parent: Path) -> Iterator[Path]:
    """A fresh path in `parent` to write to, gone afterwards unless renamed; trouble with the disk said in words."""
    temporary = parent / f"{TEMPORARY}{uuid.uuid4().hex}"
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


def build(
    folder: Path,
    corpus: Corpus,
    split: str,
    source: Tokenizer,
    target: Tokenizer,
    max_length: int,
    say: Callable[[str], None],
    is_whole: Callable[[Path], bool],
) -> None:
    """Make the store's folder. When someone else finished the same one meanwhile, theirs is kept."""

    def write(files: Mapping[str, BinaryIO]) -> dict[str, Any]:
        before = [] if corpus.tag is None else [source.tags[corpus.tag]]
        return _Writer(files, source, target, max_length, before).run(corpus, split, say)

    make_whole(folder, FILES, write, is_whole)


def make_whole(
    folder: Path,
    names: Iterable[str],
    write: Callable[[Mapping[str, BinaryIO]], dict[str, Any]],
    is_whole: Callable[[Path], bool],
) -> None:
    """A folder of files that is either whole or not there: `write` fills them and returns what meta.json will say."""
    _clear_abandoned(folder.parent)
    with disk_trouble(folder.parent) as temporary:
        temporary.mkdir()
        with contextlib.ExitStack() as stack:
            files = {name: stack.enter_context(open(temporary / name, "wb")) for name in names}
            meta = write(files)
        meta["sizes"] = sizes_of(temporary, names)
        (temporary / "meta.json").write_text(json.dumps(meta, indent=1), encoding="utf-8", newline="\n")
        _put_in_place(temporary, folder, is_whole)


def _put_in_place(temporary: Path, folder: Path, is_whole: Callable[[Path], bool]) -> None:
    while True:
        try:
            temporary.rename(folder)
            return
        except OSError:
            if not folder.exists():
                raise
        if is_whole(folder):
            return
        damaged = folder.parent / f"{TEMPORARY}{uuid.uuid4().hex}"
        with contextlib.suppress(FileNotFoundError):  # another process moved it away first
            folder.rename(damaged)
        shutil.rmtree(damaged, ignore_errors=True)


def _clear_abandoned(cache: Path) -> None:
    """Remove what builders that were killed left behind: nothing written there for an hour."""
    oldest = time.time() - ABANDONED_SECONDS
    for folder in cache.glob(f"{TEMPORARY}*"):
        with contextlib.suppress(OSError):  # someone else clears it too, or is just finishing
            if max(path.stat().st_mtime for path in (folder, *folder.glob("*"))) < oldest:
                shutil.rmtree(folder, ignore_errors=True)


class _Writer:
    """Appends encoded chunks to the files and counts what is left out. `before` opens every source: its tag."""

    def __init__(
        self,
        files: Mapping[str, BinaryIO],
        source: Tokenizer,
        target: Tokenizer,
        max_length: int,
        before: Sequence[int] = (),
    ) -> None:
        self.before = before
        self.files, self.tokenizers, self.max_length = files, {"source": source, "target": target}, max_length
        self.ids = {
            side: np.dtype(np.uint16 if t.size <= 1 << 16 else np.uint32) for side, t in self.tokenizers.items()
        }
        self.written = {"source": 0, "target": 0}
        self.kept = self.seen = 0
        self.skipped: dict[str, int] = {"blank": 0, "long": 0}
        self.first: dict[str, list[int]] = {"blank": [], "long": []}
        self.longest = 0

    def run(self, corpus: Corpus, split: str, say: Callable[[str], None]) -> dict[str, Any]:
        for side in self.written:
            self.files[f"{side}.offsets"].write(np.zeros(1, np.int64).tobytes())
        spoken = time.monotonic()
        for lines, sources, targets in self._chunks(read_pairs(corpus, split)):
            self._write(lines, sources, targets)
            if time.monotonic() - spoken > SAY_SECONDS:
                say(f"encoding: {self.seen:,} pairs")
                spoken = time.monotonic()
        if not self.kept:
            self._refuse(corpus, split)
        meta: dict[str, Any] = {"format": FORMAT, "pairs": self.kept, "seen": self.seen, "max_length": self.max_length}
        meta |= {f"skipped_{reason}": count for reason, count in self.skipped.items()}
        meta |= {f"first_{reason}": lines for reason, lines in self.first.items()}
        meta |= {f"{side}_tokens": count for side, count in self.written.items()}
        return meta | {"first_line": first_line(corpus), "ids": {side: dtype.str for side, dtype in self.ids.items()}}

    def _chunks(self, pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[list[int], list[str], list[str]]]:
        lines: list[int] = []
        sources: list[str] = []
        targets: list[str] = []
        characters = 0
        for line, (source, target) in enumerate(pairs):
            self.seen = line + 1
            if not source.strip() or not target.strip():
                self._skip("blank", line)
                continue
            lines.append(line)
            sources.append(source)
            targets.append(target)
            characters += len(source) + len(target)
            if len(lines) >= CHUNK_PAIRS or characters >= CHUNK_CHARACTERS:
                yield lines, sources, targets
                lines, sources, targets, characters = [], [], [], 0
        if lines:
            yield lines, sources, targets

    def _skip(self, reason: str, line: int) -> None:
        self.skipped[reason] += 1
        if len(self.first[reason]) < SHOWN_LINES:
            self.first[reason].append(line)

    def _write(self, lines: list[int], sources: list[str], targets: list[str]) -> None:
        rows = zip(
            lines, *(self.tokenizers[s].encode(t) for s, t in (("source", sources), ("target", targets))), strict=True
        )
        kept: list[tuple[int, list[int], list[int]]] = []
        for line, source, target in rows:
            longest = max(len(self.before) + len(source), len(target))
            self.longest = max(self.longest, longest)
            if not source or not target:
                self._skip("blank", line)
            elif longest > self.max_length:
                self._skip("long", line)
            else:
                kept.append((line, [*self.before, *source], target))
        if not kept:
            return
        self.files["lines.bin"].write(np.array([line for line, _, _ in kept], np.int64).tobytes())
        self._write_side("source", [source for _, source, _ in kept])
        self._write_side("target", [target for _, _, target in kept])
        self.kept += len(kept)

    def _write_side(self, side: str, rows: list[list[int]]) -> None:
        lengths = np.array([len(row) for row in rows], np.int64)
        offsets = self.written[side] + np.cumsum(lengths)
        self.written[side] = int(offsets[-1])
        self.files[f"{side}.bin"].write(np.concatenate([np.array(row, self.ids[side]) for row in rows]).tobytes())
        self.files[f"{side}.offsets"].write(offsets.tobytes())
        self.files[f"{side}.lengths"].write(lengths.astype(np.int32).tobytes())

    def _refuse(self, corpus: Corpus, split: str) -> None:
        place = (
            f"grammar {corpus.grammar}" if corpus.grammar else ", ".join([*corpus.source, *corpus.target, *corpus.file])
        )
        if not self.seen:
            raise BadInput(f"{place}: there are no sentence pairs in it")
        reasons = []
        if self.skipped["blank"]:
            reasons.append(f"{self.skipped['blank']:,} with an empty side")
        if self.skipped["long"]:
            reasons.append(
                f"{self.skipped['long']:,} longer than data.max_length={self.max_length} tokens "
                f"(the longest has {self.longest:,}; raise data.max_length to keep them)"
            )
        raise BadInput(f"{place}: all {self.seen:,} pairs had to be left out: {'; '.join(reasons)}")
