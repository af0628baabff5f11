"""The token store: what went in comes out, damage is seen, and nothing half-built is ever opened."""

from __future__ import annotations

import errno
import json
import os
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jumok.data import folders, sharding, store_build
from jumok.data.batch import PairBatch
from jumok.data.store import TokenStore, default_cache
from jumok.data.store_build import PairEncoder
from jumok.errors import BadInput, Failure
from jumok.recipe import Corpus
from jumok.text.tokenizer import Tokenizer, train_tokenizer

WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]


def write_corpus(folder: Path, pairs: list[tuple[str, str]]) -> Corpus:
    folder.mkdir(exist_ok=True)
    for name, side in (("a", 0), ("b", 1)):
        lines = "".join(pair[side] + "\n" for pair in pairs)
        (folder / name).write_text(lines, encoding="utf-8", newline="\n")
    return Corpus(source=[str(folder / "a")], target=[str(folder / "b")])


def random_pairs(count: int, seed: int = 0) -> list[tuple[str, str]]:
    generator = random.Random(seed)

    def sentence() -> str:
        return " ".join(generator.choices(WORDS, k=generator.randint(1, 9)))

    return [(sentence(), sentence()) for _ in range(count)]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(WORDS, "word", 100)


def open_store(corpus: Corpus, tokenizer: Tokenizer, cache: Path, say: Any = None, max_length: int = 50) -> TokenStore:
    return TokenStore.open_or_build(corpus, "train", tokenizer, tokenizer, cache, max_length, say)


def in_cache(cache: Path) -> list[Path]:
    """All but the hashes of files, which are remembered as soon as the files are seconds old."""
    return [path for path in cache.iterdir() if path.name != "hashes"]


def test_what_went_in_comes_out(tmp_path: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_build, "CHUNK_PAIRS", 7)
    pairs = random_pairs(100)
    store = open_store(write_corpus(tmp_path, pairs), tokenizer, tmp_path / "cache")
    assert len(store) == 100
    for index, (source, target) in enumerate(pairs):
        row, column = store.pair(index)
        assert [row.tolist(), column.tolist()] == tokenizer.encode([source, target])
        assert (store.source_lengths[index], store.target_lengths[index]) == (len(row), len(column))
        assert store.line(index) == index


def test_a_batch_is_what_padding_by_hand_gives(tmp_path: Path, tokenizer: Tokenizer) -> None:
    store = open_store(write_corpus(tmp_path, random_pairs(60)), tokenizer, tmp_path / "cache")
    seed = random.SystemRandom().randrange(1 << 30)
    for size in (1, 2, 33):
        indices = random.Random(seed).sample(range(60), size)
        batch = store.batch(np.array(indices), corpus=3)
        rows = [store.pair(index) for index in indices]
        by_hand = PairBatch.of([row[0].tolist() for row in rows], [row[1].tolist() for row in rows], indices, 3)
        for side in ("source", "target"):
            ours, theirs = getattr(batch, side), getattr(by_hand, side)
            assert ours.ids.tolist() == theirs.ids.tolist(), f"seed {seed}"
            assert ours.lengths.tolist() == theirs.lengths.tolist()
            assert ours.ids.dtype == theirs.ids.dtype
        assert (batch.indices, batch.corpus, batch.tokens) == (tuple(indices), 3, by_hand.tokens)


def test_texts_are_looked_for_once(tmp_path: Path, tokenizer: Tokenizer) -> None:
    pairs = random_pairs(40)
    pairs[3] = ("", "blank")
    store = open_store(write_corpus(tmp_path, pairs), tokenizer, tmp_path / "cache")
    rows, read = np.array([30, 2, 3]), list[tuple[str, str]]()

    def reading() -> Iterator[tuple[str, str]]:
        for pair in pairs:
            read.append(pair)
            yield pair

    expected = [pairs[2], pairs[4], pairs[31]]
    assert store.texts(rows, reading) == expected
    assert read == pairs[:32], "no further than needed"
    assert store.texts(rows, lambda: pytest.fail("read again")) == expected
    (kept,) = store.folder.glob("texts-*")
    for damage in ("", "[[1]]", "3"):
        kept.write_text(damage)
        assert store.texts(rows, reading) == expected
    assert store.texts(rows[:1], reading) == expected[2:]


