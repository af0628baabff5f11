"""The tokens that look and are looked at, where they stand in their text, and which words they are pieces of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jumok.inspect.attention import END_MARK
from jumok.text.special import END, PAD, START
from jumok.text.tokenizer import Encoded, Tokenizer

Ids = tuple[int, ...]
START_MARK = "<sos>"
MARKS = {START: START_MARK, END: END_MARK, PAD: "<pad>"}


@dataclass(frozen=True)
class Tokens:
    """One side of an attention, a token for each row or column."""

    tokens: tuple[str, ...]
    offsets: tuple[tuple[int, int] | None, ...]  # characters of `text`; None: no part of it (<eos>, a language's tag)
    words: tuple[int | None, ...]  # index in text.split(); None: a word of its own
    text: str = ""

    def __len__(self) -> int:
        return len(self.tokens)

    def part(self, start: int, stop: int | None = None) -> Tokens:
        return Tokens(self.tokens[start:stop], self.offsets[start:stop], self.words[start:stop], self.text)

    def marked(self, before: Sequence[str] = (), after: Sequence[str] = ()) -> Tokens:
        """With tokens that are no part of the text at its ends."""
        return Tokens(
            (*before, *self.tokens, *after),
            (*[None] * len(before), *self.offsets, *[None] * len(after)),
            (*[None] * len(before), *self.words, *[None] * len(after)),
            self.text,
        )

    @property
    def spans(self) -> tuple[str, ...]:
        """What stands in the text at each token's offsets."""
        return tuple("" if span is None else self.text[span[0] : span[1]] for span in self.offsets)


def places(count: int) -> Tokens:
    """Where nobody knows what was read: numbers."""
    return Tokens(tuple(map(str, range(count))), (None,) * count, (None,) * count)


def spelled(ids: Sequence[int], tokenizer: Tokenizer | None, text: str | None = None) -> Tokens:
    """Token ids by their names. Offsets are in the very text they were cut from, where that is known (given, or
    remembered); else in the text that they write."""
    if tokenizer is None:
        return Tokens(tuple(MARKS.get(id, str(id)) for id in ids), (None,) * len(ids), (None,) * len(ids))
    if text is None and isinstance(tokenizer, Remembering):
        text = tokenizer.texts.get(tuple(ids))
    if text is not None:
        known = tokenizer.encode_with_offsets(text)
        if known.ids == list(ids):
            return Tokens(tuple(known.tokens), tuple(known.offsets), tuple(known.words), text)
    text, written = tokenizer.decode_with_offsets(ids)
    shown = [not tokenizer.is_special(id) for id in ids]  # an unknown word leaves no text, so it is no part of a word
    return Tokens(
        tuple(written.tokens),
        tuple(span if real else None for span, real in zip(written.offsets, shown, strict=True)),
        tuple(word if real else None for word, real in zip(written.words, shown, strict=True)),
        text,
    )


class Remembering(Tokenizer):
    """A tokenizer that remembers which text its ids were cut from, unless two texts look the same to it."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.__dict__.update(vars(tokenizer))
        self.texts: dict[Ids, str | None] = {}

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        rows = super().encode(texts)
        for ids, text in zip(rows, texts, strict=True):
            self._remember(ids, text)
        return rows

    def encode_with_offsets(self, text: str) -> Encoded:
        encoded = super().encode_with_offsets(text)
        self._remember(encoded.ids, text)
        return encoded

    def _remember(self, ids: Sequence[int], text: str) -> None:
        known = self.texts.setdefault(tuple(ids), text)
        if known != text:  # two words that it does not know: which was it?
            self.texts[tuple(ids)] = None


@dataclass(frozen=True)
class Vocabulary:
    """How the ids that a model reads and writes are spelled."""

    source: Tokenizer | None = None
    target: Tokenizer | None = None  # a language model's only one


@dataclass(frozen=True)
class Read:
    """What one row of a model read: ids, specials included. A language model has no source."""

    source: Ids | None
    target: Ids | None
    vocabulary: Vocabulary
    source_text: str | None = None  # that the ids were cut from, where it is known
    target_text: str | None = None
    ended: bool = True  # False: a translation that was cut where the model would have gone on, so it has no <eos>

    def sides(self, kind: str) -> tuple[Tokens | None, Tokens | None]:
        """Queries and keys. A decoder's query is named by the word that it writes, which comes after the one it read;
        in a text that looks at itself everyone bears its own name."""
        if kind == "self":
            read = self._read()
            return read, read
        if self.target is None:
            return None, self._read()
        if self.source is None:
            text = spelled(self.target, self.vocabulary.target, self.target_text)
            return text, text
        first = 1 if self.target[:1] == (START,) else 0
        words = spelled(self.target[first:], self.vocabulary.target, self.target_text)
        written, past = words.marked(after=[END_MARK] * self.ended), words.marked(before=[START_MARK] * first)
        if not self.ended:  # nobody looked at the last word
            past = past.part(0, len(words))
        return written, self._read() if kind == "cross" else past

    def _read(self) -> Tokens | None:
        if self.source is None:
            return None
        tokenizer = self.vocabulary.source
        tags = set() if tokenizer is None else set(tokenizer.tags.values())
        first = next((place for place, id in enumerate(self.source) if id not in tags), len(self.source))
        last = len(self.source) - (self.source[-1:] == (END,))
        before = [] if tokenizer is None else tokenizer.pieces(self.source[:first])
        words = spelled(self.source[first:last], tokenizer, self.source_text)
        return words.marked(before, [END_MARK] if last < len(self.source) else [])
