"""MNIST's files, plain and compressed: found by their names, held to their counts, and named where they are bad."""

from __future__ import annotations

import gzip
import lzma
import os
import struct
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from jumok.data.images import idx
from jumok.data.images.picture import pixels_of
from jumok.data.images.sources import RawImage, open_images
from jumok.errors import BadInput

FASHION = Path("/usr/share/datasets/fashion-mnist")
Array = NDArray[np.uint8]


def drawn(count: int = 30, height: int = 7, width: int = 5) -> tuple[Array, Array]:
    rng = np.random.default_rng()
    return rng.integers(0, 256, (count, height, width), np.uint8), rng.integers(0, 10, count, np.uint8)


def images_file(pixels: Array) -> bytes:
    return struct.pack(">IIII", 0x803, *pixels.shape) + pixels.tobytes()


def labels_file(labels: Array) -> bytes:
    return struct.pack(">II", 0x801, len(labels)) + labels.tobytes()


def put(place: Path, data: bytes) -> Path:
    pack = {".gz": gzip.compress, ".xz": lzma.compress}.get(place.suffix, bytes)
    place.write_bytes(pack(data))
    return place


def check(found: list[RawImage], pixels: Array, labels: list[str] | list[None]) -> None:
    assert [image.label for image in found] == labels
    assert all(isinstance(image.data, np.ndarray) and image.data.shape == (*pixels.shape[1:], 1) for image in found)
    assert np.array_equal(np.stack([image.data[:, :, 0] for image in found]), pixels)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("images", "labels"),
    [
        ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
        ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"),
        ("t10k-images.idx3-ubyte", "t10k-labels.idx1-ubyte"),
        ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte.gz"),
        ("emnist-letters-train-images-idx3-ubyte.xz", "emnist-letters-train-labels-idx1-ubyte"),
    ],
)
def test_the_labels_are_found_beside_the_images(
    images: str, labels: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idx, "AT_ONCE", 200)  # some images at a time
    pixels, numbers = drawn()
    path = put(tmp_path / images, images_file(pixels))
    check(list(open_images([path])), pixels, [None] * 30)
    put(tmp_path / labels, labels_file(numbers))
    found = list(open_images([path]))
    check(found, pixels, [str(number) for number in numbers])
    assert found[7].name == f"{path}#7"
    assert np.array_equal(pixels_of(found[7], 3)[:, :, 1], pixels[7])
    check(list(open_images([tmp_path])), pixels, [str(number) for number in numbers])


def test_a_file_of_another_name_is_known_by_its_start(tmp_path: Path) -> None:
    pixels, _ = drawn()
    check(list(open_images([put(tmp_path / "digits", images_file(pixels))])), pixels, [None] * 30)


def test_a_folder_with_two_sets_is_named_with_one(tmp_path: Path) -> None:
    sets = {"train": drawn(), "t10k": drawn(20)}
    for name, (pixels, labels) in sets.items():
        put(tmp_path / f"{name}-images-idx3-ubyte.gz", images_file(pixels))
        put(tmp_path / f"{name}-labels-idx1-ubyte.gz", labels_file(labels))
    with pytest.raises(
        BadInput, match=rf"more than one set of images\. Say which is meant: {tmp_path}/t10k or {tmp_path}/train$"
    ):
        open_images([tmp_path])
    for word, name in (("train", "train"), ("t10k", "t10k"), ("test", "t10k")):
        pixels, labels = sets[name]
        check(list(open_images([tmp_path / word])), pixels, [str(label) for label in labels])
    with pytest.raises(BadInput, match=r"trian: no such file"):
        open_images([tmp_path / "trian"])
    with pytest.raises(BadInput, match=rf"no valid in it\. There is: {tmp_path}/t10k or {tmp_path}/train$"):
        open_images([tmp_path / "valid"])