def test_blank_and_long_pairs_are_left_out_counted_and_named(tmp_path: Path, tokenizer: Tokenizer) -> None:
    long = " ".join(["one"] * 6)
    pairs = [("one", "two"), ("", "two"), ("one", " \u3000"), (long, "one"), ("one", long), ("three", "four")]
    said: list[str] = []
    store = open_store(write_corpus(tmp_path, pairs), tokenizer, tmp_path / "cache", said.append, max_length=5)
    assert [store.line(index) for index in range(len(store))] == [0, 5]
    assert tokenizer.decode([store.pair(1)[0], store.pair(1)[1]]) == ["three", "four"]
    assert (store.meta["skipped_blank"], store.meta["skipped_long"]) == (2, 2)
    assert said == [
        "2 pairs are left out, one side is empty (lines 2, 3)",
        "2 pairs are left out, longer than 5 tokens (lines 4, 5)",
    ]


def test_all_left_out_says_why(tmp_path: Path, tokenizer: Tokenizer) -> None:
    corpus = write_corpus(tmp_path, [("one two three", "one"), ("", "two")])
    with pytest.raises(
        BadInput, match=r"all 2 pairs .* 1 with an empty side; 1 longer than data.max_length=2 .* has 3;"
    ):
        open_store(corpus, tokenizer, tmp_path / "cache", max_length=2)
    assert in_cache(tmp_path / "cache") == []


