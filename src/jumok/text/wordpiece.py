"""WordPiece (Wu et al. 2016) as in BERT (Devlin et al. 2019): a word is cut greedily, the longest known piece first.

    unaffable → un ##aff ##able        "##" goes on with the word before

A word with a character that the vocabulary lacks, or of more than 100 characters, is unknown as a whole. The special
tokens stand in brackets, [CLS], and may have any ids: the vocabularies of others have [UNK] at 100, and hundreds of
[unused] ones. Since every bracket is cut off from what it encloses, no text ever becomes a token in brackets.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple
from typing import Any

from jumok.errors import BadInput
from jumok.text.special import PAD, Specials

KIND = "wordpiece"
GOES_ON = "##"
LONGEST_WORD = 100  # in characters
NAMES = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")  # in the order of the fields of Specials
OWN = Specials(mask=4)  # of the vocabularies that are learned here


class Pieces:
    """What each id of a vocabulary writes. `library` is the `tokenizers.Tokenizer` that cuts."""

    def __init__(self, library: Any, specials: Specials | None) -> None:
        if type(library.model).__name__ != "WordPiece":
            raise BadInput(f"its model is {type(library.model).__name__}, not WordPiece")
        vocabulary: dict[str, int] = library.get_vocab()
        self.specials = specials or find_specials(vocabulary)
        self.changes = _changes(json.loads(library.normalizer.__getstate__()) if library.normalizer else {})
        spelled = {
            token.content for token in library.get_added_tokens_decoder().values()
        }  # texts are searched for these
        self.texts = [""] * len(vocabulary)
        self.goes_on = [False] * len(vocabulary)
        special = {id for id in astuple(self.specials) if id is not None}
        for token, id in vocabulary.items():
            if id < len(vocabulary) and id not in special and (token in spelled or not in_brackets(token)):
                self.goes_on[id] = token.startswith(GOES_ON)
                self.texts[id] = token[len(GOES_ON) :] if self.goes_on[id] else f" {token}"
        self._check(library, special)

    def _check(self, library: Any, special: set[int]) -> None:
        fields = [id for id in astuple(self.specials) if id is not None]
        if any(type(id) is not int or not 0 <= id < len(self.texts) for id in fields) or len(special) < len(fields):
            raise BadInput(f"its special tokens {fields} are not different ids of its {len(self.texts):,}")
        refuse_padding(self.specials.pad)
        if library.id_to_token(self.specials.unknown) != library.model.unk_token:
            raise BadInput(f"its unknown token is {library.model.unk_token}, which is not id {self.specials.unknown}")
        for id in sorted(special - {self.specials.unknown}):
            name = library.id_to_token(id)
            if id in library.encode(name, add_special_tokens=False).ids:
                raise BadInput(f'its special token "{name}" is something that a text can say')

    def text(self, id: int) -> str:
        """What an id adds to a text, the blank before a word included; nothing, where it is no text."""
        return self.texts[id] if 0 <= id < len(self.texts) else ""

    def decode(self, row: Iterable[int]) -> str:
        return "".join(self.text(int(id)) for id in row).removeprefix(" ")


def in_brackets(token: str) -> bool:
    """Whether a token of a vocabulary is a name and no text: [CLS], [unused7], a tag's <2de>; blank ones too."""
    return (len(token) > 2 and token[0] + token[-1] in ("[]", "<>")) or not token.strip()


def find_specials(vocabulary: Mapping[str, int], names: Sequence[str] = NAMES) -> Specials:
    """The special ids by the names they have; only [MASK] may be missing."""
    for name in names[:-1]:
        if name not in vocabulary:
            raise BadInput(f'no special token "{name}" in the vocabulary')
    pad, unknown, start, end = (vocabulary[name] for name in names[:-1])
    refuse_padding(pad)
    return Specials(pad, unknown, start, end, vocabulary.get(names[-1]))


def refuse_padding(pad: int) -> None:
    if pad != PAD:
        raise BadInput(
            f"its padding token has id {pad}; models here pad with id {PAD}, the first line of the vocabulary"
        )


def document(
    vocabulary: Mapping[str, int],
    normalizer: Mapping[str, Any],
    unknown: str = NAMES[1],
    longest: int = LONGEST_WORD,
    added: Sequence[Mapping[str, Any]] = (),
) -> str:
    """The content of a `tokenizer.json`. `added` are tokens that texts are searched for before all else."""
    model = {
        "type": "WordPiece",
        "unk_token": unknown,
        "continuing_subword_prefix": GOES_ON,
        "max_input_chars_per_word": longest,
        "vocab": dict(sorted(vocabulary.items(), key=lambda entry: entry[1])),
    }
    content = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": list(added),
        "normalizer": normalizer,
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": None,
        "decoder": {"type": "WordPiece", "prefix": GOES_ON, "cleanup": False},
        "model": model,
    }
    return json.dumps(content, ensure_ascii=False) + "\n"


def _changes(normalizer: Mapping[str, Any]) -> str:
    """What is done to text before it is cut, in words."""
    done = []
    for step in normalizer.get("normalizers", [normalizer]):
        if step.get("type") == "BertNormalizer":
            lowercase, accents = step["lowercase"], step["strip_accents"]
            done += ["lower-casing"] * lowercase
            if lowercase if accents is None else accents:
                done.append("the loss of all accents, which takes Hangul apart into letters")
        elif step.get("type") in ("NFC", "NFD", "NFKC", "NFKD"):
            done.insert(0, step["type"])
        elif step.get("type") == "Lowercase":
            done.append("lower-casing")
    return f"after {' and '.join(done)}" if done else "otherwise as it is"
