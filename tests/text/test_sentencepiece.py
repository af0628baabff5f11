"""SentencePiece models read without the library: the same cuts as transformers' MarianTokenizer makes, for any text."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path
from typing import Any

import pytest
from marian_models import pieces_of, sentence, sentencepiece_file, write_vocabularies

from jumok.errors import BadInput
from jumok.text.sentencepiece import document, file_in
from jumok.text.sentencepiece_file import parse
from jumok.text.sentencepiece_rules import Normal, read_rules
from jumok.text.special import END, PAD, START, UNKNOWN
from jumok.text.tags import with_tags
from jumok.text.tokenizer import Tokenizer, train_tokenizer

sentencepiece = pytest.importorskip("sentencepiece")
STRANGE = [
    "", " ", "  a   ba  ko ", "▁", "a▁b ▁ ", "▁▁▁", "\tx\ny\r\n", "漢字 ba", "日本ba日本 日本", "e\u0301te\u0301",
    "\u1112\u1161\u11ab\u1100\u116e\u11a8", "ﬁ ｆｕｌｌ　ｗｉｄｔｈ", "a\u200bb\u00a0c\u00adx", ">>fra<< ba ko",
    ">>xxx<<ba", ">>fra<<", ">> b", "ba >>fra<<", "a\x00b\x01c", "½ ™ … ㈱", "a" * 60, "....----", "🙂👍🏽 ba",
    "ÉTÉ KO", "<s> x", "\ufeffba",
]  # fmt: skip
LETTERS = list("abkoritzuéçMnlsg가나다 ﬁñ,.  ▁漢e\u0301\u0302\u200b\u00a0\t½ÅΩאأहि\u1100\u1161")


def texts(dice: random.Random, count: int) -> list[str]:
    noise = ["".join(dice.choices(LETTERS, k=dice.randint(0, 40))) for _ in range(count)]
    return [*STRANGE, *(sentence(dice) for _ in range(count)), *noise]


@pytest.fixture
def dice() -> random.Random:
    value = random.SystemRandom().randrange(2**31)
    print(f"seed {value}")
    return random.Random(value)


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_texts_are_cut_as_transformers_cuts_them(tmp_path: Path, dice: random.Random, kind: str) -> None:
    transformers = pytest.importorskip("transformers")
    (ids,) = write_vocabularies(tmp_path, dice, kind=kind)
    theirs = transformers.MarianTokenizer.from_pretrained(tmp_path)
    names = [name for name in sorted(ids, key=lambda name: ids[name]) if name not in ("</s>", "<unk>", "<pad>")]
    numbers = {PAD: ids["<pad>"], UNKNOWN: 1, START: ids["<pad>"], END: 0}
    numbers |= {id: ids[name] for id, name in enumerate(names, 4)}
    given = texts(dice, 400)
    for side, key in (("source", "text"), ("target", "text_target")):
        ours = Tokenizer(document((tmp_path / f"{side}.spm").read_bytes(), names), "sentencepiece")
        for text, row in zip(given, ours.encode(given), strict=True):
            expected = theirs(**{key: text})["input_ids"][:-1]
            assert [numbers[id] for id in row] == expected, text
            assert ours.encode_with_offsets(text).ids == row
            plain = theirs.decode(expected, skip_special_tokens=True)
            assert ours.decode([row]) == [" ".join(plain.split())]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"normalization_rule_name": "identity"},
        {"normalization_rule_name": "nfkc_cf"},
        {"remove_extra_whitespaces": False},
        {"add_dummy_prefix": False},
        {"split_by_whitespace": False},
    ],
)
def test_every_setting_of_the_normaliser(dice: random.Random, options: dict[str, Any]) -> None:
    file = sentencepiece_file(dice, **options)
    library = sentencepiece.SentencePieceProcessor(model_proto=file)
    ours = Tokenizer(document(file, pieces_of(file)), "sentencepiece")
    parsed = parse(file, "x")
    normal = Normal(read_rules(parsed.rules, "x"), parsed.opens, parsed.single)
    for text in (text for text in texts(dice, 200) if not text.startswith(">>") and "\0" not in text):
        assert normal(text) == library.normalize(text), text
        assert normal.placed(text)[0] == normal(text)
        pieces = library.encode(text, out_type=str)
        known = [piece if library.piece_to_id(piece) else "<unk>" for piece in pieces]
        assert [ours._model.id_to_token(id) for id in ours.encode([text])[0]] == known, text


def test_pieces_point_at_their_characters(dice: random.Random) -> None:
    file = sentencepiece_file(dice)
    ours = Tokenizer(document(file, [*pieces_of(file), ">>fra<<"]), "sentencepiece")
    text = ">>fra<<  ba  ﬁko e\u0301te\u0301 漢"
    cut = ours.encode_with_offsets(text)
    assert text[slice(*cut.offsets[0])] == ">>fra<<"
    covered = "".join(text[start:end] for start, end in dict.fromkeys(cut.offsets[1:]))
    assert covered.replace(" ", "") == "baﬁkoe\u0301te\u0301漢"
    assert cut.ids[-1] == UNKNOWN


def test_it_is_kept_whole(tmp_path: Path, dice: random.Random) -> None:
    file = sentencepiece_file(dice)
    ours = Tokenizer(document(file, pieces_of(file)), "sentencepiece")
    ours.save(tmp_path)
    again = Tokenizer.load(tmp_path)
    assert file_in(again.content) == file
    given = texts(dice, 20)
    assert again.encode(given) == ours.encode(given)
    assert again.fingerprint == ours.fingerprint
    assert not any(again.is_special(id) for id in range(4, again.size))


def test_it_is_not_learned_and_takes_no_tags(dice: random.Random) -> None:
    with pytest.raises(BadInput, match="no tokenizer kind"):
        train_tokenizer(["a b"], "sentencepiece", 50)
    file = sentencepiece_file(dice)
    with pytest.raises(BadInput, match="takes no tags"):
        with_tags(Tokenizer(document(file, pieces_of(file)), "sentencepiece"), ["2de"])


def test_a_damaged_file_is_named(dice: random.Random) -> None:
    file = sentencepiece_file(dice)
    for broken in (b"", b"hello", file[:1000], b"\xff" * 50, file[: len(file) - 3]):
        with pytest.raises(BadInput, match=r"there\.spm.*fetch"):
            parse(broken, "there.spm")
    for _ in range(200):  # anything else is read, or refused in words
        place = dice.randrange(len(file))
        changed = file[:place] + bytes((dice.randrange(256),)) + file[place + 1 :]
        with contextlib.suppress(BadInput):
            found = parse(changed, "there.spm")
            if dice.random() < 0.02:  # it takes a while
                read_rules(found.rules, "there.spm")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"user_defined_symbols": ["<sep>"]}, "user-defined"),
        ({"byte_fallback": True, "vocab_size": 400}, "byte_fallback"),
        ({"treat_whitespace_as_suffix": True}, "treat_whitespace_as_suffix"),
        ({"kind": "char", "vocab_size": 30}, "model_type is char"),
    ],
)
def test_what_cannot_be_cut_alike_is_refused(dice: random.Random, options: dict[str, Any], told: str) -> None:
    with pytest.raises(BadInput, match=told):
        parse(sentencepiece_file(dice, **options, hard_vocab_limit=False), "there.spm")
