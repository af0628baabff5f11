"""Folders with labels in them, beside them, or without any; and labels files by themselves."""

from __future__ import annotations

import gzip
import os
import pickle
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest

from jumok.data.text_images.sources import OpenedTextImages, open_text_images
from jumok.errors import BadInput
from jumok.recipe import FieldsSection

Texts = Callable[..., list[str]]
Pictures = Callable[..., dict[str, bytes]]


def found(source: OpenedTextImages, place: Path) -> list[tuple[str, str | None]]:
    """Names below a place, and texts; the bytes are those of the files."""
    images = list(source)
    assert [image.name for image in source] == [image.name for image in images]  # twice the same
    for image in images:
        assert image.data == Path(image.name).read_bytes()
    return [(os.path.relpath(image.name, place), image.label) for image in images]


def labels(rows: list[tuple[str, str]]) -> str:
    return "".join(f"{path}\t{text}\n" for path, text in rows)


@pytest.mark.parametrize(
    "name", ["labels.txt", "labels.tsv", "gt.txt", "words.gt.txt", "train_labels.txt", "Label.TXT", "metadata.tsv"]
)
def test_a_labels_file_in_the_folder(name: str, tmp_path: Path, texts: Texts, pictures: Pictures) -> None:
    names = [f"images/{number}.png" for number in (3, 1, 2)]
    pictures(*names, folder=tmp_path)
    rows = list(zip(names, ["plain", *texts(2)], strict=True))
    (tmp_path / name).write_text(labels(rows))
    (tmp_path / "README.md").write_text("about it")
    (tmp_path / ".hidden").write_text("x")
    for path in (tmp_path, tmp_path / name):
        assert found(open_text_images([path]), tmp_path) == rows
    source = open_text_images([tmp_path])
    assert (source.passed_over, source.notes()) == (2, [])


def test_csv_and_jsonl_in_the_folder(tmp_path: Path, pictures: Pictures) -> None:
    pictures("a/1.png", folder=tmp_path)
    (tmp_path / "labels.csv").write_text('id,file,word\n7,a/1.png,"Tea, or 차"\n')
    assert found(open_text_images([tmp_path]), tmp_path) == [("a/1.png", "Tea, or 차")]
    assert found(open_text_images([tmp_path], FieldsSection(label="id")), tmp_path) == [("a/1.png", "7")]
    (tmp_path / "labels.csv").unlink()
    (tmp_path / "metadata.jsonl").write_text('{"file_name": "a/1.png", "text": ""}\n')
    assert found(open_text_images([tmp_path]), tmp_path) == [("a/1.png", "")]


def test_a_labels_file_beside_the_folder(tmp_path: Path, pictures: Pictures) -> None:
    pictures("words/images/1.png", "words/images/2.png", folder=tmp_path)
    for begins in ("images", "words/images", "./words/./images"):  # from the folder, or from where the labels are
        (tmp_path / "words.gt.txt").write_text(f"{begins}/2.png tea\n{begins}/1.png 차\n")
        for path in (tmp_path / "words", tmp_path / "words.gt.txt", tmp_path):
            assert found(open_text_images([path]), tmp_path) == [
                ("words/images/2.png", "tea"),
                ("words/images/1.png", "차"),
            ]
    (tmp_path / "words" / "notes.md").write_text("x")
    (tmp_path / "words.gt.txt").write_text("images/2.png tea\n")
    source = open_text_images([tmp_path / "words"])
    assert source.passed_over == 1
    assert len(source.notes()) == 1
    assert "1 of the 2 pictures" in source.notes()[0]


def test_labels_in_a_folder_of_their_own(tmp_path: Path, pictures: Pictures) -> None:
    pictures("images/1.png", folder=tmp_path)
    (tmp_path / "texts").mkdir()
    for begins in ("../images", "images", str(tmp_path / "images")):
        (tmp_path / "texts" / "labels.txt").write_text(f"{begins}/1.png\ttea\n")
        assert found(open_text_images([tmp_path]), tmp_path) == [("images/1.png", "tea")]


