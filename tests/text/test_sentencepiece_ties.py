"""Cuts that rounding decides are SentencePiece's own."""

from __future__ import annotations

import itertools
import random

import pytest
from marian_models import pieces_of, sentencepiece_file

from jumok.text.sentencepiece import document
from jumok.text.sentencepiece_file import parse
from jumok.text.sentencepiece_rules import Normal, read_rules
from jumok.text.sentencepiece_ties import MOST_CHARACTERS, MOST_PIECES, Ties, has_another_order
from jumok.text.tokenizer import Tokenizer

sentencepiece = pytest.importorskip("sentencepiece")
REPEATED = ["s", "o", "a", "n", ".", "ko", "ba", "né", "漢", "▁", " "]


def repeating(dice: random.Random) -> str:
    """Words of one syllable again and again, and some of what is between."""
    return "".join(dice.choice(REPEATED) * dice.choice((1, 1, 2, 3, 5, 8)) for _ in range(dice.randint(1, 30)))


@pytest.fixture
def dice() -> random.Random:
    value = random.SystemRandom().randrange(2**31)
    print(f"seed {value}")
    return random.Random(value)


def test_repeated_syllables_are_cut_as_the_library_cuts_them(dice: random.Random) -> None:
    tied = 0
    for _ in range(4):
        file = sentencepiece_file(dice, vocab_size=dice.choice((60, 90, 120)))
        library = sentencepiece.SentencePieceProcessor(model_proto=file)
        ours, ties = Tokenizer(document(file, pieces_of(file)), "sentencepiece"), Ties(parse(file, "x").pieces)
        for text in (repeating(dice) for _ in range(400)):
            pieces = library.encode(text, out_type=str)
            known = [piece if library.piece_to_id(piece) else "<unk>" for piece in pieces]
            (row,) = ours.encode([text])
            assert [ours._model.id_to_token(id) for id in row] == known, text
            assert ours.encode_with_offsets(text).ids == row
            tied += ties.possible([library.piece_to_id(piece) and _number(ties, piece) for piece in pieces])
    assert tied > 20, "nothing was decided by rounding"


def _number(ties: Ties, piece: str) -> int:
    return ties._names.index(piece)


def test_every_cut_is_the_best_one(dice: random.Random) -> None:
    """Also where nothing is tied."""
    file = sentencepiece_file(dice)
    library, parsed = sentencepiece.SentencePieceProcessor(model_proto=file), parse(file, "x")
    normal, ties = Normal(read_rules(parsed.rules, "x"), parsed.opens, parsed.single), Ties(parsed.pieces)
    for text in (repeating(dice) for _ in range(200)):
        written = normal(text)
        cut = ties.cut(written)
        assert [written[start:end] for _, start, end in cut] == library.encode(text, out_type=str), text
        for id, start, end in cut:
            assert id == 0 or ties._names[id] == written[start:end]
            assert id or not library.piece_to_id(written[start:end])


def test_other_orders_are_found(dice: random.Random) -> None:
    found = set()
    for _ in range(2000):
        pieces = ["".join(dice.choices("ab", k=dice.randint(1, 3))) for _ in range(dice.randint(0, 6))]
        text = "".join(pieces)
        expected = any("".join(order) == text and list(order) != pieces for order in itertools.permutations(pieces))
        assert has_another_order(pieces) == expected, pieces
        found.add(expected)
    assert found == {True, False}
    assert has_another_order(["a", "b", "aba"]), "ababa, and aba b a"


def test_monstrous_words_take_no_time() -> None:
    assert has_another_order(["a" * (1 + number % 2) for number in range(MOST_PIECES + 1)])
    assert not has_another_order(["a"] * 100_000)
    hard = ["ab" * count + "a" for count in range(12)] + ["ba" * count + "b" for count in range(12)]
    assert has_another_order(hard) in (True, False)  # it answers
    ours = Ties([("▁", -1.0), ("a", -2.0), ("aa", -3.0)])
    assert not ours.possible([1])
    assert ours.possible([1, 2, 3])
    assert not ours.possible([2, 1, 2])  # words: a, ▁a
    assert not ours.possible([2, 0, 3])  # nothing turns around what is unknown
    assert "".join("▁a"[start:end] for _, start, end in ours.cut("▁a")) == "▁a"
    assert MOST_CHARACTERS > 10_000
