"""What is written in rendered pictures: text number n of a seed is always the same.

Each text is of one kind, by the shares of `render.texts`: a word of the lists, evenly or by Zipf's law

    p(the word of rank r) ∝ 1 / (r + 2.7)        (Mandelbrot 1953)

letters in any order, a number, Hangul syllables in any order, or nothing. Words, letters and numbers are then put into
a case, and words get marks around them; where the space is a character, some texts are several words. Everything
follows from (split, seed, number) by counters and hashing (images/drawn_dice.py), for all rows of a batch at once.

A held-out word (held_out.py) is in no list of training; a random string that happens to be one is drawn again.
"""

from __future__ import annotations

import hashlib
from functools import cached_property

import numpy as np
import numpy.typing as npt

from jumok.data.images.drawn_dice import Dice
from jumok.data.rendering.alphabet import Alphabet, Flags
from jumok.data.rendering.casing import Casing
from jumok.data.rendering.embedded import Language, embedded_words
from jumok.data.rendering.held_out import Split
from jumok.data.rendering.lexicon import hashes, lexicon_of
from jumok.data.rendering.marks import marks_around
from jumok.data.rendering.numbers import forms_of
from jumok.data.rendering.stretches import Ids, Integers, below, by_weight, joined, unit
from jumok.data.rendering.words import WordList, read_words
from jumok.errors import BadInput
from jumok.recipe.recognition import Rendering
from jumok.text.charset import Charset
from jumok.text.jamo import SYLLABLES
from jumok.text.special import END

KINDS = ("words", "frequent", "letters", "numbers", "syllables", "empty")
_, FREQUENT, LETTERS, NUMBERS, SYLLABLE_STRINGS, _ = range(len(KINDS))
ZIPF = 2.7
MORE = 1 / 3  # of the texts that could have another word after a space
SYLLABLES_IN_A_ROW = 12  # at most: words of Hangul are short
MARK_INSIDE = 1 / 4  # of the characters of those random strings that have marks
ATTEMPTS = 8  # to draw something else than a held-out word


