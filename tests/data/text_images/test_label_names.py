"""Which names are those of labels files, and what belongs together."""

from __future__ import annotations

from pathlib import Path

import pytest

from jumok.data.text_images.label_names import archive_beside, is_labels_name, labels_beside, stem_of, uppermost


@pytest.mark.parametrize("name", ["labels.txt", "a/gt.TSV", "iiit5k_test.gt.txt", "train-labels.csv", "metadata.jsonl"])
def test_names_of_labels_files(name: str) -> None:
    assert is_labels_name(name)


@pytest.mark.parametrize("name", ["train.txt", "README.md", "gt.png", "labels/1.txt", "egt.txt", "labels", "gt.zip"])
def test_other_names(name: str) -> None:
    assert not is_labels_name(name)


@pytest.mark.parametrize(
    "name", ["a.b.zip", "a.b.tar", "a.b.tar.gz", "a.b.TGZ", "a.b.gt.txt", "a.b_labels.csv", "a.b.tsv.gz"]
)
def test_what_a_file_is_called_without_its_kind(name: str) -> None:
    assert stem_of(name) == "a.b"


def test_what_lies_beside(tmp_path: Path) -> None:
    for name in ("x.zip", "x.gt.txt", "y.txt", "xx.txt", "z.tar.gz"):
        (tmp_path / name).touch()
    (tmp_path / "y").mkdir()
    (tmp_path / "x.csv").mkdir()  # no file
    assert labels_beside(tmp_path / "x.zip") == tmp_path / "x.gt.txt"
    assert labels_beside(tmp_path / "y") == tmp_path / "y.txt"
    assert labels_beside(tmp_path / "z.tar.gz") is None
    assert archive_beside(tmp_path / "x.gt.txt") == tmp_path / "x.zip"
    assert archive_beside(tmp_path / "y.txt") is None


def test_the_uppermost() -> None:
    assert uppermost(["a/b/gt.txt", "c/gt.txt", "a/gt.txt"]) == ["a/gt.txt", "c/gt.txt"]
    assert uppermost([]) == []
