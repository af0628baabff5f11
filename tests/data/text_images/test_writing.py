"""Data sets as they are written: read back as they were, and whole or not there."""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path

import lmdb
import numpy as np
import pytest

from jumok.data.images.picture import pixels_of
from jumok.data.images.raw import Pixels
from jumok.data.text_images import writing
from jumok.data.text_images.sources import open_text_images
from jumok.data.text_images.writing import Sample, write_lmdb, write_text_images
from jumok.errors import BadInput, Failure

Texts = Callable[..., list[str]]
WRITERS = [write_text_images, write_lmdb]
Writer = Callable[[Path, Iterator[Sample]], int]


def random_pixels(channels: int) -> Pixels:
    dice = np.random.default_rng()
    return dice.integers(0, 256, (*dice.integers(1, 20, 2), channels), np.uint8)


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("channels", [1, 3])
def test_what_is_written_is_read_back(write: Writer, channels: int, tmp_path: Path, texts: Texts) -> None:
    told = [*texts(30), "a\tb", '"', ""]
    pixels = [random_pixels(channels) for _ in told]
    samples = zip(pixels, (f" {unicodedata.normalize('NFD', text)} " for text in told), strict=True)
    assert write(tmp_path / "x" / "words", samples) == len(told)
    found = list(open_text_images([tmp_path / "x" / "words"]))
    assert [image.label for image in found] == told
    for image, expected in zip(found, pixels, strict=True):
        assert np.array_equal(pixels_of(image, channels), expected)
    assert [path.name for path in (tmp_path / "x").iterdir()] == ["words"]


@pytest.mark.parametrize(
    "told", [["a\tb", "c\td"], ["a"], ["a\tb"], ["path"], ["text", ""], ['b, "c"', "d"], [""], ["#"]]
)
def test_labels_that_look_like_something_else(told: list[str], tmp_path: Path) -> None:
    assert write_text_images(tmp_path / "words", ((random_pixels(3), text) for text in told)) == len(told)
    assert [image.label for image in open_text_images([tmp_path / "words"])] == told


def test_the_names_are_those_that_the_field_uses(tmp_path: Path) -> None:
    write_text_images(tmp_path / "words", [(random_pixels(3), "차"), (random_pixels(3), "tea")])
    assert (tmp_path / "words" / "labels.tsv").read_text() == "images/00000001.png\t차\nimages/00000002.png\ttea\n"
    write_lmdb(tmp_path / "data", [(random_pixels(3), "차")])
    with lmdb.open(str(tmp_path / "data"), readonly=True, lock=False).begin() as found:
        assert found.get(b"num-samples") == b"1"
        assert found.get(b"label-000000001") == "차".encode()
        assert bytes(found.get(b"image-000000001") or b"").startswith(b"\x89PNG")


def test_a_database_grows_as_far_as_it_must(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "FIRST_SIZE", 1 << 16)
    monkeypatch.setattr(writing, "WRITTEN_AT_ONCE", 7)
    large = [np.random.default_rng().integers(0, 256, (64, 128, 3), np.uint8) for _ in range(40)]
    assert write_lmdb(tmp_path / "data", zip(large, map(str, range(40)), strict=True)) == 40
    found = list(open_text_images([tmp_path / "data"]))
    assert [image.label for image in found] == [str(number) for number in range(40)]
    assert np.array_equal(pixels_of(found[-1], 3), large[-1])


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, BadInput])
def test_an_interruption_leaves_nothing(write: Writer, error: type[BaseException], tmp_path: Path) -> None:
    def samples() -> Iterator[Sample]:
        yield from itertools.repeat((random_pixels(3), "tea"), 5)
        raise error("enough")

    (tmp_path / "other").mkdir()
    with pytest.raises(error, match="enough"):
        write(tmp_path / "words", samples())
    assert [path.name for path in tmp_path.iterdir()] == ["other"]


@pytest.mark.parametrize("write", WRITERS)
def test_what_is_there_is_not_written_over(write: Writer, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert write(tmp_path / "empty", iter([(random_pixels(1), "tea")])) == 1
    before = sorted((tmp_path / "empty").rglob("*"))
    with pytest.raises(BadInput, match=r"empty: there is something in it already\. Choose another place"):
        write(tmp_path / "empty", iter([(random_pixels(1), "other")]))
    assert sorted((tmp_path / "empty").rglob("*")) == before
    (tmp_path / "file").write_text("x")
    with pytest.raises(BadInput, match=r"file is a file, not a folder"):
        write(tmp_path / "file", iter([(random_pixels(1), "other")]))


@pytest.mark.parametrize("write", WRITERS)
def test_what_cannot_be_written_is_said(write: Writer, tmp_path: Path) -> None:
    for samples, words in (
        ([], r"there are no pictures to write"),
        ([(random_pixels(1), "a"), (random_pixels(1), "b" * 10_001)], r"sample 2: a text of 10,001 characters"),
        ([(random_pixels(1), "\ud800")], r"sample 1: the text '\\ud800' has half of a surrogate pair"),
    ):
        with pytest.raises(BadInput, match=words):
            write(tmp_path / "words", iter(samples))
    for pixels in (np.zeros((2, 2), np.uint8), np.zeros((2, 2, 3)), np.zeros((2, 2, 4), np.uint8)):
        with pytest.raises(ValueError, match="sample 1: pixels are"):
            write(tmp_path / "words", iter([(pixels, "a")]))  # type: ignore[list-item]
    assert list(tmp_path.iterdir()) == []


def test_a_text_of_two_lines_needs_a_database(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"sample 1: a text with the end of a line in it"):
        write_text_images(tmp_path / "words", [(random_pixels(1), "a\nb")])
    write_lmdb(tmp_path / "data", [(random_pixels(1), "a\nb")])
    assert [image.label for image in open_text_images([tmp_path / "data"])] == ["a\nb"]


@pytest.mark.parametrize("write", WRITERS)
def test_trouble_with_the_disk_is_said(write: Writer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writing, "flush_file", full)
    with pytest.raises(Failure, match=r"no space left on the disk while writing pictures \(.*words\)"):
        write(tmp_path / "words", iter([(random_pixels(1), "a")]))
    assert list(tmp_path.iterdir()) == []
