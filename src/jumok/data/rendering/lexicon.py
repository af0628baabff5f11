"""The words of a split as ids, and the words that must not come up in it.

Two texts are the same word where they differ only in case and in the marks around them. Over the ids y_a … y_b between
the first and the last that are no marks,

    hash = Σ value(y_i) · M^(i − a)        modulo 2⁶⁴

with one value for both cases of a letter, finds such texts among all rows of a batch at once. Two words with one hash
would only cost a second draw.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from jumok.data.rendering.alphabet import Alphabet, Flags
from jumok.data.rendering.held_out import Split, side_of
from jumok.data.rendering.stretches import Ids, Integers, joined
from jumok.data.rendering.words import WordList
from jumok.text.outside import Outside, report_outside

Hashes = npt.NDArray[np.uint64]
MULTIPLIER = 0x9E3779B97F4A7C15
TOGETHER = 1 << 15  # words that are hashed at once
_NONE = Outside(0, 0, ())


@dataclass(frozen=True)
class Lexicon:
    pool: Ids  # the split's words one after the other, in small letters
    starts: Integers  # of each word, the most frequent first
    lengths: Integers
    fixed: Flags  # words that stay as they are: an accent of its own could join another case of its letter
    forbidden: Hashes  # of words that belong to another split, sorted
    left_out: int = 0  # words that cannot be written with the charset, or are too long
    outside: Outside = _NONE  # why
    held_out: bool = True  # False: the split has no words of its own, and these are training's

    def __len__(self) -> int:
        return len(self.starts)

    def is_forbidden(self, hashed: Hashes) -> Flags:
        if not len(self.forbidden):
            return np.zeros(len(hashed), bool)
        places = np.searchsorted(self.forbidden, hashed)
        return self.forbidden[np.minimum(places, len(self.forbidden) - 1)] == hashed


def lexicon_of(listed: WordList, alphabet: Alphabet, split: Split, share: float, max_length: int) -> Lexicon:
    """The words of a split, where this share of all is held out."""
    words = [word for word in listed.words if word]
    ids, long = alphabet.encoded(words)
    lengths = long.astype(np.int64)
    starts = np.cumsum(lengths) - lengths
    fixed = _any(alphabet.clinging[ids] & (ids >= 0), starts)
    fits = ~_any(ids < 0, starts) & (lengths <= max_length)
    for place in np.flatnonzero(fits & fixed):
        text = alphabet.charset.decode(ids[starts[place] : starts[place] + lengths[place]])
        # an accent that begins a word, or joins a letter that had to change its case, would make another character
        alone = alphabet.clinging[ids[starts[place]]]
        fits[place] = not alone and text == words[place]
    sides = np.array([side_of(word, share) if fit else "" for word, fit in zip(words, fits, strict=True)], "U5")
    own = np.flatnonzero(sides == split)
    chosen = own if len(own) else np.flatnonzero(sides == "train")
    refused = [words[place] for place in np.flatnonzero(~fits)]
    others = np.flatnonzero(fits & (sides != split) & (sides != "train"))
    pool = np.where(np.repeat(fixed, lengths), ids, alphabet.lower[ids])
    parts = [
        hashes(*joined(pool, starts[some, None], lengths[some, None], max_length), alphabet)
        for some in np.split(others, range(TOGETHER, len(others), TOGETHER))
    ]
    return Lexicon(
        pool=pool.astype(np.int32),
        starts=starts[chosen],
        lengths=lengths[chosen],
        fixed=fixed[chosen],
        forbidden=np.unique(np.concatenate(parts)),
        left_out=len(refused),
        outside=report_outside(alphabet.charset, ((f'"{word}"', word) for word in refused), max_length),
        held_out=split == "train" or len(own) > 0,
    )


def hashes(ids_BW: Ids, lengths_B: Integers, alphabet: Alphabet) -> Hashes:
    """A number for each row, the same for all rows that are the same word."""
    width = ids_BW.shape[1]
    powers, back = _powers(width, 1), _powers(width, -1)
    solid_BW = alphabet.solid[ids_BW]
    first_B, after_B = solid_BW.argmax(axis=1), width - solid_BW[:, ::-1].argmax(axis=1)
    places = np.arange(width)
    inside_BW = (places >= first_B[:, None]) & (places < np.minimum(after_B, lengths_B)[:, None])
    values_BW = np.where(inside_BW, alphabet.values[ids_BW], 0)
    return (values_BW * powers).sum(axis=1, dtype=np.uint64) * back[first_B]


@cache
def _powers(count: int, sign: int) -> Hashes:
    """M⁰, M¹, M², … modulo 2⁶⁴, or, M being odd, what undoes them."""
    return np.array([pow(MULTIPLIER, sign * place, 2**64) for place in range(count)], np.uint64)


def _any(flags: Flags, starts: Integers) -> Flags:
    """Whether a word has one of these."""
    return np.logical_or.reduceat(flags, starts) if len(starts) else np.zeros(0, bool)
