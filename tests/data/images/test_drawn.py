"""The embedded images: the same everywhere, every class as often, splits apart, shapes that can be seen."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from jumok.data.images.drawn import CLASSES, CONTRAST, Drawn, draw, label_of, labels_of, masks
from jumok.errors import BadInput


def test_a_picture_follows_from_its_split_and_number() -> None:
    numbers = np.random.default_rng().integers(0, 10**9, 40)
    whole = draw(numbers, "train")
    assert whole.shape == (40, 32, 32, 3)
    assert whole.dtype == np.uint8
    order = np.random.default_rng().permutation(40)
    assert np.array_equal(draw(numbers[order], "train"), whole[order])
    assert np.array_equal(draw([int(numbers[7])], "train")[0], whole[7])


def test_splits_have_no_picture_in_common() -> None:
    pictures = [picture for split in ("train", "valid", "test") for picture in draw(range(300), split)]
    digests = [hashlib.sha256(picture.tobytes()).hexdigest() for picture in pictures]
    assert len(set(digests)) == 900


def test_every_class_as_often() -> None:
    start = 10 * int(np.random.default_rng().integers(0, 10**6))
    labels = labels_of(np.arange(start, start + 500))
    assert np.bincount(labels).tolist() == [50] * len(CLASSES)
    assert len(CLASSES) == 10
    assert [label_of(start + number) for number in range(20)] == labels[:20].tolist()
    blocks = {tuple(block) for block in labels.reshape(-1, 10).tolist()}
    assert len(blocks) > 40  # no order that a batch could give away


@pytest.mark.parametrize("size", [16, 32, 48])
def test_shapes_are_there_and_can_be_seen(size: int) -> None:
    numbers = np.random.default_rng().integers(0, 10**6, 200)
    covered = masks(numbers, "test", size)
    assert covered.shape == (200, size, size)
    assert covered.min() >= 0
    assert covered.max() <= 1
    share = covered.mean(axis=(1, 2))
    assert share.min() > 0.01
    assert share.max() < 0.9
    pictures = draw(numbers, "test", size).astype(np.float64) / 255
    eye = np.array([0.30, 0.59, 0.11])
    differences = []
    for picture, mask in zip(pictures, covered, strict=True):
        if (mask > 0.95).sum() < 4:  # a thin line in a small picture
            continue
        inside, outside = picture[mask > 0.95].mean(axis=0), picture[mask < 0.05].mean(axis=0)
        differences.append(float(np.sqrt((eye * (inside - outside) ** 2).sum())))
    assert len(differences) > 100
    assert np.quantile(differences, 0.05) > CONTRAST[0] / 3  # strays and texture take a little of it


def test_pixels_alone_say_little() -> None:
    """A line through pixels would make the set a bad teacher: the nearest class by its mean picture is hardly right."""
    train, test = draw(range(1000), "train"), draw(range(400), "test")
    gold, labels = labels_of(np.arange(400)), labels_of(np.arange(1000))
    means = np.stack([train[labels == label].mean(axis=0).ravel() for label in range(10)])
    said = ((test.reshape(400, 1, -1) - means[None]) ** 2).mean(axis=-1).argmin(axis=1)
    assert (said == gold).mean() < 0.35


def test_a_source() -> None:
    source = Drawn(23, "valid")
    images = list(source)
    assert len(images) == 23
    assert images[7].name == "shapes (valid): picture 7"
    assert images[7].label == CLASSES[label_of(7)]
    assert np.array_equal(images[7].data, draw([7], "valid")[0])
    keys = {source.key, Drawn(24, "valid").key, Drawn(23, "test").key, Drawn(23, "valid", 64).key}
    assert len(keys) == 4
    with pytest.raises(BadInput, match="no split"):
        next(iter(Drawn(1, "tests")))
