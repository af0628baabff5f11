"""The embedded images: the same everywhere, every class as often, splits apart, shapes that can be seen."""

from __future__ import annotations

import hashlib
import time

import numpy as np
import pytest

from jumok.data.images.drawn import (
    CLASSES,
    CONTRAST,
    SPLITS,
    VERSION,
    Drawn,
    _colours,
    _dice,
    draw,
    label_of,
    labels_of,
    masks,
)
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
    splits = [draw(range(300), split) for split in SPLITS]
    assert len({hashlib.sha256(picture.tobytes()).hexdigest() for pictures in splits for picture in pictures}) == 900


def test_pictures_are_the_same_on_every_machine() -> None:
    """Seen with numpy 1.26.4 and 2.4.6, with and without AVX. Where they must change, `VERSION` changes with them."""
    digest = hashlib.sha256(draw([*range(10), 10**6, 2**40], "train").tobytes()).hexdigest()
    assert (VERSION, digest) == (1, "b7098ceda913230947a3d625ee92741189defdaf7694ee72f2bba26072866cb2")


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


def test_every_class_stays_within_the_picture() -> None:
    numbers = np.arange(1000) + int(np.random.default_rng().integers(0, 10**6))
    covered, labels = masks(numbers, "train"), labels_of(numbers)
    frame = np.ones((32, 32), bool)
    frame[1:-1, 1:-1] = False
    for label, name in enumerate(CLASSES):
        mine = covered[labels == label]
        assert mine[:, frame].max() <= 0.5, name  # an edge may come up to the middle of an outermost pixel, not over it
        assert (mine.max(axis=(1, 2)) > 0.95).all(), name
        assert (mine.sum(axis=(1, 2)) > 40).all(), name
        # not one and the same: it moves, and is drawn large and small
        across = (mine * np.arange(32)).sum(axis=(1, 2)) / mine.sum(axis=(1, 2))
        assert across.max() - across.min() > 4, name


def test_contrast_never_vanishes() -> None:
    """Of colours as they are chosen: the shape's, and the ground's from one end to the other."""
    numbers = np.random.default_rng().integers(0, 2**50, 5000)
    middle, offset, colour = _colours(_dice(numbers, "valid"))
    ground = np.clip(middle[:, None] + offset[:, None] * np.linspace(-1, 1, 21)[:, None], 0, 1)
    eye = np.array([0.30, 0.59, 0.11])
    differences = np.sqrt((eye * (ground - colour[:, None]) ** 2).sum(axis=-1)).min(axis=1)
    assert differences.min() > CONTRAST[0] - 0.05
    lighter = (eye * (colour - middle)).sum(axis=1) > 0
    assert 0.3 < lighter.mean() < 0.7  # dark on light as often as light on dark


def test_values_use_the_range() -> None:
    pictures = draw(np.random.default_rng().integers(0, 10**9, 300), "train")
    assert pictures.min() < 5
    assert pictures.max() > 250
    assert (np.abs(pictures.mean(axis=(0, 1, 2)) - 127.5) < 20).all()
    assert (pictures.std(axis=(1, 2, 3)) > 5).all()  # none is empty


def test_ten_thousand_take_seconds() -> None:
    """1.7 s on one core; here a tenth of them, with room for a busy machine."""
    start = time.process_time()
    draw(range(1000), "train")
    assert time.process_time() - start < 2


def test_numbers_that_are_none() -> None:
    with pytest.raises(ValueError, match="begin at 0"):
        draw([3, -1], "train")
    with pytest.raises(BadInput, match='Did you mean "train"'):
        masks([1], "trian")
    assert draw([], "train").shape == (0, 32, 32, 3)


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