class Texts:
    """The texts of a split. `notes` is what people should know; `left_out` words of the lists cannot be written."""

    def __init__(
        self, section: Rendering, charset: Charset, split: Split, max_length: int, words: WordList | None = None
    ) -> None:
        if max_length < 1:
            raise ValueError(f"a text of {max_length} characters is none")
        self.section, self.charset, self.split, self.max_length = section, charset, split, max_length
        self.alphabet = alphabet = Alphabet(charset)
        brought = words is not None or bool(section.words)
        if words is None:
            words = read_words(section.words) if section.words else WordList(embedded_words(_languages(alphabet)))
        self.lexicon = lexicon_of(words, alphabet, split, section.held_out_words, max_length)
        self.left_out = self.lexicon.left_out
        self._forms = forms_of(alphabet, max_length)
        self._marks, self._mark_weights = marks_around(alphabet)
        self._casing = Casing(alphabet, section.case)
        self._zipf = np.cumsum(1 / (np.arange(len(self.lexicon)) + ZIPF))
        self._letters = np.array([id for ids in alphabet.alphabets for id in ids], np.int32)
        self._alphabet_sizes = np.array([len(ids) for ids in alphabet.alphabets], np.int64)
        self._alphabet_starts = np.cumsum(self._alphabet_sizes) - self._alphabet_sizes
        # a–z as often as all other scripts together: one with many letters would leave nothing for the rest
        self._alphabet_weights = np.cumsum([max(1, len(alphabet.alphabets) - 1), *[1] * (len(alphabet.alphabets) - 1)])
        # words, then each single character: a mark is a stretch as well
        self._pool = np.concatenate([self.lexicon.pool, np.arange(charset.size, dtype=np.int32)])
        self._single = len(self.lexicon.pool)
        self.notes = (*words.notes, *self._notes_on_words(brought))
        self.shares = self._shares()
        self._kind_weights = np.cumsum([self.shares.get(kind, 0.0) for kind in KINDS])

    def at(self, numbers: npt.ArrayLike, seed: int) -> list[str]:
        """The texts of these numbers."""
        ids, _ = self._drawn(numbers, seed)
        codes = np.ascontiguousarray(self.alphabet.codes[ids], np.uint32)
        texts: list[str] = codes.view(f"U{self.max_length}").ravel().tolist()  # zeros at an end are none of its text
        return texts

    def ids(self, numbers: npt.ArrayLike, seed: int) -> tuple[Integers, Integers]:
        """The same as a model learns them: `y_1 … y_n <eos> <pad> …`, (B, max_length + 1), and n, (B,)."""
        written, lengths = self._drawn(numbers, seed)
        ids = np.zeros((len(lengths), self.max_length + 1), np.int64)
        ids[:, :-1] = written
        ids[np.arange(len(lengths)), lengths] = END
        return ids, lengths

    def kinds(self, numbers: npt.ArrayLike, seed: int) -> list[str]:
        """Of which kind each text is."""
        return [KINDS[kind] for kind in self._kinds(self._dice(numbers, seed))]

    @cached_property
    def fingerprint(self) -> str:
        """The same for two that write the same texts."""
        digest = hashlib.blake2b(digest_size=16)
        named = {"words", "relatives"}  # what the lists have is below, and families write nothing
        parts = (self.section.model_dump_json(exclude=named), self.charset.to_json(), self.split, self.max_length)
        digest.update(repr(parts).encode())
        lexicon = self.lexicon
        for array in (lexicon.pool, lexicon.starts, lexicon.lengths, lexicon.forbidden, self._forms.pool):
            digest.update(array.tobytes())
        return digest.hexdigest()

    # ------------------------------------------------------------ drawing

    def _dice(self, numbers: npt.ArrayLike, seed: int) -> Dice:
        key = hashlib.blake2b(f"{self.split},{seed}".encode(), digest_size=8).digest()
        rows = np.asarray(numbers, np.int64).reshape(-1).astype(np.uint64)
        return Dice(rows + np.frombuffer(key, "<u8").astype(np.uint64))

    def _kinds(self, dice: Dice) -> Integers:
        return by_weight(dice.words("kind"), self._kind_weights)

    def _drawn(self, numbers: npt.ArrayLike, seed: int) -> tuple[Ids, Integers]:
        """Ids (B, max_length) and lengths (B,)."""
        dice = self._dice(numbers, seed)
        kinds = self._kinds(dice)
        ids, lengths, fixed = np.zeros((len(dice), self.max_length), np.int32), *np.zeros((2, len(dice)), np.int64)
        rows = np.flatnonzero(kinds < LETTERS)
        if len(rows):
            ids[rows], lengths[rows], fixed[rows] = self._words(dice.of(rows), kinds[rows] == FREQUENT)
        rows = np.flatnonzero(kinds >= LETTERS)
        for attempt in range(ATTEMPTS):
            if not len(rows):
                break
            ids[rows], lengths[rows] = self._random(dice.of(rows), kinds[rows], attempt)
            rows = rows[self.lexicon.is_forbidden(hashes(ids[rows], lengths[rows], self.alphabet))]
        ids[rows, 1:], lengths[rows] = 0, 1  # where all that was drawn is held out: one character is no word
        return self._casing(ids, dice.words("case", 1 + -(-self.max_length // 64)), fixed > 0), lengths

    def _words(self, dice: Dice, frequent: Flags) -> tuple[Ids, Integers, Flags]:
        """One word, or several with a space between; perhaps with marks around them. Also which must stay as it is."""
        lexicon, space = self.lexicon, self.alphabet.space
        several = 1 if space is None else 3
        random = dice.words("word", 3 + several)
        evenly, by_rank = below(random[:, 3:], len(lexicon)), by_weight(random[:, 3:], self._zipf)
        picks = np.where(frequent[:, None], by_rank, evenly)
        words = lexicon.lengths[picks]
        words[:, 1:] *= unit(random[:, :1]) < MORE ** np.arange(1, several)
        words[:, 1:] *= np.cumsum(words + 1, axis=1)[:, 1:] - 1 <= self.max_length
        # the parts of a text: mark, word, space, word, space, word, mark
        starts, lengths = np.zeros((2, len(dice), 1 + 2 * several), np.int64)
        starts[:, 1::2], lengths[:, 1::2] = lexicon.starts[picks], words
        if space is not None:
            starts[:, 2:-1:2], lengths[:, 2:-1:2] = self._single + space, words[:, 1:] > 0
        if len(self._marks):
            around = self._marks[by_weight(random[:, 1], self._mark_weights)]
            room = self.max_length - lengths.sum(axis=1)
            marked = (unit(random[:, 2]) < self.section.punctuation) & (np.sum(around > 0, axis=1) <= room)
            starts[:, [0, -1]], lengths[:, [0, -1]] = self._single + around, (around > 0) & marked[:, None]
        ids, count = joined(self._pool, starts, lengths, self.max_length)
        return ids, count, np.any(lexicon.fixed[picks] & (words > 0), axis=1)

    def _random(self, dice: Dice, kinds: Integers, attempt: int) -> tuple[Ids, Integers]:
        """What is not from a list, in small letters."""
        ids, lengths = np.zeros((len(dice), self.max_length), np.int32), np.zeros(len(dice), np.int64)
        draws = {LETTERS: self._random_letters, NUMBERS: self._number, SYLLABLE_STRINGS: self._random_syllables}
        for kind, draw in draws.items():
            rows = np.flatnonzero(kinds == kind)
            if len(rows):
                ids[rows], lengths[rows] = draw(dice.of(rows), attempt)
        return ids, lengths

    def _random_letters(self, dice: Dice, attempt: int) -> tuple[Ids, Integers]:
        random = dice.words(f"letters {attempt}", 4)
        alphabet = by_weight(random[:, 0], self._alphabet_weights)
        lengths = _lengths(random[:, 1:3], self.max_length)
        width = int(lengths.max())
        places = below(dice.words(f"letter {attempt}", width), self._alphabet_sizes[alphabet, None])
        ids = np.zeros((len(dice), self.max_length), np.int32)
        ids[:, :width] = self._letters[self._alphabet_starts[alphabet, None] + places]
        marked = np.flatnonzero(unit(random[:, 3]) < self.section.punctuation)
        if len(marked) and len(self.alphabet.marks):
            which = dice.of(marked).words(f"marks {attempt}", width, 2)
            marks = self.alphabet.marks[below(which[..., 0], len(self.alphabet.marks))]
            ids[marked, :width] = np.where(unit(which[..., 1]) < MARK_INSIDE, marks, ids[marked, :width])
        ids[np.arange(self.max_length) >= lengths[:, None]] = 0
        return ids, lengths

    def _number(self, dice: Dice, attempt: int) -> tuple[Ids, Integers]:
        return joined(self._forms.pool, *self._forms.draw(dice, attempt), self.max_length)

    def _random_syllables(self, dice: Dice, attempt: int) -> tuple[Ids, Integers]:
        longest = min(self.max_length, SYLLABLES_IN_A_ROW)
        lengths = _lengths(dice.words(f"syllables {attempt}", 2), longest)
        places = below(dice.words(f"syllable {attempt}", longest), SYLLABLES)
        ids = np.zeros((len(dice), self.max_length), np.int32)
        ids[:, :longest] = np.where(
            np.arange(longest) < lengths[:, None], places + (self.charset.first_syllable or 0), 0
        )
        return ids, lengths

    # ------------------------------------------------------------ what can be written

    def _shares(self) -> dict[str, float]:
        """The share of each kind that can be written, of 1."""
        possible = {
            "words": len(self.lexicon) > 0,
            "frequent": len(self.lexicon) > 0,
            "letters": len(self._letters) > 0,
            "numbers": len(self._forms) > 0,
            "syllables": self.charset.hangul,
            "empty": True,
        }
        wanted = {kind: share for kind in KINDS if (share := getattr(self.section.texts, kind)) > 0}
        shares = {kind: share for kind, share in wanted.items() if possible[kind]}
        if not set(shares) - {"empty"}:
            raise BadInput(
                f"render.texts: nothing can be written: {_why_not(set(wanted) - set(shares), self.split)}. "
                "Give another kind a share, or add characters to the charset"
            )
        if missing := set(wanted) - set(shares):
            self.notes += (f"render.texts: {_why_not(missing, self.split)}; the other kinds take their share",)
        whole = sum(shares.values())
        return {kind: share / whole for kind, share in shares.items()}

    def _notes_on_words(self, brought: bool) -> list[str]:
        lexicon = self.lexicon
        notes = []
        if brought and self.left_out:
            notes.append(f"render.words: {self.left_out:,} words cannot be written and are left out")
            notes += lexicon.outside.lines()
        if not lexicon.held_out and len(lexicon) and self.section.held_out_words:
            notes.append(
                f"render.words: none of {len(lexicon):,} words falls into the share that is held out for "
                f'"{self.split}": words of training are written there too. More words, or a larger '
                "render.held_out_words, would show how new words are read"
            )
        return notes


def _lengths(random: npt.NDArray[np.uint64], longest: int) -> Integers:
    """1 … longest, the smaller of two draws (B, 2): long strings are rarer, but there."""
    lengths: Integers = 1 + (longest * unit(random).min(axis=1)).astype(np.int64)
    return lengths


def _why_not(kinds: set[str], split: str) -> str:
    reasons = {
        "words": f'no word of the lists can be written in the split "{split}"',
        "frequent": f'no word of the lists can be written in the split "{split}"',
        "letters": "the charset has no letters or digits",
        "numbers": "the charset has no digits",
        "syllables": "the charset has no Hangul (charset.sets: [hangul])",
    }
    return ", ".join(dict.fromkeys(f"{kind}: {reasons[kind]}" for kind in KINDS if kind in kinds))


def _languages(alphabet: Alphabet) -> list[Language]:
    """The languages of the grammar that the charset has letters for."""
    languages: list[Language] = []
    if alphabet.id_of("e") is not None:
        languages.append("en")
    if alphabet.id_of("é") is not None:
        languages.append("fr")
    if alphabet.charset.hangul:
        languages.append("ko")
    return languages
