"""Running text, encoded once, kept in a cache folder, and read through memory maps.

    cache/KEY/shard-00000/text.bin      the shard's ids end to end, uint16 or uint32; every line ends in <eos>
                         /text.lengths  of its lines, int64
             /text.offsets  over all shards: where each line begins, int64, one more than there are lines
             /meta.json     counts and the size of every file; written last

The text is a ring: before its first token comes its last, the <eos> of the last line. So every token has one before it
that it is predicted from, and a window may begin anywhere. KEY is a hash of the files' content and the tokenizer.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from jumok.data.hashes import Hashes
from jumok.data.joined import as_one
from jumok.data.sharding import build
from jumok.data.stored import Stored
from jumok.data.text_build import FORMATS, TextEncoder, read_text, text_hash, text_key
from jumok.recipe import Corpus
from jumok.text.tokenizer import Tokenizer

__all__ = ["TextStore", "read_text", "text_hash"]

Say = Callable[[str], None]


class TextStore(Stored):
    """A text as token ids, by position. `ids` and `starts` are memory maps."""

    formats = FORMATS

    def __init__(self, folder: Path, meta: dict[str, Any]) -> None:
        super().__init__(folder, meta)
        self.ids = as_one(self.maps("text.bin", np.dtype(meta["ids"])))
        self.starts = self.map("text.offsets", np.int64)

    @classmethod
    def open_or_build(
        cls,
        corpus: Corpus,
        split: str,
        tokenizer: Tokenizer,
        cache: Path,
        say: Say | None = None,
        processes: int | None = None,
    ) -> TextStore:
        """The text's store from the cache, built first when it is not there, by as many processes as this one may use
        threads, unless `processes` says how many."""
        tell = say or (lambda message: None)
        encoder = TextEncoder(corpus, split, tokenizer)
        folder = cache / text_key(corpus, split, tokenizer, Hashes(cache))
        return cls.open_or_make(
            folder, lambda: build(folder, encoder, tell, processes or torch.get_num_threads()), tell
        )

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
