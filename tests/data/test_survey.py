"""Where shards begin: what is read from there on is what a reading from the beginning gives."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumok.data import survey as module
from jumok.data.readers import file_pairs, read_lines, read_pairs
from jumok.data.sharding import Reader
from jumok.data.store_build import PairEncoder
from jumok.data.survey import Shard, scan
from jumok.errors import BadInput
from jumok.recipe import Corpus
from jumok.text.tokenizer import Tokenizer, train_tokenizer


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(["a b"], "word", 10)


contents = st.lists(st.text(alphabet="ab\u2028é한\r\x0c", max_size=6), min_size=1, max_size=30)


@settings(deadline=None, max_examples=60)
@given(lines=contents, ends=st.booleans(), mark=st.booleans(), first=st.integers(0, 9), step=st.integers(1, 7))
def test_lines_are_found_by_their_byte(
    lines: list[str], ends: bool, mark: bool, first: int, step: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("scan") / "file"
    text = "\ufeff" * mark + "\n".join(lines) + "\n" * ends
    file.write_bytes(text.encode())
    expected = list(read_lines(file))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK", 5)
        count, marks = scan(str(file), first, step)
    assert count == len(expected)
    assert marks is not None
    for number, byte in zip(range(first, count, step), marks, strict=False):
        assert list(read_lines(file, number, byte)) == list(read_lines(file, number)) == expected[number:]
    assert len(marks) >= len(range(first, count, step))


def test_of_compressed_files_lines_are_counted(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"x\ny\nz"))
    assert scan(str(tmp_path / "a.gz"), 0, 2) == (3, None)
    assert list(read_lines(tmp_path / "a.gz", 2)) == ["z"]


def corpora(folder: Path) -> list[Corpus]:
    """The same 23 pairs, in every kind of file, over three of them."""
    pairs = [(f"a {number}", f"b {number}") for number in range(23)]
    parts = [pairs[:4], pairs[4:5], pairs[5:]]
    for number, part in enumerate(parts):
        sides = ["".join(f"{pair[side]}\n" for pair in part).encode() for side in (0, 1)]
        (folder / f"{number}.s").write_bytes(sides[0])
        (folder / f"{number}.t").write_bytes(sides[1].rstrip(b"\n"))
        (folder / f"{number}.t.gz").write_bytes(gzip.compress(sides[1]))
        rows = "".join(f"{target}\tx\t{source}\n" for source, target in part)
        (folder / f"{number}.tsv").write_text("right\tother\tleft\n" + rows)
        objects = [json.dumps({"source": source, "target": target}) for source, target in part]
        (folder / f"{number}.jsonl").write_text("\n".join(objects))

    def files(suffix: str) -> list[str]:
        return [str(folder / f"{number}{suffix}") for number in range(3)]

    return [
        Corpus(source=files(".s"), target=files(".t")),
        Corpus(source=files(".s"), target=files(".t.gz")),
        Corpus(file=files(".tsv"), columns=("left", "right")),
        Corpus(file=files(".tsv")[:1] + files(".jsonl")[1:], columns=("left", "right")),
        Corpus(file=files(".jsonl")),
        Corpus(grammar="en-fr", pairs=23),
    ]


@pytest.mark.parametrize("kind", range(6))
def test_shards_hold_everything_once_whoever_reads_them(kind: int, tmp_path: Path, tokenizer: Tokenizer) -> None:
    corpus = corpora(tmp_path)[kind]
    if kind == 3:  # of two kinds, with keys as the one is read
        for number in (1, 2):
            file = tmp_path / f"{number}.jsonl"
            file.write_text(file.read_text().replace("source", "left").replace("target", "right"))
    expected = list(read_pairs(corpus))
    assert len(expected) == 23
    encoder = PairEncoder(corpus, "train", tokenizer, tokenizer, 50)
    for size in (1, 2, 3, 4, 5, 7, 22, 23, 24):
        shards = encoder.survey(size)
        assert [(shard.number, shard.first) for shard in shards] == list(enumerate(range(0, 23, size)))
        in_order, odd_ones, backwards = Reader(encoder), Reader(encoder), Reader(encoder)

        def read(reader: Reader, shard: Shard) -> list[tuple[str, str]]:
            return [pair for _, pair in reader.shard(shard)]

        wanted = [expected[shard.first : shard.first + shard.count] for shard in shards]
        assert [read(in_order, shard) for shard in shards] == wanted
        assert [read(odd_ones, shard) for shard in shards[1::2]] == wanted[1::2]
        assert [read(backwards, shard) for shard in shards[::-1]] == wanted[::-1]


def test_a_reader_opens_no_more_than_it_needs(
    tmp_path: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind, expected in ((0, [(0, 2), (2, 1), (2, 13)]), (1, [(0, 2), (2, 1)])):
        encoder = PairEncoder(corpora(tmp_path)[kind], "train", tokenizer, tokenizer, 50)
        opened: list[tuple[int, int]] = []
        items = PairEncoder.items

        def noted(self: PairEncoder, number: int, before: int, at: Sequence[int]) -> Iterator[tuple[str, str]]:
            opened.append((number, before))  # noqa: B023
            return items(self, number, before, at)  # noqa: B023

        monkeypatch.setattr(PairEncoder, "items", noted)
        reader, shards = Reader(encoder), encoder.survey(2)
        for shard in (shards[1], shards[3], shards[4], shards[9]):  # compressed: the last is read on to
            assert len(list(reader.shard(shard))) == 2
        monkeypatch.undo()
        assert opened == expected


def test_the_file_of_each_pair_is_known(tmp_path: Path, tokenizer: Tokenizer) -> None:
    encoder = PairEncoder(corpora(tmp_path)[0], "train", tokenizer, tokenizer, 50)
    (shard,) = encoder.survey(100)
    assert [number for number, _ in Reader(encoder).shard(shard)] == [0] * 4 + [1] + [2] * 18


def test_lines_keep_their_numbers_in_messages(tmp_path: Path) -> None:
    file = tmp_path / "a.tsv"
    file.write_bytes(b"a\tb\n" * 5 + b"a\n" + b"a\tb\n")
    (_, marks) = scan(str(file), 4, 100)
    assert marks is not None
    pairs = file_pairs(Corpus(file=[str(file)]), 0, 4, marks)
    assert list(islice(pairs, 1)) == [("a", "b")]
    with pytest.raises(BadInput, match="line 6: 1 column"):
        next(pairs)
    source = tmp_path / "s"
    source.write_bytes(b"x\n" * 3 + b"\xff\n")
    with pytest.raises(BadInput, match="line 4, byte 1: not valid UTF-8"):
        list(read_lines(source, 2, 4))


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (b"a\na\n", b"b\n", "has 2 lines and .* has 1"),
        (b"", b"b\n", "s: the file is empty"),
        (b"", b"", "the file is empty, and .* too"),
    ],
)
def test_files_that_do_not_pair_up_are_refused_before_the_work(
    tmp_path: Path, tokenizer: Tokenizer, source: bytes, target: bytes, message: str
) -> None:
    for name, content in (("s", source), ("t", target)):
        (tmp_path / name).write_bytes(content)
    corpus = Corpus(source=[str(tmp_path / "s")], target=[str(tmp_path / "t")])
    with pytest.raises(BadInput, match=message):
        PairEncoder(corpus, "train", tokenizer, tokenizer, 50).survey(10)


def test_a_shard_survives_json() -> None:
    shard = Shard(3, 30, 10, 1, 5, (17, 23))
    assert Shard.from_json(json.loads(json.dumps(shard.to_json()))) == shard
