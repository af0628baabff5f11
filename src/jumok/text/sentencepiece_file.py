"""The file of a SentencePiece model (`.spm`, `.model`), read without the library: a protobuf with three things in it.

    ModelProto      1: pieces (1: text, 2: score, 3: type)   2: TrainerSpec   3: NormalizerSpec
    TrainerSpec     3: model_type   24: treat_whitespace_as_suffix   35: byte_fallback
    NormalizerSpec  2: precompiled_charsmap   3: add_dummy_prefix   4: remove_extra_whitespaces   5: escape_whitespaces

A protobuf is a list of (number, value); a value is an integer of variable length, 8 or 4 bytes, or a length and as many
bytes. Fields that are not named here are passed over.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from jumok.errors import BadInput

NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
KINDS = {1: "unigram", 2: "bpe", 3: "word", 4: "char"}


@dataclass(frozen=True)
class SentencePieces:
    kind: str  # "unigram" or "bpe"
    pieces: tuple[tuple[str, float], ...]  # those that text is cut into, and their scores
    rules: bytes  # what characters become, before text is cut (see sentencepiece_rules.py)
    opens: bool  # with a blank before the first word (add_dummy_prefix)
    single: bool  # blanks at the ends go, several become one (remove_extra_whitespaces)


def parse(data: bytes, where: str) -> SentencePieces:
    """What a file says; what cannot be computed here as SentencePiece does is refused."""
    try:
        return _model(data, where)
    except (IndexError, ValueError, struct.error) as error:  # UnicodeDecodeError is a ValueError
        raise BadInput(f"{where}: not the file of a SentencePiece model ({error}); fetch the file again") from None


def _model(data: bytes, where: str) -> SentencePieces:
    pieces: list[tuple[str, float, int]] = []
    trainer: dict[int, int | bytes] = {}
    normalizer: dict[int, int | bytes] = {}
    for number, value in _fields(data):
        if number == 1:
            pieces.append(_piece(_bytes(value)))
        elif number == 2:
            trainer = dict(_fields(_bytes(value)))
        elif number == 3:
            normalizer = dict(_fields(_bytes(value)))
    if not trainer or not normalizer:  # they come after the pieces, and every file has them
        raise ValueError("it ends before its settings")
    kind = KINDS.get(_integer(trainer.get(3, 1)), "unknown")
    if kind not in ("unigram", "bpe"):
        raise BadInput(f"{where}: its model_type is {kind}; unigram and bpe can be read here")
    others = {USER: "user-defined symbols", BYTE: "bytes (byte_fallback)"} | (
        {UNUSED: "unused ones"} if kind == "bpe" else {}
    )
    for text, _, type in pieces:
        if type in others:
            raise BadInput(f"{where}: among its pieces there are {others[type]} ({text}), which cannot be read here")
    if _integer(trainer.get(24, 0)):
        raise BadInput(
            f"{where}: blanks stand after words in it (treat_whitespace_as_suffix); that cannot be read here"
        )
    if not _integer(normalizer.get(5, 1)):
        raise BadInput(f"{where}: blanks stay blanks in it (escape_whitespaces false); that cannot be read here")
    normal = tuple((text, score) for text, score, type in pieces if type == NORMAL)
    if not normal or len({text for text, _ in normal}) != len(normal):
        raise ValueError("it has no pieces" if not normal else "a piece is there twice")
    if not all(text and math.isfinite(score) for text, score in normal):
        raise ValueError("a piece is empty, or its score is not a number")
    return SentencePieces(
        kind,
        normal,
        _bytes(normalizer.get(2, b"")),
        bool(_integer(normalizer.get(3, 1))),
        bool(_integer(normalizer.get(4, 1))),
    )


def _piece(data: bytes) -> tuple[str, float, int]:
    fields = dict(_fields(data))
    (score,) = struct.unpack("<f", _bytes(fields.get(2, b"\0\0\0\0")))
    return _bytes(fields.get(1, b"")).decode("utf-8"), score, _integer(fields.get(3, NORMAL))


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    place = 0
    while place < len(data):
        key, place = _variable(data, place)
        wire = key & 7
        if wire == 0:
            value, place = _variable(data, place)
            yield key >> 3, value
            continue
        if wire == 2:
            size, place = _variable(data, place)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise ValueError(f"byte {place}: a field of type {wire}")
        if place + size > len(data):
            raise ValueError(f"byte {place}: it ends too early")
        yield key >> 3, data[place : place + size]
        place += size


def _variable(data: bytes, place: int) -> tuple[int, int]:
    """An integer, seven bits a byte, and the place after it."""
    value = 0
    for shift in range(0, 70, 7):
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
    raise ValueError(f"byte {place}: a number without end")


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError("a number where bytes should be")
    return value


def _integer(value: int | bytes) -> int:
    if isinstance(value, bytes):
        raise ValueError("bytes where a number should be")
    return value
