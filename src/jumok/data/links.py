"""Which tokens of each training pair belong together: word alignments, as a model sees its words.

A file in the Pharaoh format has a line for each pair, and counts words. A model counts tokens: a link between two words
becomes links between all tokens of one and all tokens of the other. That is worked out once and kept beside the store.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

import numpy as np

from jumok.data.pharaoh import Link, check_range, parse_pharaoh
from jumok.data.readers import read_lines, read_pairs
from jumok.data.store import TokenStore
from jumok.data.stored import Column, IntArray, column
from jumok.errors import BadInput
from jumok.recipe import Corpus
from jumok.text.tokenizer import Encoded, Tokenizer

TARGETS = 2**31  # more tokens than any sentence has


class Places(NamedTuple):
    """Links of some pairs: three columns, one entry for each link."""

    row: IntArray  # the pair's place among those asked for
    target: IntArray  # the token, counted from 0; at this position the decoder is to write it
    source: IntArray  # the token, counted from 0, tags included


class TokenLinks:
    """The links of all pairs of a store, end to end: those of pair n are links[offsets[n] : offsets[n + 1]].

    A link is one number, source · 2³¹ + target. Both columns are mapped from a file: a large corpus takes no memory.
    """

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
        """`content`: the hash of the file with the alignments, which names what is kept beside the store."""

        def make() -> list[Column]:
            say(f"reading the alignments {corpus.alignments} …")
            offsets, links = array("q", [0]), array("q")
            for of_pair in _of_pairs(corpus, split, store, tokenizers):
                links.extend(source * TARGETS + target for source, target in of_pair)
                offsets.append(len(links))
            if not links:
                raise BadInput(f"{corpus.alignments} has no link between words of the pairs that are learned from")
            return [column(np.frombuffer(numbers, np.int64)) for numbers in (offsets, links)]

        return cls(*store.kept(f"links-{content[:32]}.bin", make))

    def of(self, indices: Sequence[int]) -> Places:
        """The links of these pairs of the store."""
        pairs = np.asarray(indices, dtype=np.int64)
        starts, counts = self.offsets[pairs], self.offsets[pairs + 1] - self.offsets[pairs]
        row = np.repeat(np.arange(len(pairs)), counts)
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)[:-1]]) if len(pairs) else counts
        source, target = np.divmod(self.links[np.arange(len(row)) - before[row] + starts[row]], TARGETS)
        return Places(row, target, source)


def _of_pairs(
    corpus: Corpus, split: str, store: TokenStore, tokenizers: tuple[Tokenizer, Tokenizer]
) -> Iterator[list[Link]]:
    """For each pair of the store, in its order (that of the files): its links, source and target token."""
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
        advice = "If the file counts words from 1, make it count from 0."
        check_range(links, len(source.split()), len(target.split()), where, advice)
        read, written = tokenizers[0].encode_with_offsets(source), tokenizers[1].encode_with_offsets(target)
        yield _by_tokens(links, read, written, tags=int(store.source_lengths[row]) - len(read.ids))
        row += 1


def _by_tokens(links: set[Link], source: Encoded, target: Encoded, tags: int) -> list[Link]:
    places = [_places_of_words(side) for side in (source, target)]
    return [
        (tags + s, t) for one, other in sorted(links) for s in places[0].get(one, ()) for t in places[1].get(other, ())
    ]


def _places_of_words(side: Encoded) -> dict[int, list[int]]:
    places: dict[int, list[int]] = {}
    for place, word in enumerate(side.words):
        if word is not None:
            places.setdefault(word, []).append(place)
    return places
