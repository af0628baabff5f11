"""BPE dropout (Provilkov et al. 2020): in training, a word is cut anew each time it is met.

    repeat: of all merges that are possible in the word, drop each with probability p;
            apply the one of highest priority that is left; end when none is left

That is a walk over the ways to cut a word. At a cut with the candidates m₁ … m_k, by priority, it goes on with m_i with
probability p^(i−1) · (1 − p) and ends with p^k: how many candidates are dropped before the first that is kept is all
that is random. So all words of a batch walk at once, in a few array operations a step, on a graph that is extended
where a walk comes first. The numbers come from a generator keyed by (seed, update, …): the result is a pure function
of the key and the batch, whatever was cut before.

Merges never cross what the tokenizer's own rule keeps apart; a word's pieces are found again in the stored ids.
"""

from __future__ import annotations

import hashlib
import json
import math
from array import array
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from tokenizers import Regex, pre_tokenizers

from jumok.errors import BadInput
from jumok.text.pipeline import SPACE, byte_of_character
from jumok.text.tokenizer import Tokenizer

KINDS = ("bpe", "byte")
MOST_CUTS = 1_000_000  # kept in the graph (about 250 MB), then it is begun anew
IntArray = npt.NDArray[np.int64]


def refuse_kind(kind: str) -> None:
    if kind not in KINDS:
        raise BadInput(
            f"training.bpe_dropout: it drops merges, and a tokenizer of kind {kind} has none. "
            f"Use tokenizer.kind {' or '.join(KINDS)}, or leave bpe_dropout out."
        )


class BpeDropout:
    """Cuts rows of a tokenizer's ids anew. The text they stand for stays what it is."""

    def __init__(self, tokenizer: Tokenizer, probability: float) -> None:
        refuse_kind(tokenizer.kind)
        self.probability = probability
        self._words = _Words(tokenizer)

    def __call__(
        self, flat: IntArray, lengths: IntArray, key: Sequence[int], longest: int
    ) -> tuple[IntArray, IntArray]:
        """All rows end to end and their lengths, cut anew; a row that would grow over `longest` stays as it is."""
        if not self.probability or not len(flat):
            return flat, lengths
        if len(self._words.graph) > MOST_CUTS:
            self._words.forget()
        starts, rows = self._words.find(flat, lengths)
        digest = hashlib.blake2b(repr(tuple(key)).encode(), digest_size=16).digest()
        random = np.random.Generator(np.random.Philox(key=int.from_bytes(digest, "little")))
        ends = self._walk(starts, random)
        graph = self._words.graph
        grown = np.bincount(rows, graph.sizes(ends), len(lengths)).astype(np.int64)
        too_long = (grown > np.maximum(longest, lengths))[rows]
        if too_long.any():
            ends[too_long] = self._walk(starts[too_long], None)
            grown = np.bincount(rows, graph.sizes(ends), len(lengths)).astype(np.int64)
        return graph.pieces(ends), grown

    def _walk(self, starts: IntArray, random: np.random.Generator | None) -> IntArray:
        """Where the walk from each start ends; without random numbers no candidate is ever dropped."""
        graph = self._words.graph
        cuts, walking = starts.copy(), np.arange(len(starts))
        while walking.size:
            dropped: Any = 0
            if random is not None:  # P(at least i are dropped) = p^i, so i = ⌊log u / log p⌋ with u from (0, 1]
                dropped = np.log(1.0 - random.random(walking.size)) / math.log(self.probability)
                dropped = np.minimum(dropped, 2**31 - 1).astype(np.int64)
            goes_on = dropped < graph.choices(cuts[walking])
            walking = walking[goes_on]
            cuts[walking] = graph.follow(cuts[walking], dropped[goes_on] if random is not None else 0)
        return cuts


