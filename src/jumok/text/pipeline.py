"""How each kind of tokenizer prepares text: normalise, cut into words, and put together again.

All kinds compose characters first (NFC: 하 typed as jamo becomes one syllable). Then

- bpe, unigram, word: whitespace runs become one "▁" that opens the following word; punctuation stands apart from words
  and digits from each other, so that the vocabulary is spent on words and not on "word,", "word." and "(word";
- space: words as the spaces cut them, for text that somebody has tokenised before ("<unk>" in it is a word as well);
- character: every code point by itself, spaces included;
- byte: the same cuts as bpe, but spaces stay as they are and every byte has a token;
- wordpiece: as BERT does it, every punctuation mark and every Chinese character by itself; control characters and
  joiners are dropped. Accents stay (BERT strips them; that decomposes, and Hangul falls apart into letters).

No cut ever holds "<", letters and ">" alone together: text that spells "<eos>" cannot become the special token (a word
of kind space has its "▁" before it); nor "[", letters and "]" for kind wordpiece.
"""

from __future__ import annotations

import re
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, normalizers, pre_tokenizers

KINDS = ("bpe", "unigram", "word", "space", "character", "byte", "wordpiece")  # that can be learned
READ = (*KINDS, "sentencepiece")  # and those that are other people's alone (see sentencepiece.py)
SPACE = "▁"
PROMISES = {
    "bpe": "exact for text of known characters with single inner spaces; a literal ▁ reads back as a space",
    "unigram": "exact for text of known characters with single inner spaces; a literal ▁ reads back as a space",
    "word": "exact for text of known words with single inner spaces; a literal ▁ reads back as a space",
    "space": "exact for text of known words with single inner spaces; a literal ▁ reads back as a space",
    "character": "exact for text of known characters, all spaces included",
    "byte": "exact for any text",
    "wordpiece": "the words of known characters, all punctuation and Chinese characters set apart by spaces; "
    "control characters and joiners are lost, and words of more than 100 characters",
    "sentencepiece": "the text of known characters with single inner spaces; a literal ▁ reads back as a space",
}

# Joiners (U+200C, U+200D) are part of words, as Persian and the scripts of India write them.
_MARKED = r"{0}?[\p{{L}}\p{{M}}\x{{200C}}\x{{200D}}]+|{0}?{1}|{0}?([^\s\p{{L}}\p{{M}}\p{{N}}▁])\1*|"
# Runs of one mark ("...", "!!") stay together, different marks (`."`) do not.
_WORD_CUTS = _MARKED.format(SPACE, r"\p{N}+") + SPACE
_SUBWORD_CUTS = _MARKED.format(SPACE, r"\p{N}") + SPACE
_BYTE_CUTS = _MARKED.format(" ", r"\p{N}") + r"\s+(?!\S)|\s"
# Everything Python's str.split() splits on, so that words here and words there are the same words.
_BLANKS = r"[\s\x1c-\x1f▁]+"
_BLANKS_ALONE = r"[\s\x1c-\x1f]+"

_SURROGATES = re.compile("[\ud800-\udfff]")


def prepare(model: Any, kind: str, lowercase: bool) -> Tokenizer:
    """A `tokenizers.Tokenizer` around the model, with everything but the vocabulary."""
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = _normalizer(kind, lowercase)
    tokenizer.pre_tokenizer = _cutter(kind)
    if kind == "byte":
        tokenizer.decoder = decoders.ByteLevel()
    elif kind == "character":
        tokenizer.decoder = decoders.Fuse()
    elif kind == "wordpiece":
        tokenizer.decoder = decoders.WordPiece("##", cleanup=False)
    else:
        tokenizer.decoder = decoders.Metaspace(SPACE, "always", split=False)
    return tokenizer


def _normalizer(kind: str, lowercase: bool) -> Any:
    if kind == "wordpiece":
        # Blanks first: some of them are control characters too, which are dropped. Composing last: what is dropped may
        # have stood between characters that compose.
        blanks = normalizers.Replace(Regex(_BLANKS_ALONE), " ")
        return normalizers.Sequence(
            [blanks, normalizers.BertNormalizer(True, True, False, lowercase), normalizers.NFC()]
        )
    # Lower-casing first: it may itself leave characters that compose.
    steps: list[Any] = [normalizers.Lowercase()] if lowercase else []
    steps.append(normalizers.NFC())
    if kind not in ("byte", "character"):
        steps += [normalizers.Replace(Regex(_BLANKS), " "), normalizers.Strip()]
    return normalizers.Sequence(steps)


def _cutter(kind: str) -> Any:
    if kind == "character":
        return pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    if kind == "wordpiece":
        return pre_tokenizers.BertPreTokenizer()
    if kind == "byte":
        bytes_only = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(_BYTE_CUTS), "isolated"), bytes_only])
    cuts = {"word": _WORD_CUTS, "space": SPACE + r"[^▁]+"}.get(kind, _SUBWORD_CUTS)
    marked = pre_tokenizers.Metaspace(SPACE, "always", split=False)
    return pre_tokenizers.Sequence([marked, pre_tokenizers.Split(Regex(cuts), "isolated")])


def sound(text: str) -> str:
    """The text with lone surrogates, which have no UTF-8 (JSON can spell them), replaced one for one."""
    return _SURROGATES.sub("\ufffd", text)


def byte_of_character() -> dict[str, int]:
    """The letters that stand for bytes in a byte-level vocabulary (GPT-2's table): printable ones for themselves."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    table = {chr(byte): byte for byte in printable}
    table.update({chr(256 + place): byte for place, byte in enumerate(others)})
    return table
