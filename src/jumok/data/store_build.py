"""Building a token store: what one shard of sentence pairs becomes. See `store.py` for the layout, `sharding.py` for
the way from shards to a store."""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from jumok.data.readers import content_hash, file_pairs, files_of, first_line, grammar_pairs, header_lines, read_pairs
from jumok.data.sharding import Encoder, Items
from jumok.data.survey import Shard, survey
from jumok.errors import BadInput
from jumok.recipe import Corpus
from jumok.text.tokenizer import Tokenizer

FORMATS = (1, 2)  # 1: all tokens in one file; it is still read
KEY_FORMAT = 1  # a part of the key, which runs remember: it did not change with the layout on the disk
CHUNK_PAIRS = 8192
CHUNK_CHARACTERS = 4 << 20  # lines of a megabyte come in small chunks
SHOWN_LINES = 5
SIDES = ("source", "target")
REASONS = ("blank", "long")


def store_key(
    corpus: Corpus,
    split: str,
    source: Tokenizer,
    target: Tokenizer,
    max_length: int,
    hash_of: Callable[[str], tuple[str, str]] | None = None,
) -> str:
    content = content_hash(corpus, split, hash_of)
    parts = [KEY_FORMAT, content, source.fingerprint, target.fingerprint, max_length]
    if corpus.tag is not None:
        parts.append(corpus.tag)
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def id_type(tokenizer: Tokenizer) -> np.dtype[Any]:
    return np.dtype(np.uint16 if tokenizer.size <= 1 << 16 else np.uint32)


def grammar_shards(total: int, size: int) -> list[Shard]:
    return [Shard(n, start, min(size, total - start), 0, start) for n, start in enumerate(range(0, total, size))]


class PairEncoder(Encoder):
    """Sentence pairs as token ids. What is blank or too long is left out and counted."""

    names = ("source.bin", "source.lengths", "target.bin", "target.lengths", "lines.bin")
    index = ("source.offsets", "source.lengths", "target.offsets", "target.lengths", "lines.bin")
    format = FORMATS[-1]
    unit = "pairs"

    def __init__(self, corpus: Corpus, split: str, source: Tokenizer, target: Tokenizer, max_length: int) -> None:
        super().__init__(files_of(corpus))
        self.corpus, self.split, self.max_length = corpus, split, max_length
        self.tokenizers = {"source": source, "target": target}
        self.before = [] if corpus.tag is None else [source.tags[corpus.tag]]  # opens every source

    def survey(self, size: int) -> list[Shard]:
        if self.corpus.grammar is not None:
            return grammar_shards(self.corpus.pairs, size)
        headers = [header_lines(self.corpus, files[0]) if self.corpus.file else 0 for files in self.files]
        return survey(self.files, headers, size, self._refuse_file)

    def items(self, number: int, before: int, at: Sequence[int]) -> Iterator[tuple[str, str]]:
        if self.corpus.grammar is not None:
            return islice(grammar_pairs(self.corpus, self.split), before, None)
        return file_pairs(self.corpus, number, before, at)

    def write(self, files: Mapping[str, BinaryIO], items: Items, first: int) -> dict[str, Any]:
        return _Writer(files, self).run(items, first)

    def join(self, shards: Sequence[tuple[Path, dict[str, Any]]], files: Mapping[str, BinaryIO]) -> dict[str, Any]:
        metas = [meta for _, meta in shards]
        with_text = {number for meta in metas for number in meta["with_text"]}
        for number in range(len(self.files)):
            if number not in with_text:
                self._refuse_file(number)
        if not any(meta["pairs"] for meta in metas):
            self._refuse(metas)
        for side in SIDES:
            files[f"{side}.offsets"].write(np.zeros(1, np.int64).tobytes())
        written = dict.fromkeys(SIDES, 0)
        for folder, _ in shards:
            files["lines.bin"].write((folder / "lines.bin").read_bytes())
            for side in SIDES:
                lengths = np.fromfile(folder / f"{side}.lengths", np.int32)
                ends = written[side] + np.cumsum(lengths, dtype=np.int64)
                written[side] = int(ends[-1]) if len(ends) else written[side]
                files[f"{side}.offsets"].write(ends.tobytes())
                files[f"{side}.lengths"].write(lengths.tobytes())
        meta: dict[str, Any] = {"format": self.format, "max_length": self.max_length}
        meta |= {name: sum(meta[name] for meta in metas) for name in ("pairs", "seen")}
        meta |= {f"skipped_{why}": sum(meta[f"skipped_{why}"] for meta in metas) for why in REASONS}
        for why in REASONS:
            meta[f"first_{why}"] = [line for part in metas for line in part[f"first_{why}"]][:SHOWN_LINES]
        meta |= {f"{side}_tokens": count for side, count in written.items()}
        ids = {side: id_type(tokenizer).str for side, tokenizer in self.tokenizers.items()}
        return meta | {"first_line": first_line(self.corpus), "ids": ids}

    def _refuse_file(self, number: int) -> None:
        """Read one of the files by itself, for what the reader has to say against it."""
        corpus, sides = self.corpus, self.files[number]
        names = ("source", "target") if len(sides) == 2 else ("file",)
        one = corpus.model_copy(update={name: [side] for name, side in zip(names, sides, strict=True)})
        deque(read_pairs(one), maxlen=0)

    def _refuse(self, metas: Sequence[Mapping[str, Any]]) -> None:
        corpus = self.corpus
        place = f"grammar {corpus.grammar}" if corpus.grammar else ", ".join(file for one in self.files for file in one)
        seen, blank, long = (sum(meta[name] for meta in metas) for name in ("seen", "skipped_blank", "skipped_long"))
        reasons = []
        if blank:
            reasons.append(f"{blank:,} with an empty side")
        if long:
            reasons.append(
                f"{long:,} longer than data.max_length={self.max_length} tokens "
                f"(the longest has {max(meta['longest'] for meta in metas):,}; raise data.max_length to keep them)"
            )
        raise BadInput(f"{place}: all {seen:,} pairs had to be left out: {'; '.join(reasons)}")