class _Graph:
    """Ways to cut words, numbered in the order of discovery, and the merges that lead from one to another."""

    def __init__(self, merges: dict[tuple[int, int], tuple[int, int]]) -> None:
        self.merges = merges  # pair of ids → (rank, id of both together)
        self.numbers: dict[bytes, int] = {}
        # of each cut: where its pieces begin, how many; where its ways out begin, how many
        self._begin, self._size, self._out, self._choices = array("i"), array("i"), array("i"), array("i")
        self._pieces = array("i")
        self._following = array("i")  # the cut that each way out leads to, −1 where nobody went yet

    def __len__(self) -> int:
        return len(self._size)

    def number(self, pieces: array[int]) -> int:
        """The number of a cut."""
        name = pieces.tobytes()
        found = self.numbers.get(name)
        if found is None:
            choices = sum(map(self.merges.__contains__, pairwise(pieces)))
            found = self.numbers[name] = self.add(pieces, choices)
        return found

    def add(self, pieces: array[int], choices: int) -> int:
        self._begin.append(len(self._pieces))
        self._size.append(len(pieces))
        self._pieces.extend(pieces)
        self._out.append(len(self._following))
        self._choices.append(choices)
        self._following.extend([-1] * choices)
        return len(self._size) - 1

    def next(self, cut: int, choice: int) -> int:
        """One step by the merge with this place among the candidates, by priority and then from the left."""
        way = self._out[cut] + choice
        if self._following[way] < 0:
            begin = self._begin[cut]
            pieces = self._pieces[begin : begin + self._size[cut]]
            candidates = [
                (*merge, place) for place, merge in enumerate(map(self.merges.get, pairwise(pieces))) if merge
            ]
            _, merged, place = sorted(candidates)[choice] if choice else min(candidates)
            self._following[way] = self.number(pieces[:place] + array("i", [merged]) + pieces[place + 2 :])
        return self._following[way]

    def last(self, cut: int) -> int:
        """Where a walk that drops nothing ends."""
        while self._choices[cut]:
            cut = self.next(cut, 0)
        return cut

    def pieces_of(self, cut: int) -> list[int]:
        return self._pieces[self._begin[cut] : self._begin[cut] + self._size[cut]].tolist()

    def sizes(self, cuts: IntArray) -> IntArray:
        return _view(self._size)[cuts]

    def choices(self, cuts: IntArray) -> IntArray:
        return _view(self._choices)[cuts]

    def follow(self, cuts: IntArray, dropped: IntArray | int) -> IntArray:
        """One step for many."""
        ways = _view(self._out)[cuts] + dropped
        following = _view(self._following)[ways]
        for place in np.flatnonzero(following < 0).tolist():
            cut = int(cuts[place])
            following[place] = self.next(cut, int(ways[place]) - self._out[cut])
        return following

    def pieces(self, cuts: IntArray) -> IntArray:
        """The pieces of all cuts end to end."""
        sizes = self.sizes(cuts)
        before = np.cumsum(sizes) - sizes
        places = np.repeat(_view(self._begin)[cuts] - before, sizes) + np.arange(int(sizes.sum()))
        return _view(self._pieces)[places].astype(np.int64)


def _view(numbers: array[int]) -> npt.NDArray[Any]:
    """Not to be kept: an array that is looked at cannot grow."""
    return np.frombuffer(numbers, dtype=np.intc)


class _Words:
    """The words in rows of ids, each as the cut where its walk starts: every character by itself."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        content = json.loads(tokenizer.content)
        vocabulary: dict[str, int] = content["model"]["vocab"]
        self.tokens = {id: token for token, id in vocabulary.items()}
        self.vocabulary = vocabulary
        self.merges = {
            (vocabulary[left], vocabulary[right]): (rank, vocabulary[left + right])
            for rank, (left, right) in enumerate(content["model"]["merges"])
        }
        steps = content["pre_tokenizer"]["pretokenizers"]
        pattern = next(step["pattern"]["Regex"] for step in steps if step["type"] == "Split")
        self.splitter = pre_tokenizers.Split(Regex(pattern), "isolated")
        self.bytes = byte_of_character() if tokenizer.kind == "byte" else {}
        self.characters = {byte: character for character, byte in self.bytes.items()}
        space = self.characters[ord(" ")] if self.bytes else SPACE
        self.special = np.array([tokenizer.is_special(id) for id in range(tokenizer.size)])
        self.opening = self.special.copy()  # ids that begin something new
        self.opening[[id for token, id in vocabulary.items() if token.startswith(space)]] = True
        self.forget()

    def forget(self) -> None:
        self.graph = _Graph(self.merges)
        self.known: dict[bytes, tuple[int, ...]] = {}

    def find(self, flat: IntArray, lengths: IntArray) -> tuple[IntArray, IntArray]:
        """The start of each word, and the row that it stands in."""
        flat = np.ascontiguousarray(flat, dtype=np.int64)
        opening = self.opening[flat]
        opening[1:] |= self.special[flat[:-1]]
        opening[np.cumsum(lengths[:-1])] = True
        opening[0] = True
        begins = np.flatnonzero(opening)
        raw, known = flat.tobytes(), self.known
        names = [raw[begin:end] for begin, end in pairwise([*(8 * begins).tolist(), len(raw)])]
        words = [known.get(name) or self._learn(name) for name in names]
        rows = np.repeat(np.arange(len(lengths)), lengths)[begins]
        counts = np.fromiter(map(len, words), np.int64, len(words))
        starts = np.fromiter(chain.from_iterable(words), np.int64, int(counts.sum()))
        return starts, np.repeat(rows, counts)

    def _learn(self, name: bytes) -> tuple[int, ...]:
        ids: list[int] = np.frombuffer(name, np.int64).tolist()
        try:
            starts = tuple(self.graph.number(array("i", [self.vocabulary[c] for c in part])) for part in self._cut(ids))
            back = [id for start in starts for id in self.graph.pieces_of(self.graph.last(start))]
        except (KeyError, UnicodeDecodeError):  # not text of known characters
            back = []
        if back != ids:  # special tokens, and whatever we would not cut as the tokenizer did: left alone
            starts = (self.graph.add(array("i", ids), 0),)
        self.known[name] = starts
        return starts

    def _cut(self, ids: list[int]) -> Iterator[str]:
        """The stretches that merges stay within."""
        if self.special[ids[0]]:  # it stands alone
            return
        text = "".join(self.tokens[id] for id in ids)
        if self.bytes:
            text = bytes(self.bytes[character] for character in text).decode()
        for part, _ in self.splitter.pre_tokenize_str(text):
            yield "".join(self.characters[byte] for byte in part.encode()) if self.bytes else part
