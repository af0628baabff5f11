"""CIFAR's own files, in both versions and sizes, as files, in folders and in archives; and each way they can be bad."""

from __future__ import annotations

import io
import os
import pickle
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from jumok.data.images.sources import RawImage, open_images
from jumok.errors import BadInput

Array = NDArray[np.uint8]
CLASSES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
COUNT = 5


def drawn(count: int = COUNT, classes: int = 10) -> tuple[Array, list[int]]:
    """Planes as CIFAR stores them, (N, 3072), and labels."""
    rng = np.random.default_rng()
    return rng.integers(0, 256, (count, 3072), np.uint8), rng.integers(0, classes, count).tolist()


def short(text: str) -> bytes:
    return b"U" + bytes([len(text)]) + text.encode()


def number(value: int) -> bytes:
    return b"K" + bytes([value]) if value < 256 else b"M" + value.to_bytes(2, "little")


def by_python_2(planes: Array, labels: list[int], key: str = "labels") -> bytes:
    """A batch, instruction by instruction as the authors' cPickle wrote it: texts and pixels are str of Python 2."""
    count = len(planes)
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\nq\x05cnumpy\nndarray\nq\x06K\x00\x85U\x01b\x87Rq\x07"
        + (b"(K\x01" + number(count) + number(3072) + b"\x86")
        + b"cnumpy\ndtype\nq\x08U\x02u1K\x00K\x01\x87Rq\x09(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
        + (b"\x89T" + planes.size.to_bytes(4, "little") + planes.tobytes() + b"tb")
    )
    listed = b"]q\x02(" + b"".join(map(number, labels)) + b"e"
    files = b"]q\x03(" + b"".join(short(f"some_{n}.png") for n in range(count)) + b"e"
    return (
        b"\x80\x02}q\x01("
        + (short("batch_label") + short("training batch 1 of 5"))
        + (short(key) + listed + short("data") + array + short("filenames") + files)
        + b"u."
    )


def meta(names: list[str], key: str = "label_names") -> bytes:
    listed = b"]q\x02(" + b"".join(map(short, names)) + b"e"
    return b"\x80\x02}q\x01(" + short("num_vis") + number(3072) + short(key) + listed + b"u."


def by_records(planes: Array, labels: list[int], coarse: bool = False) -> bytes:
    heads = np.array([[3, label] if coarse else [label] for label in labels], np.uint8)
    return np.concatenate([heads, planes], axis=1).tobytes()


class Set:
    """Files of one version, and what they hold."""

    def __init__(self, version: str) -> None:
        self.files: dict[str, bytes] = {}
        self.holds: dict[str, tuple[Array, list[int]]] = {}
        hundred = version.startswith("100")
        self.names = [f"kind {n}" for n in range(100)] if hundred else CLASSES
        self.folder = f"cifar-{version}"
        if version == "10-binary":
            for name in ("data_batch_1.bin", "data_batch_2.bin", "test_batch.bin"):
                self.put(name, by_records)
            self.files["batches.meta.txt"] = "\n".join([*CLASSES, "", ""]).encode()
        elif version == "100-binary":
            for name in ("train.bin", "test.bin"):
                self.put(name, lambda *batch: by_records(*batch, coarse=True), 100)
            self.files["fine_label_names.txt"] = "\n".join([*self.names, ""]).encode()
            self.files["coarse_label_names.txt"] = b"x\n" * 20
        elif version == "10-python":
            for name in ("data_batch_2", "test_batch", "data_batch_1"):
                self.put(name, by_python_2)
            self.files["batches.meta"] = meta(CLASSES)
        else:
            for name in ("train", "test"):
                self.put(name, lambda *batch: by_python_2(*batch, key="fine_labels"), 100)
            self.files["meta"] = meta(self.names, "fine_label_names")
        self.files["readme.html"] = b"<html>"

    def put(self, name: str, write: Callable[..., bytes], classes: int = 10) -> None:
        self.holds[name] = drawn(classes=classes)
        self.files[name] = write(*self.holds[name])

    def unpacked(self, place: Path) -> Path:
        folder = place / self.folder
        folder.mkdir()
        for name, data in self.files.items():
            (folder / name).write_bytes(data)
        return folder

    def packed(self, place: Path) -> Path:
        path = place / f"{self.folder}.tar.gz"
        with tarfile.open(path, "w:gz") as archive:
            for name, data in self.files.items():
                header = tarfile.TarInfo(f"{self.folder}/{name}")
                header.size = len(data)
                archive.addfile(header, io.BytesIO(data))
        return path

    def zipped(self, place: Path) -> Path:
        path = place / f"{self.folder}.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in self.files.items():
                archive.writestr(f"{self.folder}/{name}", data)
        return path

    def check(self, found: list[RawImage], names: list[str]) -> None:
        """The pictures of these files in this order."""
        planes = np.concatenate([self.holds[name][0] for name in names])
        labels = [self.names[label] for name in names for label in self.holds[name][1]]
        assert [image.label for image in found] == labels
        pixels = [image.data for image in found]
        assert np.array_equal(np.stack(pixels), planes.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))  # type: ignore[arg-type]
        assert found[0].name.endswith(f"{names[0]}#0")
        assert len({image.name for image in found}) == len(found)


