"""LMDB in the field's layout: what is whole is read, however often and from wherever; what is broken is named."""

from __future__ import annotations

import builtins
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lmdb
import pytest

from jumok.data.text_images.sources import open_text_images
from jumok.errors import BadInput

Texts = Callable[..., list[str]]
Pictures = Callable[..., dict[str, bytes]]


def write(folder: Path, items: dict[str, bytes]) -> Path:
    """As the field's own tools do it."""
    database = lmdb.open(str(folder), map_size=1 << 24)
    with database.begin(write=True) as transaction:
        for key, value in items.items():
            transaction.put(key.encode(), value)
    database.close()
    return folder


def layout(images: list[bytes], labels: list[str]) -> dict[str, bytes]:
    found = {f"image-{number:09d}": data for number, data in enumerate(images, 1)}
    found |= {f"label-{number:09d}": text.encode() for number, text in enumerate(labels, 1)}
    return found | {"num-samples": str(len(images)).encode()}


@pytest.fixture
def whole(pictures: Pictures, texts: Texts) -> tuple[list[bytes], list[str]]:
    images = list(pictures(*"abcde").values())
    return images, ["plain", *texts(4)]


def test_all_samples_in_their_order(whole: tuple[list[bytes], list[str]], tmp_path: Path) -> None:
    images, labels = whole
    folder = write(tmp_path / "data", layout(images, labels))
    os.remove(folder / "lock.mdb")
    for path in (folder, folder / "data.mdb", tmp_path):
        source = open_text_images([path])
        for _ in range(2):
            found = list(source)
            assert [image.data for image in found] == images
            assert [image.label for image in found] == labels
        assert found[1].name == f"{folder}/image-000000002"
        assert (source.passed_over, source.notes()) == (0, [])
    assert os.listdir(folder) == ["data.mdb"]  # no lock was made


def test_iterators_side_by_side_and_pickled(whole: tuple[list[bytes], list[str]], tmp_path: Path) -> None:
    images, labels = whole
    folder = write(tmp_path / "data", layout(images, labels))
    source = open_text_images([folder])
    other = pickle.loads(pickle.dumps(source))
    assert other.key == source.key
    for one, two, three in zip(source, other, open_text_images([folder, folder]), strict=False):
        assert one == two == three
    begun = iter(source)
    next(begun)
    again = pickle.loads(pickle.dumps(source))
    assert [image.label for image in again] == labels
    assert [image.label for image in begun] == labels[1:]
    assert [image.label for image in open_text_images([folder, folder])] == labels + labels


def test_another_process_may_read_it_too(whole: tuple[list[bytes], list[str]], tmp_path: Path) -> None:
    images, labels = whole
    source = open_text_images([write(tmp_path / "data", layout(images, labels))])
    begun = iter(source)
    next(begun)
    (tmp_path / "pickled").write_bytes(pickle.dumps(source))
    code = "import pickle, sys; print(len(list(pickle.load(open(sys.argv[1], 'rb')))))"
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "pickled"], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "5"
    assert len(list(begun)) == 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_process_may_read_it_too(whole: tuple[list[bytes], list[str]], tmp_path: Path) -> None:
    images, labels = whole
    source = open_text_images([write(tmp_path / "data", layout(images, labels))])
    begun = iter(source)
    next(begun)
    child = os.fork()
    if not child:
        code = 1
        try:
            code = 0 if [image.label for image in source] == labels else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(list(begun)) == 4


def test_several_below_a_folder_are_joined(pictures: Pictures, tmp_path: Path) -> None:
    for name in ("real/b", "real/a", "synthetic"):
        (tmp_path / name).mkdir(parents=True)
        write(tmp_path / name, layout(list(pictures("x").values()), [name]))
    source = open_text_images([tmp_path])
    assert [image.label for image in source] == ["real/a", "real/b", "synthetic"]
    assert source.key != open_text_images([tmp_path / "real"]).key


def test_without_labels_it_is_for_reading(whole: tuple[list[bytes], list[str]], tmp_path: Path) -> None:
    images, _ = whole
    source = open_text_images([write(tmp_path / "data", layout(images, []))])
    assert [(image.data, image.label) for image in source] == [(data, None) for data in images]


