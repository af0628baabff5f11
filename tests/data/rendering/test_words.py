"""Word lists and running text: what a file is, what its words are, and in which order."""

from __future__ import annotations

import gzip
import lzma
import random
import string
import unicodedata
from collections import Counter
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from jumok.data.rendering import words as module
from jumok.data.rendering.words import cut_words, in_turn, read_words, small
from jumok.errors import BadInput


def shuffled_words(count: int, letters: str = string.ascii_lowercase) -> list[str]:
    found: dict[str, None] = {}
    while len(found) < count:
        found["".join(random.choices(letters, k=random.randint(3, 9)))] = None
    return list(found)


def test_a_list_keeps_its_order(tmp_path: Path) -> None:
    words = shuffled_words(300)
    (tmp_path / "list.txt").write_text("\n".join(words) + "\n\n")
    assert read_words([tmp_path / "list.txt"]).words == tuple(words)
    assert read_words([tmp_path / "list.txt"]).notes == ()


@pytest.mark.parametrize(("suffix", "compress"), [
    (".gz", gzip.compress), (".xz", lzma.compress), (".zst", zstandard.ZstdCompressor().compress),
])  # fmt: skip
def test_compressed_lists(tmp_path: Path, suffix: str, compress: object) -> None:
    words = shuffled_words(50, "가나다라마바사아자차카타파하")
    file = tmp_path / f"list.txt{suffix}"
    file.write_bytes(compress("\n".join(words).encode()))  # type: ignore[operator]
    assert read_words([file]).words == tuple(words)


def test_running_text_is_counted(tmp_path: Path) -> None:
    words = shuffled_words(60)
    text = random.choices(words, weights=[1 / (rank + 1) for rank in range(60)], k=3000)
    around = ["{}", "{},", "“{}”", "({})", "{}!"]
    marked = [random.choice(around).format(random.choice([word, word.upper(), word.title()])) for word in text]
    (tmp_path / "text.txt").write_text("\n".join(" ".join(marked[at : at + 12]) for at in range(0, 3000, 12)))
    found = read_words([tmp_path / "text.txt"]).words
    counts = Counter(text)
    assert set(found) == set(text)
    assert [counts[word] for word in found] == sorted(counts.values(), reverse=True)


def test_words_one_a_line_that_come_again_are_text(tmp_path: Path) -> None:
    text = ["rare", *["often"] * 60, *["seldom"] * 30, "once"]
    random.shuffle(text)
    (tmp_path / "tokens.txt").write_text("\n".join(text))
    assert read_words([tmp_path / "tokens.txt"]).words[:2] == ("often", "seldom")


@pytest.mark.parametrize("between", [" ", "\t"])
def test_a_list_with_counts(tmp_path: Path, between: str) -> None:
    words = shuffled_words(40)
    lines = [f"{word}{between}{1000 - rank}" for rank, word in enumerate(words)]
    random.shuffle(lines)
    (tmp_path / "counts.txt").write_text("\n".join(lines))
    assert read_words([tmp_path / "counts.txt"]).words == tuple(words)


@pytest.mark.parametrize("digits", [19, 5000])
def test_a_number_of_many_digits_is_no_count(tmp_path: Path, digits: int) -> None:
    words = shuffled_words(40)
    lines = [f"{word} {1000 - rank}" for rank, word in enumerate(words)]
    (tmp_path / "counts.txt").write_text("\n".join([f"last {'9' * digits}", *lines]))
    assert read_words([tmp_path / "counts.txt"]).words == (*words, "last", "9" * digits)
    (tmp_path / "none.txt").write_text("\n".join(f"{word} {'9' * digits}" for word in words))
    assert set(read_words([tmp_path / "none.txt"]).words) == {*words, "9" * digits}


def test_a_sorted_list_says_nothing_about_frequency(tmp_path: Path) -> None:
    words = sorted(shuffled_words(500))
    (tmp_path / "sorted.txt").write_text("\n".join(words))
    found = read_words([tmp_path / "sorted.txt"])
    assert set(found.words) == set(words)
    assert found.words == read_words([tmp_path / "sorted.txt"]).words
    rising = sum(before < after for before, after in zip(found.words, found.words[1:], strict=False))
    assert 150 < rising < 350
    assert "order of the alphabet" in found.notes[0]


def test_files_take_turns_and_words_come_once(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("the\nof\nand\n")
    (tmp_path / "two").write_text("그\n이\nOF\n것\n수\n")
    assert read_words([tmp_path / "one", tmp_path / "two"]).words == ("the", "그", "of", "이", "and", "것", "수")


def test_words_are_nfc_and_small(tmp_path: Path) -> None:
    (tmp_path / "list").write_text(unicodedata.normalize("NFD", "Café\ncafé\nCAFÉ\n한글\nİstanbul\n"))
    assert read_words([tmp_path / "list"]).words == ("café", "한글", "İstanbul")


def test_words_of_a_list_keep_their_marks(tmp_path: Path) -> None:
    (tmp_path / "list").write_text("C++\nU.S.A.\ndon't\n@home\n")
    assert read_words([tmp_path / "list"]).words == ("c++", "u.s.a.", "don't", "@home")


def test_broken_text_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "list").write_bytes(b"one\ntwo\nthr\xff\n")
    with pytest.raises(BadInput, match=r"list, line 3, byte 4: not valid UTF-8"):
        read_words([tmp_path / "list"])


@pytest.mark.parametrize("content", ["", "\n \n", "... !!! --\n-- ..\n"])
def test_a_file_without_words(tmp_path: Path, content: str) -> None:
    (tmp_path / "list").write_text(content)
    with pytest.raises(BadInput, match="list: no words"):
        read_words([tmp_path / "list"])


def test_no_such_file(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("a")
    with pytest.raises(BadInput, match=r"no such file.*words\.txt"):
        read_words([tmp_path / "wordz.txt"])


def test_rare_words_are_forgotten_before_memory_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REMEMBERED", 100)
    often = shuffled_words(20, "abc")
    rare = shuffled_words(2000, "xyz")
    lines = [f"{random.choice(often)} {random.choice(often)} {word}" for word in rare]
    (tmp_path / "text").write_text("\n".join(lines))
    found = read_words([tmp_path / "text"]).words
    assert set(found[:20]) == set(often)
    assert len(found) < 400


def test_running_text_is_cut_into_words() -> None:
    assert cut_words("“Well-known,” she said: it's 3.5 km… — 그렇다!") == [
        "well-known", "she", "said", "it's", "3.5", "km", "그렇다",
    ]  # fmt: skip


@given(text=st.text(max_size=30))
def test_small_letters_stay_small_and_composed(text: str) -> None:
    changed = small(text)
    assert unicodedata.is_normalized("NFC", changed)
    assert small(changed) == changed
    assert text.isascii() <= (changed == text.lower())


@given(lists=st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=6), max_size=4))
def test_taking_turns(lists: list[list[str]]) -> None:
    merged = in_turn(lists)
    assert sorted(merged) == sorted({word for words in lists for word in words})
    if lists and lists[0]:
        assert merged[0] == lists[0][0]
