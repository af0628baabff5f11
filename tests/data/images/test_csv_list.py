"""Tables of paths and labels: how their columns are found, and every fault with its line."""

from __future__ import annotations

import gzip
import os
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from jumok.data.images.sources import open_images
from jumok.errors import BadInput
from jumok.recipe import FieldsSection


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with pictures: img/0.png …, and one without a suffix."""
    (tmp_path / "img").mkdir()
    for name in ("0.png", "1.png", "2, or 3.png", "plain"):
        Image.fromarray(np.random.default_rng().integers(0, 256, (3, 3), np.uint8)).save(tmp_path / "img" / name, "PNG")
    return tmp_path


def found(path: Path, fields: FieldsSection | None = None) -> list[tuple[str, str | None]]:
    images = list(open_images([path], fields))
    for image in images:
        assert image.data == Path(image.name).read_bytes()
    return [(os.path.relpath(image.name, path.parent), image.label) for image in images]


RIGHT = [("img/1.png", "cat"), ("img/0.png", "dog"), ("img/1.png", "cat")]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.csv", "path,label\nimg/1.png,cat\nimg/0.png,dog\nimg/1.png,cat\n"),
        ("x.csv", "Class,File\ncat,img/1.png\ndog,img/0.png\ncat,img/1.png"),
        ("x.csv", "id;target;filename\n7;cat;img/1.png\n8;dog;img/0.png\n9;cat;img/1.png\n"),
        ("x.tsv", "image\tsplit\tlabel\nimg/1.png\ta\tcat\nimg/0.png\tb\tdog\nimg/1.png\tb\t cat \n"),
        ("x.txt", "img/1.png\tcat\nimg/0.png\tdog\nimg/1.png\tcat\n"),
        ("x.csv", "cat,img/1.png\ndog,./img/0.png\ncat,img/1.png\n"),
        ("x.csv", "path,category\nimg/1.png,cat\nimg/0.png,dog\nimg/1.png,cat\n"),
        ("x.csv", '"path","label"\n"img/1.png","cat"\n"img/0.png","dog"\n"img/1.png","cat"\n'),
        ("x.csv.gz", "path,label\nimg/1.png,cat\nimg/0.png,dog\nimg/1.png,cat\n"),
    ],
)
def test_columns_are_found(name: str, text: str, place: Path) -> None:
    (place / name).write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    assert found(place / name) == RIGHT


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("a,b,c\nx,cat,img/1.png\nx,dog,img/0.png\nx,cat,img/1.png\n", FieldsSection(text=2, label=1)),
        ("x,cat,img/1.png\nx,dog,img/0.png\nx,cat,img/1.png\n", FieldsSection(text=2, label=1)),
        ("x,cat,img/1.png\nx,dog,img/0.png\nx,cat,img/1.png\n", FieldsSection(label=1)),
        ("path,label,real\nx,cat,img/1.png\nx,dog,img/0.png\nx,cat,img/1.png\n", FieldsSection(text="real")),
        ("path,label,Kind\nimg/1.png,x,cat\nimg/0.png,x,dog\nimg/1.png,y,cat\n", FieldsSection(label="kind")),
        ("path,species\nimg/1.png,cat\nimg/0.png,dog\nimg/1.png,cat\n", FieldsSection(label="species")),
        ("id.x,photo/file\ncat,img/1.png\ndog,img/0.png\ncat,img/1.png\n", FieldsSection(text="photo/file", label=0)),
        ("photo,bbox.x,kind\nimg/1.png,1,cat\nimg/0.png,2,dog\nimg/1.png,3,cat\n", FieldsSection(text=0, label=2)),
        ("path,label,2\nimg/1.png,x,cat\nimg/0.png,x,dog\nimg/1.png,y,cat\n", FieldsSection(label="2")),
    ],
)
def test_columns_are_said(text: str, fields: FieldsSection, place: Path) -> None:
    (place / "x.csv").write_text(text)
    assert found(place / "x.csv", fields) == RIGHT


def test_without_labels_it_is_for_prediction(place: Path) -> None:
    for text in ("path\nimg/1.png\nimg/0.png\n", "img/1.png\nimg/0.png\n", "w,path,h\n1,img/1.png,2\n1,img/0.png,2\n"):
        (place / "x.csv").write_text(text)
        assert found(place / "x.csv") == [("img/1.png", None), ("img/0.png", None)]


@pytest.mark.parametrize(
    "text", ["id,path\n7,img/1.png", "image,split\nimg/1.png,train", "path,bbox_x\nimg/1.png,7", "file,\nimg/1.png,7"]
)
def test_a_second_column_of_another_name_is_no_label(text: str, place: Path) -> None:
    (place / "x.csv").write_text(text)
    assert found(place / "x.csv") == [("img/1.png", None)]


def test_a_label_may_be_called_as_a_column_is(place: Path) -> None:
    (place / "x.csv").write_text("img/1.png,사진\nimg/0.png,class\n")
    assert found(place / "x.csv") == [("img/1.png", "사진"), ("img/0.png", "class")]
    (place / "label").write_text("a file that only happens to be called so")
    (place / "x.csv").write_text("path,label\nimg/1.png,cat\n")
    assert found(place / "x.csv") == [("img/1.png", "cat")]


def test_names_with_commas_and_without_suffix_and_absolute_ones(place: Path) -> None:
    (place / "x.csv").write_text(f'path,label\n"img/2, or 3.png",cat\nimg/plain,"a ""dog"""\n{place}/img/0.png,개\n')
    assert found(place / "x.csv") == [("img/2, or 3.png", "cat"), ("img/plain", 'a "dog"'), ("img/0.png", "개")]
    (place / "y.tsv").write_text("img/plain\tcat\nimg/plain\tdog\n")  # the first row is a row: the file is there
    assert found(place / "y.tsv") == [("img/plain", "cat"), ("img/plain", "dog")]
    assert found(place / "y.tsv", FieldsSection(text=0)) == [("img/plain", "cat"), ("img/plain", "dog")]


