"""Text to token ids and back, on the `tokenizers` library. What each kind promises is in `pipeline.PROMISES`.

A tokenizer folder holds `tokenizer.json` (as the library writes it) and `about.json` (kind, promise; of kind wordpiece
the special ids too, which other people's vocabularies have anywhere).
"""

from __future__ import annotations

import codecs
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import tokenizers

from jumok.errors import BadInput
from jumok.text.pipeline import PROMISES, READ, SPACE, byte_of_character, sound
from jumok.text.sentencepiece import KIND as SENTENCEPIECE
from jumok.text.sentencepiece import SentencePieceModel
from jumok.text.special import SPECIAL_TOKENS, Specials
from jumok.text.wordpiece import Pieces
from jumok.text.words import close_gaps, trim, words_of_spans

FORMAT = 1
JOINERS = "\u200c\u200d"


@dataclass(frozen=True)
class Encoded:
    """One text with its pieces: where each is in the original text and in which word."""

    ids: list[int]
    tokens: list[str]  # printable pieces
    offsets: list[tuple[int, int]]  # in characters of the original text, without the blank before a word
    words: list[int]  # index in text.split()


class Tokenizer:
    """One vocabulary. `encode` adds no special tokens, and no text can spell one.

    `tags` are the names of the language tags, which have the last ids (see `tags.py`). `specials` are given for kind
    wordpiece alone: without them they are found there by their usual names, and all other kinds have the same.
    """

    def __init__(
        self,
        content: str,
        kind: str,
        lowercase: bool = False,
        tags: Sequence[str] = (),
        specials: Specials | None = None,
    ) -> None:
        self.kind = kind
        self.lowercase = lowercase
        self.content = content  # of tokenizer.json
        self._model: Any = (
            SentencePieceModel(content) if kind == SENTENCEPIECE else tokenizers.Tokenizer.from_str(content)
        )
        self._text_ids = range(len(SPECIAL_TOKENS), self.size - len(tags))
        self.tags = {name: id for id, name in enumerate(tags, self._text_ids.stop)}
        self._bytes = byte_of_character() if kind == "byte" else {}
        self._pieces = Pieces(self._model, specials) if kind == "wordpiece" else None
        self.specials = self._pieces.specials if self._pieces else Specials()

    @property
    def size(self) -> int:
        return int(self._model.get_vocab_size())

    @property
    def fingerprint(self) -> str:
        """Changes whenever the files would."""
        return hashlib.sha256((self.content + self._about()).encode()).hexdigest()

    def __repr__(self) -> str:
        return f"Tokenizer(kind={self.kind!r}, size={self.size})"

    def is_special(self, id: int) -> bool:
        """Whether an id stands for something else than text."""
        if self._pieces is not None:
            return not self._pieces.text(id)
        return id not in self._text_ids

    def continues(self) -> npt.NDArray[np.bool_]:
        """For each id, whether it goes on with the word before it, as spaces part words ("##" of kind wordpiece: BERT's
        words, where punctuation is one by itself). Special ids do not. Kinds that mark no words are refused."""
        if self.kind in ("byte", "character"):
            raise BadInput(
                f"a tokenizer of kind {self.kind} does not mark where words begin; "
                "those of kind wordpiece, bpe, unigram, word and space do"
            )
        return self._continues

    @cached_property
    def _continues(self) -> npt.NDArray[np.bool_]:
        if self._pieces is not None:
            found = np.array(self._pieces.goes_on, np.bool_)
        else:
            found = np.zeros(self.size, np.bool_)
            for id in self._text_ids:
                found[id] = not str(self._model.id_to_token(id)).startswith(SPACE)
        found.flags.writeable = False  # all who ask share it
        return found

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text, without special tokens."""
        return [row.ids for row in self._batch(texts)]

    def _batch(self, texts: Sequence[str]) -> list[Any]:
        try:
            return self._model.encode_batch_fast(list(texts), add_special_tokens=False)
        except (TypeError, UnicodeEncodeError):  # half a surrogate pair, as broken input decodes to
            return self._model.encode_batch_fast([sound(text) for text in texts], add_special_tokens=False)
        except Exception as error:  # the library's errors have no class of their own
            raise BadInput(f"the tokenizer cannot cut this text ({error}): its tokenizer.json is damaged") from None

    def encode_with_offsets(self, text: str) -> Encoded:
        row = self._model.encode(sound(text), add_special_tokens=False)
        offsets = [trim(text, start, end) for start, end in close_gaps(text, row.offsets)]
        return Encoded(row.ids, self.pieces(row.ids), offsets, words_of_spans(text, offsets))

    def decode(self, rows: Sequence[Sequence[int]]) -> list[str]:
        """The texts; special ids (the unknown one too) are left out."""
        if self._pieces is not None:
            return [self._pieces.decode(row) for row in rows]
        texts: list[str] = self._model.decode_batch([self._plain(row) for row in rows], skip_special_tokens=False)
        # Where an unknown word was left out, two blanks meet.
        return texts if self.kind in ("byte", "character") else [" ".join(text.split()) for text in texts]

    def _plain(self, row: Sequence[int]) -> list[int]:
        first, end = self._text_ids.start, self._text_ids.stop
        return [int(id) for id in row if first <= id < end]

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Each id as something to print: a blank shows as ▁, half a character as its bytes. Kind wordpiece has no
        blanks, but ## where a word goes on."""
        return [self._printable(int(id)) for id in ids]

    def word_of_piece(self, ids: Sequence[int]) -> list[int]:
        """For each id, the index of its word in `decode([ids])[0].split()`.

        Special ids, which leave no text behind, get the word that comes next (or the last one).
        """
        return self.decode_with_offsets(ids)[1].words

    def decode_with_offsets(self, ids: Sequence[int]) -> tuple[str, Encoded]:
        """The text that ids write, and where each of them stands in it; a special id is nowhere: its span is empty."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        text, spans = "", []
        for id in ids:
            # Byte by byte: a byte belongs to the character it ends, or to the unfinished one after all so far.
            places = []
            for byte in self.written(int(id), first=not text):
                text += decoder.decode(bytes([byte]))
                places.append(len(text) if decoder.getstate()[0] else len(text) - 1)
            spans.append((places[0], places[-1] + 1) if places else (len(text), len(text)))
        text += decoder.decode(b"", final=True)
        offsets = [trim(text, start, end) for start, end in spans]
        return text, Encoded([int(id) for id in ids], self.pieces(ids), offsets, words_of_spans(text, offsets))

    def written(self, id: int, first: bool) -> bytes:
        """The bytes an id adds to the decoded text."""
        if self.is_special(id):
            return b""
        if self._pieces is not None:
            text = self._pieces.text(id)
            return (text.removeprefix(" ") if first else text).encode()
        token: str = self._model.id_to_token(id) or ""
        if self.kind == "byte":
            return bytes(self._bytes[character] for character in token)
        if self.kind != "character":
            token = token.replace(SPACE, "" if first else " ")
        return token.encode()

    def _printable(self, id: int) -> str:
        if self.is_special(id):
            return str(self._model.id_to_token(id))
        raw = self.written(id, first=False)
        try:
            text = raw.decode() if self._pieces is None else str(self._model.id_to_token(id))
        except UnicodeDecodeError:
            return "".join(f"<{byte:02X}>" for byte in raw)
        return "".join(SPACE if c == " " else c if _harmless(c, text) else ascii(c)[1:-1] for c in text)

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in (("tokenizer.json", self.content), ("about.json", self._about())):
            (folder / name).write_text(content, encoding="utf-8", newline="\n")

    def _about(self) -> str:
        about: dict[str, Any] = {"format": FORMAT, "kind": self.kind, "size": self.size, "lowercase": self.lowercase}
        if self.tags:
            about["tags"] = list(self.tags)
        changes = "after NFC" + (" and lower-casing" if self.lowercase else "")
        if self._pieces is not None:
            about["specials"] = asdict(self.specials)
            changes = self._pieces.changes
        if self.kind == SENTENCEPIECE:
            changes = "after its own rules"
        about["promise"] = f"decode(encode(text)) is {PROMISES[self.kind]} ({changes})"
        return json.dumps(about, ensure_ascii=False, indent=1) + "\n"

    @classmethod
    def load(cls, folder: Path) -> Tokenizer:
        """From a folder made by `save`."""
        about_file, content_file = folder / "about.json", folder / "tokenizer.json"
        for file in (about_file, content_file):
            if not file.is_file():
                raise BadInput(
                    f"{folder}: not a tokenizer folder, {file.name} is missing (make one: jumok tokenizer train)"
                )
        try:
            about = json.loads(about_file.read_text(encoding="utf-8"))
            kind, size, lowercase = about["kind"], about["size"], about["lowercase"]
            tags = [str(name) for name in about.get("tags", [])]
            specials = Specials(**about["specials"]) if kind == "wordpiece" else None
            if about["format"] != FORMAT or kind not in READ:
                raise BadInput(
                    f"{about_file}: made by another version of jumok (format {about['format']}, kind {kind})"
                )
        except (ValueError, KeyError, TypeError) as error:
            raise BadInput(f"{about_file}: damaged ({error}); train the tokenizer again") from None
        try:
            tokenizer = cls(content_file.read_text(encoding="utf-8"), kind, lowercase, tags, specials)
        except Exception as error:  # the library raises bare Exception
            raise BadInput(f"{content_file}: damaged ({error}); train the tokenizer again") from None
        names = tuple(tokenizer._model.id_to_token(id) for id in range(len(SPECIAL_TOKENS)))
        known_specials = names == SPECIAL_TOKENS or kind == "wordpiece"  # whose own are checked by `Pieces`
        known_tags = all(tokenizer._model.token_to_id(f"<{name}>") == id for name, id in tokenizer.tags.items())
        ids = sorted(tokenizer._model.get_vocab().values())
        whole = tokenizer.size == size and ids == list(
            range(size)
        )  # an id is a row of the weights: none may lie outside
        if not whole or not known_specials or not known_tags:
            raise BadInput(f"{content_file}: does not belong to {about_file.name} beside it; train the tokenizer again")
        return tokenizer


def _harmless(character: str, piece: str) -> bool:
    """Control characters could drive the terminal; a joiner is only visible by itself."""
    return character.isprintable() or (character in JOINERS and len(piece) > 1)


def train_tokenizer(lines: Iterable[str], kind: str, vocabulary: int, lowercase: bool = False) -> Tokenizer:
    """Learn a vocabulary of at most `vocabulary` tokens. The same lines give the same file, on any machine."""
    from jumok.text.learn import learn

    return Tokenizer(learn(lines, kind, vocabulary, lowercase), kind, lowercase)