def test_the_second_time_nothing_is_encoded(
    tmp_path: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = write_corpus(tmp_path, random_pairs(20))
    first = open_store(corpus, tokenizer, tmp_path / "cache")
    monkeypatch.setattr(Tokenizer, "encode", lambda *_: pytest.fail("encoded again"))
    assert open_store(corpus, tokenizer, tmp_path / "cache").key == first.key


def test_text_tokenizer_and_limit_each_make_another_store(tmp_path: Path, tokenizer: Tokenizer) -> None:
    cache, pairs = tmp_path / "cache", random_pairs(20)
    corpus = write_corpus(tmp_path / "x", pairs)
    other = train_tokenizer(WORDS, "character", 100)
    keys = [
        open_store(corpus, tokenizer, cache).key,
        open_store(corpus, other, cache).key,
        open_store(corpus, tokenizer, cache, max_length=49).key,
        open_store(write_corpus(tmp_path / "y", [*pairs[:-1], ("one", "one")]), tokenizer, cache).key,
    ]
    assert len(set(keys)) == 4
    assert open_store(write_corpus(tmp_path / "moved", pairs), tokenizer, cache).key == keys[0]


INDEX = [*PairEncoder.index, "shards.json", "meta.json"]


@pytest.mark.parametrize("name", [*(f"shard-00001/{file}" for file in (*PairEncoder.names, "meta.json")), *INDEX])
def test_damage_is_named_and_only_that_is_repaired(
    tmp_path: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(sharding, "SHARD", 8)
    corpus, said = write_corpus(tmp_path, random_pairs(20)), list[str]()
    store = open_store(corpus, tokenizer, tmp_path / "cache")
    expected, file = [store.pair(index)[0].tolist() for index in range(20)], store.folder / name
    content, others = file.read_bytes(), [store.folder / f"shard-0000{number}" / "source.bin" for number in (0, 2)]
    untouched, for_building = [other.stat().st_ino for other in others], ("shards.json", "shard-00001/meta.json")
    for damage in (content[: len(content) // 2], content + b"x", None):
        file.unlink()
        if damage is not None:
            file.write_bytes(damage)
        if name in for_building:  # not looked at, unless something else is amiss
            (store.folder / "lines.bin").unlink()
        again = open_store(corpus, tokenizer, tmp_path / "cache", said.append)
        assert [again.pair(index)[0].tolist() for index in range(20)] == expected
        assert file.read_bytes() == content
    named, built = "lines.bin" if name in for_building else name, 2 if name.startswith("shard-") else 3
    assert said[1::2][:2] == [f"{built} of 3 shards are encoded already"] * 2
    assert all(f"{store.folder}: " in message and "encoding again" in message for message in said[:4:2])
    assert named == "meta.json" or all(f"({named}: missing or of the wrong size)" in one for one in said[::2])
    assert [other.stat().st_ino for other in others] == untouched
    assert in_cache(tmp_path / "cache") == [store.folder]


def fail(*_: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_leaves_nothing_and_says_what_to_do(
    tmp_path: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus, cache = write_corpus(tmp_path, random_pairs(20)), tmp_path / "cache"
    with monkeypatch.context() as patch:
        patch.setattr(store_build._Writer, "_write_side", fail)
        with pytest.raises(Failure, match=r"cannot write .* No space left on device\. Free .* JUMOK_CACHE") as raised:
            open_store(corpus, tokenizer, cache)
    assert str(cache) in str(raised.value)
    assert in_cache(cache) == []
    store = open_store(corpus, tokenizer, cache)
    with pytest.raises(Failure, match="No space left"):
        store.kept("order.bin", lambda: [(5, fail)])
    assert not [path for path in store.folder.iterdir() if "order" in path.name or "building" in path.name]


def test_a_disk_that_fills_up_later_costs_one_shard(
    tmp_path: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharding, "SHARD", 8)
    corpus, cache, said = write_corpus(tmp_path, random_pairs(20)), tmp_path / "cache", list[str]()
    write_side = store_build._Writer._write_side
    with monkeypatch.context() as patch:
        sides: list[str] = []

        def fills_up(self: Any, side: str, rows: list[list[int]]) -> None:
            sides.append(side)
            fail() if len(sides) == 6 else write_side(self, side, rows)

        patch.setattr(store_build._Writer, "_write_side", fills_up)
        with pytest.raises(Failure, match="No space left"):
            open_store(corpus, tokenizer, cache, said.append)
    (folder,) = in_cache(cache)
    assert sorted(path.name for path in folder.glob("*")) == [".locks", "shard-00000", "shard-00001", "shards.json"]
    assert said == [f"what is encoded already (2 shards) is kept in {folder}"]
    encoded: list[int] = []
    encode = Tokenizer.encode
    monkeypatch.setattr(Tokenizer, "encode", lambda self, texts: encoded.append(len(texts)) or encode(self, texts))
    store = open_store(corpus, tokenizer, cache)
    assert encoded == [4, 4], "source and target of the third shard"
    assert len(store) == 20


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux's /dev/full")
def test_a_full_disk_for_real(tmp_path: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = Corpus(grammar="en-fr", pairs=20)
    monkeypatch.setattr(
        "builtins.open", lambda path, mode="r", **rest: os.fdopen(os.open("/dev/full", os.O_WRONLY), mode)
    )
    monkeypatch.setattr("jumok.data.store.store_key", lambda *_: "key")
    with pytest.raises(Failure, match="No space left on device"):
        open_store(corpus, tokenizer, tmp_path / "cache")
    assert in_cache(tmp_path / "cache") == []


def test_a_cache_that_cannot_be_a_folder(tmp_path: Path, tokenizer: Tokenizer) -> None:
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(Failure, match=r"cannot write .* JUMOK_CACHE"):
        open_store(write_corpus(tmp_path, random_pairs(5)), tokenizer, tmp_path / "cache")


def test_what_killed_builders_left_is_cleared(tmp_path: Path, tokenizer: Tokenizer) -> None:
    cache = tmp_path / "cache"
    for name, age in (("dead", 2 * folders.ABANDONED_SECONDS), ("alive", 0)):
        folder = cache / f"{folders.TEMPORARY}{name}"
        folder.mkdir(parents=True)
        (folder / "source.bin").write_bytes(b"12")
        for path in (folder / "source.bin", folder):
            os.utime(path, (time.time() - age, time.time() - age))
    store = open_store(write_corpus(tmp_path, random_pairs(5)), tokenizer, cache)
    assert {path.name for path in in_cache(cache)} == {store.key, f"{folders.TEMPORARY}alive"}


def test_shards_that_nobody_came_back_for_are_cleared(tmp_path: Path, tokenizer: Tokenizer) -> None:
    cache = tmp_path / "cache"
    old, new, whole = (cache / name for name in ("old", "new", "whole"))
    for folder, age in ((old, 2 * folders.UNFINISHED_SECONDS), (new, 0), (whole, 2 * folders.UNFINISHED_SECONDS)):
        (folder / "shard-00000").mkdir(parents=True)
        (folder / "shards.json").touch()
        if folder == whole:
            (folder / "meta.json").touch()
        for path in (*folder.iterdir(), folder):
            os.utime(path, (time.time() - age, time.time() - age))
    store = open_store(write_corpus(tmp_path, random_pairs(5)), tokenizer, cache)
    assert {path.name for path in in_cache(cache)} == {store.key, "new", "whole"}


def test_large_vocabularies_get_wider_ids(tmp_path: Path) -> None:
    names = [
        f"w{'abcdefghij'[n // 10000]}{n}x".translate(str.maketrans("0123456789", "klmnopqrst")) for n in range(70_000)
    ]
    large = train_tokenizer(names, "word", 70_010)
    assert large.size > 1 << 16
    store = open_store(write_corpus(tmp_path, [(name, name) for name in names[::1000]]), large, tmp_path / "cache")
    rows = [store.pair(index)[0] for index in range(len(store))]
    assert large.decode(rows) == names[::1000]
    assert json.loads((store.folder / "meta.json").read_text())["ids"]["source"].endswith("u4")


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JUMOK_CACHE", str(tmp_path))
    assert default_cache() == tmp_path
    monkeypatch.delenv("JUMOK_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    for platform, place in (("linux", ".cache"), ("darwin", "Library/Caches"), ("win32", "local")):
        monkeypatch.setattr(sys, "platform", platform)
        assert default_cache() == tmp_path / place / "jumok"