def test_more_than_is_counted_is_left_out_and_told(whole: tuple[list[bytes], list[str]], tmp_path: Path) -> None:
    source = open_text_images([write(tmp_path / "data", layout(*whole) | {"num-samples": b"2", "extra": b"x"})])
    assert [image.label for image in source] == whole[1][:2]
    (note,) = source.notes()
    assert "data: num-samples says 2, but image-000000003 is there too: only the first 2 are read" in note
    assert not list(open_text_images([write(tmp_path / "all", layout(*whole))]).notes())


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"num-samples": None}, r"data: an LMDB without num-samples, so of another layout\. .*image-000000001"),
        ({"num-samples": b"five"}, r"data: num-samples is 'five', not a number\."),
        ({"num-samples": b"-5"}, r"num-samples is '-5', not a number"),
        ({"num-samples": b"\xff\x00"}, r"num-samples is '\\xff\\x00', not a number"),
        ({"num-samples": b"0"}, r"num-samples is 0: there are no pictures"),
        ({"num-samples": b"9"}, r"data: num-samples says 9, but the last is image-000000005\. It was not written to"),
        ({"num-samples": b"999999999"}, r"num-samples says 999,999,999, but the last is image-000000005\."),
        ({"image-000000005": None}, r"num-samples says 5, but the last is image-000000004\."),
        ({"label-000000005": None}, r"num-samples says 5, but the last is label-000000004\."),
        ({"image-000000003": None}, r"data: there is no image-000000003, though num-samples says 5\."),
        ({"label-000000003": None}, r"data: there is no label-000000003, though num-samples says 5\."),
        ({f"image-{number:09d}": None for number in range(1, 6)}, r"says 5, but not even image-000000001 is there"),
        ({"label-000000002": b"\xb0\xa1"}, r"data: label-000000002: not valid UTF-8 \(byte 1\)"),
        ({"label-000000002": b"a" * 10_001}, r"data: label-000000002: a text of 10,001 characters"),
    ],
)
def test_faults_are_named(
    changed: dict[str, bytes | None], words: str, whole: tuple[list[bytes], list[str]], tmp_path: Path
) -> None:
    items = layout(*whole) | changed
    folder = write(tmp_path / "data", {key: value for key, value in items.items() if value is not None})
    with pytest.raises(BadInput, match=words):
        list(open_text_images([folder]))


def test_files_that_are_none_or_cut_off(pictures: Pictures, tmp_path: Path) -> None:
    folder = write(tmp_path / "data", layout([os.urandom(20_000) for _ in range(20)], ["x"] * 20))
    data = (folder / "data.mdb").read_bytes()
    for content, words in (
        (b"", r"data\.mdb: no LMDB, or a damaged one"),
        (b"hello" * 5000, r"data\.mdb: no LMDB, or a damaged one \(MDB_INVALID.*\)\. Copy or download it again"),
        (data[:100_000], r"data\.mdb: cut off: 100,000 bytes of [0-9,]+\."),
    ):
        (folder / "data.mdb").write_bytes(content)
        for _ in range(2):  # and again, when it was opened before
            with pytest.raises(BadInput, match=words):
                open_text_images([folder])
    (folder / "data.mdb").write_bytes(data)
    assert len(list(open_text_images([folder]))) == 20


def test_damage_that_lmdb_sees_and_a_file_that_is_gone(tmp_path: Path) -> None:
    folder = write(tmp_path / "data", layout([b"x" * 60] * 300, ["x"] * 300))
    data = bytearray((folder / "data.mdb").read_bytes())
    for page in range(2 * 4096, len(data), 4096):
        data[page + 10 : page + 12] = b"\x08\x00"  # all pages are of a kind that none of them is
    (folder / "data.mdb").write_bytes(data)
    with pytest.raises(BadInput, match=r"data\.mdb: no LMDB, or a damaged one \(.*CORRUPTED"):
        open_text_images([folder])
    folder = write(tmp_path / "other", layout([b"x"], ["x"]))
    source = open_text_images([folder])
    os.remove(folder / "data.mdb")
    with pytest.raises(BadInput, match=r"other/data\.mdb: No such file"):
        list(source)


def test_the_key_changes_with_the_file(whole: tuple[list[bytes], list[str]], tmp_path: Path) -> None:
    folder = write(tmp_path / "data", layout(*whole))
    source = open_text_images([folder])
    assert open_text_images([folder]).key == source.key
    assert len(list(source)) == 5
    write(folder, {"label-000000001": b"other"})
    assert open_text_images([folder]).key != source.key
    assert next(iter(open_text_images([folder]))).label == "other"


def test_what_to_install_is_said(
    whole: tuple[list[bytes], list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write(tmp_path / "data", layout(*whole))
    real = builtins.__import__

    def without(name: str, *rest: Any, **named: Any) -> Any:
        if name == "lmdb":
            raise ImportError(name)
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(BadInput, match=r'data: LMDB files are read .* pip install "jumok\[lmdb\]"'):
        open_text_images([folder])


def test_the_package_is_imported_only_when_it_is_needed() -> None:
    code = "import sys, jumok.data.text_images.sources, jumok.data.text_images.writing; sys.exit('lmdb' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
