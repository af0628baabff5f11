"""What each kind of tokenizer promises, on text that people really have."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumok.errors import BadInput
from jumok.text.pipeline import KINDS
from jumok.text.special import SPECIAL_TOKENS
from jumok.text.tokenizer import Tokenizer, train_tokenizer

FAMILY = "👩\u200d👩\u200d👧"
LINES = [
    "A dog devoured his treat, because he was hungry.",
    "Two men (one old) don't smile... 2016!?",
    "l'homme « mange » une pêche à 12,50 €",
    "나는 학생입니다. 그는 사과를 먹었다!",
    "שלום עולם, مرحبا بالعالم",
    f"family {FAMILY} and flag 🇰🇷 naïve x\u0323\u0307",
    "<eos> is <pad> written out: <unk> <sos>",
] * 3
TOKENIZERS = {kind: train_tokenizer(LINES, kind, 500) for kind in KINDS}
CHARACTERS = sorted({c for line in LINES for c in unicodedata.normalize("NFC", line)} - {" "})
EXACT_WITH_SINGLE_SPACES = ("bpe", "unigram", "character", "byte")


def nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def round_trip(kind: str, text: str) -> str:
    tokenizer = TOKENIZERS[kind]
    return tokenizer.decode(tokenizer.encode([text]))[0]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "wordpiece"])  # see test_wordpiece.py
def test_training_text_reads_back_exactly(kind: str) -> None:
    tokenizer = TOKENIZERS[kind]
    assert tokenizer.decode(tokenizer.encode(LINES)) == [nfc(line) for line in LINES]


@pytest.mark.parametrize("kind", EXACT_WITH_SINGLE_SPACES)
@given(words=st.lists(st.text(CHARACTERS, min_size=1, max_size=8), max_size=5))
def test_known_characters_with_single_spaces_read_back_exactly(kind: str, words: list[str]) -> None:
    text = " ".join(words)
    if set(nfc(text)) <= {" ", *CHARACTERS}:  # two known characters may compose into an unknown one
        assert round_trip(kind, text) == nfc(text)


@given(words=st.lists(st.sampled_from(" ".join(LINES).split()), max_size=6))
def test_word_reads_known_words_back_exactly(words: list[str]) -> None:
    assert round_trip("word", " ".join(words)) == nfc(" ".join(words))


@given(text=st.text(st.sampled_from([" ", " ", "\u3000", *CHARACTERS]), max_size=12))
def test_blank_runs_become_one_space(text: str) -> None:
    if set(nfc(text)) <= {" ", "\u3000", *CHARACTERS}:
        for kind in ("bpe", "unigram"):
            assert round_trip(kind, text) == " ".join(nfc(text).split())


@given(text=st.text(st.sampled_from([" ", *CHARACTERS]), max_size=12))
def test_character_keeps_all_spaces(text: str) -> None:
    if set(nfc(text)) <= {" ", *CHARACTERS}:
        assert round_trip("character", text) == nfc(text)


@given(text=st.text(max_size=30))
def test_byte_reads_any_text_back(text: str) -> None:
    # Both sides composed: the library's tables are of an older Unicode than Python's.
    assert nfc(round_trip("byte", text)) == nfc(text)


def test_byte_keeps_blanks_and_controls() -> None:
    for text in ["  two\t\ttabs\r\n\n ", "\x00\x1f\x7f", "a▁b", FAMILY, "e\u0301", "\ufeff"]:
        assert round_trip("byte", text) == nfc(text)


@pytest.mark.parametrize("kind", ["bpe", "unigram", "word", "space"])
def test_a_literal_marker_reads_back_as_a_space(kind: str) -> None:
    assert round_trip(kind, "A▁dog") == "A dog"


@pytest.mark.parametrize("kind", KINDS)
def test_jamo_and_syllables_are_the_same_text(kind: str) -> None:
    composed, decomposed = "나는 학생입니다.", unicodedata.normalize("NFD", "나는 학생입니다.")
    assert len(decomposed) > len(composed)
    first, second = TOKENIZERS[kind].encode([composed, decomposed])
    assert first == second
    assert 1 not in first


@pytest.mark.parametrize("kind", KINDS)
def test_no_text_can_spell_a_special_token(kind: str) -> None:
    spellings = [*SPECIAL_TOKENS, "".join(SPECIAL_TOKENS), "a<eos>b", "▁<eos>", " <sos> "]
    for row in TOKENIZERS[kind].encode(spellings):
        assert row
        assert not {0, 2, 3} & set(row)
        assert kind in ("word", "space", "character", "wordpiece") or 1 not in row


def test_kind_space_cuts_where_spaces_are_and_nowhere_else() -> None:
    tokenizer = train_tokenizer([" the 3 @-@ day <unk> , <eos> "], "space", 100)
    (row,) = tokenizer.encode(["<unk> 3 @-@ day , <eos>"])
    assert tokenizer.pieces(row) == ["▁<unk>", "▁3", "▁@-@", "▁day", "▁,", "▁<eos>"], "words like any other"
    assert min(row) > 3
    assert tokenizer.encode(["day,"]) == [[1]]


@given(text=st.text(max_size=30))
def test_ids_of_any_text_are_ids_of_the_vocabulary(text: str) -> None:
    for tokenizer in TOKENIZERS.values():
        (row,) = tokenizer.encode([text])
        assert all(1 <= id < tokenizer.size and id not in (2, 3) for id in row)
        assert row == tokenizer.encode_with_offsets(text).ids


# One combining mark only: where NFC puts two in another order, which of them a piece was is a matter of taste.
SCRIPTS = "abé ñ가한\u1112\u1161\u11ab\u0301אم🇰🇷👩\u200d👧<>.,(0\t\u3000"


@given(text=st.text(st.sampled_from(SCRIPTS), max_size=25))
def test_offsets_point_into_the_original_text(text: str) -> None:
    for kind, tokenizer in TOKENIZERS.items():
        encoded = tokenizer.encode_with_offsets(text)
        assert len(encoded.ids) == len(encoded.tokens) == len(encoded.offsets) == len(encoded.words)
        covered: set[int] = set()
        previous = 0
        for (start, end), word, id in zip(encoded.offsets, encoded.words, encoded.ids, strict=True):
            assert previous <= start < end <= len(text), (kind, encoded)
            previous = start
            piece = text[start:end]
            covered.update(range(start, end))
            if piece.strip():
                assert piece == piece.strip()
                assert piece in text.split()[word]
            if not tokenizer.is_special(id) and kind != "byte":
                if kind == "wordpiece":
                    piece = piece.replace("\u200d", "")
                # A "▁" by itself is the blank, or nothing at all at the beginning of the text.
                assert tokenizer.decode([[id]])[0] in ("", nfc(piece)), (kind, encoded)
        blanks = {place for place, character in enumerate(text) if character.isspace()}
        if kind == "wordpiece":  # a joiner becomes nothing: before the first piece of a word it belongs to none
            blanks |= {place for place, character in enumerate(text) if character == "\u200d"}
        assert covered | blanks == set(range(len(text))), (kind, encoded)


def test_offsets_of_a_syllable_typed_as_jamo() -> None:
    text = "x " + unicodedata.normalize("NFD", "학생") + "."
    encoded = TOKENIZERS["character"].encode_with_offsets(text)
    assert [text[start:end] for start, end in encoded.offsets] == [
        *"x ",
        *(unicodedata.normalize("NFD", syllable) for syllable in "학생"),
        ".",
    ]
    assert encoded.words == [0, 1, 1, 1, 1]


def test_punctuation_stands_apart_and_belongs_to_its_word() -> None:
    encoded = TOKENIZERS["word"].encode_with_offsets("A dog (one old) don't smile...")
    assert encoded.tokens == ["▁A", "▁dog", "▁(", "one", "▁old", ")", "▁don", "'", "t", "▁smile", "..."]
    assert encoded.words == [0, 1, 2, 2, 3, 3, 4, 4, 4, 5, 5]


def test_joiners_stay_inside_words() -> None:
    persian = "می\u200cروم"
    assert train_tokenizer([persian], "word", 50).encode_with_offsets(persian).tokens == ["▁" + persian]


def test_digits_are_cut_apart_for_subwords_only() -> None:
    assert TOKENIZERS["word"].encode_with_offsets("2016").tokens == ["▁2016"]
    assert "▁2016" not in TOKENIZERS["bpe"].encode_with_offsets("2016").tokens
    assert TOKENIZERS["byte"].encode_with_offsets("2016").tokens == list("2016")


@pytest.mark.parametrize("kind", KINDS)
def test_words_of_generated_pieces(kind: str) -> None:
    """On random ids too: a model may generate anything."""
    tokenizer = TOKENIZERS[kind]
    seed = random.SystemRandom().randrange(1 << 30)
    generator = random.Random(seed)
    rows = [[generator.randrange(tokenizer.size) for _ in range(generator.randrange(1, 12))] for _ in range(200)]
    for row in [*tokenizer.encode(LINES), *rows]:
        text = tokenizer.decode([row])[0]
        words = tokenizer.word_of_piece(row)
        assert len(words) == len(row)
        assert words == sorted(words), f"seed {seed}: {row}"
        assert not text.split() or words[-1] == len(text.split()) - 1, f"seed {seed}: {row}"
        for id, word in zip(row, words, strict=True):
            piece = tokenizer.decode([[id]])[0].strip()
            if id > 3 and "\ufffd" not in piece:
                assert not piece or piece.split()[0] in text.split()[word], f"seed {seed}: {row}"


def test_pieces_are_printable() -> None:
    tokenizer = TOKENIZERS["byte"]
    assert tokenizer.pieces([0, 1, 2, 3]) == list(SPECIAL_TOKENS)
    assert "".join(tokenizer.pieces(tokenizer.encode([" \n"])[0])) == "▁\\n"
    assert "".join(tokenizer.pieces(tokenizer.encode(["\x1b[2J"])[0])) == "\\x1b[2J"
    assert "".join(tokenizer.pieces(tokenizer.encode(["漢"])[0])) == "<E6><BC><A2>"


@pytest.mark.parametrize("kind", KINDS)
def test_special_ids_leave_no_text(kind: str) -> None:
    tokenizer = TOKENIZERS[kind]
    (row,) = tokenizer.encode(["A dog"])
    assert tokenizer.decode([[2, *row, 3, 0, 0]]) == ["A dog"]
    assert tokenizer.decode([[2, 3], []]) == ["", ""]


@pytest.mark.parametrize("kind", KINDS)
def test_empty_and_blank_and_broken_text(kind: str) -> None:
    tokenizer = TOKENIZERS[kind]
    rows = tokenizer.encode(["", "  \t", "half a pair: \ud83d", "after"])
    assert rows[0] == []
    assert len(rows) == 4
    assert tokenizer.encode([]) == []
    assert tokenizer.encode_with_offsets("").ids == []
    assert tokenizer.encode_with_offsets("\ud83d\ude00 x").words[-1] == 1
    assert train_tokenizer(["half a pair: \ud83d"], kind, 300).size > 4


def test_lowercase() -> None:
    for kind in KINDS:
        tokenizer = train_tokenizer(LINES, kind, 400, lowercase=True)
        assert tokenizer.decode(tokenizer.encode(["A DOG"])) == ["a dog"]


@pytest.mark.parametrize("kind", ["bpe", "unigram", "word", "character", "wordpiece"])
def test_a_vocabulary_smaller_than_the_alphabet_keeps_the_frequent(kind: str) -> None:
    lines = ["a b a b a b", *(f"a {chr(0xAC00 + number)} b" for number in range(300))]
    tokenizer = train_tokenizer(lines, kind, 20)
    assert tokenizer.size <= 20
    a, rare, b = tokenizer.encode(["a b", chr(0xAC00 + 299), "b"])
    assert 1 not in a + b
    assert 1 in rare
    assert tokenizer.decode([a]) == ["a b"]


def test_a_vocabulary_larger_than_the_text_needs_is_fine() -> None:
    for kind in KINDS:
        assert 4 < train_tokenizer(["one two", "two three"], kind, 10_000).size < 400


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_to_learn_from(kind: str) -> None:
    for lines in ([], ["", ""]):
        with pytest.raises(BadInput, match="nothing to train a tokenizer on"):
            train_tokenizer(lines, kind, 500)


def test_wrong_kind_and_too_small_vocabulary() -> None:
    with pytest.raises(BadInput, match='Did you mean "unigram"'):
        train_tokenizer(["a"], "unigramm", 500)
    with pytest.raises(BadInput, match="byte needs at least 260"):
        train_tokenizer(["a"], "byte", 259)


def test_save_and_load(tmp_path: Path) -> None:
    for kind, tokenizer in TOKENIZERS.items():
        tokenizer.save(tmp_path / kind)
        loaded = Tokenizer.load(tmp_path / kind)
        assert (loaded.kind, loaded.size, loaded.lowercase) == (kind, tokenizer.size, False)
        assert loaded.fingerprint == tokenizer.fingerprint
        assert loaded.encode(LINES) == tokenizer.encode(LINES)
        loaded.save(tmp_path / "again")
        assert (tmp_path / "again/tokenizer.json").read_bytes() == (tmp_path / kind / "tokenizer.json").read_bytes()
    assert len({tokenizer.fingerprint for tokenizer in TOKENIZERS.values()}) == len(KINDS)


def test_damaged_folders_are_named(tmp_path: Path) -> None:
    tokenizer = TOKENIZERS["bpe"]
    with pytest.raises(BadInput, match="not a tokenizer folder"):
        Tokenizer.load(tmp_path / "nowhere")
    whole = {}
    tokenizer.save(tmp_path)
    for name in ("tokenizer.json", "about.json"):
        whole[name] = (tmp_path / name).read_bytes()
    for name, content in whole.items():
        for damage in (b"", content[: len(content) // 2], b"\xff\xfe", b"[]", b"{}"):
            (tmp_path / name).write_bytes(damage)
            with pytest.raises(BadInput, match=name):
                Tokenizer.load(tmp_path)
        (tmp_path / name).write_bytes(content)
    TOKENIZERS["word"].save(tmp_path / "word")
    (tmp_path / "about.json").write_bytes((tmp_path / "word/about.json").read_bytes())
    about = json.loads((tmp_path / "about.json").read_text(encoding="utf-8"))
    assert about["size"] != tokenizer.size
    with pytest.raises(BadInput, match="does not belong"):
        Tokenizer.load(tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_an_id_outside_the_vocabulary_is_damage(tmp_path: Path, kind: str) -> None:
    TOKENIZERS[kind].save(tmp_path)
    content = json.loads((tmp_path / "tokenizer.json").read_text(encoding="utf-8"))
    vocabulary = content["model"]["vocab"]
    if isinstance(vocabulary, list):  # unigram: a token's place is its id
        vocabulary[-1] = vocabulary[-2]
    else:
        vocabulary[max(vocabulary, key=vocabulary.__getitem__)] = 2_000_000_000
    (tmp_path / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(BadInput, match=r"tokenizer\.json: (damaged|does not belong)"):
        Tokenizer.load(tmp_path)


TRAIN = """
import hashlib, random, sys
from jumok.text.tokenizer import train_tokenizer
generator = random.Random(5)
words = ["".join(generator.choices("abcdefghij", k=generator.randint(1, 9))) for _ in range(600)]
lines = [" ".join(generator.choices(words, k=8)) + ", 한글." for _ in range(400)]
for kind in ("bpe", "unigram", "word", "character", "byte", "wordpiece"):
    print(kind, train_tokenizer(lines, kind, 350).fingerprint)
"""


def test_the_same_lines_give_the_same_file_in_any_process() -> None:
    outputs = set()
    for parallel, threads, seed in (("true", "2", "0"), ("true", "1", "1"), ("false", "2", "2")):
        environment = {"TOKENIZERS_PARALLELISM": parallel, "RAYON_NUM_THREADS": threads, "PYTHONHASHSEED": seed}
        run = [sys.executable, "-c", TRAIN]
        outputs.add(subprocess.run(run, env=os.environ | environment, check=True, capture_output=True).stdout)
    assert len(outputs) == 1, outputs


def test_the_text_room_needs_no_torch() -> None:
    code = "import sys, jumok.text.tokenizer, jumok.text.learn; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_fingerprint_follows_the_files(tmp_path: Path) -> None:
    tokenizer = TOKENIZERS["bpe"]
    tokenizer.save(tmp_path)
    content = (tmp_path / "tokenizer.json").read_text(encoding="utf-8") + (tmp_path / "about.json").read_text(
        encoding="utf-8"
    )
    assert tokenizer.fingerprint == hashlib.sha256(content.encode()).hexdigest()
