"""Building a store of running text: what one shard of lines becomes. See `text_store.py` for the layout."""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from jumok.data.readers import GRAMMAR_SEED, file_hash, read_lines
from jumok.data.sharding import Encoder, Items
from jumok.data.store_build import CHUNK_CHARACTERS, CHUNK_PAIRS, grammar_shards, id_type
from jumok.data.survey import Shard, survey
from jumok.errors import BadInput, did_you_mean
from jumok.recipe import Corpus
from jumok.text.tokenizer import Tokenizer

FORMATS = (1, 2)  # 1: all tokens in one file; it is still read
KEY_FORMAT = 1  # a part of the key, which runs remember: it did not change with the layout on the disk


def read_text(corpus: Corpus, split: str = "train") -> Iterator[str]:
    """All lines of a corpus in order, blank ones too."""
    if corpus.grammar is not None:
        yield from grammar_lines(corpus, split)
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


def grammar_lines(corpus: Corpus, split: str) -> Iterator[str]:
    """The sentences of one language, each a line."""
    from jumok.data import grammar

    language = str(corpus.grammar)
    if language not in grammar.LANGUAGES:
        raise BadInput(f'the grammar has no "{language}".{did_you_mean(language, grammar.LANGUAGES)}')
    other = "en" if language != "en" else "fr"  # sentences are drawn as pairs: these are the sources of those
    for pair in grammar.pairs(language, other, corpus.split or split, corpus.pairs, GRAMMAR_SEED):
        yield pair.source


def text_hash(corpus: Corpus, split: str = "train", hash_of: Callable[[str], tuple[str, str]] | None = None) -> str:
    """SHA-256 of what `read_text` depends on: the files' bytes, not what they are called.

    `hash_of` may be a `file_hash` with a memory.
    """
    parts: list[Any] = ["jumok text 1"]
    if corpus.grammar is not None:
        from jumok.data import grammar

        parts += ["grammar", grammar.fingerprint(), corpus.grammar, corpus.split or split, corpus.pairs, GRAMMAR_SEED]
    parts += [(hash_of or file_hash)(file) for file in corpus.text]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def text_key(
    corpus: Corpus, split: str, tokenizer: Tokenizer, hash_of: Callable[[str], tuple[str, str]] | None = None
) -> str:
    key = [KEY_FORMAT, text_hash(corpus, split, hash_of), tokenizer.fingerprint]
    return hashlib.sha256(json.dumps(key).encode()).hexdigest()[:32]


class TextEncoder(Encoder):
    """Lines as token ids, each with its <eos>; blank ones too."""

    names = ("text.bin", "text.lengths")
    index = ("text.offsets",)
    format = FORMATS[-1]
    unit = "lines"

    def __init__(self, corpus: Corpus, split: str, tokenizer: Tokenizer) -> None:
        super().__init__([(file,) for file in corpus.text])
        self.corpus, self.split, self.tokenizer = corpus, split, tokenizer

    def survey(self, size: int) -> list[Shard]:
        if self.corpus.grammar is not None:
            return grammar_shards(self.corpus.pairs, size)
        return survey(self.files, [0] * len(self.files), size, self._refuse_file)

    def items(self, number: int, before: int, at: Sequence[int]) -> Iterator[str]:
        if self.corpus.grammar is not None:
            return islice(grammar_lines(self.corpus, self.split), before, None)
        return read_lines(self.corpus.text[number], before, at[0] if at else None)

    def write(self, files: Mapping[str, BinaryIO], items: Items, first: int) -> dict[str, Any]:
        specials = self.tokenizer.specials
        count = tokens = unknown = 0
        with_text: set[int] = set()  # files that have any
        for chunk in _chunks(items, with_text):
            rows = self.tokenizer.encode(chunk)
            ids = np.array(list(chain.from_iterable((*row, specials.end) for row in rows)), id_type(self.tokenizer))
            files["text.bin"].write(ids.tobytes())
            files["text.lengths"].write(np.array([len(row) + 1 for row in rows], np.int64).tobytes())
            count, tokens, unknown = (
                count + len(rows),
                tokens + len(ids),
                unknown + int((ids == specials.unknown).sum()),
            )
        return {"lines": count, "tokens": tokens, "unknown": unknown, "with_text": sorted(with_text)}

    def join(self, shards: Sequence[tuple[Path, dict[str, Any]]], files: Mapping[str, BinaryIO]) -> dict[str, Any]:
        metas = [meta for _, meta in shards]
        with_text = {number for meta in metas for number in meta["with_text"]}
        for number in range(len(self.files)):
            if number not in with_text:
                self._refuse_file(number)
        end = 0
        files["text.offsets"].write(np.zeros(1, np.int64).tobytes())
        for folder, meta in shards:
            files["text.offsets"].write((end + np.cumsum(np.fromfile(folder / "text.lengths", np.int64))).tobytes())
            end += meta["tokens"]
        counts = {name: sum(meta[name] for meta in metas) for name in ("lines", "tokens", "unknown")}
        return {"format": self.format, "ids": id_type(self.tokenizer).str, **counts}

    def _refuse_file(self, number: int) -> None:
        """Read one of the files by itself, for what the reader has to say against it."""
        deque(read_text(Corpus(text=[self.corpus.text[number]])), maxlen=0)


def _chunks(items: Items, with_text: set[int]) -> Iterator[list[str]]:
    chunk: list[str] = []
    characters = 0
    for file, line in items:
        if line and not line.isspace():
            with_text.add(file)
        chunk.append(line)
        characters += len(line)
        if len(chunk) >= CHUNK_PAIRS or characters >= CHUNK_CHARACTERS:
            yield chunk
            chunk, characters = [], 0
    if chunk:
        yield chunk
