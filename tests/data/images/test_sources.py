"""What a path is, is found out; several are joined; what is nothing of it is said."""

from __future__ import annotations

import gzip
import io
import os
import struct
import tarfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from jumok.data.images.sources import ImageSource, open_images
from jumok.errors import BadInput


def png() -> bytes:
    out = io.BytesIO()
    Image.fromarray(np.random.default_rng().integers(0, 256, (3, 4), np.uint8)).save(out, "PNG")
    return out.getvalue()


def a_tar(path: Path, *names: str) -> Path:
    with tarfile.open(path, "w:xz") as archive:
        for name in names:
            data = png()
            header = tarfile.TarInfo(name)
            header.size = len(data)
            archive.addfile(header, io.BytesIO(data))
    return path


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "set" / "cat").mkdir(parents=True)
    (tmp_path / "set" / "cat" / "1.png").write_bytes(png())
    (tmp_path / "set" / "notes.txt").write_text("x")
    a_tar(tmp_path / "x.tar.xz", "train/dog/2.png", "train/a.txt", "test/dog/3.png")
    (tmp_path / "list.csv").write_text("path,label\nset/cat/1.png,bird\n")
    (tmp_path / "digits").write_bytes(gzip.compress(struct.pack(">IIII", 0x803, 2, 4, 4) + bytes(32)))
    (tmp_path / "data_batch_1.bin").write_bytes(b"\x07" + bytes(3072))
    (tmp_path / "one.png").write_bytes(png())
    (tmp_path / "photo").write_bytes(png())
    return tmp_path


def test_all_kinds_joined_in_order(place: Path) -> None:
    names = ["photo", "x.tar.xz/train", "list.csv", "set", "data_batch_1.bin", "one.png", "digits"]
    source: ImageSource = open_images([place / name for name in names])
    assert [image.label for image in source] == [None, "dog", "bird", "cat", "7", None, None, None]
    assert [image.label for image in source][:2] == [None, "dog"]  # and again
    assert open_images([place / "x.tar.xz/train", place / "set"]).passed_over == 1
    both = open_images([place / "x.tar.xz/train", place / "set"])
    assert len(list(both)) == 2
    assert both.passed_over == 2


def test_a_place_that_is_no_utf8_is_read_and_shown(place: Path) -> None:
    folder = place / os.fsdecode(b"\xb0\xed")
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("this file system takes only UTF-8")
    names = ["one.png", "photo", "x.tar.xz", "list.csv", "data_batch_1.bin", "digits", "set"]
    for name in names:
        (place / name).rename(folder / name)
    source = open_images([folder / name for name in (*names, "x.tar.xz/train") if name != "x.tar.xz"])
    found = [image.name for image in source]
    assert len(found) == 8
    assert all(name.startswith(f"{place}/\\xb0\\xed/") and name.encode() for name in found)


def test_the_key_of_several(place: Path) -> None:
    one, other = place / "set", place / "one.png"
    keys = {open_images(paths).key for paths in ([one], [other], [one, other], [other, one], [one, one])}
    assert len(keys) == 5
    assert open_images([one, other]).key in keys
    other.write_bytes(png() + b"x")
    assert open_images([one, other]).key not in keys


def test_relative_paths(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    absolute = open_images([place / "x.tar.xz" / "test"]).key
    monkeypatch.chdir(place)
    source = open_images(["x.tar.xz/test"])
    assert [image.name for image in source] == ["x.tar.xz/test/dog/3.png"]
    assert source.key == absolute
    assert [image.label for image in open_images(["set"])] == ["cat"]
    monkeypatch.chdir(place / "set")
    assert [image.label for image in open_images(["."])] == ["cat"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nothing", r"nothing: no such file\."),
        ("sett", r'sett: no such file\. Did you mean ".*/set"\?'),
        ("set/cow", r"set/cow: no such file\."),
        ("far/away/x", r"far/away/x: no such file\. There is no folder"),
        ("one.png/cat", r"one\.png is a file and no archive, so there is nothing in it"),
        ("list.csv/cat", r"list\.csv is a file and no archive"),
        ("empty", r"empty: the file is empty"),
        ("set/notes.md", r"notes\.md: neither an image, an archive \(tar, zip\), a table"),
        ("folder", r"folder: no image in it"),
        ("nul\0", r"cannot be opened|no such file"),
        ("x" * 5000, r"cannot be opened|no such file"),
    ],
)
def test_what_is_nothing_of_it_is_said(name: str, words: str, place: Path) -> None:
    (place / "empty").write_bytes(b"")
    (place / "folder").mkdir()
    (place / "set" / "notes.md").write_text("# x")
    with pytest.raises(BadInput, match=words):
        list(open_images([place / name]))


def test_nothing_was_given() -> None:
    with pytest.raises(BadInput, match="no images were given"):
        open_images([])


def test_opening_reads_only_the_beginning_of_an_archive(place: Path) -> None:
    """So that a key is cheap: what is damaged at the end is told when it is read."""
    path = a_tar(place / "long.tar.xz", *(f"train/cat/{number}.png" for number in range(3000)))
    path.write_bytes(path.read_bytes()[:-500])
    source = open_images([path / "train"])
    assert source.key
    with pytest.raises(BadInput, match=r"long\.tar\.xz: damaged or cut off"):
        list(source)
