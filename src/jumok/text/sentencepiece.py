"""A tokenizer of kind sentencepiece: other people's SentencePiece model, with the ids of a vocabulary of its own.

Marian's models come so: pieces are cut by one file, and another says which id a piece has. Both sides of a model may
share the ids and be cut by different files. A piece without an id is unknown; a run of unknown characters has one id,
that of the vocabulary's piece of just these characters, if there is one. A language code that opens a text
(">>fra<< How are you?") is one token.

`SentencePieceModel` has the methods of `tokenizers.Tokenizer` that `text.tokenizer.Tokenizer` calls. The search for the
best cut is that library's (Unigram: Kudo 2018; BPE: Sennrich et al. 2016), but where rounding decides which one that is
(sentencepiece_ties.py).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import tokenizers
from tokenizers import models, pre_tokenizers

from jumok.errors import BadInput
from jumok.text.sentencepiece_file import SentencePieces, parse
from jumok.text.sentencepiece_rules import SPACE, Normal, read_rules
from jumok.text.sentencepiece_ties import Piece, Ties, parted
from jumok.text.special import SPECIAL_TOKENS, UNKNOWN

KIND = "sentencepiece"
NOBODY = -1
NOTHING = " "  # the library's name of the unknown piece: no normal text has a blank


class Cut(NamedTuple):
    ids: list[int]
    offsets: list[tuple[int, int]]  # in the text as it was given


def document(file: bytes, vocabulary: Sequence[str]) -> str:
    """The content of `tokenizer.json`: a SentencePiece file, and the pieces by their ids after the special ones."""
    kept = {"sentencepiece": base64.b64encode(file).decode("ascii"), "vocabulary": list(vocabulary)}
    return json.dumps(kept, ensure_ascii=False) + "\n"


def file_in(content: str) -> bytes:
    """The SentencePiece file that a `tokenizer.json` was made of, byte by byte."""
    return base64.b64decode(json.loads(content)["sentencepiece"], validate=True)


class SentencePieceModel:
    def __init__(self, content: str, where: str = "tokenizer.json") -> None:
        pieces = parse(file_in(content), where)
        self._names = [*SPECIAL_TOKENS, *map(str, json.loads(content)["vocabulary"])]
        self._ids = {name: id for id, name in enumerate(self._names) if id >= len(SPECIAL_TOKENS)}
        if len(self._ids) != len(self._names) - len(SPECIAL_TOKENS):
            raise BadInput(f"{where}: two tokens of the vocabulary have the same name")
        self._normal = Normal(read_rules(pieces.rules, where), pieces.opens, pieces.single)
        self._library = _library(pieces)
        self._ties = Ties(pieces.pieces) if pieces.kind == "unigram" else None
        # for each id of the library's ours; the first is what it does not know
        self._ours = [NOBODY, *(self._ids.get(piece, UNKNOWN) for piece, _ in pieces.pieces)]

    def get_vocab_size(self) -> int:
        return len(self._names)

    def get_vocab(self) -> dict[str, int]:
        return {**self._ids, **{name: id for id, name in enumerate(SPECIAL_TOKENS)}}

    def id_to_token(self, id: int) -> str | None:
        return self._names[id] if 0 <= id < len(self._names) else None

    def token_to_id(self, name: str) -> int | None:
        return self._ids.get(name)

    def encode_batch_fast(self, texts: Sequence[str], add_special_tokens: bool = False) -> list[Cut]:
        """Without offsets."""
        split = [_code(text) for text in texts]
        normal = [self._normal(text[len(code) :]) for code, text in zip(split, texts, strict=True)]
        found = self._library.encode_batch_fast(normal, add_special_tokens=False)
        cuts = []
        for code, text, row in zip(split, normal, found, strict=True):
            if self._ties is not None and self._ties.possible(text, row.ids):
                ids = self._looked_up(text, self._ties.cut(text))
            else:
                ids = [self._ours[id] for id in row.ids]
                if NOBODY in ids:
                    ids = self._looked_up(text, self._pieces(text))
            cuts.append(Cut([*self._code_ids(code), *ids], []))
        return cuts

    def encode(self, text: str, add_special_tokens: bool = False) -> Cut:
        code = _code(text)
        normal, spans = self._normal.placed(text[len(code) :])
        found = self._pieces(normal)
        offsets = [(0, len(code))] if code else []
        offsets += [(len(code) + spans[start][0], len(code) + spans[end - 1][1]) for _, start, end in found]
        return Cut([*self._code_ids(code), *self._looked_up(normal, found)], offsets)

    def decode_batch(self, rows: Sequence[Sequence[int]], skip_special_tokens: bool = False) -> list[str]:
        return ["".join(self._names[id] for id in row).replace(SPACE, " ").removeprefix(" ") for row in rows]

    def _pieces(self, text: str) -> list[Piece]:
        found = self._library.encode(text, add_special_tokens=False)
        if self._ties is not None and self._ties.possible(text, found.ids):
            return self._ties.cut(text)
        return [(id, start, end) for id, (start, end) in zip(found.ids, found.offsets, strict=True)]

    def _looked_up(self, text: str, found: Sequence[Piece]) -> list[int]:
        ids = []
        for id, start, end in found:
            ours = self._ours[id]
            ids.append(self._ids.get(text[start:end], UNKNOWN) if ours == NOBODY else ours)
        return ids

    def _code_ids(self, code: str) -> list[int]:
        return [self._ids.get(code, UNKNOWN)] if code else []


def _code(text: str) -> str:
    """The language code that a text begins with."""
    end = text.find("<<") if text.startswith(">>") else -1
    return text[: end + 2] if end >= 0 else ""


def _library(pieces: SentencePieces) -> tokenizers.Tokenizer:
    if pieces.kind == "unigram":
        model: Any = models.Unigram([(NOTHING, 0.0), *pieces.pieces], unk_id=0, byte_fallback=False)
    else:
        ids = {NOTHING: 0, **{piece: id for id, (piece, _) in enumerate(pieces.pieces, 1)}}
        model = models.BPE(ids, _merges(pieces), unk_token=NOTHING, fuse_unk=True)
    made = tokenizers.Tokenizer(model)
    # Where a blank only ever opens a piece, words can be cut one by one, and those that come again are remembered.
    if parted(pieces.pieces):
        made.pre_tokenizer = pre_tokenizers.Metaspace(SPACE, "never", split=True)
    return made


def _merges(pieces: SentencePieces) -> list[tuple[str, str]]:
    """SentencePiece joins two neighbours into the piece of the highest score; the library wants the pairs in order."""
    scores = dict(pieces.pieces)
    ranked = sorted(scores, key=lambda piece: -scores[piece])
    return [
        (piece[:cut], piece[cut:])
        for piece in ranked
        for cut in range(1, len(piece))
        if piece[:cut] in scores and piece[cut:] in scores
    ]
