"""Phrases that a translation must or may not hold, from text to the token ids a search understands, and back.

Most vocabularies mark where a word begins: "▁étudiant" opens a word, "étudiant" goes on with one (as in "l'étudiant").
Both are the same text, so that a phrase has both forms. And a model may cut it in other ways still ("ét", "udiant"):
what counts in the end is whether the text of an output holds the phrase.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from jumok.errors import BadInput
from jumok.search.phrases import Phrase
from jumok.text.special import UNKNOWN
from jumok.text.tokenizer import Tokenizer

KEPT = 4096  # phrases whose forms are remembered
CARRIERS = ("'", "a", "1", "-")  # what a phrase is written behind, to see it without the mark of a new word
UNSPACED = (
    "CJK",
    "HANGUL",
    "HIRAGANA",
    "KATAKANA",
    "THAI",
    "LAO",
    "KHMER",
    "MYANMAR",
    "TIBETAN",
)  # words grow together


class Phrases:
    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self._forms: dict[str, tuple[Phrase | None, Phrase | None]] = {}

    def known(self, text: str, what: str) -> Phrase:
        """The ids of a text that the model can write; `what` names it in the message about one that it cannot."""
        encoded = self.tokenizer.encode_with_offsets(text.strip())
        for id, (start, end) in zip(encoded.ids, encoded.offsets, strict=True):
            if id == UNKNOWN:
                piece = text.strip()[start:end]
                raise BadInput(
                    f'{what} "{_short(text)}": "{_short(piece)}" is outside the vocabulary of the model, which cannot '
                    "write it. Choose other words."
                )
        if not encoded.ids:
            raise BadInput(f'{what} "{text}": there is no text in it')
        return tuple(encoded.ids)

    def required(self, text: str) -> list[Phrase]:
        """The forms of a phrase that an output must hold one of."""
        forms = [form for form in self._both(text) if form is not None]
        return forms or [self.known(text, "the required phrase")]

    def forbidden(self, text: str) -> list[Phrase]:
        """The forms of a phrase to keep out from the start: as a word of its own, and any, where words grow together.

        None at all, where the vocabulary cannot write it anyway.
        """
        opening, attached = self._both(text)
        forms = [opening] if _bounded(text.strip()[:1]) else [opening, attached]
        return [form for form in forms if form is not None]

    def _both(self, text: str) -> tuple[Phrase | None, Phrase | None]:
        """As it opens a word, and as it goes on with one; None for a form that the vocabulary does not have."""
        if text not in self._forms:
            plain = unicodedata.normalize("NFC", text.strip())
            if len(self._forms) >= KEPT:
                self._forms.clear()
            self._forms[text] = self._behind(" ", plain), self._behind("", plain)
        return self._forms[text]

    def _behind(self, blank: str, text: str) -> Phrase | None:
        """Cut behind something that does not grow together with it."""
        written = " ".join((text.lower() if self.tokenizer.lowercase else text).split())
        for carrier in CARRIERS:
            (head,), (ids,) = self.tokenizer.encode([carrier]), self.tokenizer.encode([carrier + blank + text])
            form = tuple(ids[len(head) :])
            if form and ids[: len(head)] == head and UNKNOWN not in form and self.text(form) == written:
                return form
        return None

    def text(self, ids: Sequence[int]) -> str:
        return " ".join(self.tokenizer.decode([ids])[0].split())

    def pattern(self, text: str) -> re.Pattern[str]:
        return pattern(text.lower() if self.tokenizer.lowercase else text)

    def found(self, ids: Sequence[int], text: str) -> Phrase | None:
        """The tokens that spell the phrase in an output, however it is cut there; None where the output lacks it.

        Where it goes on with a word, the token before it belongs to the finding.
        """
        output = self.tokenizer.decode([ids])[0]
        match = self.pattern(text).search(output)
        if match is None:
            return None
        lengths = [len(self.tokenizer.decode([ids[:end]])[0]) for end in range(len(ids) + 1)]
        end = next(place for place, length in enumerate(lengths) if length >= match.end())
        start = max(place for place, length in enumerate(lengths[:end]) if length <= match.start())
        attached = match.start() > 0 and not output[match.start() - 1].isspace()
        return tuple(ids[max(0, start - attached) : end])


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:59]}…"


@lru_cache(maxsize=4096)
def pattern(text: str) -> re.Pattern[str]:
    """A phrase as whole words; where the script writes words without blanks between them, as any stretch of text."""
    plain = unicodedata.normalize("NFC", " ".join(text.split()))
    left, right = r"(?<!\w)" * _bounded(plain[:1]), r"(?!\w)" * _bounded(plain[-1:])
    return re.compile(left + re.escape(plain) + right)


def _bounded(character: str) -> bool:
    """Whether a word that begins (or ends) like this is set apart from the one before (or after) it."""
    return character.isalnum() and not unicodedata.name(character, "").startswith(UNSPACED)
