"""Reading with a list of words at hand: of texts that a picture could show, one that is a word is likelier.

    w* = argmax over w near r:   p(w | picture) · (trust if w is in the list, else 1)

r is what was read without the list, and near are the words of the list that few changes of letters make of it: the
transcription by lexicon of Shi et al. (2015, section 2.3), whose `trust` is infinite and whose words are the only ones.
Here r itself stays among the choices, so names and numbers that no list has are still read as they stand there.

A word is looked for without the marks around it, and written in the case that was read, with the marks that were read.
Which words are judged does not change what comes out: r is left alone only where nothing else could have won,

    p(r | picture) · trust(r) ≥ (1 − p(r | picture)) · trust

as all other texts together have no more than 1 − p(r).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from jumok.data.rendering.words import read_words, small
from jumok.errors import BadInput
from jumok.models.recognizer import Reading, Recognizer
from jumok.text.charset import Charset
from jumok.text.special import END, PAD

TRUST = 50.0  # how many times likelier a word of the list is
SHORT = 4  # letters of a word of which one may be another; of a longer one two
MOST_NEAR = 40  # words judged for one picture: those that take the fewest changes, the first in the list before others
TOGETHER = 2048  # texts judged at once


class KnownWords:
    """A list of words, and how much it is trusted."""

    def __init__(self, words: Iterable[str], trust: float = TRUST) -> None:
        if not trust >= 1:
            raise BadInput(f"trust {trust:g}: how many times likelier a word of the list is, 1 or more (50 is usual)")
        self.trust = trust
        self.places = {word: place for place, word in enumerate(dict.fromkeys(map(small, words)))}
        self._sorted = sorted(self.places, key=len)
        self._lengths = np.array([len(word) for word in self._sorted], np.int64)
        self._letters = np.array([_letters(word) for word in self._sorted], np.uint64)

    @staticmethod
    def of_files(files: Sequence[str | Path], trust: float = TRUST) -> KnownWords:
        """Word lists or running text, as `render.words` takes them."""
        return KnownWords(read_words(files).words, trust)

    def __len__(self) -> int:
        return len(self.places)

    def near(self, cores: Sequence[str]) -> list[list[str]]:
        """For each of these the words that few changes make of it, the nearest first."""
        return [self._near(core) for core in cores]

    def _near(self, core: str) -> list[str]:
        if not core:
            return []
        from rapidfuzz.distance import Levenshtein

        most = 1 if len(core) <= SHORT else 2
        first, end = np.searchsorted(self._lengths, (len(core) - most, len(core) + most + 1)).tolist()
        # a change takes one letter away and brings another: what differs in more letters need not be compared
        apart = np.bitwise_count(self._letters[first:end] ^ _letters(core))
        found = []
        for place in (np.flatnonzero(apart <= 2 * most) + first).tolist():
            word = self._sorted[place]
            changes = Levenshtein.distance(core, word, score_cutoff=most)
            if changes <= most:
                found.append((changes, self.places[word], word))
        return [word for *_, word in sorted(found)[:MOST_NEAR]]


def _letters(word: str) -> np.uint64:
    """A bit for each letter that comes in it; several letters may share one."""
    bits = 0
    for letter in word:
        bits |= 1 << ord(letter) % 64
    return np.uint64(bits)


class Corrector:
    """Readings of a model, as a list of words makes them likelier."""

    def __init__(self, model: Recognizer, charset: Charset, words: KnownWords, fast: bool) -> None:
        self.model, self.charset, self.words, self.fast = model, charset, words, fast

    def __call__(self, seen_BSD: Tensor, read: Reading) -> Reading:
        """Of pictures that were seen as `seen`, and read as `read`."""
        texts = [
            self.charset.decode(ids[:length])
            for ids, length in zip(read.ids.tolist(), read.lengths.tolist(), strict=True)
        ]
        cores = [_core(text) for text in texts]
        known = [small(text[start:end]) in self.words.places for text, (start, end) in zip(texts, cores, strict=True)]
        longest = self.model.section.max_length
        asked = [row for row, text in enumerate(texts) if any(map(str.isalpha, text)) and len(text) <= longest]
        own = self._judged(seen_BSD, asked, [texts[row] for row in asked])
        doubtful: list[tuple[int, float]] = []
        for row, log_prob in zip(asked, own.total.tolist(), strict=True):
            share = min(1.0, float(np.exp(log_prob)))
            worth = share * (self.words.trust if known[row] else 1.0)
            if worth < (1 - share) * self.words.trust:
                doubtful.append((row, worth))
        return self._better(seen_BSD, read, texts, cores, doubtful)

    def _better(
        self,
        seen_BSD: Tensor,
        read: Reading,
        texts: Sequence[str],
        cores: Sequence[tuple[int, int]],
        doubtful: Sequence[tuple[int, float]],
    ) -> Reading:
        spans = [small(texts[row][slice(*cores[row])]) for row, _ in doubtful]
        rows: list[int] = []
        tried: list[str] = []
        for (row, _), near in zip(doubtful, self.words.near(spans), strict=True):
            text, (start, end) = texts[row], cores[row]
            for word in near:
                made = text[:start] + cased(word, text[start:end]) + text[end:]
                if made != text and len(made) <= self.model.section.max_length and not self.charset.outside(made):
                    rows.append(row)
                    tried.append(made)
        if not tried:
            return read
        judged = self._judged(seen_BSD, rows, tried)
        best: dict[int, tuple[float, int]] = {row: (worth, -1) for row, worth in doubtful}
        for number, (row, log_prob) in enumerate(zip(rows, judged.total.tolist(), strict=True)):
            worth = float(np.exp(log_prob)) * self.words.trust
            if worth > best[row][0]:
                best[row] = worth, number
        changed = [(row, number) for row, (_, number) in best.items() if number >= 0]
        return _with(read, [row for row, _ in changed], judged, [number for _, number in changed])

    def _judged(self, seen_BSD: Tensor, rows: Sequence[int], texts: Sequence[str]) -> Reading:
        """How likely each of these texts is in its picture."""
        device, parts = seen_BSD.device, []
        for start in range(0, max(1, len(texts)), TOGETHER):
            ids = [self.charset.encode(text) for text in texts[start : start + TOGETHER]]
            lengths = torch.tensor([len(each) for each in ids], dtype=torch.long)
            longest = self.model.section.max_length
            ids_NT = torch.full((len(ids), longest + 1), PAD)
            for number, each in enumerate(ids):
                ids_NT[number, : len(each) + 1] = torch.tensor([*each, END])
            rows_N = torch.tensor(rows[start : start + TOGETHER], dtype=torch.long, device=device)
            parts.append(self.model.said_as(seen_BSD, rows_N, ids_NT.to(device), lengths.to(device), self.fast))
        names = ("ids", "lengths", "log_probs", "ending")
        return Reading(*(torch.cat([getattr(part, name) for part in parts]) for name in names))


def _core(text: str) -> tuple[int, int]:
    """Where the word stands between the marks around it."""
    places = [place for place, character in enumerate(text) if character.isalnum()]
    return (places[0], places[-1] + 1) if places else (0, 0)


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


def _with(read: Reading, rows: Sequence[int], better: Reading, numbers: Sequence[int]) -> Reading:
    """`read`, where these rows are those numbers of `better`."""
    if not rows:
        return read
    width = max(read.ids.size(1), better.ids.size(1))
    ids, log_probs = (torch.nn.functional.pad(each, (0, width - each.size(1))) for each in (read.ids, read.log_probs))
    place, chosen = torch.tensor(rows, device=ids.device), torch.tensor(numbers, device=ids.device)
    ids[place], log_probs[place] = PAD, 0.0
    ids[place, : better.ids.size(1)] = better.ids[chosen]
    log_probs[place, : better.ids.size(1)] = better.log_probs[chosen].to(log_probs.dtype)
    lengths, ending = read.lengths.clone(), read.ending.clone()
    lengths[place], ending[place] = better.lengths[chosen], better.ending[chosen].to(ending.dtype)
    return Reading(ids, lengths, log_probs, ending)
