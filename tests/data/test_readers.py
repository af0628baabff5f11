"""The readers: what goes in comes out, in step, and every bad file is named with its line."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jumok.data.readers import content_hash, first_line, read_lines, read_pairs
from jumok.errors import BadInput
from jumok.recipe import Corpus


def _zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(data)


PACKERS: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".zst": _zstd}
# Everything that some reader somewhere takes for the end of a line, and things that get lost on the way.
TRAPS = [
    "\u2028",
    "\u2029",
    "\x85",
    "\x0b",
    "\x0c",
    "\x1c",
    "\x1d",
    "\x1e",
    "\x00",
    "\ufeff",
    "\u3000",
    "é",
    "한",
    "😀",
    "a",
]
texts = st.lists(st.sampled_from(TRAPS) | st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=8).map(
    "".join
)
cells = texts.map(lambda text: text.replace("\t", " "))
FAST = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def corpus(**keys: Any) -> Corpus:
    return Corpus.model_validate(keys)


def write(path: Path, content: str | bytes) -> str:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def refused(call: Callable[[], Any]) -> str:
    with pytest.raises(BadInput) as caught:
        call()
    return str(caught.value)


def pairs_refused(**keys: Any) -> str:
    return refused(lambda: list(read_pairs(corpus(**keys))))


# ---------------------------------------------------------------- round trips


@pytest.mark.parametrize("suffix", PACKERS)
@FAST
@given(lines=st.lists(texts, max_size=6), end=st.sampled_from(["\n", "\r\n"]), mark=st.booleans(), closed=st.booleans())
def test_lines_end_at_newline_only(
    tmp_path: Path, suffix: str, lines: list[str], end: str, mark: bool, closed: bool
) -> None:
    lines = ["first line", *lines]
    text = ("\ufeff" if mark else "") + end.join(lines) + (end if closed or not lines[-1] else "")
    assert list(read_lines(write(tmp_path / f"text{suffix}", PACKERS[suffix](text.encode())))) == lines


@pytest.mark.parametrize("suffix", PACKERS)
@FAST
@given(rows=st.lists(st.tuples(cells, cells), max_size=6), shards=st.integers(1, 3))
def test_every_format_gives_the_same_pairs(
    tmp_path: Path, suffix: str, rows: list[tuple[str, str]], shards: int
) -> None:
    rows = [("a first source", "a first target"), *rows]
    pack = PACKERS[suffix]

    def save(name: str, lines: list[str]) -> list[str]:
        content = pack("".join(line + "\n" for line in lines).encode())
        return [write(tmp_path / f"{index}.{name}{suffix}", content) for index in range(shards)]

    left, right = save("de", [a for a, _ in rows]), save("en", [b for _, b in rows])
    tabs = save("tsv", [f"7\t{b}\t{a}" for a, b in rows])
    flat = save("flat.jsonl", [json.dumps({"source": a, "target": b}) for a, b in rows])
    nested = save(
        "nested.jsonl", [json.dumps({"translation": {"de": a, "en": b}}, ensure_ascii=False) for a, b in rows]
    )
    arrays = save("arrays.jsonl", [json.dumps([a, b]) for a, b in rows])
    for corpora in (
        corpus(source=left, target=right),
        corpus(file=tabs, columns=[2, 1]),
        corpus(file=flat),
        corpus(file=nested, columns=["translation.de", "translation.en"]),
        corpus(file=arrays),
    ):
        assert list(read_pairs(corpora)) == rows * shards


@FAST
@given(content=st.binary(min_size=1, max_size=40))
def test_any_bytes_are_read_as_python_decodes_them_or_refused(tmp_path: Path, content: bytes) -> None:
    path = write(tmp_path / "any.txt", b"safe first line\n" + content)
    try:
        expected = content.decode("utf-8").split("\n")
    except UnicodeDecodeError:
        assert "any.txt, line " in refused(lambda: list(read_lines(path)))
        return
    if not expected[-1]:
        expected.pop()
    assert list(read_lines(path)) == ["safe first line", *[line.removesuffix("\r") for line in expected]]


def test_zstandard_frames_end_to_end(tmp_path: Path) -> None:
    assert list(read_lines(write(tmp_path / "a.zst", _zstd(b"one\ntw") + _zstd(b"o\n")))) == ["one", "two"]


def test_compression_is_known_without_a_suffix_and_on_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for pack in PACKERS.values():
        content = pack("하나\ntwo".encode())
        assert list(read_lines(write(tmp_path / "plain", content))) == ["하나", "two"]
        stream = io.TextIOWrapper(io.BufferedReader(io.BytesIO(content)))  # type: ignore[arg-type]
        monkeypatch.setattr(sys, "stdin", stream)
        assert list(read_lines("-")) == ["하나", "two"]
        assert not stream.buffer.closed


def test_a_line_of_a_megabyte(tmp_path: Path) -> None:
    long = "가나다 " * 350_000
    source, target = (
        write(tmp_path / "a.gz", gzip.compress(f"x\n{long}\ny".encode())),
        write(tmp_path / "b", "1\n2\n3\n"),
    )
    assert list(read_pairs(corpus(source=source, target=target))) == [("x", "1"), (long, "2"), ("y", "3")]


def test_memory_stays_flat(tmp_path: Path) -> None:
    source = write(tmp_path / "a.zst", _zstd(b"the same words over and over again\n" * 200_000))
    target = write(tmp_path / "b.xz", lzma.compress(b"die gleichen Worte\n" * 200_000, preset=0))
    stream = read_pairs(corpus(source=source, target=target))
    next(stream)
    tracemalloc.start()
    try:
        assert sum(1 for _ in stream) == 199_999
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


def test_blank_sides_stay_in_step(tmp_path: Path) -> None:
    source, target = write(tmp_path / "a", "x\n\n y \n"), write(tmp_path / "b", "\n\n1\n")
    assert list(read_pairs(corpus(source=source, target=target))) == [("x", ""), ("", ""), (" y ", "1")]
    assert list(read_pairs(corpus(file=write(tmp_path / "c.tsv", "x\ty\n\n")))) == [("x", "y"), ("", "")]


def test_tsv_columns_by_name(tmp_path: Path) -> None:
    named = corpus(file=write(tmp_path / "a.tsv", "id\tde\ten\n1\thallo\thello\n"), columns=["de", "en"])
    assert list(read_pairs(named)) == [("hallo", "hello")]
    assert first_line(named) == 2


# ---------------------------------------------------------------- bad input


def test_unequal_line_counts_name_both(tmp_path: Path) -> None:
    source, target = write(tmp_path / "a.de", "x\n" * 7), write(tmp_path / "a.en.gz", gzip.compress(b"y\n" * 31))
    message = pairs_refused(source=source, target=target)
    assert f"{source} has 7 lines" in message
    assert f"{target} has 31" in message
    message = pairs_refused(source=target, target=source)
    assert f"{target} has 31 lines" in message
    assert f"{source} has 7" in message


def test_missing_folder_empty_blank(tmp_path: Path) -> None:
    good = write(tmp_path / "good.de", "x\ny\n")
    empty, blank = write(tmp_path / "empty.de", ""), write(tmp_path / "blank.de", " \n\t\n")
    write(tmp_path / "train.en.gz", gzip.compress(b"x\n"))
    missing = pairs_refused(source=good, target=str(tmp_path / "train.en"))
    assert "no such file" in missing
    assert 'train.en.gz"?' in missing
    assert "no folder" in pairs_refused(source=good, target=str(tmp_path / "nowhere" / "x"))
    assert "is a folder" in pairs_refused(source=good, target=str(tmp_path))
    assert f"{empty}: the file is empty" in pairs_refused(source=good, target=empty)
    assert f"{empty}: the file is empty" in pairs_refused(source=empty, target=empty)
    assert f"{blank}: only blank lines (2 lines)" in pairs_refused(source=good, target=blank)
    assert f"{blank}: only blank lines" in pairs_refused(source=blank, target=good)
    crossed = pairs_refused(source=write(tmp_path / "1", "x\n\n"), target=write(tmp_path / "2", "\ny\n"))
    assert "no line has text on both sides" in crossed
    assert "is empty" in pairs_refused(file=write(tmp_path / "empty.tsv.gz", gzip.compress(b"")))
    assert "no text on the target side" in pairs_refused(file=write(tmp_path / "half.tsv", "x\t\ny\t \n"))


@pytest.mark.parametrize(("start", "column"), [(b"", 7), (b"\xef\xbb\xbf", 10)])
def test_invalid_utf8_names_line_and_byte(tmp_path: Path, start: bytes, column: int) -> None:
    path = write(tmp_path / "latin.fr", start + "naïf é".encode("latin-1"))
    assert f"{path}, line 1, byte {3 + len(start)}: not valid UTF-8 (byte 0xEF)" in refused(
        lambda: list(read_lines(path))
    )
    path = write(tmp_path / "late.fr", start + b"12345\xc3\xa9\n\n123456\xff\n")
    message = refused(lambda: list(read_lines(path)))
    assert f"{path}, line 3, byte 7" in message
    assert "iconv" in message
    path = write(tmp_path / "first.fr", start + b"123456\xff\n")
    assert f"line 1, byte {column}:" in refused(lambda: list(read_lines(path)))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf16_is_recognised(tmp_path: Path, encoding: str) -> None:
    path = write(tmp_path / "wide.txt", "plain words\nmore\n".encode(encoding))
    message = refused(lambda: list(read_lines(path)))
    assert "looks like UTF-16" in message
    assert "iconv -f UTF-16" in message


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
def test_damaged_compressed_files(tmp_path: Path, suffix: str) -> None:
    import random

    seed = random.randrange(1 << 30)
    print("seed", seed)
    generator = random.Random(seed)
    text = "".join(f"{generator.getrandbits(200):x}\n" for _ in range(20_000)).encode()
    packed = PACKERS[suffix](text)
    place = generator.randrange(len(packed) // 3, 2 * len(packed) // 3)
    flipped = packed[:place] + bytes(byte ^ 0x5A for byte in packed[place : place + 30]) + packed[place + 30 :]
    cut = refused(lambda: list(read_lines(write(tmp_path / f"cut{suffix}", packed[:place]))))
    assert f"cut{suffix}: damaged or cut off after line " in cut
    assert 0 < int(cut.split("after line ")[1].split()[0]) < 20_000
    # what comes out before the damage is noticed may be no text
    flip = refused(lambda: list(read_lines(write(tmp_path / f"flip{suffix}", flipped))))
    assert f"flip{suffix}: damaged or cut off" in flip or "not valid UTF-8" in flip
    assert "damaged or cut off" in refused(lambda: list(read_lines(write(tmp_path / f"end{suffix}", packed[:-1]))))
    assert "at its start" in refused(lambda: list(read_lines(write(tmp_path / f"text{suffix}", b"no such thing\n"))))


def test_tsv_rows_and_columns(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "a\tb\nc\td\nlonely\n")
    assert f"{path}, line 3: 1 column(s) where 2 are needed" in pairs_refused(file=path)
    assert f"{path}, line 1: 2 column(s) where 6" in pairs_refused(file=path, columns=[0, 5])
    assert "count from 0" in pairs_refused(file=path, columns=[0, -1])
    named = pairs_refused(file=write(tmp_path / "n.tsv", "german\tenglish\nx\ty\n"), columns=["german", "englsh"])
    assert 'no column "englsh". Did you mean "english"?' in named
    assert "CSV is not read" in pairs_refused(file=write(tmp_path / "a.csv.gz", gzip.compress(b"a,b\n")))


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("{oops", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ('{"source": 1' + "0" * 5000 + "}", "not JSON"),
        ('{"source": "a", "targte": "b"}', 'no key "target". Did you mean "targte"?'),
        ('{"source": "a", "target": null}', '"target" is null, not text'),
        ('{"source": "a", "target": ["b"]}', "an array, not text"),
        ('{"source": "a", "target": {"en": "b"}}', "an object, not text"),
        ('"just text"', "an object is needed"),
        ('["one"]', "an array of 1 has no place"),
        ('{"source": "a", "target": "\\ud800"}', "surrogate"),
    ],
)
def test_jsonl_trouble_names_its_line(tmp_path: Path, row: str, expected: str) -> None:
    path = write(tmp_path / "a.jsonl", '{"source": "a", "target": "b"}\n\n' + row + "\n")
    message = pairs_refused(file=path)
    assert message.startswith(f"{path}, line 3: ")
    assert expected in message


def test_jsonl_suggests_a_nested_key(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"translation": {"de": "a", "en": "b"}}\n')
    message = pairs_refused(file=path, columns=["translation.de", "translations.en"])
    assert 'Did you mean "translation.en"?' in message


def test_unknown_grammar_languages() -> None:
    assert 'Did you mean "en-fr"?' in pairs_refused(grammar="en-fra")


def test_grammar_pairs_and_splits() -> None:
    train = list(read_pairs(corpus(grammar="en-fr", pairs=30)))
    assert len(train) == 30
    assert all(source and target for source, target in train)
    valid = list(read_pairs(corpus(grammar="en-fr", pairs=30), "valid"))
    assert not set(train) & set(valid)
    assert list(read_pairs(corpus(grammar="en-fr", pairs=30, split="valid"), "train")) == valid, "its own split wins"
    assert list(read_pairs(corpus(grammar="fr-en", pairs=30))) == [(target, source) for source, target in train]
    specs = [corpus(grammar="en-fr", pairs=30), corpus(grammar="fr-en", pairs=30), corpus(grammar="en-fr", pairs=31)]
    hashes = [*map(content_hash, specs), content_hash(specs[0], "valid")]
    assert len(set(hashes)) == 4
    assert content_hash(corpus(grammar="en-fr", pairs=30, split="valid")) == hashes[3]


# ---------------------------------------------------------------- the hash


def test_hash_is_of_the_content_not_the_name(tmp_path: Path) -> None:
    a, b = write(tmp_path / "a", "x\n"), write(tmp_path / "b", "y\n")
    again = write(tmp_path / "elsewhere", "x\n")
    tabs = write(tmp_path / "c.tsv", "x\ty\n")
    same = content_hash(corpus(source=a, target=b))
    assert same == content_hash(corpus(source=again, target=b))
    others = [
        corpus(source=b, target=a),
        corpus(source=[a, a], target=[b, b]),
        corpus(source=a, target=write(tmp_path / "d", "z\n")),
        corpus(file=tabs),
        corpus(file=tabs, columns=[1, 0]),
        corpus(file=write(tmp_path / "c.jsonl", "x\ty\n")),
    ]
    assert len({same, *map(content_hash, others)}) == len(others) + 1


def test_hash_of_a_missing_file(tmp_path: Path) -> None:
    assert "no such file" in refused(lambda: content_hash(corpus(file=str(tmp_path / "x.tsv"))))
