"""Zips and tars of pictures with their labels inside or beside them; broken ones are named."""

from __future__ import annotations

import io
import pickle
import tarfile
import unicodedata
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from jumok.data.text_images import in_archives
from jumok.data.text_images.in_archives import ArchiveTexts
from jumok.data.text_images.sources import OpenedTextImages, open_text_images
from jumok.errors import BadInput
from jumok.recipe import FieldsSection

Texts = Callable[..., list[str]]
Pictures = Callable[..., dict[str, bytes]]
Files = Mapping[str, bytes | str]
KINDS = ["x.zip", "x.tar", "x.tar.gz", "x.tar.xz"]


def pack(path: Path, files: Files) -> Path:
    contents = {name: data.encode() if isinstance(data, str) else data for name, data in files.items()}
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in contents.items():
                archive.writestr(name, data)
        return path
    compression = path.suffix.removeprefix(".").removesuffix("tar")
    with tarfile.open(path, f"w:{compression}") as archive:  # type: ignore[call-overload]
        for name, data in contents.items():
            header = tarfile.TarInfo(name)
            header.size = len(data)
            archive.addfile(header, io.BytesIO(data))
    return path


def found(source: OpenedTextImages, archive: Path, files: Files) -> dict[str, str | None]:
    """Texts by the names in the archive; the bytes are those that were packed."""
    images = list(source)
    assert [image.name for image in source] == [image.name for image in images]  # twice the same
    names = [image.name.removeprefix(f"{archive}/") for image in images]
    assert [image.data for image in images] == [files[name] for name in names]
    assert len(set(names)) == len(names)
    return dict(zip(names, (image.label for image in images), strict=True))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("labels_last", [True, False])
def test_labels_inside(kind: str, labels_last: bool, tmp_path: Path, texts: Texts, pictures: Pictures) -> None:
    files: dict[str, bytes | str] = {**pictures("d/images/1.png", "d/images/2.png", "d/images/3.png")}
    told = dict(zip(files, ["plain", *texts(2)], strict=True))
    lines = "".join(f"{name.removeprefix('d/')}\t{text}\n" for name, text in reversed(told.items()))
    files = {**files, "d/labels.txt": lines} if labels_last else {"d/labels.txt": lines, **files}
    files |= {"d/readme.md": "x", "__MACOSX/d/images/._1.png": "x"}
    path = pack(tmp_path / kind, files)
    for part in ("", "d", "d/labels.txt"):
        source = open_text_images([path / part])
        assert found(source, path, files) == told
        assert (source.passed_over, source.notes()) == (1, [])
    if kind == "x.zip":
        assert [image.name for image in open_text_images([path])] == [f"{path}/{name}" for name in told]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("labels", ["x.gt.txt", "x.txt", "x.tsv", "x_labels.txt"])
def test_labels_beside(kind: str, labels: str, tmp_path: Path, texts: Texts, pictures: Pictures) -> None:
    files = pictures("images/1.png", "images/2.png", "images/3.png")
    told = dict(zip(files, ["plain", *texts(2)], strict=True))
    path = pack(tmp_path / kind, files)
    (tmp_path / labels).write_text("".join(f"{name}\t{text}\n" for name, text in told.items()))
    (tmp_path / "other.csv").write_text("path,text\n")
    for place in (path, tmp_path / labels, *([tmp_path] if labels == "x.gt.txt" else [])):
        source = open_text_images([place])
        assert found(source, path, files) == told
        assert source.passed_over == 0


def test_labels_beside_a_zip_with_a_folder_around_all(tmp_path: Path, pictures: Pictures) -> None:
    files = pictures("x/images/1.png")
    path = pack(tmp_path / "x.zip", files)
    for begins in ("x/images", "images"):
        (tmp_path / "x.gt.txt").write_text(f"{begins}/1.png\ttea\n")
        assert found(open_text_images([path]), path, files) == {"x/images/1.png": "tea"}


def test_labels_inside_go_before_labels_beside_unless_these_are_named(tmp_path: Path, pictures: Pictures) -> None:
    files: Files = {**pictures("1.png"), "labels.csv": "path,text,other\n1.png,inside,else\n"}
    path = pack(tmp_path / "x.zip", files)
    (tmp_path / "x.gt.txt").write_text("1.png\tbeside\n")
    assert found(open_text_images([path]), path, files) == {"1.png": "inside"}
    assert found(open_text_images([path], FieldsSection(label="other")), path, files) == {"1.png": "else"}
    assert found(open_text_images([tmp_path / "x.gt.txt"]), path, files) == {"1.png": "beside"}
    pictures("1.png", folder=tmp_path)  # and pictures on the disk before those of the zip
    assert [image.name for image in open_text_images([tmp_path / "x.gt.txt"])] == [str(tmp_path / "1.png")]


