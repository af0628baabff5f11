"""A charset as tables over its ids: small and capital letters, which characters make words, and which are marks.

Some characters cling to the one before them (accents of their own, jamo that compose): put behind another at random,
NFC would make something else of the two. They come only in words of lists.
"""

from __future__ import annotations

import string
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from jumok.data.images.drawn_dice import mix
from jumok.data.rendering.held_out import key_of
from jumok.data.rendering.stretches import Ids
from jumok.text.charset import Charset
from jumok.text.special import SPECIAL_TOKENS

FEW = 10  # letters of a script that do not make an alphabet of their own
Flags = npt.NDArray[np.bool_]


class Alphabet:
    """Tables with a row for each id (V,); special ids are their own forms and make no words."""

    def __init__(self, charset: Charset) -> None:
        self.charset = charset
        first, size = len(SPECIAL_TOKENS), charset.size
        plain = range(first, first + len(charset.plain))
        self.codes: npt.NDArray[np.uint32] = np.zeros(size, np.uint32)
        self.codes[first:] = np.frombuffer("".join(charset.characters).encode("utf-32-le"), "<u4")
        self.lower: Ids = np.arange(size, dtype=np.int32)
        self.upper: Ids = np.arange(size, dtype=np.int32)
        folded = np.arange(size, dtype=np.uint64)  # the same for all ids that differ in case alone
        self.solid: Flags = np.zeros(size, bool)  # parts of words: what is none is stripped at their ends
        self.solid[first + len(charset.plain) :] = True
        self.clinging: Flags = np.zeros(size, bool)
        keys: dict[str, int] = {}
        for id, character in zip(plain, charset.plain, strict=True):
            category = unicodedata.category(character)[0]
            self.solid[id] = category in "LNM"
            self.clinging[id] = category == "M" or 0x1160 <= ord(character) <= 0x11FF
            self.lower[id] = charset.ids.get(character.lower(), id)
            self.upper[id] = charset.ids.get(character.upper(), id)
            folded[id] = keys.setdefault(key_of(character), id)
        self.values: npt.NDArray[np.uint64] = mix(mix(folded + np.uint64(1)))  # of both cases, for hashing
        self.cased: Flags = self.lower != self.upper
        free = [id for id in plain if not self.clinging[id]]
        self.marks: Ids = np.array([id for id in free if not self.solid[id] and self.codes[id] != ord(" ")], np.int32)
        self.space: int | None = charset.ids.get(" ")
        self.alphabets = self._alphabets([id for id in free if self.solid[id] and self.lower[id] == id])

    def id_of(self, character: str) -> int | None:
        """The character's id; where the set has only its other case, that one's."""
        ids = self.charset.ids
        return ids.get(character, ids.get(character.lower(), ids.get(character.upper())))

    def ids_of(self, text: str) -> list[int] | None:
        """The ids of a text where the set has all of it, in one case or the other."""
        ids = [id for character in text if (id := self.id_of(character)) is not None]
        return ids if len(ids) == len(text) else None

    def encoded(self, words: Sequence[str]) -> tuple[Ids, Ids]:
        """The ids of many words one after the other, −1 for what is outside; and the length of each word."""
        text = "".join(words)
        codes = np.frombuffer(text.encode("utf-32-le"), "<u4")
        there, place = np.unique(codes, return_inverse=True)
        found = [self.id_of(chr(code)) for code in there.tolist()]
        table = np.array([-1 if id is None else id for id in found], np.int32)
        return table[place], np.fromiter(map(len, words), np.int32, len(words))

    def _alphabets(self, letters: Iterable[int]) -> list[list[int]]:
        """What random strings are made of: a–z and digits first, then, with digits, each other script that is in."""
        basic = set(string.ascii_letters + string.digits)
        scripts: dict[str, list[int]] = defaultdict(list)
        for id in letters:
            character = chr(self.codes[id])
            script = unicodedata.name(character, "other").split()[0]
            scripts["" if character in basic else script].append(id)
        few = [id for name, ids in scripts.items() if name and len(ids) < FEW for id in ids]
        digits = [id for id in scripts[""] if chr(self.codes[id]).isdecimal()]
        others = [digits + ids for name, ids in scripts.items() if name and len(ids) >= FEW]
        found = [scripts[""], *others, *([scripts[""] + few] if few else [])]
        return [sorted(ids) for ids in found if ids]
