"""Levels changed as Pillow changes them, to the grey level, whatever the picture."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance, ImageOps
from torch import Tensor

from jumok.data.images import augment_colour as colour

SIZES = [(1, 1), (2, 5), (3, 3), (33, 17), (48, 64)]
SIZE_NAMES = [f"{height}x{width}" for height, width in SIZES]
EACH_SIZE = pytest.mark.parametrize("size", SIZES, ids=SIZE_NAMES)
EACH_CHANNELS = pytest.mark.parametrize("channels", [1, 3], ids=["grey", "colour"])


def pictures(generator: np.random.Generator, channels: int, size: tuple[int, int]) -> Tensor:
    """Noise, pictures of few levels and of few bright ones, a ramp, and the extremes: black, white, all one colour."""
    shape = (channels, *size)
    low = int(generator.integers(0, 200))
    kinds = [
        *generator.integers(0, 256, (4, *shape)),
        generator.integers(low, low + 40, shape),
        generator.integers(0, 2, shape) * int(generator.integers(1, 256)),
        generator.poisson(8, shape),
        np.broadcast_to(np.linspace(0, 255, size[1]), shape),
        np.zeros(shape),
        np.full(shape, 255),
        np.full(shape, 1) * generator.integers(0, 256, (channels, 1, 1)),
    ]
    return torch.from_numpy(np.stack(kinds).clip(0, 255).astype(np.uint8))


def through_pillow(images: Tensor, change: Callable[[Image.Image, int], Image.Image]) -> Tensor:
    changed = []
    for number, picture in enumerate(images):
        pixels = picture.permute(1, 2, 0).numpy()
        made = np.asarray(change(Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels), number))
        changed.append(torch.from_numpy(made.reshape(pixels.shape).copy()).permute(2, 0, 1))
    return torch.stack(changed)


def furthest(ours: Tensor, theirs: Tensor) -> int:
    assert ours.dtype == theirs.dtype == torch.uint8
    assert ours.shape == theirs.shape
    return int((ours.int() - theirs.int()).abs().max())


@EACH_CHANNELS
@EACH_SIZE
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (colour.brightness, ImageEnhance.Brightness),
        (colour.contrast, ImageEnhance.Contrast),
        (colour.saturation, ImageEnhance.Color),
        (colour.sharpness, ImageEnhance.Sharpness),
    ],
    ids=["brightness", "contrast", "saturation", "sharpness"],
)
def test_enhanced(ours: Any, theirs: Any, channels: int, size: tuple[int, int]) -> None:
    seed = secrets.randbelow(2**31)
    generator = np.random.default_rng(seed)
    images = pictures(generator, channels, size)
    before = images.clone()
    factors = generator.uniform(0, 2.5, len(images)).astype(np.float32)
    factors[:3] = [0, 1, 1.9]
    expected = through_pillow(images, lambda image, number: theirs(image).enhance(float(factors[number])))
    made = ours(images, torch.from_numpy(factors))
    assert furthest(made, expected) == 0, f"seed {seed}"
    assert torch.equal(made[1], images[1]), "a factor of 1 changes nothing"
    assert torch.equal(images, before), "what came in is not written over"


@EACH_CHANNELS
@EACH_SIZE
def test_solarized_and_posterized(channels: int, size: tuple[int, int]) -> None:
    seed = secrets.randbelow(2**31)
    generator = np.random.default_rng(seed)
    images = pictures(generator, channels, size)
    thresholds = generator.integers(0, 257, len(images))
    thresholds[:2] = [0, 256]
    expected = through_pillow(images, lambda image, number: ImageOps.solarize(image, int(thresholds[number])))
    assert furthest(colour.solarize(images, torch.from_numpy(thresholds)), expected) == 0, f"seed {seed}"
    bits = generator.integers(1, 9, len(images))
    expected = through_pillow(images, lambda image, number: ImageOps.posterize(image, int(bits[number])))
    assert furthest(colour.posterize(images, torch.from_numpy(bits)), expected) == 0, f"seed {seed}"


@EACH_CHANNELS
@EACH_SIZE
def test_equalized(channels: int, size: tuple[int, int]) -> None:
    seed = secrets.randbelow(2**31)
    images = pictures(np.random.default_rng(seed), channels, size)
    wanted = torch.ones(len(images), dtype=torch.bool)
    expected = through_pillow(images, lambda image, _: ImageOps.equalize(image))
    assert furthest(colour.equalize(images, wanted), expected) == 0, f"seed {seed}"
    assert torch.equal(colour.equalize(images, ~wanted), images)


@EACH_CHANNELS
@EACH_SIZE
def test_contrast_by_itself(channels: int, size: tuple[int, int]) -> None:
    """Pillow's floating point may fall just below a whole level, where ours is that level: one less there."""
    seed = secrets.randbelow(2**31)
    images = pictures(np.random.default_rng(seed), channels, size)
    wanted = torch.ones(len(images), dtype=torch.bool)
    expected = through_pillow(images, lambda image, _: ImageOps.autocontrast(image))
    made = colour.autocontrast(images, wanted)
    assert furthest(made, expected) <= 1, f"seed {seed}"
    assert (made >= expected).all(), f"seed {seed}"
    single = images.flatten(2).amax(2) == images.flatten(2).amin(2)
    assert torch.equal(made[single], images[single]), "one level stays what it is"
    assert (made.flatten(2).amax(2)[~single] == 255).all()
    assert (made.flatten(2).amin(2)[~single] == 0).all()
    assert torch.equal(colour.autocontrast(images, ~wanted), images)