def test_names_as_they_are_written(tmp_path: Path, pictures: Pictures) -> None:
    """Strokes of Windows, decomposed letters of a Mac in either place, no suffix, a compressed labels file."""
    apart = unicodedata.normalize("NFD", "차.png")
    pictures("a/1.png", apart, "차2.png", "plain", folder=tmp_path)
    apart_too = unicodedata.normalize("NFD", "차2.png")
    text = f"a\\1.png\tone\n차.png\ttwo\n{apart_too}\tthree\nplain\tfour\n"
    (tmp_path / "x.txt.gz").write_bytes(gzip.compress(text.encode()))
    assert [label for _, label in found(open_text_images([tmp_path / "x.txt.gz"]), tmp_path)] == [
        "one", "two", "three", "four",
    ]  # fmt: skip


def test_a_picture_named_twice_with_the_same_text_comes_twice(tmp_path: Path, pictures: Pictures) -> None:
    pictures("1.png", folder=tmp_path)
    (tmp_path / "labels.txt").write_text("1.png tea\n./1.png tea\n")
    assert found(open_text_images([tmp_path]), tmp_path) == [("1.png", "tea"), ("1.png", "tea")]


def test_a_text_file_for_each_picture(tmp_path: Path, texts: Texts, pictures: Pictures) -> None:
    told = ["plain", *texts(4)]
    names = [f"b/line.{number}.png" for number in range(5)]
    pictures(*names, "b/other.png", folder=tmp_path)
    for name, text in zip(names, told, strict=True):
        (tmp_path / name).with_suffix(".gt.txt").write_text(text + "\n" * bool(text))
    source = open_text_images([tmp_path])
    assert found(source, tmp_path) == list(zip(names, told, strict=True))
    assert source.passed_over == 0
    assert "1 of the 6 pictures" in source.notes()[0]
    (tmp_path / "b" / "line.1.gt.txt").write_text(told[1] + " 2")
    assert open_text_images([tmp_path]).key != source.key
    (tmp_path / "b" / "line.1.gt.txt").write_text("one\n\ntwo\n")
    with pytest.raises(BadInput, match=r"line\.1\.gt\.txt, line 3: a second line of text"):
        open_text_images([tmp_path])


def test_pictures_without_labels_are_for_reading(tmp_path: Path, pictures: Pictures) -> None:
    pictures("b/2.png", "b/10.jpg", "a.png", "plain", ".x/7.png", folder=tmp_path)
    source = open_text_images([tmp_path])
    assert found(source, tmp_path) == [("a.png", None), ("b/10.jpg", None), ("b/2.png", None)]
    assert (source.passed_over, source.notes()) == (1, [])
    (tmp_path / "train.txt").write_text("a.png tea\n")
    assert "name it: train.txt" in open_text_images([tmp_path]).notes()[0]
    for name in ("a.png", "plain"):
        assert found(open_text_images([tmp_path / name]), tmp_path) == [(name, None)]


def test_pictures_that_no_line_names_are_counted(tmp_path: Path, pictures: Pictures) -> None:
    pictures("1.png", "2.png", "3.png", folder=tmp_path)
    (tmp_path / "labels.txt").write_text("2.png tea\n")
    source = open_text_images([tmp_path])
    assert [label for _, label in found(source, tmp_path)] == ["tea"]
    assert len(source.notes()) == 1
    assert source.notes()[0].startswith("2 of the 3 pictures in ")
    assert source.notes()[0].endswith("labels.txt and passed over, as 1.png")
    assert open_text_images([tmp_path / "labels.txt"]).notes() == []  # who names the file has chosen


