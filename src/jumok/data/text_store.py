"""Running text, encoded once, kept in a cache folder, and read through memory maps.

    cache/KEY/text.bin      all ids end to end, uint16 or uint32; every line ends in <eos>, blank lines too
             /text.offsets  where each line begins, int64, one more than there are lines
             /meta.json     counts and the size of every file; written last

The text is a ring: before its first token comes its last, the <eos> of the last line. So every token has one before it
that it is predicted from, and a window may begin anywhere. KEY is a hash of the files' content and the tokenizer.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from jumok.data.batch import END, UNKNOWN
from jumok.data.readers import GRAMMAR_SEED, file_hash, read_lines
from jumok.data.store_build import CHUNK_CHARACTERS, CHUNK_PAIRS, SAY_SECONDS, make_whole
from jumok.data.stored import Stored
from jumok.errors import BadInput, did_you_mean
from jumok.recipe import Corpus
from jumok.text.tokenizer import Tokenizer

FORMAT = 1
FILES = ("text.bin", "text.offsets")
Say = Callable[[str], None]


def read_text(corpus: Corpus, split: str = "train") -> Iterator[str]:
    """All lines of a corpus in order, blank ones too."""
    if corpus.grammar is not None:
        yield from _grammar_lines(corpus, split)
    for file in corpus.text:
        lines = words = 0
        for line in read_lines(file):
            lines += 1
            words += not line.isspace() and bool(line)
            yield line
        if not lines:
            raise BadInput(f"{file}: the file is empty")
        if not words:
            raise BadInput(f"{file}: only blank lines ({lines})")


def _grammar_lines(corpus: Corpus, split: str) -> Iterator[str]:
    """The sentences of one language, each a line."""
    from jumok.data import grammar

    language = str(corpus.grammar)
    if language not in grammar.LANGUAGES:
        raise BadInput(f'the grammar has no "{language}".{did_you_mean(language, grammar.LANGUAGES)}')
    other = "en" if language != "en" else "fr"  # sentences are drawn as pairs: these are the sources of those
    for pair in grammar.pairs(language, other, corpus.split or split, corpus.pairs, GRAMMAR_SEED):
        yield pair.source


def text_hash(corpus: Corpus, split: str = "train") -> str:
    """SHA-256 of what `read_text` depends on: the files' bytes, not what they are called."""
    parts: list[Any] = ["jumok text 1"]
    if corpus.grammar is not None:
        from jumok.data import grammar

        parts += ["grammar", grammar.fingerprint(), corpus.grammar, corpus.split or split, corpus.pairs, GRAMMAR_SEED]
    parts += [file_hash(file) for file in corpus.text]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


class TextStore(Stored):
    """A text as token ids, by position. `ids` and `starts` are memory maps."""

    format = FORMAT

    def __init__(self, folder: Path, meta: dict[str, Any]) -> None:
        super().__init__(folder, meta)
        self.ids = self.map("text.bin", np.dtype(meta["ids"]))
        self.starts = self.map("text.offsets", np.int64)

    @classmethod
    def open_or_build(
        cls, corpus: Corpus, split: str, tokenizer: Tokenizer, cache: Path, say: Say | None = None
    ) -> TextStore:
        """The text's store from the cache, built first when it is not there."""
        tell = say or (lambda message: None)
        key = [FORMAT, text_hash(corpus, split), tokenizer.fingerprint]
        folder = cache / hashlib.sha256(json.dumps(key).encode()).hexdigest()[:32]

        def write(files: Mapping[str, BinaryIO]) -> dict[str, Any]:
            return _write(files, read_text(corpus, split), tokenizer, tell)

        return cls.open_or_make(folder, lambda: make_whole(folder, FILES, write, cls.is_whole), tell)

    def __len__(self) -> int:
        """How many tokens, every line's <eos> included."""
        return len(self.ids)

    @property
    def lines(self) -> int:
        return len(self.starts) - 1

    def line_at(self, position: int) -> int:
        """The line that a token stands in, counted from 0."""
        return int(np.searchsorted(self.starts, position, side="right")) - 1

    def notes(self) -> list[str]:
        """What its reader should know, in sentences."""
        unknown, tokens = self.meta["unknown"], len(self)
        if not unknown:
            return []
        return [f"{unknown:,} of {tokens:,} tokens ({unknown / tokens:.1%}) are not in the vocabulary"]


def _write(files: Mapping[str, BinaryIO], lines: Iterator[str], tokenizer: Tokenizer, say: Say) -> dict[str, Any]:
    """Encode chunk after chunk; memory stays flat."""
    dtype = np.dtype(np.uint16 if tokenizer.size <= 1 << 16 else np.uint32)
    files["text.offsets"].write(np.zeros(1, np.int64).tobytes())
    written = count = unknown = 0
    spoken = time.monotonic()
    for chunk in _chunks(lines):
        rows = tokenizer.encode(chunk)
        flat = np.fromiter((id for row in rows for id in (*row, END)), dtype)
        ends = written + np.cumsum([len(row) + 1 for row in rows], dtype=np.int64)
        files["text.bin"].write(flat.tobytes())
        files["text.offsets"].write(ends.tobytes())
        written, count = int(ends[-1]), count + len(rows)
        unknown += int((flat == UNKNOWN).sum())
        if time.monotonic() - spoken > SAY_SECONDS:
            say(f"encoding: {count:,} lines")
            spoken = time.monotonic()
    return {"format": FORMAT, "ids": dtype.str, "lines": count, "tokens": written, "unknown": unknown}


def _chunks(lines: Iterator[str]) -> Iterator[list[str]]:
    chunk: list[str] = []
    characters = 0
    for line in lines:
        chunk.append(line)
        characters += len(line)
        if len(chunk) >= CHUNK_PAIRS or characters >= CHUNK_CHARACTERS:
            yield chunk
            chunk, characters = [], 0
    if chunk:
        yield chunk
