"""Reading with a list of words at hand: of texts that a picture could show, one that is a word is likelier.

    w* = argmax over w near r:   log p(w | picture) + (log trust if w is in the list, else 0)

r is what was read without the list, and near are the words of the list that few changes of letters make of it: the
transcription by lexicon of Shi et al. (2015, section 2.3), whose `trust` is infinite and whose words are the only ones.
Here r itself stays among the choices, so names that no list has are still read as they stand there. What has no letter
(a number), blanks in it (several words), or is longer than the model writes is left as it is.

A word is looked for without the marks around it, whatever its case; it is written in the case that was read, with the
marks that were read. Hangul is compared letter by letter (jamo), and é is one change from e. Where r is likely enough,

    p(r | picture) · trust(r) ≥ (1 − p(r | picture)) · trust

nothing is looked for: all other texts together have no more than 1 − p(r), so none of them could win.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from jumok.data.rendering.held_out import bare, key_of
from jumok.data.rendering.words import read_words, small
from jumok.errors import BadInput
from jumok.models.recognizer import Reading, Recognizer
from jumok.text.charset import Charset, OutsideCharset
from jumok.text.special import END, PAD

TRUST = 50.0  # how many times likelier a word of the list is
CERTAIN = 1e6  # log of an infinite trust: what is not in the list never wins, and probabilities still count
SHORT = 4  # letters of a word of which one may be another; of a longer one two
MOST_NEAR = 100  # words judged for one picture: those that take the fewest changes, the first in the list before others
TOGETHER = 2048  # texts judged at once,
CLASSES_TOGETHER = 1 << 24  # and classes that are computed for them, of all their places


class KnownWords:
    """A list of words, and how much it is trusted."""

    def __init__(self, words: Iterable[str], trust: float = TRUST) -> None:
        if isinstance(words, str | bytes | PathLike):
            raise BadInput(f"words={words!r}: a list of words, as in words=['house', 'garden']; of files: "
                           "KnownWords.of_files([…])")  # fmt: skip
        check_trust(trust)
        self.log_trust = min(math.log(trust), CERTAIN)
        found: dict[str, str] = {}
        for word in words:
            if kept := bare(small(word.strip())):
                found.setdefault(key_of(kept), kept)
        self.words = list(found.values())  # the first in the list come first
        self.keys = frozenset(found)
        letters = [letters_of(key) for key in found]
        self._order = sorted(range(len(letters)), key=lambda place: len(letters[place]))
        self._letters = [letters[place] for place in self._order]
        self._lengths = np.array([len(each) for each in self._letters], np.int64)
        self._bits = np.array([_bits(each) for each in self._letters], np.uint64)

    @staticmethod
    def of_files(files: Sequence[str | Path], trust: float = TRUST) -> KnownWords:
        """Word lists or running text, as `render.words` takes them."""
        check_trust(trust)  # before a large file is read
        return KnownWords(read_words(files).words, trust)

    def __len__(self) -> int:
        return len(self.words)

    def near(self, core: str) -> list[str]:
        """The words that few changes make of it, those that take fewer first."""
        from rapidfuzz.distance import Levenshtein

        letters = letters_of(key_of(core))
        if not letters:
            return []
        most = 1 if len(letters) <= SHORT else 2
        first, end = np.searchsorted(self._lengths, (len(letters) - most, len(letters) + most + 1)).tolist()
        # a change takes one letter away and brings another: what differs in more letters need not be compared
        apart = np.bitwise_count(self._bits[first:end] ^ _bits(letters))
        found = []
        for place in (np.flatnonzero(apart <= 2 * most) + first).tolist():
            changes = Levenshtein.distance(letters, self._letters[place], score_cutoff=most)
            if changes <= most:
                found.append((changes, self._order[place]))
        return [self.words[place] for _, place in sorted(found)[:MOST_NEAR]]


def check_trust(trust: float) -> None:
    if not trust >= 1:
        raise BadInput(f"trust {trust:g}: how many times likelier a word of the list is, 1 or more (50 is usual)")


def letters_of(key: str) -> str:
    """What may be another: a syllable's jamo, a letter and its accent, each for itself."""
    return key if key.isascii() else unicodedata.normalize("NFD", key)


def _bits(letters: str) -> np.uint64:
    """A bit for each letter that comes in it; several letters may share one."""
    found = 0
    for letter in letters:
        found |= 1 << ord(letter) % 64
    return np.uint64(found)


@dataclass(frozen=True)
class Doubtful:
    """A picture whose reading may be a word that was misread."""

    row: int
    text: str
    core: slice  # where the word stands between the marks around it
    worth: float  # log p + log trust