def refused(path: Path, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        open_text_images([path])


def test_missing_pictures_are_counted_and_named(tmp_path: Path, pictures: Pictures) -> None:
    pictures("images/1.png", folder=tmp_path)
    file = tmp_path / "labels.txt"
    file.write_text("images/1.png\ta\n" + "".join(f"images/{number}.png\tb\n" for number in range(2, 10)))
    refused(file, r"labels\.txt: 8 of the 9 pictures .* not there: line 2: images/2\.png; line 3: .*; and 3 more")
    file.write_text("1.png\ta\n2.png\tb\n")
    refused(
        file, r"labels\.txt: none of the 2 pictures .* \(line 1: 1\.png; line 2: 2\.png\)\. Most likely .* wrong folder"
    )
    refused(tmp_path, r"wrong folder: they were looked for in .*\. There is images/1\.png: write paths so")
    file.write_text("name words\nimages/1.png a\n")
    refused(file, r"1 of the 2 .* line 1: name\. .*If the first line has the names of columns, call them path and text")
    file.write_text("images/1.png a\nmy tea.png b\n")
    refused(file, r"1 of the 2 .* line 2: my\. .*If paths have blanks in them, part path and text by a tab")
    file.write_text(f"images\tb\nnul\0.png\tb\n{'x' * 5000}.png\tb\nimages/1.png\ta\n")  # a folder is no picture
    refused(file, r"3 of the 4 pictures .*: line 1: images; line 2: nul\\x00\.png; line 3: xxx")


@pytest.mark.parametrize(
    "path", ["../out.png", "a/../../out.png", "/etc/out.png", "{}/../out.png", "C:\\out.png", ".."]
)
def test_nothing_leads_out_of_the_folder(path: str, tmp_path: Path, pictures: Pictures) -> None:
    pictures("out.png", "in/a/1.png", folder=tmp_path)
    path = path.format(tmp_path / "in")
    (tmp_path / "in" / "labels.txt").write_text(f"a/1.png\ta\n{path}\tb\n")
    for place in (tmp_path / "in", tmp_path / "in" / "labels.txt"):
        refused(place, r"labels\.txt, line 2: .* leads out of .*/in\. Write paths")


def test_a_picture_with_two_texts_is_refused(tmp_path: Path, pictures: Pictures) -> None:
    pictures("차.png", "2.png", folder=tmp_path)
    apart = unicodedata.normalize("NFD", "차.png")
    for other in ("차.png", "./차.png", apart):
        (tmp_path / "labels.txt").write_text(f"차.png\ttea\n2.png\tx\n{other}\tTea\n")
        refused(tmp_path, r'labels\.txt, line 3: .* has another text on line 1: "tea" there, "Tea" here')


def test_what_is_meant_must_be_clear(tmp_path: Path, pictures: Pictures) -> None:
    pictures("train/1.png", "test/1.png", folder=tmp_path)
    for part in ("train", "test"):
        (tmp_path / part / "labels.txt").write_text(f"1.png {part}\n")
    refused(tmp_path, r"there are 2 files that may be meant: test/labels\.txt, train/labels\.txt\. Name one: ")
    assert found(open_text_images([tmp_path / "train"]), tmp_path) == [("train/1.png", "train")]
    (tmp_path / "labels.txt").write_text("train/1.png a\ntest/1.png b\n")  # the uppermost counts
    assert found(open_text_images([tmp_path]), tmp_path) == [("train/1.png", "a"), ("test/1.png", "b")]


def test_a_folder_without_anything(tmp_path: Path) -> None:
    refused(tmp_path, r": no image in it, and no labels file\. Pictures")
    (tmp_path / "x.md").write_text("x")
    refused(tmp_path, r": no image in it, and no labels file \(1 other files, as x\.md\)")


def test_the_key_changes_with_whatever_changes(tmp_path: Path, pictures: Pictures) -> None:
    pictures("a/1.png", "a/2.png", folder=tmp_path)
    file = tmp_path / "labels.csv"
    file.write_text("path,text,other\na/1.png,x,y\n")
    keys = [open_text_images([tmp_path]).key]
    assert open_text_images([tmp_path]).key == keys[0]
    assert pickle.loads(pickle.dumps(open_text_images([tmp_path]))).key == keys[0]
    keys.append(open_text_images([tmp_path], FieldsSection(label="other")).key)
    (tmp_path / "a" / "1.png").write_bytes(b"longer" * 100)
    keys.append(open_text_images([tmp_path]).key)
    file.write_text("path,text,other\na/1.png,z,y\n")
    keys.append(open_text_images([tmp_path]).key)
    file.write_text("path,text,other\na/2.png,z,y\n")
    keys.append(open_text_images([tmp_path]).key)
    assert len(set(keys)) == 5
    file.unlink()
    keys.append(open_text_images([tmp_path]).key)
    pictures("a/3.png", folder=tmp_path)
    keys.append(open_text_images([tmp_path]).key)
    assert len(set(keys)) == 7
