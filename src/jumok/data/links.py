"""Which tokens of each training pair belong together: word alignments, as a model sees its words.

A file in the Pharaoh format has a line for each pair, and counts words. A model counts tokens: a link between two words
becomes links between all tokens of one and all tokens of the other. That is worked out once and kept beside the store.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

import numpy as np

from jumok.data.folders import UNREADABLE, disk_trouble
from jumok.data.pharaoh import check_range, parse_pharaoh
from jumok.data.readers import read_lines, read_pairs
from jumok.data.store import TokenStore
from jumok.data.stored import IntArray
from jumok.errors import BadInput
from jumok.recipe import Corpus
from jumok.text.tokenizer import Encoded, Tokenizer


class Places(NamedTuple):
    """Links of some pairs: three columns, one entry for each link."""

    row: IntArray  # the pair's place among those asked for
    target: IntArray  # the token, counted from 0; at this position the decoder is to write it
    source: IntArray  # the token, counted from 0, tags included


class TokenLinks:
    """The links of all pairs of a store, end to end: those of pair n are links[offsets[n] : offsets[n + 1]]."""

    def __init__(self, offsets: IntArray, links: IntArray) -> None:
        self.offsets, self.links = offsets, links

    @classmethod
    def open_or_build(
        cls,
        corpus: Corpus,
        split: str,
        store: TokenStore,
        tokenizers: tuple[Tokenizer, Tokenizer],
        content: str,
        say: Callable[[str], None],
    ) -> TokenLinks:
        """`content`: the hash of the file with the alignments, which names what is kept."""
        kept = store.folder / f"links-{content[:16]}.npz"
        with contextlib.suppress(*UNREADABLE), np.load(kept) as found:
            return cls(found["offsets"], found["links"])
        say(f"reading the alignments {corpus.alignments} …")
        pieces = list(_of_pairs(corpus, split, store, tokenizers))
        counts = np.array([len(piece) for piece in pieces], dtype=np.int64)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        links = np.concatenate([np.zeros((0, 2), np.int32), *pieces])
        if not len(links):
            raise BadInput(f"{corpus.alignments} has no link between words of the pairs that are learned from")
        with disk_trouble(store.folder) as temporary:
            with temporary.open("wb") as file:
                np.savez(file, offsets=offsets, links=links)
            temporary.replace(kept)
        return cls(offsets, links)

    def of(self, indices: Sequence[int]) -> Places:
        """The links of these pairs of the store."""
        pairs = np.asarray(indices, dtype=np.int64)
        starts, counts = self.offsets[pairs], self.offsets[pairs + 1] - self.offsets[pairs]
        row = np.repeat(np.arange(len(pairs)), counts)
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)[:-1]]) if len(pairs) else counts
        chosen = self.links[np.arange(len(row)) - before[row] + starts[row]]
        return Places(row, chosen[:, 1].astype(np.int64), chosen[:, 0].astype(np.int64))


def _of_pairs(
    corpus: Corpus, split: str, store: TokenStore, tokenizers: tuple[Tokenizer, Tokenizer]
) -> Iterator[IntArray]:
    """For each pair of the store, in its order (that of the files): (links, 2), source and target token."""
    assert corpus.alignments is not None
    path, row = Path(corpus.alignments), 0
    for number, (pair, line) in enumerate(zip_longest(read_pairs(corpus, split), read_lines(path))):
        if pair is None or line is None:
            what = f"more than {number} lines, but the corpus has {number} pairs"
            if line is None:
                what = f"{number} lines, but the corpus has more pairs"
            raise BadInput(
                f"{path} has {what}: there must be a line for each pair, an empty one where nothing is linked"
            )
        if row == len(store) or store.line(row) != number:
            continue  # left out: empty, or too long
        where, (source, target) = f"{path}, line {number + 1}", pair
        links, _ = parse_pharaoh(line, where=where)
        check_range(links, len(source.split()), len(target.split()), where)
        read, written = tokenizers[0].encode_with_offsets(source), tokenizers[1].encode_with_offsets(target)
        yield _by_tokens(links, read, written, tags=int(store.source_lengths[row]) - len(read.ids))
        row += 1


def _by_tokens(links: set[tuple[int, int]], source: Encoded, target: Encoded, tags: int) -> IntArray:
    places = [_places_of_words(side) for side in (source, target)]
    found = [
        (tags + s, t) for one, other in sorted(links) for s in places[0].get(one, ()) for t in places[1].get(other, ())
    ]
    return np.array(found, dtype=np.int32).reshape(-1, 2)


def _places_of_words(side: Encoded) -> dict[int, list[int]]:
    places: dict[int, list[int]] = {}
    for place, word in enumerate(side.words):
        if word is not None:
            places.setdefault(word, []).append(place)
    return places