class Corrector:
    """Readings of a model, as a list of words makes them likelier."""

    def __init__(self, model: Recognizer, charset: Charset, words: KnownWords) -> None:
        self.model, self.charset, self.words = model, charset, words

    def __call__(self, seen_BSD: Tensor, read: Reading) -> Reading:
        """Of pictures that were seen as `seen`, and read as `read`. A reading is judged by who made it: by the columns
        of a model that has two ways to read, where it is theirs."""
        drafted = [False] * len(read.ids) if read.drafted is None else read.drafted.tolist()
        for fast in sorted(set(drafted)):
            rows = [row for row, own in enumerate(drafted) if own == fast]
            read = self._corrected(seen_BSD, read, rows, fast)
        return read

    def _corrected(self, seen_BSD: Tensor, read: Reading, rows: Sequence[int], fast: bool) -> Reading:
        ids = {row: ids[:length] for row, (ids, length) in enumerate(zip(read.ids.tolist(), read.lengths.tolist(),
               strict=True))}  # fmt: skip
        asked = [row for row in rows if self._is_word(ids[row])]
        doubtful = []
        own = self._judged(seen_BSD, asked, [ids[row] for row in asked], fast)
        for row, log_prob in zip(asked, own.total.tolist() if own else (), strict=True):
            text = self.charset.decode(ids[row])
            word = bare(text)
            worth = log_prob + self.words.log_trust * (key_of(small(word)) in self.words.keys)
            others = math.log(max(1e-300, -math.expm1(min(0.0, log_prob)))) + self.words.log_trust
            if worth < others:
                start = text.index(word)
                doubtful.append(Doubtful(row, text, slice(start, start + len(word)), worth))
        return self._better(seen_BSD, read, doubtful, fast)

    def _is_word(self, ids: Sequence[int]) -> bool:
        text = self.charset.decode(ids)
        one = any(map(str.isalpha, text)) and not any(map(str.isspace, text))
        return one and len(ids) <= self.model.section.max_length

    def _better(self, seen_BSD: Tensor, read: Reading, doubtful: Sequence[Doubtful], fast: bool) -> Reading:
        tried = [(place, ids) for place, one in enumerate(doubtful) for ids in self._choices(one)]
        judged = self._judged(seen_BSD, [doubtful[place].row for place, _ in tried], [ids for _, ids in tried], fast)
        if judged is None:
            return read
        best = {place: (one.worth, -1) for place, one in enumerate(doubtful)}
        for number, ((place, _), log_prob) in enumerate(zip(tried, judged.total.tolist(), strict=True)):
            if log_prob + self.words.log_trust > best[place][0]:
                best[place] = log_prob + self.words.log_trust, number
        changed = {doubtful[place].row: number for place, (_, number) in best.items() if number >= 0}
        return _with(read, judged, changed)

    def _choices(self, one: Doubtful) -> Iterator[list[int]]:
        """Words near a reading, as they would stand there, as ids."""
        before, core, after = one.text[: one.core.start], one.text[one.core], one.text[one.core.stop :]
        for word in self.words.near(small(core)):
            made = before + cased(word, core) + after
            try:
                ids = self.charset.encode(made)
            except OutsideCharset:
                continue
            if made != one.text and len(ids) <= self.model.section.max_length:
                yield ids

    def _judged(self, seen_BSD: Tensor, rows: Sequence[int], texts: Sequence[list[int]], fast: bool) -> Reading | None:
        """How likely each of these texts is in its picture."""
        places = max((len(ids) for ids in texts), default=0) + 1
        together = max(1, min(TOGETHER, CLASSES_TOGETHER // (places * self.charset.size)))
        parts, device = [], seen_BSD.device
        for start in range(0, len(texts), together):
            some = texts[start : start + together]
            ids_NT = torch.tensor([[*ids, END, *[PAD] * (places - 1 - len(ids))] for ids in some], device=device)
            lengths_N = torch.tensor([len(ids) for ids in some], device=device)
            rows_N = torch.tensor(rows[start : start + together], device=device)
            parts.append(self.model.said_as(seen_BSD, rows_N, ids_NT, lengths_N, fast))
        names = ("ids", "lengths", "log_probs", "ending")
        return Reading(*(torch.cat([getattr(part, name) for part in parts]) for name in names)) if parts else None


def cased(word: str, like: str) -> str:
    """A word of small letters in capitals, with a first capital, or as it is: as what was read."""
    letters = [character for character in like if character.isalpha()]
    if not letters:
        return word
    capitals = sum(map(str.isupper, letters[1:]))
    if capitals > (len(letters) - 1) / 2 or (len(letters) == 1 and letters[0].isupper()):
        made = word.upper()
    elif letters[0].isupper():
        made = word[:1].upper() + word[1:]
    else:
        made = word
    return made if len(made) == len(word) else word  # ß has no capital of its own


def _with(read: Reading, better: Reading, changed: dict[int, int]) -> Reading:
    """`read`, where some rows are others of `better`."""
    width = max(read.ids.size(1), better.ids.size(1))
    ids, log_probs = (F.pad(each, (0, width - each.size(1))) for each in (read.ids, read.log_probs))
    device = ids.device
    place, chosen = (
        torch.tensor(list(changed), device=device).long(),
        torch.tensor(list(changed.values()), device=device),
    )
    chosen = chosen.long()
    ids, log_probs = ids.index_fill(0, place, PAD), log_probs.index_fill(0, place, 0.0)
    ids[place, : better.ids.size(1)] = better.ids[chosen]
    log_probs[place, : better.ids.size(1)] = better.log_probs[chosen].to(log_probs.dtype)
    lengths = read.lengths.index_put((place,), better.lengths[chosen])
    ending = read.ending.index_put((place,), better.ending[chosen].to(read.ending.dtype))
    return Reading(ids, lengths, log_probs, ending, read.drafted)