@pytest.mark.parametrize("kind", ["x.zip", "x.tar"])
def test_a_text_file_for_each_picture(kind: str, tmp_path: Path, pictures: Pictures) -> None:
    files: Files = {**pictures("a/1.png", "a/2.png", "a/3.png"), "a/1.gt.txt": "차 tea\n", "a/2.gt.txt": ""}
    path = pack(tmp_path / kind, files)
    source = open_text_images([path])
    assert found(source, path, files) == {"a/1.png": "차 tea", "a/2.png": ""}
    assert "1 of the 3 pictures" in source.notes()[0]


@pytest.mark.parametrize("kind", KINDS)
def test_pictures_without_labels_are_for_reading(kind: str, tmp_path: Path, pictures: Pictures) -> None:
    files: Files = {**pictures("a/1.png", "2.png"), "train.csv": "x"}
    path = pack(tmp_path / kind, files)
    source = open_text_images([path])
    assert found(source, path, files) == {"a/1.png": None, "2.png": None}
    assert source.passed_over == 1
    assert "name it: train.csv" in source.notes()[0]
    assert found(open_text_images([path / "a"]), path, files) == {"a/1.png": None}
    assert found(open_text_images([path / "a/1.png"]), path, files) == {"a/1.png": None}


@pytest.mark.parametrize("kind", ["x.zip", "x.tar.gz"])
def test_names_as_a_mac_packs_them(kind: str, tmp_path: Path, pictures: Pictures) -> None:
    name = unicodedata.normalize("NFD", "그림/차.png")
    files = pictures(name)
    path = pack(tmp_path / kind, {**files, "labels.txt": "그림/차.png\ttea\n"})
    assert found(open_text_images([path]), path, files) == {name: "tea"}


@pytest.mark.parametrize("kind", ["x.zip", "x.tar"])
def test_named_twice_and_not_at_all(kind: str, tmp_path: Path, pictures: Pictures) -> None:
    files: Files = {**pictures("1.png", "2.png", "plain"), "labels.txt": "1.png a\n./1.png a\nplain b\n", "x.md": "x"}
    source = open_text_images([pack(tmp_path / kind, files)])
    assert [image.label for image in source] == ["a", "a", "b"]
    assert source.passed_over == 1
    assert source.notes()[0].endswith("labels.txt and passed over, as 2.png")
    assert source.notes()[0].startswith("1 of the 2 pictures in ")


@pytest.mark.parametrize("kind", ["x.zip", "x.tar"])
@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ("1.png a\n7.png b\n", r"x\.(zip|tar)/labels\.txt: 1 of the 2 pictures .* not there: line 2: 7\.png\."),
        ("7.png a\n8.png b\n", r"none of the 2 pictures .* \(line 1: 7\.png; line 2: 8\.png\)\. Most likely .* wrong"),
        ("2.png a\n", r"none of the 1 pictures .* There is a/2\.png: write paths so"),
        ("1.png a\n../1.png b\n", r"labels\.txt, line 2: \.\./1\.png leads out of .*x\.(zip|tar)\."),
        ("1.png a\n/1.png b\n", r"labels\.txt, line 2: /1\.png leads out of"),
        ("1.png a\na/2.png b\n1.png c\n", r'labels\.txt, line 3: 1\.png has another text on line 1: "a" there, "c"'),
        ("1.png a\na/2.png\n", r"x\.(zip|tar)/labels\.txt, line 2: no label"),
        ("", r"x\.(zip|tar)/labels\.txt: there is no picture in this labels file"),
        (b"1.png \xff", r"x\.(zip|tar)/labels\.txt, line 1, byte 7: not valid UTF-8"),
    ],
)
def test_faults_are_told(kind: str, labels: str | bytes, words: str, tmp_path: Path, pictures: Pictures) -> None:
    path = pack(tmp_path / kind, {**pictures("1.png", "a/2.png"), "labels.txt": labels})
    with pytest.raises(BadInput, match=words):
        list(open_text_images([path]))


