"""Running text as a memory-mapped ring of tokens: nothing lost, lines found again, bad files named."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from jumok.data import sharding
from jumok.data.batch import END
from jumok.data.text_store import TextStore, read_text, text_hash
from jumok.data.windows import WindowPlan
from jumok.errors import BadInput
from jumok.recipe import Corpus
from jumok.text.tokenizer import train_tokenizer

LINES = ["A dog sleeps.", "", "The queen saw   a dog!", "  ", "나는 학생입니다."]
TOKENIZER = train_tokenizer(LINES, "bpe", 100)


def write(path: Path, content: str | bytes) -> Corpus:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return Corpus(text=[str(path)])


def store_of(corpus: Corpus, cache: Path) -> TextStore:
    return TextStore.open_or_build(corpus, "train", TOKENIZER, cache)


def test_every_line_ends_in_eos_blank_ones_too(tmp_path: Path) -> None:
    store = store_of(write(tmp_path / "a.txt", "\n".join(LINES) + "\n"), tmp_path / "cache")
    expected = [id for row in TOKENIZER.encode(LINES) for id in (*row, END)]
    assert store.ids.tolist() == expected
    assert store.lines == len(LINES)
    assert len(store) == len(expected)


def test_the_line_of_every_token_is_known(tmp_path: Path) -> None:
    store = store_of(write(tmp_path / "a.txt", "\n".join(LINES)), tmp_path / "cache")
    numbers = [number for number, row in enumerate(TOKENIZER.encode(LINES)) for _ in (*row, END)]
    assert [store.line_at(position) for position in range(len(store))] == numbers


@given(lines=st.lists(st.text(alphabet="adogsleep. \u3000나", max_size=12), max_size=30))
@settings(deadline=None, max_examples=40)
def test_shards_are_read_one_after_another(lines: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("shards")
    lines = ["a dog", *lines, "sleeps"]
    files = []
    for number, part in enumerate((lines[:1], lines[1:])):
        file = folder / f"{number}.txt"
        file.write_text("".join(line + "\n" for line in part), encoding="utf-8", newline="\n")
        files.append(str(file))
    corpus = Corpus(text=files)
    assert list(read_text(corpus)) == lines
    assert store_of(corpus, folder / "cache").lines == len(lines)


def test_a_store_is_built_once_and_again_when_damaged(tmp_path: Path) -> None:
    corpus, told = write(tmp_path / "a.txt", "a dog\n"), []
    first = store_of(corpus, tmp_path / "cache")
    again = TextStore.open_or_build(corpus, "train", TOKENIZER, tmp_path / "cache", told.append)
    assert (again.key, told) == (first.key, [])
    (first.folder / "shard-00000" / "text.bin").write_bytes(b"")
    repaired = TextStore.open_or_build(corpus, "train", TOKENIZER, tmp_path / "cache", told.append)
    assert "text.bin: missing or of the wrong size" in told[0]
    assert "encoding again" in told[0]
    assert repaired.ids.tolist() == [*TOKENIZER.encode(["a dog"])[0], END]


def test_shards_of_a_store_make_no_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = write(tmp_path / "a.txt", "".join(f"{LINES[number % 5]}{'!' * (number % 7)}\n" for number in range(50)))
    whole = store_of(corpus, tmp_path / "whole")
    monkeypatch.setattr(sharding, "SHARD", 7)
    cut = store_of(corpus, tmp_path / "cut")
    assert len(cut.meta["shards"]) == 8
    assert (cut.key, len(cut), cut.notes()) == (whole.key, len(whole), whole.notes())
    assert np.array_equal(cut.starts, whole.starts)
    places = np.random.default_rng().integers(0, len(whole), (9, 11))
    assert np.array_equal(cut.ids[places], whole.ids[places]), places
    for length in (1, 20, len(whole) // 2, len(whole)):
        plans = [WindowPlan([store], [length], [1], 8, 40, 3) for store in (whole, cut)]
        for update in (0, 1, 1000):
            for one, other in zip(plans[0].at(update), plans[1].at(update), strict=True):
                assert torch.equal(one.ids, other.ids)
                assert torch.equal(one.targets, other.targets)


def test_a_text_of_the_version_before_is_still_read(tmp_path: Path) -> None:
    corpus = write(tmp_path / "a.txt", "\n".join(LINES))
    store = store_of(corpus, tmp_path / "cache")
    expected, shard = store.ids.tolist(), store.folder / "shard-00000"
    meta = {name: store.meta[name] for name in ("ids", "lines", "tokens", "unknown")} | {"format": 1}
    (shard / "text.bin").rename(store.folder / "text.bin")
    meta["sizes"] = {name: (store.folder / name).stat().st_size for name in ("text.bin", "text.offsets")}
    (store.folder / "meta.json").write_text(json.dumps(meta))
    for path in (*shard.iterdir(), shard, store.folder / "shards.json"):
        path.rmdir() if path.is_dir() else path.unlink()
    again = store_of(corpus, tmp_path / "cache")
    assert again.meta["format"] == 1
    assert again.ids.tolist() == expected


def test_content_decides_the_key_and_names_do_not(tmp_path: Path) -> None:
    one, same = write(tmp_path / "a.txt", "a\n"), write(tmp_path / "b.txt", "a\n")
    other = write(tmp_path / "c.txt", "b\n")
    assert text_hash(one) == text_hash(same) != text_hash(other)
    assert text_hash(Corpus(grammar="en"), "train") != text_hash(Corpus(grammar="en"), "valid")


@pytest.mark.parametrize("language", ["en", "fr", "ko"])
def test_the_grammar_speaks_one_language(language: str) -> None:
    corpus = Corpus(grammar=language, pairs=50)
    lines = list(read_text(corpus))
    assert len(lines) == len(set(lines)) == 50
    assert not set(lines) & set(read_text(corpus, "valid"))


def test_unknown_tokens_are_told(tmp_path: Path) -> None:
    told: list[str] = []
    corpus = write(tmp_path / "a.txt", "a dog €\n")
    store = TextStore.open_or_build(corpus, "train", TOKENIZER, tmp_path / "cache", told.append)
    share = np.mean(store.ids == 1)
    assert told == [f"1 of {len(store)} tokens ({share:.1%}) are not in the vocabulary"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "nothing.txt: the file is empty"),
        (b"\n \n", "nothing.txt: only blank lines"),
        (b"good\ncaf\xe9\n", "nothing.txt, line 2.*UTF-8"),
        ("x".encode("utf-16"), "UTF-16"),
    ],
)
def test_bad_files_are_named(content: bytes, message: str, tmp_path: Path) -> None:
    corpus = write(tmp_path / "nothing.txt", content)
    with pytest.raises(BadInput, match=message):
        store_of(corpus, tmp_path / "cache")
    assert not list((tmp_path / "cache").glob("*/*.bin")), "nothing half-built stays behind"


def test_a_language_the_grammar_lacks_is_named() -> None:
    with pytest.raises(BadInput, match='no "de"'):
        list(read_text(Corpus(grammar="de")))
