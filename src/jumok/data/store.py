"""The token store: a corpus encoded once, kept in a cache folder, and read through memory maps.

    cache/KEY/shard-00000/source.bin      the shard's source ids end to end, uint16 or uint32 (no special tokens)
                         /source.lengths  int32                             … and the same two for the target
                         /lines.bin       the pair's number in the corpus, counted from 0, int64
             /source.offsets  over all shards: where each sentence begins, int64, one more than there are sentences
             /source.lengths  int32                             … and the same two for the target
             /lines.bin       int64
             /meta.json       counts, what was left out, and the size of every file; written last

KEY is a hash of the files' content, both tokenizers and the limit: whatever changes makes another store. How stores are
built, and shared between processes that want the same one, is in `sharding.py`. Nothing here grows with the corpus but
files; what a batch costs depends neither on the corpus nor on the number of shards.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from jumok.data.batch import END, START, PairBatch, Sequences
from jumok.data.folders import UNREADABLE, default_cache, disk_trouble, put
from jumok.data.hashes import Hashes
from jumok.data.joined import Joined
from jumok.data.sharding import build
from jumok.data.store_build import FORMATS, SIDES, PairEncoder, store_key
from jumok.data.stored import IntArray, Stored
from jumok.recipe import Corpus
from jumok.text.tokenizer import Tokenizer

__all__ = ["TokenStore", "default_cache"]

MEMORY_SHARE = 0.5  # of what is installed: a smaller store stays in memory once it was read


def installed_memory() -> float:
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):  # not on every system; there nothing can be announced either
        return math.inf


class TokenStore(Stored):
    """Sentence pairs as token ids, by number. Lengths are without special tokens."""

    formats = FORMATS

    def __init__(self, folder: Path, meta: dict[str, Any]) -> None:
        super().__init__(folder, meta)
        self._source, self._target = (Joined(self.maps(f"{side}.bin", np.dtype(meta["ids"][side]))) for side in SIDES)
        self._source_offsets, self._target_offsets = (self.map(f"{side}.offsets", np.int64) for side in SIDES)
        self.source_lengths, self.target_lengths = (self.map(f"{side}.lengths", np.int32) for side in SIDES)
        self._lines = self.map("lines.bin", np.int64)
        self.exceeds_memory = sum(meta["sizes"].values()) > MEMORY_SHARE * installed_memory()
        if self.exceeds_memory:
            self._source.scattered()
            self._target.scattered()

    @classmethod
    def open_or_build(
        cls,
        corpus: Corpus,
        split: str,
        source: Tokenizer,
        target: Tokenizer,
        cache: Path,
        max_length: int,
        progress: Callable[[str], None] | None = None,
        processes: int | None = None,
    ) -> TokenStore:
        """The corpus's store from the cache, built first when it is not there. `progress` is told in sentences.

        It is built by as many processes as this one may use threads, unless `processes` says how many.
        """
        say = progress or (lambda message: None)
        encoder = PairEncoder(corpus, split, source, target, max_length)
        folder = cache / store_key(corpus, split, source, target, max_length, Hashes(cache))
        return cls.open_or_make(folder, lambda: build(folder, encoder, say, processes or torch.get_num_threads()), say)

    def __len__(self) -> int:
        return len(self._lines)

    def line(self, index: int) -> int:
        """The pair's number in the corpus, counted from 0, pairs that were left out included."""
        return int(self._lines[index])

    def notes(self) -> list[str]:
        """What was left out, in sentences."""
        reasons = {"blank": "one side is empty", "long": f"longer than {self.meta['max_length']} tokens"}
        notes = []
        for name, reason in reasons.items():
            count, first = self.meta[f"skipped_{name}"], self.meta[f"first_{name}"]
            if count:
                where = ", ".join(str(line + self.meta["first_line"]) for line in first)
                more = ", …" if count > len(first) else ""
                pairs = "1 pair is" if count == 1 else f"{count:,} pairs are"
                notes.append(f"{pairs} left out, {reason} (line{'s' * (count > 1)} {where}{more})")
        return notes

    def pair(self, index: int) -> tuple[IntArray, IntArray]:
        """Source and target ids of one pair, without special tokens."""
        s, t = self._source_offsets, self._target_offsets
        return self._source[s[index] : s[index + 1]], self._target[t[index] : t[index + 1]]

    def texts(self, rows: IntArray, read: Callable[[], Iterable[tuple[str, str]]]) -> list[tuple[str, str]]:
        """Pairs as they stand in the files, in the files' order. `read` goes through them, once: what was found is kept
        beside the store, for the next session of a run."""
        lines = np.sort(self._lines[rows])
        path = self.folder / f"texts-{hashlib.sha256(lines.tobytes()).hexdigest()[:16]}.json"
        with contextlib.suppress(*UNREADABLE):
            return [(source, target) for source, target in json.loads(path.read_text(encoding="utf-8"))]
        wanted, last = set(lines.tolist()), int(lines.max())
        found = [pair for line, pair in islice(enumerate(read()), last + 1) if line in wanted]
        with disk_trouble(self.folder):
            put(path, json.dumps(found))
        return found

    def announce(self, rows: IntArray) -> None:
        """These pairs will be asked for soon. It matters where the store does not stay in memory."""
        if self.exceeds_memory:
            self._source.announce(self._source_offsets[rows], self.source_lengths[rows])
            self._target.announce(self._target_offsets[rows], self.target_lengths[rows])

    def batch(self, indices: Sequence[int] | IntArray, corpus: int = 0) -> PairBatch:
        """The pairs side by side: `tokens <eos>` and `<sos> tokens <eos>`."""
        rows = np.asarray(indices, dtype=np.int64)
        source = _padded(self._source, self._source_offsets[rows], self.source_lengths[rows], ())
        target = _padded(self._target, self._target_offsets[rows], self.target_lengths[rows], (START,))
        return PairBatch(source, target, tuple(rows.tolist()), corpus)


def _padded(ids: Joined, starts: IntArray, lengths: IntArray, before: tuple[int, ...]) -> Sequences:
    """Rows with what comes before and after each: this is on the way of every training batch."""
    full = lengths.astype(np.int64) + len(before) + 1
    ends = np.cumsum(full)
    begins = ends - full
    flat = np.empty(int(full.sum()), dtype=np.int64)
    ids.copy(starts, lengths, flat, begins + len(before))
    for place, token in enumerate(before):
        flat[begins + place] = token
    flat[ends - 1] = END
    return Sequences.of_flat(flat, full)