@pytest.mark.parametrize(
    ("files", "part", "words"),
    [
        ({"x.md": b"x"}, "", r"x\.zip: no image in it, and no labels file\."),
        ({"x/data.mdb": b"x"}, "", r"x\.zip: .*Unpack it: an LMDB cannot be read inside of an archive"),
        ({"a/gt.txt": b"x", "b/gt.txt": b"x"}, "", r"there are 2 files that may be meant: a/gt\.txt, b/gt\.txt"),
        ({"a/train.txt": b"x"}, "a/trian.txt", r'no "a/trian\.txt" in the archive\. Did you mean "train\.txt"\?'),
        ({"a/1.png": b"x"}, "b", r'no "b" in the archive\.'),
    ],
)
def test_what_is_nothing_of_it_is_said(files: Files, part: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=words):
        open_text_images([pack(tmp_path / "x.zip", files) / part])


@pytest.mark.parametrize("kind", KINDS)
def test_all_pictures_whatever_labels_say(kind: str, tmp_path: Path, pictures: Pictures) -> None:
    files = {**pictures("a.png", "deep/b.png"), "labels.txt": "a.png\tx\n", "deep/b.gt.txt": "word", "list.csv": ""}
    source = ArchiveTexts(pack(tmp_path / kind, files), (), FieldsSection(), None, labelled=False)
    assert {image.name.removeprefix(f"{tmp_path / kind}/"): image.label for image in source} == {
        "a.png": None,
        "deep/b.png": None,
    }
    assert source.notes == []
    assert source.key != ArchiveTexts(tmp_path / kind, (), FieldsSection(), None).key


@pytest.mark.parametrize("kind", KINDS)
def test_labels_are_not_held_without_end(
    kind: str, tmp_path: Path, pictures: Pictures, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {**pictures("a.png", "b.png"), "a.gt.txt": "x" * 60, "b.gt.txt": "y" * 60}
    archive = pack(tmp_path / kind, files)
    monkeypatch.setattr(in_archives, "MOST_LABELS", 120)
    assert len(list(open_text_images([archive]))) == 2
    monkeypatch.setattr(in_archives, "MOST_LABELS", 119)
    with pytest.raises(BadInput, match=r"b\.gt\.txt: .* 120 bytes, more than .*\(119\)"):
        list(open_text_images([archive]))


def test_two_files_beside_are_too_many(tmp_path: Path, pictures: Pictures) -> None:
    path = pack(tmp_path / "x.zip", pictures("1.png"))
    for name in ("x.gt.txt", "x.csv"):
        (tmp_path / name).write_text("1.png,a\n")
    with pytest.raises(BadInput, match=r"2 files that may be meant: x\.csv, x\.gt\.txt\."):
        open_text_images([path])
    assert [image.label for image in open_text_images([tmp_path / "x.csv"])] == ["a"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_archive_is_refused(kind: str, tmp_path: Path, pictures: Pictures) -> None:
    names = [f"{number}.png" for number in range(200)]
    path = pack(tmp_path / kind, {**pictures(*names), "gt.txt": "".join(f"{name}\ta\n" for name in names)})
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(BadInput, match=r"damaged or cut off"):
        list(open_text_images([path]))


@pytest.mark.parametrize("kind", ["x.zip", "x.tar"])
def test_the_key_changes_with_whatever_changes(kind: str, tmp_path: Path, pictures: Pictures) -> None:
    path = pack(tmp_path / kind, pictures("1.png", "2.png"))
    keys = [open_text_images([path]).key]
    assert open_text_images([path]).key == keys[0]
    assert pickle.loads(pickle.dumps(open_text_images([path]))).key == keys[0]
    labels = tmp_path / "x.tsv"
    labels.write_text("1.png\ta\n2.png\tb\n")
    keys.append(open_text_images([path]).key)
    labels.write_text("1.png\ta\n2.png\tbb\n")
    keys.append(open_text_images([path]).key)
    keys.append(open_text_images([path], FieldsSection(text=0, label=1)).key)
    pack(path, pictures("1.png", "2.png", "3.png"))
    keys.append(open_text_images([path]).key)
    keys.append(open_text_images([path / "1.png"]).key)
    assert len(set(keys)) == 6


def test_opening_a_tar_reads_only_its_beginning(tmp_path: Path, pictures: Pictures) -> None:
    """So that a key is cheap: what is wrong with its labels is told when it is read."""
    path = pack(tmp_path / "x.tar", {**pictures("1.png"), "labels.txt": "2.png a\n"})
    source = open_text_images([path])
    assert source.key
    with pytest.raises(BadInput, match="none of the 1 pictures"):
        next(iter(source))