def test_a_large_picture_has_its_mean() -> None:
    """The sum of its levels is no number that float32 has."""
    images = torch.full((1, 3, 1031, 1033), 201, dtype=torch.uint8)
    images[0, :, 0, 0] = 0
    expected = through_pillow(images, lambda image, _: ImageEnhance.Contrast(image).enhance(0.0))
    assert furthest(colour.contrast(images, torch.zeros(1)), expected) == 0


@EACH_CHANNELS
def test_jitter_is_three_enhancements(channels: int) -> None:
    seed = secrets.randbelow(2**31)
    generator = np.random.default_rng(seed)
    images = pictures(generator, channels, (19, 23))
    factors = generator.uniform(0, 2, (len(images), 3)).astype(np.float32)
    order = generator.permuted(np.tile(np.arange(3), (len(images), 1)), axis=1)
    enhancers: list[Any] = [ImageEnhance.Brightness, ImageEnhance.Contrast, ImageEnhance.Color]

    def through(image: Image.Image, number: int) -> Image.Image:
        for which, factor in zip(order[number], factors[number], strict=True):
            image = enhancers[which](image).enhance(float(factor))
        return image

    made = colour.jitter(images, torch.from_numpy(factors), torch.from_numpy(order))
    assert furthest(made, through_pillow(images, through)) == 0, f"seed {seed}"


def test_random_colours_are_as_strong_as_said() -> None:
    """Of a grey picture of one level only the brightness shows: uniform around what it was."""
    count = 4000
    flat = torch.full((count, 1, 2, 2), 100, dtype=torch.uint8)
    made = colour.random_colours(flat, 0.4)[:, 0, 0, 0].float()
    assert 59 <= made.min() < 62
    assert 138 < made.max() <= 140
    assert abs(made.mean() - 99.5) < 6 * 80 / np.sqrt(12 * count)
    assert abs(made.std() - 80 / np.sqrt(12)) < 1.5
    assert torch.equal(colour.random_colours(flat, 0.0), flat)


def test_random_colours_of_each_picture() -> None:
    picture = torch.randint(0, 256, (3, 6, 6), dtype=torch.uint8)
    made = colour.random_colours(picture.expand(500, -1, -1, -1), 0.4)
    assert len(made.flatten(1).unique(dim=0)) > 490
