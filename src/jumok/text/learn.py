"""Learning a vocabulary from lines: one pass counts characters, a second one (from a spooled copy) trains.

Memory stays flat: `tokenizers` keeps only the distinct words, and the lines wait in a temporary file.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from tempfile import SpooledTemporaryFile
from typing import Any

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from jumok.errors import BadInput, did_you_mean
from jumok.text.pipeline import KINDS, SPACE, prepare, sound
from jumok.text.special import SPECIAL_TOKENS
from jumok.text.wordpiece import GOES_ON, LONGEST_WORD, NAMES

SPECIALS = list(SPECIAL_TOKENS)
UNKNOWN_TOKEN = SPECIALS[1]
SPOOL_BYTES = 32 << 20


def learn(lines: Iterable[str], kind: str, vocabulary: int, lowercase: bool) -> str:
    """The content of `tokenizer.json`."""
    if kind not in KINDS:
        raise BadInput(f'no tokenizer kind "{kind}".{did_you_mean(kind, KINDS)}')
    smallest = len(NAMES if kind == "wordpiece" else SPECIALS) + (256 if kind == "byte" else 2)
    if vocabulary < smallest:
        raise BadInput(f"tokenizer.vocabulary: {vocabulary} is too small, kind {kind} needs at least {smallest}")
    lines = map(sound, lines)
    if kind == "character":
        return _finish(_learn_characters(lines, vocabulary, lowercase))
    if kind == "byte":
        return _finish(_learn_bytes(lines, vocabulary, lowercase))
    if kind == "wordpiece":
        return _finish(_learn_wordpieces(lines, vocabulary, lowercase))
    return _finish(_learn_words(lines, kind, vocabulary, lowercase))


def _finish(tokenizer: Tokenizer) -> str:
    """As JSON, the special tokens known to the vocabulary but never looked for in text."""
    content = json.loads(tokenizer.to_str())
    content["added_tokens"] = []
    if content["model"]["type"] == "Unigram":
        content["model"]["vocab"] = _settled(content["model"]["vocab"])
    return json.dumps(content, ensure_ascii=False) + "\n"


def _settled(vocabulary: list[list[Any]]) -> list[list[Any]]:
    """The pieces of a unigram model, free of the order in which a hash table happened to hold the words.

    That order shows in the last bits of the scores (sums of floats), in the order of equal scores, and in the scores
    of characters that EM had dropped and that were put back one ten-thousandth apart just above the lowest score.
    """
    pieces = [(token, float(score)) for token, score in vocabulary[len(SPECIALS) :]]
    lowest = min(score for _, score in pieces)
    put_back = lowest + 1e-4 * sum(len(token) == 1 for token, _ in pieces)
    scores = {token: lowest if len(token) == 1 and score < put_back else score for token, score in pieces}
    rounded = {token: round(score, 4) for token, score in scores.items()}
    return vocabulary[: len(SPECIALS)] + [
        [token, rounded[token]] for token in sorted(rounded, key=lambda t: (-rounded[t], t))
    ]


def _some(count: int) -> None:
    if not count:
        raise BadInput("there is nothing to train a tokenizer on: every line is empty")


def _ranked(counts: Counter[str]) -> list[str]:
    """Most frequent first, ties by code point: Python's own order of equal counts depends on the input's order."""
    return sorted(counts, key=lambda token: (-counts[token], token))


def _learn_characters(lines: Iterable[str], vocabulary: int, lowercase: bool) -> Tokenizer:
    tokenizer = prepare(models.WordLevel({}, UNKNOWN_TOKEN), "character", lowercase)
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(tokenizer.normalizer.normalize_str(line))
    _some(len(counts))
    tokens = SPECIALS + _ranked(counts)[: vocabulary - len(SPECIALS)]
    tokenizer.model = models.WordLevel({token: id for id, token in enumerate(tokens)}, UNKNOWN_TOKEN)
    return tokenizer


def _learn_bytes(lines: Iterable[str], vocabulary: int, lowercase: bool) -> Tokenizer:
    tokenizer = prepare(models.BPE(), "byte", lowercase)
    seen = 0

    def counted() -> Iterator[str]:
        nonlocal seen
        for line in lines:
            seen += bool(line)
            yield line

    # Every byte has a token, also those the corpus never uses: nothing is unknown.
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(
        counted(),
        trainers.BpeTrainer(
            vocab_size=vocabulary, special_tokens=SPECIALS, initial_alphabet=alphabet, show_progress=False
        ),
    )
    _some(seen)
    return tokenizer


def _learn_words(lines: Iterable[str], kind: str, vocabulary: int, lowercase: bool) -> Tokenizer:
    blank, trainer = _model_and_trainer(kind, vocabulary)
    tokenizer = prepare(blank, kind, lowercase)
    with _spool() as spool:
        counts = _count_characters(tokenizer, lines, spool)
        # At least half of the vocabulary is for pieces: the rarest characters of a large alphabet become unknown.
        room = max(1, (vocabulary - len(SPECIALS)) // 2)
        rare = {ord(character): " " for character in _ranked(counts)[room:]} if kind not in ("word", "space") else {}
        tokenizer.train_from_iterator(_kept(spool, rare), trainer)
    return tokenizer


def _learn_wordpieces(lines: Iterable[str], vocabulary: int, lowercase: bool) -> Tokenizer:
    blank = models.WordPiece({}, unk_token=NAMES[1], max_input_chars_per_word=LONGEST_WORD)
    tokenizer = prepare(blank, "wordpiece", lowercase)
    with _spool() as spool:
        counts = _count_characters(tokenizer, lines, spool)
        # A character is there both as the first of a word and within one, else a word that has it would be unknown.
        room = max(2, (vocabulary - len(NAMES)) // 2)
        first: list[str] = []
        within: list[str] = []
        for place, character in enumerate(_ranked(counts)):
            inside = _stays_within_words(tokenizer, character)
            if len(first) + len(within) + 1 + inside > room:
                rare = {ord(character): " " for character in _ranked(counts)[place:]}
                break
            first.append(character)
            within += [GOES_ON + character] * inside
        else:
            rare = {}
        # The trainer would number the "##" forms as a hash table happens to hold the words, and settle ties by number.
        settled = [*NAMES, *sorted(first), *sorted(within)]
        trainer = trainers.WordPieceTrainer(vocab_size=vocabulary, special_tokens=settled, show_progress=False)
        tokenizer.train_from_iterator(_kept(spool, rare), trainer)
    return tokenizer


def _stays_within_words(tokenizer: Tokenizer, character: str) -> bool:
    """Whether the cutter leaves it beside a letter: punctuation and Chinese characters always stand apart."""
    beside = tokenizer.normalizer.normalize_str(f"a{character}")
    return len(tokenizer.pre_tokenizer.pre_tokenize_str(beside)) == 1


def _spool() -> Any:
    return SpooledTemporaryFile(SPOOL_BYTES, "w+", encoding="utf-8", newline="\n")


def _count_characters(tokenizer: Tokenizer, lines: Iterable[str], spool: Any) -> Counter[str]:
    """How often each occurs, the blank aside; the lines, normalised, go to the spool."""
    counts: Counter[str] = Counter()
    for line in lines:
        normal = tokenizer.normalizer.normalize_str(line)
        if normal:
            counts.update(normal)
            spool.write(normal + "\n")
    counts.pop(" ", None)
    _some(len(counts))
    return counts


def _kept(spool: Any, rare: dict[int, str]) -> Iterator[str]:
    """The spooled lines again, blanks where rare characters were."""
    spool.seek(0)
    for line in spool:
        yield line.translate(rare) if rare else line


def _model_and_trainer(kind: str, vocabulary: int) -> tuple[Any, Any]:
    common: dict[str, Any] = {"vocab_size": vocabulary, "special_tokens": SPECIALS, "show_progress": False}
    if kind in ("word", "space"):
        return models.WordLevel({}, UNKNOWN_TOKEN), trainers.WordLevelTrainer(**common)
    if kind == "unigram":
        return models.Unigram(), trainers.UnigramTrainer(**common, unk_token=UNKNOWN_TOKEN)
    bpe = models.BPE(unk_token=UNKNOWN_TOKEN, fuse_unk=True)
    return bpe, trainers.BpeTrainer(**common, initial_alphabet=[SPACE])
