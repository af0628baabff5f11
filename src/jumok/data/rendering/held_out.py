"""Which words are never trained with: it follows from the word alone.

    u = hash(word without case and without marks around it) / 2⁶⁴
    u < share / 2: valid        u < share: test        otherwise: train

So no list, no order of lists, no upper case and no full stop behind it brings a held-out word into training. What is
too short to be a word always belongs to training: "of" and "17" come up in random strings as well.
"""

from __future__ import annotations

import hashlib
import unicodedata
from typing import Literal

from jumok.text.jamo import is_syllable

Split = Literal["train", "valid", "test"]


def bare(token: str) -> str:
    """A word without the marks around it: punctuation, signs, blanks. A vowel sign or accent at its end stays."""
    if token.isalnum():
        return token
    start, end = 0, len(token)
    while start < end and unicodedata.category(token[start])[0] in "PSZCM":
        start += 1
    while end > start and unicodedata.category(token[end - 1])[0] in "PSZC":
        end -= 1
    return token[start:end]


def key_of(word: str) -> str:
    """The same for all ways to write a word in capitals and small letters.

    Lower case alone would not do: ı and i have the same capital, ς and Σ the same small letter in the middle of a word.
    """
    return unicodedata.normalize("NFC", word.upper().casefold())


def is_word(text: str) -> bool:
    """Whether it is long enough to be known by its letters: three characters with a letter, or two with a syllable."""
    return len(text) >= 2 and any(map(str.isalpha, text)) and (len(text) >= 3 or any(map(is_syllable, text)))


def side_of(word: str, share: float) -> Split:
    """The split that a word (NFC) belongs to, where this share of all words is held out."""
    word = bare(word)
    if not is_word(word):
        return "train"
    digest = hashlib.blake2b(key_of(word).encode(), digest_size=8, person=b"held out").digest()
    place = int.from_bytes(digest, "little") / 2**64
    return "valid" if place < share / 2 else "test" if place < share else "train"
