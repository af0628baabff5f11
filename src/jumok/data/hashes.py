"""What a file holds, as a hash that is computed once: hashing a large corpus takes longer than resuming a run.

    cache/hashes/….json    one for each path: its signature (size, times, place on the disk) and its hash

A hash is believed for as long as the system gives the same signature. A file that changed in the last moments is hashed
every time: two changes may share one tick of the file system's clock.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from pathlib import Path

from jumok.data.folders import put
from jumok.data.readers import file_hash

FRESH_SECONDS = 3.0  # the coarsest clock of a file system in use ticks every two seconds

Signature = list[int]


def signature(file: str | Path) -> Signature:
    """Numbers that change when a file is written to or replaced by another."""
    found = os.stat(file)
    return [found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_dev]


class Hashes:
    """As `file_hash`, remembered in a cache folder. Where that cannot be written to, nothing is remembered."""

    def __init__(self, cache: Path) -> None:
        self.folder = cache / "hashes"

    def __call__(self, file: str) -> tuple[str, str]:
        path = Path(file).absolute()
        memory = self.folder / f"{hashlib.sha256(os.fsencode(path)).hexdigest()[:32]}.json"
        before: Signature | None = None
        try:
            before = signature(path)
            kept = json.loads(memory.read_text(encoding="utf-8"))
            if kept["signature"] == before:
                return str(kept["compression"]), str(kept["sha256"])
        except (OSError, ValueError, KeyError, TypeError):
            pass
        compression, digest = file_hash(file)
        with contextlib.suppress(OSError):
            now = signature(path)
            if now == before and time.time() - max(now[1], now[2]) / 1e9 > FRESH_SECONDS:
                self.folder.mkdir(parents=True, exist_ok=True)
                about = {"file": str(path), "signature": now, "compression": compression, "sha256": digest}
                put(memory, json.dumps(about) + "\n")
        return compression, digest