VERSIONS = ["10-binary", "100-binary", "10-python", "100-python"]
TRAINING = ("data", "train")


@pytest.mark.parametrize("version", VERSIONS)
def test_both_sets_of_a_folder(version: str, tmp_path: Path) -> None:
    some = Set(version)
    folder = some.unpacked(tmp_path)
    training = sorted(name for name in some.holds if name.startswith(TRAINING))
    some.check(list(open_images([folder / "train"])), training)
    some.check(list(open_images([folder / "test"])), [name for name in some.holds if name not in training])
    with pytest.raises(BadInput, match=rf"to train with and to test with\. Say which: {folder}/train or {folder}/test"):
        open_images([folder])
    for name in some.holds:
        some.check(list(open_images([folder / name])), [name])
    two = [*some.holds][::-1][:2]
    some.check(list(open_images([folder / name for name in two])), two)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("how", ["packed", "zipped"])
def test_both_sets_of_an_archive(version: str, how: str, tmp_path: Path) -> None:
    some = Set(version)
    archive = getattr(some, how)(tmp_path)
    training = [name for name in some.holds if name.startswith(TRAINING)]  # in the order of the archive
    testing = [name for name in some.holds if name not in training]
    for part in ("", f"/{some.folder}"):
        some.check(list(open_images([f"{archive}{part}/train"])), training)
        some.check(list(open_images([f"{archive}{part}/test"])), testing)
    some.check(list(open_images([f"{archive}/{some.folder}/{training[0]}"])), training[:1])
    with pytest.raises(BadInput, match=rf"Say which: {archive}/train or {archive}/test"):
        list(open_images([archive]))
    with pytest.raises(BadInput, match=r'no batch of pictures "valid" in it\. There is: '):
        list(open_images([archive / "valid"]))


def test_a_folder_with_one_set_needs_no_word(tmp_path: Path) -> None:
    some = Set("10-python")
    del some.files["test_batch"]
    some.check(list(open_images([some.unpacked(tmp_path)])), ["data_batch_1", "data_batch_2"])


def test_without_names_labels_are_numbers(tmp_path: Path) -> None:
    planes, labels = drawn()
    (tmp_path / "data_batch_1.bin").write_bytes(by_records(planes, labels))
    assert [image.label for image in open_images([tmp_path / "data_batch_1.bin"])] == list(map(str, labels))


@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_batches_that_were_written_again(protocol: int, tmp_path: Path) -> None:
    planes, labels = drawn()
    for name, batch in (
        ("data_batch_1", {"data": planes, "labels": labels}),
        ("test_batch", {b"data": planes, b"labels": labels}),
    ):
        (tmp_path / name).write_bytes(pickle.dumps(batch, protocol))
        found = list(open_images([tmp_path / name]))
        assert [image.label for image in found] == list(map(str, labels))
        assert np.array_equal(found[-1].data, planes[-1].reshape(3, 32, 32).transpose(1, 2, 0))