@pytest.mark.parametrize(
    ("text", "fields", "words"),
    [
        ("", None, r"x\.csv: the file is empty"),
        ("path,label\n", None, r"x\.csv: there is a header and no row"),
        (
            "path,label\nimg/1.png,cat\nimg/9.png,dog\n",
            None,
            r"x\.csv, line 3: no image .*img/9\.png\. Paths are relative",
        ),
        ("path,label\nimg,cat\n", None, r"x\.csv, line 2: .*img is a folder, not an image"),
        ("path,label\nimg/1.png/x,cat\n", None, r"x\.csv, line 2: no image .*1\.png/x"),
        (f"path,label\n{'a' * 5000},cat\n", None, r"x\.csv, line 2: no image "),
        ("path,label\n,cat\n", None, r"x\.csv, line 2: the path is missing \(column 0 is empty\)"),
        ("path,label\nimg/1.png, \n", None, r"x\.csv, line 2: the label is missing"),
        ("path,label\nimg/1.png,cat\nimg/1.png\n", None, r"x\.csv, line 3: 1 column where the first row has 2 columns"),
        ("a,b\nimg/1,cat\n", None, r'x\.csv, line 1: which column is the path of the image\? There are: 0 "a", 1 "b"'),
        ("img/1.png,img/0.png,cat\n", None, r"which column is the path of the image\?.* Name it path in a header$"),
        (
            "img/1.png,img/0.png,cat\n",
            FieldsSection(),
            r"Name it path in a header, or say its number: data\.train\.fields\.text=N$",
        ),
        ("path,path,label\nimg/1.png,img/0.png,cat\n", None, r'called "path": let one only be called so$'),
        (
            "path,path,label\nimg/1.png,img/0.png,cat\n",
            FieldsSection(),
            r'two columns are called "path": .* by its number: data\.train\.fields\.text=N$',
        ),
        (
            "path,label\nimg/1.png,cat\n",
            FieldsSection(label=2),
            r"data\.train\.fields\.label: no column 2: there are 2, counted from 0",
        ),
        ("path,label\nimg/1.png,cat\n", FieldsSection(label="lable"), r'no column "lable"\. Did you mean "label"\?'),
        ("img/1.png,cat\n", FieldsSection(label="kind"), r'fields\.label: no header, so "kind" cannot be found'),
        ("img/0001.pn,cat\nimg/1.png,cat\n", None, r"x\.csv, line 1: no image .*img/0001\.pn\. Paths"),
        ("cat,0001.pn\nfelis.catus,img/1.png\n", None, r"x\.csv, line 1: no image .*/0001\.pn\. Paths"),
        ("img/0001.pn\nimg/1.png\n", None, r"x\.csv, line 1: no image .*img/0001\.pn\. Paths"),
        ("IMG_0001png,cat\nIMG_0002.png,cat\n", None, r"x\.csv, line 1: no image .*IMG_0001png\. Paths"),
        ("x,IMG_01,cat\ny,IMG_02,cat\n", FieldsSection(text=1), r"x\.csv, line 1: no image .*IMG_01\. Paths"),
        ("img/1.png cat\nimg/0.png dog\n", None, r'line 1: "img/1\.png cat" is one column\. Part .* by a comma .* tab'),
        ("cat img/1.png\ndog img/0.png\n", None, r'line 1: "cat img/1\.png" is one column'),
        ("path label\nimg/1.png cat\n", None, r'line 1: "path label" is one column'),
        ("photo kind\nimg/1.png cat\n", None, r'line 2: "img/1\.png cat" is one column'),
        ("path,label\nimg/1.png,cat\n", FieldsSection(text=1), r"path and label are the same column, 1"),
    ],
)
def test_faults_are_told_with_their_line(text: str, fields: FieldsSection | None, words: str, place: Path) -> None:
    (place / "x.csv").write_text(text)
    with pytest.raises(BadInput, match=words):
        open_images([place / "x.csv"], fields)


def test_commas_in_a_file_of_tabs_are_told(place: Path) -> None:
    (place / "x.txt").write_text("img/1.png,cat\nimg/0.png,dog\n")
    with pytest.raises(BadInput, match=r'x\.txt, line 1: "img/1\.png,cat" is one column\. .*a tab \(\.tsv, \.txt\)'):
        open_images([place / "x.txt"])


def test_the_key_changes_with_the_table_and_with_its_pictures(place: Path) -> None:
    table = place / "x.csv"
    table.write_text("path,label\nimg/1.png,cat\n")
    keys = [open_images([table]).key]
    assert open_images([table]).key == keys[0]
    out = BytesIO()
    Image.new("L", (9, 9)).save(out, "PNG")
    (place / "img" / "1.png").write_bytes(out.getvalue())
    keys.append(open_images([table]).key)
    table.write_text("path,label\nimg/1.png,dog\n")
    keys.append(open_images([table]).key)
    table.write_text("path,label,other\nimg/1.png,dog,cat\n")
    keys.append(open_images([table]).key)
    keys.append(open_images([table], FieldsSection(label="other")).key)
    assert len(set(keys)) == 5
