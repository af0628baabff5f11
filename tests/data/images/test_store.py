"""Images decoded once: what comes out is what went in, broken ones are named, the cache is used and kept whole."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from jumok.data.images.raw import RawImage
from jumok.data.images.store import IMAGES, open_store
from jumok.errors import BadInput


class Given:
    """Images from memory, counted as they are read."""

    def __init__(self, images: list[RawImage], key: str = "given") -> None:
        self.images, self.key, self.read = images, key, 0

    def __iter__(self) -> Iterator[RawImage]:
        for image in self.images:
            self.read += 1
            yield image


def png(pixels: np.ndarray) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels if pixels.shape[2] == 3 else pixels[:, :, 0]).save(file, "png")
    return file.getvalue()


def some(count: int, size: tuple[int, int] = (6, 5), channels: int = 3) -> list[np.ndarray]:
    generator = np.random.default_rng()
    return [generator.integers(0, 256, (*size, channels), dtype=np.uint8) for _ in range(count)]


def test_what_went_in_comes_out(tmp_path: Path) -> None:
    pixels = some(200)
    names = ["b", "a", "c"]
    given = Given([RawImage(f"image {n}", names[n % 3], png(p) if n % 2 else p) for n, p in enumerate(pixels)])
    said: list[str] = []
    store = open_store(given, (6, 5), 3, "crop", said.append, tmp_path)
    assert (len(store), given.read, said) == (200, 200, [])
    for number, image in enumerate(pixels):
        assert np.array_equal(store.images[number], image.transpose(2, 0, 1))
    assert [store.classes[label] for label in store.labels] == [names[n % 3] for n in range(200)]
    assert store.names[7] == "image 7"
    again = open_store(given, (6, 5), 3, "crop", said.append, tmp_path)
    assert given.read == 200  # from the cache
    assert again.key == store.key
    assert open_store(given, (6, 5), 1, "crop", said.append, tmp_path).images.shape == (200, 1, 6, 5)
    assert given.read == 400  # another kind of store
    other = open_store(Given(given.images[:2], "another"), (6, 5), 3, "crop", said.append, tmp_path)
    assert len(other) == 2


def test_a_batch(tmp_path: Path) -> None:
    pixels = some(9)
    given = Given([RawImage(str(n), str(n % 2), p) for n, p in enumerate(pixels)])
    store = open_store(given, (6, 5), 3, "crop", print, tmp_path)
    labels = 10 + np.arange(9)
    batch = store.batch(np.array([5, 0, 5]), labels, 3)
    assert batch.images.dtype == torch.uint8
    assert np.array_equal(batch.images[1].numpy(), pixels[0].transpose(2, 0, 1))
    assert batch.labels.tolist() == [15, 10, 15]
    assert (batch.indices, batch.corpus) == ((5, 0, 5), 3)


def test_other_sizes_are_brought_to_one(tmp_path: Path) -> None:
    images = [RawImage("tall", "x", some(1, (40, 10))[0]), RawImage("wide", "y", some(1, (8, 31))[0])]
    for how in ("crop", "squash", "pad"):
        store = open_store(Given(images), (12, 12), 3, how, print, tmp_path)
        assert store.images.shape == (2, 3, 12, 12)


def test_broken_images_are_left_out_and_named(tmp_path: Path) -> None:
    good = some(3)
    images = [RawImage(f"good {n}", "ab"[n % 2], p) for n, p in enumerate(good)]
    images[1:1] = [RawImage(f"broken {n}.png", "a", png(good[0])[: 40 + n]) for n in range(7)]
    said: list[str] = []
    store = open_store(Given(images), (6, 5), 3, "crop", said.append, tmp_path)
    assert store.names == ["good 0", "good 1", "good 2"]
    assert len(said) == 1
    assert "7 images cannot be read and are left out" in said[0]
    assert "broken 0.png" in said[0]
    assert f"and 2 more, all in {store.folder / 'broken.txt'}" in said[0]
    assert [f"broken {n}.png" in line for n, line in enumerate((store.folder / "broken.txt").open())] == [True] * 7
    assert store.lost == []


def test_a_class_of_which_nothing_can_be_read_is_told(tmp_path: Path) -> None:
    images = [RawImage("good", "a", some(1)[0]), RawImage("torn.png", "b", png(some(1)[0])[:40])]
    assert open_store(Given(images), (6, 5), 3, "crop", print, tmp_path).lost == ["b"]


def test_nothing_to_learn_from(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="there are no images"):
        open_store(Given([]), (6, 5), 3, "crop", print, tmp_path)
    with pytest.raises(BadInput, match=r"the first of 1 that cannot be read is: torn\.jpg"):
        open_store(Given([RawImage("torn.jpg", "a", b"\xff\xd8\xff")]), (6, 5), 3, "crop", print, tmp_path)
    with pytest.raises(BadInput, match=r"loose\.png: it is not said of which class"):
        open_store(Given([RawImage("loose.png", None, some(1)[0])]), (6, 5), 3, "crop", print, tmp_path)
    assert not any(tmp_path.iterdir())  # nothing half made is left


def test_a_damaged_store_is_made_anew(tmp_path: Path) -> None:
    given = Given([RawImage(str(n), str(n % 2), p) for n, p in enumerate(some(4))])
    store = open_store(given, (6, 5), 3, "crop", print, tmp_path)
    expected = store.images.copy()
    with open(store.folder / IMAGES, "r+b") as file:
        file.truncate(50)
    said: list[str] = []
    assert np.array_equal(open_store(given, (6, 5), 3, "crop", said.append, tmp_path).images, expected)
    assert "encoding again" in said[0]