def test_the_key_changes_with_the_files(tmp_path: Path) -> None:
    some = Set("10-binary")
    folder = some.unpacked(tmp_path)
    before = open_images([folder / "train"]).key
    assert before == open_images([folder / "train"]).key
    assert before != open_images([folder / "test"]).key
    os.utime(folder / "data_batch_2.bin", ns=(1, 1))
    changed = open_images([folder / "train"]).key
    assert changed != before
    (folder / "batches.meta.txt").write_text("\n".join(reversed(CLASSES)))
    assert open_images([folder / "train"]).key != changed


class Bomb:
    def __init__(self, place: Path) -> None:
        self.place = place

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.place),)


def test_a_bomb_in_a_batch_does_not_go_off(tmp_path: Path) -> None:
    mark = tmp_path / "it-ran"
    for name in ("data_batch_1", "batches.meta"):
        folder = tmp_path / f"of-{name}"
        folder.mkdir()
        (folder / "data_batch_1").write_bytes(by_python_2(*drawn()))
        (folder / name).write_bytes(pickle.dumps({"data": Bomb(mark), "labels": [1]}, 2))
        with pytest.raises(BadInput, match=rf"{name}, byte \d+: the name (posix|os|nt)\.mkdir\. Files of CIFAR"):
            list(open_images([folder]))
        assert not mark.exists()


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("data_batch_1.bin", bytes(3000), r"3,000 bytes are not whole records of 3073 \(CIFAR-10\) or 3074"),
        ("data_batch_1.bin", b"", r"0 bytes are not whole records"),
        (
            "data_batch_1.bin",
            by_records(drawn()[0], [1, 2, 10, 4, 5]),
            r"the label 10 in record 2, where CIFAR-10 has 10",
        ),
        ("train.bin", by_records(drawn()[0], [1, 2, 3, 100, 5], True), r"the label 100 in record 3, where CIFAR-100"),
        ("data_batch_1", by_python_2(drawn()[0], [1, 2, 3]), r"3 labels for 5 pictures"),
        ("data_batch_1", by_python_2(drawn()[0], [1, 2, 3], "other"), r'no "labels" or "fine_labels"'),
        ("data_batch_1", pickle.dumps({"labels": [1]}, 2), r'no "data" of 3072 numbers a picture'),
        ("data_batch_1", pickle.dumps({"labels": [], "data": drawn(0)[0]}, 3), r'no "data" of 3072 numbers'),
        ("data_batch_1", pickle.dumps([1, 2], 2), r'no "data" of 3072 numbers'),
        ("data_batch_1", by_python_2(*drawn())[:5000], r"damaged, cut off"),
        ("data_batch_1", b"hello", r"damaged, cut off"),
    ],
)
def test_bad_batches_are_named(name: str, data: bytes, words: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(BadInput, match=words) as caught:
        list(open_images([tmp_path / name]))
    assert str(caught.value).startswith(str(tmp_path / name))


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("batches.meta", meta(CLASSES[:3]), "but there are 3 names of classes"),
        ("batches.meta", meta([]), "no names of classes in it"),
        ("batches.meta", pickle.dumps([1], 2), "no names of classes in it"),
        ("batches.meta.txt", b"a\nb\n", "but there are 2 names of classes"),
        ("batches.meta.txt", b"a\n\nb\n", r"name 1: the label is missing"),
    ],
)
def test_bad_names_are_told(name: str, data: bytes, words: str, tmp_path: Path) -> None:
    (tmp_path / "data_batch_1.bin").write_bytes(by_records(drawn()[0], [0, 1, 2, 9, 4]))
    (tmp_path / name).write_bytes(data)
    with pytest.raises(BadInput, match=words):
        list(open_images([tmp_path]))


def test_a_size_that_fits_both_sets_goes_by_the_name(tmp_path: Path) -> None:
    """3073 records of CIFAR-100 are as long as 3074 of CIFAR-10."""
    for name, width in (("data_batch_1.bin", 3073), ("train.bin", 3074)):
        (tmp_path / name).write_bytes(bytes(3073 * 3074))
        assert sum(1 for _ in open_images([tmp_path / name])) == 3073 * 3074 // width
