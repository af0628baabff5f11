"""The vocabularies of a Marian model: `source.spm` and `target.spm` cut the text, `vocab.json` has the ids of pieces
(`target_vocab.json` those of the target's, where the two sides share nothing).

Here every vocabulary begins with <pad>, <unk>, <sos>, <eos>; theirs have these anywhere and no <sos>: their decoder
begins with <pad>. So the rows of the word vectors are put in another order, and <sos> gets a copy of the row of <pad>.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jumok.errors import BadInput
from jumok.interop.json_file import read_object, read_object_if_there
from jumok.interop.marian_config import shares, target_rows, token_id
from jumok.text.sentencepiece import KIND, document
from jumok.text.sentencepiece_file import parse
from jumok.text.special import SPECIAL_TOKENS
from jumok.text.tokenizer import Tokenizer

SOURCE, TARGET, VOCABULARY, TARGET_VOCABULARY = "source.spm", "target.spm", "vocab.json", "target_vocab.json"
FITS = 0.5  # of a file's pieces, the share that has ids: corpora never use all, other people's files share few


@dataclass(frozen=True)
class Vocabulary:
    tokenizer: Tokenizer
    rows: list[int]  # for each id of ours, theirs; that of <sos> is the padding's


def read_vocabularies(folder: Path, config: Mapping[str, Any]) -> tuple[Vocabulary, Vocabulary]:
    """Source and target."""
    where = str(folder / "config.json")
    names = _names(folder)
    pad, end = (token_id(config, key, where) for key in ("pad_token_id", "eos_token_id"))
    ids = _ids(folder / VOCABULARY, config["vocab_size"], "vocab_size")
    if shares(config):
        for name, id, key in ((names["pad"], pad, "pad_token_id"), (names["end"], end, "eos_token_id")):
            _same(folder / VOCABULARY, ids, name, id, key)
        rows, pieces = _ordered(ids, config["vocab_size"], pad, _id(ids, names["unknown"], folder / VOCABULARY), end)
        return tuple(  # type: ignore[return-value]  # it has two
            Vocabulary(_tokenizer(folder / file, ids, folder / VOCABULARY, pieces), rows) for file in (SOURCE, TARGET)
        )
    size, file = target_rows(config, where), folder / TARGET_VOCABULARY
    if not file.is_file():
        raise BadInput(f"{file}: is missing; config.json says share_encoder_decoder_embeddings false, so it is needed")
    theirs = _ids(file, size, "decoder_vocab_size")
    _same(file, theirs, names["end"], end, "eos_token_id")
    if pad >= size:
        raise BadInput(f"{where}: pad_token_id {pad} is not below decoder_vocab_size {size}, where the decoder begins")
    own = [_id(ids, names[role], folder / VOCABULARY) for role in ("pad", "unknown", "end")]
    source = _ordered(ids, config["vocab_size"], *own)
    target = _ordered(theirs, size, pad, _id(theirs, names["unknown"], file), end)
    return (
        Vocabulary(_tokenizer(folder / SOURCE, ids, folder / VOCABULARY, source[1]), source[0]),
        Vocabulary(_tokenizer(folder / TARGET, theirs, file, target[1]), target[0]),
    )


def _names(folder: Path) -> dict[str, str]:
    """What the special tokens are called."""
    told = {**read_object_if_there(folder / "tokenizer_config.json")}
    told |= read_object_if_there(folder / "special_tokens_map.json")
    found = {}
    for role, key, usual in (
        ("pad", "pad_token", "<pad>"),
        ("unknown", "unk_token", "<unk>"),
        ("end", "eos_token", "</s>"),
    ):
        token = told.get(key)
        token = token.get("content") if isinstance(token, dict) else token
        found[role] = token if isinstance(token, str) else usual
    return found


def _ids(file: Path, rows: int, key: str) -> dict[str, int]:
    if not file.is_file():
        raise BadInput(f"{file}: is missing; the ids of the pieces are in it")
    ids = read_object(file)
    if any(type(id) is not int or id < 0 for id in ids.values()):
        raise BadInput(f"{file}: not a table of pieces and their ids; fetch the file again")
    if len(set(ids.values())) != len(ids):
        raise BadInput(f"{file}: two pieces have the same id; fetch the file again")
    highest = max(ids.values(), default=-1)
    if highest >= rows:
        raise BadInput(f"{file}: its highest id is {highest:,}, but config.json has {key} {rows:,}; they do not fit")
    return ids


def _id(ids: Mapping[str, int], name: str, file: Path) -> int:
    if name not in ids:
        raise BadInput(f'{file}: the token "{name}" is not there; it is not the vocabulary of a Marian model')
    return ids[name]


def _same(file: Path, ids: Mapping[str, int], name: str, id: int, key: str) -> None:
    if _id(ids, name, file) != id:
        raise BadInput(f'{file}: "{name}" has id {ids[name]}, but config.json has {key} {id}; they do not fit')


def _ordered(ids: Mapping[str, int], rows: int, pad: int, unknown: int, end: int) -> tuple[list[int], list[str]]:
    """For each id of ours theirs, and the names of those after the special ones."""
    specials = [pad, unknown, pad, end]
    if len(set(specials)) != 3:
        raise BadInput(f"the ids of padding ({pad}), unknown ({unknown}) and end ({end}) are not three different ones")
    names = {id: name for name, id in ids.items()}
    others = [id for id in range(rows) if id not in specials]
    # ids that nobody has, and pieces called as our special tokens are, get names that no text becomes
    taken = {*SPECIAL_TOKENS}
    return specials + others, [
        name if (name := names.get(id)) is not None and name not in taken else f"[nothing {id}]" for id in others
    ]


def _tokenizer(file: Path, ids: Mapping[str, int], vocabulary: Path, names: list[str]) -> Tokenizer:
    try:
        data = file.read_bytes()
    except OSError as error:
        raise BadInput(f"{file}: cannot be read ({error.strerror or error})") from None
    pieces = [piece for piece, _ in parse(data, str(file)).pieces]
    known = sum(piece in ids for piece in pieces)
    if known < FITS * len(pieces):
        raise BadInput(
            f"{vocabulary}: has ids for only {known:,} of the {len(pieces):,} pieces of {file.name}; "
            "they are not of the same model"
        )
    try:
        return Tokenizer(document(data, names), KIND)
    except BadInput as error:
        raise BadInput(str(error).replace("tokenizer.json", str(file), 1)) from None
