"""The token store: a corpus encoded once, kept in a cache folder, and read through memory maps.

    cache/KEY/source.bin      all source ids end to end, uint16 or uint32 (no special tokens)
             /source.offsets  where each sentence begins, int64, one more than there are sentences
             /source.lengths  int32                             … and the same three for the target
             /lines.bin       the pair's number in the corpus, counted from 0, int64
             /meta.json       counts, what was left out, and the size of every file; written last

KEY is a hash of the files' content, both tokenizers and the limit: whatever changes makes another store. A store is
built under a temporary name and renamed, so a folder under its final name is always whole; processes that build the
same one at the same time do the work twice and keep one. Nothing here grows with the corpus but files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from jumok.data.batch import END, START, PairBatch, Sequences
from jumok.data.store_build import FORMAT, build, default_cache, disk_trouble, reserve, sizes_of, store_key
from jumok.data.stored import IntArray, Stored
from jumok.recipe import Corpus
from jumok.text.tokenizer import Tokenizer

__all__ = ["TokenStore", "default_cache"]

SIDES = ("source", "target")


class TokenStore(Stored):
    """Sentence pairs as token ids, by number. Lengths are without special tokens."""

    format = FORMAT

    def __init__(self, folder: Path, meta: dict[str, Any]) -> None:
        super().__init__(folder, meta)
        self._source = self.map("source.bin", np.dtype(meta["ids"]["source"]))
        self._target = self.map("target.bin", np.dtype(meta["ids"]["target"]))
        self._source_offsets, self._target_offsets = (self.map(f"{side}.offsets", np.int64) for side in SIDES)
        self.source_lengths, self.target_lengths = (self.map(f"{side}.lengths", np.int32) for side in SIDES)
        self._lines = self.map("lines.bin", np.int64)

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
    ) -> TokenStore:
        """The corpus's store from the cache, built first when it is not there. `progress` is told in sentences."""
        say = progress or (lambda message: None)
        folder = cache / store_key(corpus, split, source, target, max_length)

        def make() -> None:
            build(folder, corpus, split, source, target, max_length, say, cls.is_whole)

        return cls.open_or_make(folder, make, say)

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

    def batch(self, indices: Sequence[int] | IntArray, corpus: int = 0) -> PairBatch:
        """The pairs side by side: `tokens <eos>` and `<sos> tokens <eos>`."""
        rows = np.asarray(indices, dtype=np.int64)
        source = _padded(self._source, self._source_offsets[rows], self.source_lengths[rows], ())
        target = _padded(self._target, self._target_offsets[rows], self.target_lengths[rows], (START,))
        return PairBatch(source, target, tuple(rows.tolist()), corpus)

    def kept(self, name: str, dtype: npt.DTypeLike, count: int, write: Callable[[IntArray], None]) -> IntArray:
        """An array derived from the store, computed once by `write` into a file beside it and mapped from there."""
        path = self.folder / name
        if sizes_of(self.folder, [name]).get(name) != count * np.dtype(dtype).itemsize:
            with disk_trouble(self.folder) as temporary:
                reserve(temporary, count * np.dtype(dtype).itemsize)
                array = np.memmap(temporary, dtype=dtype, mode="r+", shape=(count,))
                write(array)
                array.flush()
                del array
                temporary.replace(path)
        return self.map(name, dtype)


def _padded(ids: IntArray, starts: IntArray, lengths: IntArray, before: tuple[int, ...]) -> Sequences:
    """Gather rows from the flat file with a few array operations: this is on the way of every training batch."""
    lengths = lengths.astype(np.int64)
    full = lengths + len(before) + 1
    ends = np.cumsum(full)
    flat = np.empty(int(ends[-1]) if len(full) else 0, dtype=np.int64)
    begins = ends - full
    places = np.arange(int(lengths.sum()))
    within = places - np.repeat(np.cumsum(lengths) - lengths, lengths)  # position inside its sentence
    flat[np.repeat(begins + len(before), lengths) + within] = ids[np.repeat(starts, lengths) + within]
    for place, token in enumerate(before):
        flat[begins + place] = token
    flat[ends - 1] = END
    return Sequences.of_flat(flat, full)
