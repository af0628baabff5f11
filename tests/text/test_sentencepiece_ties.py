"""Cuts that rounding decides are SentencePiece's own."""

from __future__ import annotations

import random

import pytest
from marian_models import pieces_of, sentencepiece_file

from jumok.text.sentencepiece import document
from jumok.text.sentencepiece_file import parse
from jumok.text.sentencepiece_rules import Normal, read_rules
from jumok.text.sentencepiece_ties import LONG_TEXT, LONG_WORD, MOST_CHARACTERS, Ties
from jumok.text.tokenizer import Tokenizer

sentencepiece = pytest.importorskip("sentencepiece")
REPEATED = ["s", "o", "a", "n", ".", "ko", "ba", "né", "漢", "▁", " "]


def repeating(dice: random.Random) -> str:
    """Words of one syllable again and again, and some of what is between."""
    return "".join(dice.choice(REPEATED) * dice.choice((1, 1, 2, 3, 5, 8)) for _ in range(dice.randint(1, 30)))


def with_pairs(dice: random.Random, file: bytes) -> bytes:
    """The same model with pieces of each syllable twice: a run of them has many best cuts."""
    messages = pytest.importorskip("sentencepiece.sentencepiece_model_pb2")
    model = messages.ModelProto.FromString(file)
    known = {piece.piece: piece.score for piece in model.pieces}
    for syllable in REPEATED:
        if syllable in known and 2 * syllable not in known and syllable != "▁":
            model.pieces.add(piece=2 * syllable, score=known[syllable] * dice.uniform(1.2, 1.9))
    return bytes(model.SerializeToString())


@pytest.fixture
def dice() -> random.Random:
    value = random.SystemRandom().randrange(2**31)
    print(f"seed {value}")
    return random.Random(value)


def test_repeated_syllables_are_cut_as_the_library_cuts_them(dice: random.Random) -> None:
    decided = 0
    for _ in range(4):
        file = with_pairs(
            dice,
            sentencepiece_file(dice, vocab_size=dice.choice((60, 90, 120)), split_by_whitespace=dice.random() < 0.7),
        )
        library = sentencepiece.SentencePieceProcessor(model_proto=file)
        ours = Tokenizer(document(file, pieces_of(file)), "sentencepiece")
        plain = ours._model._library  # without a look at what rounding does
        for text in (repeating(dice) for _ in range(400)):
            pieces = library.encode(text, out_type=str)
            known = [piece if library.piece_to_id(piece) else "<unk>" for piece in pieces]
            (row,) = ours.encode([text])
            assert [ours._model.id_to_token(id) for id in row] == known, text
            assert ours.encode_with_offsets(text).ids == row
            written = ours._model._normal(text)
            decided += [written[start:end] for start, end in plain.encode(written).offsets] != pieces
    assert decided > 5, "nothing was decided by rounding"


@pytest.mark.parametrize(
    ("scores", "text"),
    [
        ({"▁": -9, "a": -9, "▁a": -4.784765720367432, "▁a▁a": -6.220195293426514}, "a a a a a a a"),
        ({"▁": -2.1, "a": -3.7, "xx": -4.253945350646973, "b": -6.323601722717285}, "xxx"),
        ({"▁": -1, "a": -2.5, "ab": -3.25, "bc": -3.75, "c": -3, "b": -9}, "abc abcabc abc"),
    ],
)
def test_ties_of_every_sort_are_seen(scores: dict[str, float], text: str) -> None:
    """Pieces with a blank inside, unknown characters that pieces have inside, other pieces of one sum."""
    written = "▁" + text.replace(" ", "▁")
    ties = Ties([(name, float(score)) for name, score in scores.items()])
    cut = ties.cut(written)
    assert ties.possible(written, [id for id, _, _ in cut])
    if "x" not in text:
        found = sum(scores[written[start:end]] for _, start, end in cut)
        assert found == pytest.approx(max(sums(scores, written)))


def sums(scores: dict[str, float], text: str) -> list[float]:
    """Of every cut."""
    if not text:
        return [0.0]
    starts = [name for name in scores if text.startswith(name)]
    return [scores[name] + rest for name in starts for rest in sums(scores, text[len(name) :])]


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
            assert (parsed.pieces[id - 1][0] if id else "") in ("", written[start:end])
            assert id or not library.piece_to_id(written[start:end])


def test_words_that_are_clear_are_left_to_the_engine() -> None:
    ties = Ties([("▁", -1.0), ("a", -2.0), ("aa", -3.0), ("b", -2.0), ("▁b", -2.5)])
    assert not ties.possible("▁b▁b", [5, 5])
    assert not ties.possible("▁aa▁bb", [1, 3, 5, 4])
    assert ties.possible("▁b▁aaa", [5, 1, 3, 2])  # a|aa and aa|a
    assert not ties.possible("▁aaa" + "▁b" * MOST_CHARACTERS, [])  # no model reads as much
    assert ties.possible("▁b" * LONG_TEXT, [5] * LONG_TEXT)  # so long a sum loses digits
    assert ties.possible("▁" + "ab" * LONG_WORD, [1, *[2, 4] * LONG_WORD])  # not worth a look


def test_monstrous_words_come_to_an_end(dice: random.Random) -> None:
    long = "".join(dice.choices("ab", k=400))
    ties = Ties([("▁", -1.0), ("a", -2.0), ("b", -2.5), (long, -3.0)])
    cut = ties.cut("▁" + "a" * (MOST_CHARACTERS - 1))
    assert [id for id, _, _ in cut] == [1, *[2] * (MOST_CHARACTERS - 1)]
    assert [id for id, _, _ in ties.cut("▁" + long * 100)] == [1, *[4] * 100]