def test_names_of_classes(tmp_path: Path) -> None:
    pixels, labels = drawn()
    labels[:] = labels % 3
    labels[0] = 2
    path = put(tmp_path / "train-images-idx3-ubyte", images_file(pixels))
    put(tmp_path / "train-labels-idx1-ubyte", labels_file(labels))
    names = ["셔츠", "T-shirt/top", "Bag"]
    (tmp_path / "classes.txt").write_text("\n".join(names) + "\n\n")
    check(list(open_images([path])), pixels, [names[label] for label in labels])
    (tmp_path / "classes.txt").write_text("a\nb\n")
    with pytest.raises(
        BadInput, match=r"train-labels-idx1-ubyte: the label 2, but .*classes\.txt has 2 names \(from 0\)"
    ):
        open_images([path])
    (tmp_path / "classes.txt").write_text("a\nb\na\n")
    with pytest.raises(BadInput, match=r'classes\.txt, line 3: "a" stands in line 1 too'):
        open_images([path])
    (tmp_path / "classes.txt").write_text("a\n\nb\n")
    with pytest.raises(BadInput, match=r"classes\.txt, line 2: the label is missing"):
        open_images([path])


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_bad_files_are_named(suffix: str, tmp_path: Path) -> None:
    pixels, labels = drawn()
    images, beside = tmp_path / f"train-images-idx3-ubyte{suffix}", tmp_path / f"train-labels-idx1-ubyte{suffix}"
    good, good_labels = images_file(pixels), labels_file(labels)

    def told(words: str, image_bytes: bytes = good, label_bytes: bytes = good_labels, at: Path = images) -> None:
        put(images, image_bytes)
        put(beside, label_bytes)
        with pytest.raises(BadInput, match=words) as caught:
            list(open_images([images]))
        assert str(caught.value).startswith(f"{at}: ")

    told("begins with 0x00000803, not 0x00000804", b"\0\0\x08\x04" + good[4:])
    told(r"not 0x00000801\. This one has labels: name the file with the images\.", good_labels)
    told(r"begins with 0x00000801, not 0x00000803\. This one has images", good, good, beside)
    told("cut off: it ends before its first image", good[:10])
    told("cut off: it ends before its first image", b"")
    told(r"cut off: it ends in image 28 of 30\. Download it again", good[:-36])
    told("there is more in it than the 30 images that its start says", good + b"x")
    told("it says that it has no image", images_file(pixels[:0]), labels_file(labels[:0]))
    told("damaged: its images would have 4294967295 × 5 pixels", struct.pack(">IIII", 0x803, 30, 2**32 - 1, 5))
    told("damaged: its images would have 0 × 5 pixels", struct.pack(">IIII", 0x803, 30, 0, 5))
    told(
        rf"29 labels for the 30 images of {images}\. They do not belong together", good, labels_file(labels[1:]), beside
    )
    told("cut off after 25 of 30 labels", good, good_labels[:-5], beside)
    told("longer than its start says", good, good_labels + b"\x01", beside)


def test_a_compressed_file_that_was_cut_off(tmp_path: Path) -> None:
    pixels, labels = drawn(400)
    put(tmp_path / "train-labels-idx1-ubyte", labels_file(labels))
    packed = gzip.compress(images_file(pixels))
    path = tmp_path / "train-images-idx3-ubyte.gz"
    for cut in (5, len(packed) // 2, len(packed) - 3):
        path.write_bytes(packed[:cut])
        with pytest.raises(BadInput, match=r"train-images-idx3-ubyte\.gz: (damaged or )?cut off"):
            list(open_images([path]))
    path.write_bytes(images_file(pixels))
    with pytest.raises(BadInput, match=r"train-images-idx3-ubyte\.gz: damaged or cut off"):
        open_images([path])


def test_labels_named_instead_of_images(tmp_path: Path) -> None:
    path = put(tmp_path / "t10k-labels-idx1-ubyte.gz", labels_file(drawn()[1]))
    with pytest.raises(BadInput, match=r"This one has labels: name the file with the images"):
        open_images([path])


def test_the_key_changes_with_any_of_the_files(tmp_path: Path) -> None:
    pixels, labels = drawn()
    images = put(tmp_path / "train-images-idx3-ubyte", images_file(pixels))
    keys = [open_images([images]).key]
    beside = put(tmp_path / "train-labels-idx1-ubyte", labels_file(labels))
    keys.append(open_images([images]).key)
    assert open_images([tmp_path]).key == open_images([tmp_path / "train"]).key == keys[-1]
    (tmp_path / "names.txt").write_text("\n".join("abcdefghij"))
    keys.append(open_images([images]).key)
    for path in (images, beside, tmp_path / "names.txt"):
        os.utime(path, ns=(1, 1))
        keys.append(open_images([images]).key)
    assert len(set(keys)) == 6


@pytest.mark.skipif(not FASHION.is_dir(), reason="Debian's dataset-fashion-mnist is not installed")
def test_fashion_mnist() -> None:
    images = list(open_images([FASHION / "test"]))
    assert len(images) == 10_000
    assert {image.label for image in images} == set("0123456789")
    assert pixels_of(images[0], 1).shape == (28, 28, 1)
