"""What a path is, is found out; several are joined; a benchmark is read as it is given out."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from jumok.data.images.sources import ImageSource
from jumok.data.text_images.sources import open_text_images
from jumok.data.text_images.writing import write_lmdb, write_text_images
from jumok.errors import BadInput

Pictures = Callable[..., dict[str, bytes]]
BENCHMARK = Path(__file__).parents[4] / "shared" / "data" / "scene-text"


@pytest.fixture
def place(tmp_path: Path, pictures: Pictures) -> Path:
    pictures("folder/1.png", "folder/2.png", "one.png", "plain", folder=tmp_path)
    (tmp_path / "folder" / "labels.txt").write_text("1.png first\n")
    (tmp_path / "list.csv").write_text("path,text\none.png,second\n")
    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as archive:
        archive.writestr("1.png", pictures("1.png")["1.png"])
        archive.writestr("gt.txt", "1.png third\n")
        archive.writestr("other", "x")
    return tmp_path


def test_all_kinds_joined_in_order(place: Path, pictures: Pictures) -> None:
    import numpy as np

    write_lmdb(place / "data", [(np.zeros((2, 3, 1), np.uint8), "fourth")])
    write_text_images(place / "made", [(np.zeros((2, 3, 1), np.uint8), "fifth")])
    names = ["plain", "folder", "list.csv", "packed.zip", "data", "made", "one.png"]
    source = open_text_images([place / name for name in names])
    as_contract: ImageSource = source
    for _ in range(2):
        assert [image.label for image in as_contract] == [None, "first", "second", "third", "fourth", "fifth", None]
    assert source.passed_over == 1
    assert len(source.notes()) == 1


def test_the_key_of_several(place: Path) -> None:
    one, other = place / "folder", place / "packed.zip"
    keys = {open_text_images(paths).key for paths in ([one], [other], [one, other], [other, one], [one, one])}
    assert len(keys) == 5


def test_relative_paths(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    absolute = [open_text_images([place / name]).key for name in ("folder", "packed.zip", "list.csv")]
    monkeypatch.chdir(place)
    assert [open_text_images([name]).key for name in ("folder", "packed.zip", "list.csv")] == absolute
    assert [image.name for image in open_text_images(["folder", "list.csv", "packed.zip"])] == [
        "folder/1.png", "one.png", "packed.zip/1.png",
    ]  # fmt: skip
    monkeypatch.chdir(place / "folder")
    assert [image.label for image in open_text_images(["."])] == ["first"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nothing", r"nothing: no such file\."),
        ("foldr", r'foldr: no such file\. Did you mean ".*/folder"\?'),
        ("folder/7.png", r"folder/7\.png: no such file"),
        ("list.csv/x", r"list\.csv is a file and no archive"),
        ("empty", r"empty: the file is empty"),
        ("empty.txt", r"empty\.txt: there is no picture in this labels file: it is empty"),
        ("other.md", r"other\.md: neither an image, an archive \(tar, zip\), an LMDB \(data\.mdb\) nor a labels file"),
    ],
)
def test_what_is_nothing_of_it_is_said(name: str, words: str, place: Path) -> None:
    (place / "empty").write_bytes(b"")
    (place / "empty.txt").write_bytes(b"")
    (place / "other.md").write_text("# x")
    with pytest.raises(BadInput, match=words):
        open_text_images([place / name])


def test_nothing_was_given() -> None:
    with pytest.raises(BadInput, match="no pictures were given"):
        open_text_images([])


@pytest.mark.skipif(not BENCHMARK.is_dir(), reason="the benchmark is not on this machine")
def test_iiit5k_as_it_is_given_out() -> None:
    lines = (BENCHMARK / "iiit5k_test.gt.txt").read_text(encoding="utf-8").splitlines()
    told = dict(line.split("\t") for line in lines)
    for name in ("iiit5k_test.zip", "iiit5k_test.gt.txt"):
        source = open_text_images([BENCHMARK / name])
        found = {image.name.partition(".zip/")[2]: image.label for image in source}
        assert found == told
        assert len(found) == 3000
        assert (source.passed_over, source.notes()) == (0, [])