class _Writer:
    """Appends encoded chunks to the files of a shard."""

    def __init__(self, files: Mapping[str, BinaryIO], encoder: PairEncoder) -> None:
        self.files, self.encoder = files, encoder
        self.kept = self.seen = self.longest = 0
        self.skipped = dict.fromkeys(REASONS, 0)
        self.first: dict[str, list[int]] = {reason: [] for reason in REASONS}
        self.with_text: set[int] = set()  # files that have a pair with text on both sides

    def run(self, items: Items, first: int) -> dict[str, Any]:
        for lines, sources, targets in self._chunks(items, first):
            self._write(lines, sources, targets)
        meta: dict[str, Any] = {"pairs": self.kept, "seen": self.seen, "longest": self.longest}
        meta |= {f"skipped_{reason}": count for reason, count in self.skipped.items()}
        meta |= {f"first_{reason}": lines for reason, lines in self.first.items()}
        return meta | {"with_text": sorted(self.with_text)}

    def _chunks(self, items: Items, first: int) -> Iterator[tuple[list[int], list[str], list[str]]]:
        lines: list[int] = []
        sources: list[str] = []
        targets: list[str] = []
        characters = 0
        for line, (file, (source, target)) in enumerate(items, first):
            self.seen += 1
            if not source.strip() or not target.strip():
                self._skip("blank", line)
                continue
            self.with_text.add(file)
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
        tokenizers, before, limit = self.encoder.tokenizers, self.encoder.before, self.encoder.max_length
        encoded = (tokenizers[side].encode(texts) for side, texts in (("source", sources), ("target", targets)))
        kept: list[tuple[int, list[int], list[int]]] = []
        for line, source, target in zip(lines, *encoded, strict=True):
            longest = max(len(before) + len(source), len(target))
            self.longest = max(self.longest, longest)
            if not source or not target:
                self._skip("blank", line)
            elif longest > limit:
                self._skip("long", line)
            else:
                kept.append((line, [*before, *source], target))
        if not kept:
            return
        self.files["lines.bin"].write(np.array([line for line, _, _ in kept], np.int64).tobytes())
        self._write_side("source", [source for _, source, _ in kept])
        self._write_side("target", [target for _, _, target in kept])
        self.kept += len(kept)

    def _write_side(self, side: str, rows: list[list[int]]) -> None:
        ids = np.array(list(chain.from_iterable(rows)), id_type(self.encoder.tokenizers[side]))
        self.files[f"{side}.bin"].write(ids.tobytes())
        self.files[f"{side}.lengths"].write(np.array([len(row) for row in rows], np.int32).tobytes())
