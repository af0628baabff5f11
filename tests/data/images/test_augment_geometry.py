"""Pixels moved: whole ones exactly, all others as Pillow's affine transform moves them."""

from __future__ import annotations

import math
import secrets

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from jumok.data.images import augment_draws
from jumok.data.images.augment_geometry import part, random_part, random_shift, shift, shift_into_itself, warp
from jumok.data.images.rand_augment import MOVED, RandAugment, in_pixels

SIZES = [(32, 32), (33, 17), (40, 61)]
EACH_SIZE = pytest.mark.parametrize("size", SIZES, ids=str)
EACH_CHANNELS = pytest.mark.parametrize("channels", [1, 3], ids=["grey", "colour"])


def noise(count: int, channels: int, size: tuple[int, int]) -> Tensor:
    return torch.randint(0, 256, (count, channels, *size), dtype=torch.uint8)


def soft(count: int, channels: int, size: tuple[int, int]) -> Tensor:
    """Pictures without edges: a place that is read a hair beside where it should be makes no difference."""
    small = torch.rand(count, channels, 5, 5) * 255
    return torch.nn.functional.interpolate(small, size, mode="bicubic").clamp(0, 255).to(torch.uint8)


def as_pillow(picture: Tensor) -> Image.Image:
    pixels = picture.permute(1, 2, 0).numpy()
    return Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels)


def as_tensor(image: Image.Image) -> Tensor:
    pixels = np.asarray(image)
    return torch.from_numpy(pixels.reshape(*pixels.shape[:2], -1).copy()).permute(2, 0, 1)


@EACH_CHANNELS
@EACH_SIZE
def test_shifts_are_exact(channels: int, size: tuple[int, int]) -> None:
    images, padding = noise(30, channels, size), 5
    height, width = size
    down, right = torch.randint(0, 2 * padding + 1, (2, 30)).unbind()
    mirrored = torch.randint(0, 2, (30,))
    made = shift(padding, images, down, right, mirrored)
    for number, picture in enumerate(images):
        framed = np.pad(picture.numpy(), ((0, 0), (padding, padding), (padding, padding)))
        top, left = int(down[number]), int(right[number])
        expected = framed[:, top : top + height, left : left + width]
        expected = expected[..., ::-1] if mirrored[number] else expected
        assert np.array_equal(made[number].numpy(), expected)


@EACH_CHANNELS
@EACH_SIZE
def test_shifts_into_the_mirror_image_are_exact(channels: int, size: tuple[int, int]) -> None:
    images, padding = noise(30, channels, size), 5
    height, width = size
    down, right = torch.randint(0, 2 * padding + 1, (2, 30)).unbind()
    mirrored = torch.randint(0, 2, (30,))
    made = shift_into_itself(padding, images, down, right, mirrored)
    for number, picture in enumerate(images):
        framed = np.pad(picture.numpy(), ((0, 0), (padding, padding), (padding, padding)), "reflect")
        top, left = int(down[number]), int(right[number])
        expected = framed[:, top : top + height, left : left + width]
        expected = expected[..., ::-1] if mirrored[number] else expected
        assert np.array_equal(made[number].numpy(), expected)
    assert torch.equal(shift_into_itself(9, images[..., :1, :1], down, right, mirrored), images[..., :1, :1])


def test_every_shift_is_as_likely() -> None:
    """One bright pixel, left of the middle, tells where the picture went."""
    count, padding = 20_000, 2
    images = torch.zeros(count, 1, 7, 7, dtype=torch.uint8)
    images[:, :, 3, 2] = 255
    made = random_shift(images, padding, flip=True)
    assert (made.flatten(1).sum(1, dtype=torch.int64) == 255).all()
    # without mirroring the pixel is at 0 … 4, with it at 2 … 6
    rows = (made[:, 0] == 255).any(2).float().mean(0)
    columns = (made[:, 0] == 255).any(1).float().mean(0)
    near = 6 * math.sqrt(0.25 / count)
    assert (rows[1:6] - 1 / 5).abs().max() < near
    assert (columns - torch.tensor([1, 1, 2, 2, 2, 1, 1]) / 10).abs().max() < near


def test_mirrored_or_not() -> None:
    images = noise(4000, 3, (3, 4))
    made = random_shift(images, 0, flip=True)
    turned = (made == images.flip(3)).flatten(1).all(1)
    stayed = (made == images).flatten(1).all(1)
    assert (turned | stayed).all()
    assert abs(turned.float().mean() - 0.5) < 6 * math.sqrt(0.25 / 4000)
    assert torch.equal(random_shift(images, 0, flip=False), images)


@EACH_SIZE
def test_no_move_is_exact(size: tuple[int, int]) -> None:
    images = noise(3, 3, size)
    none = torch.tensor([1.0, 0, 0, 0, 1, 0]).expand(3, 6)
    assert torch.equal(warp(images, none), images)
    large = noise(1, 3, (517, 1023))
    assert torch.equal(warp(large, none[:1]), large)


@EACH_CHANNELS
@EACH_SIZE
def test_any_map_as_pillow_does(channels: int, size: tuple[int, int]) -> None:
    seed = torch.random.initial_seed()
    count, (height, width) = 12, size
    images = soft(count, channels, size)
    matrices = torch.tensor([1.0, 0, 0, 0, 1, 0]) + torch.empty(count, 6).uniform_(-0.4, 0.4)
    matrices[:, [2, 5]] *= 15
    made = warp(images, matrices)
    y, x = torch.meshgrid(torch.arange(height) + 0.5, torch.arange(width) + 0.5, indexing="ij")
    for picture, matrix, ours in zip(images, matrices, made, strict=True):
        a, b, c, d, e, f = matrix.tolist()
        at_x, at_y = a * x + b * y + c, d * x + e * y + f
        within = (at_x > 0.5) & (at_x < width - 0.5) & (at_y > 0.5) & (at_y < height - 0.5)
        beyond = (at_x < -0.5) | (at_x > width + 0.5) | (at_y < -0.5) | (at_y > height + 0.5)
        theirs = as_tensor(
            as_pillow(picture).transform(
                (width, height), Image.Transform.AFFINE, (a, b, c, d, e, f), Image.Resampling.BILINEAR
            )
        )
        apart = (ours.int() - theirs.int()).abs()
        assert within.any()
        assert apart[:, within].max() <= 1, f"seed {seed}"
        assert (ours[:, beyond] == 0).all(), "beyond the border is black"


@EACH_SIZE
@pytest.mark.parametrize("up", [False, True], ids=["one way", "the other"])
def test_moves_are_the_usual_ones(size: tuple[int, int], up: bool) -> None:
    """The moves of RandAugment at magnitude 8, one after another, as Pillow makes them."""
    height, width = size
    level, sign = 0.8, 1 if up else -1
    operation = RandAugment(1, 10 * level)
    images = soft(len(MOVED), 3, size)
    maps = in_pixels(operation.moves[0, torch.arange(len(MOVED)) * 2 + int(up)], height, width)
    made = operation._move(
        images, torch.arange(len(MOVED)), torch.full((len(MOVED),), int(up)), torch.zeros(len(MOVED), dtype=torch.long)
    )
    assert torch.equal(made, warp(images, maps))
    shear, moved = 0.3 * level * sign, 0.45 * level * sign
    usual = {
        "shear_x": (1, shear, 0, 0, 1, 0),
        "shear_y": (1, 0, 0, shear, 1, 0),
        "translate_x": (1, 0, moved * width, 0, 1, 0),
        "translate_y": (1, 0, 0, 0, 1, moved * height),
    }
    for name, picture, ours in zip(MOVED, images, made, strict=True):
        image = as_pillow(picture)
        if name == "rotate":
            theirs = image.rotate(30 * level * sign, Image.Resampling.BILINEAR)
        else:
            theirs = image.transform(image.size, Image.Transform.AFFINE, usual[name], Image.Resampling.BILINEAR)
        apart = (ours.int() - as_tensor(theirs).int()).abs()
        at_border = as_tensor(theirs).amax(0) == 0
        # a ring of two pixels where black begins: there Pillow takes the last pixel and we half of it
        ring = torch.nn.functional.max_pool2d((at_border | (ours.amax(0) == 0)).float()[None], 5, 1, 2)[0] > 0
        ring[[0, 1, -1, -2]] = True
        ring[:, [0, 1, -1, -2]] = True
        assert (~ring).float().mean() > 0.2, name
        assert apart[:, ~ring].max() <= 1, name


@EACH_CHANNELS
@EACH_SIZE
def test_parts_as_pillow_enlarges_them(channels: int, size: tuple[int, int]) -> None:
    seed = torch.random.initial_seed()
    count, (height, width) = 20, size
    images = noise(count, channels, size)
    high = torch.empty(count).uniform_(0.3, 1) * height
    wide = torch.empty(count).uniform_(0.3, 1) * width
    top, left = torch.rand(count) * (height - high), torch.rand(count) * (width - wide)
    made = part(images, top, left, high, wide)
    for number, picture in enumerate(images):
        corner = (float(left[number]), float(top[number]))
        box = (*corner, min(width, corner[0] + float(wide[number])), min(height, corner[1] + float(high[number])))
        theirs = as_tensor(as_pillow(picture).resize((width, height), Image.Resampling.BILINEAR, box))
        apart = (made[number].int() - theirs.int()).abs()
        assert apart.max() <= 2, f"seed {seed}"  # Pillow rounds twice, once for each axis
        assert apart.float().mean() < 0.5


def test_random_parts_cover_the_share() -> None:
    """Of a ramp: how far apart its ends are is how wide the part was."""
    count, side = 3000, 64
    ramp = torch.linspace(0, 255, side).round().to(torch.uint8)
    across = ramp.expand(count, 1, side, side)
    seed = secrets.randbelow(2**31)
    torch.manual_seed(seed)
    made_x = random_part(across, 0.25)
    torch.manual_seed(seed)
    made_y = random_part(across.transpose(2, 3).contiguous(), 0.25)
    wide = (made_x[:, 0, 0, -1].float() - made_x[:, 0, 0, 0]) / 255
    high = (made_y[:, 0, -1, 0].float() - made_y[:, 0, 0, 0]) / 255
    area, ratio = wide * high, wide / high
    assert area.min() > 0.22
    assert area.max() > 0.9
    assert abs(area.mean() - 0.6) < 0.05
    assert ratio.min() > 0.7
    assert ratio.max() < 1.4
    assert abs(ratio.log().mean()) < 0.02
    assert made_x[:, 0, 0, 0].float().std() > 5, "anywhere in the picture"


def test_in_parts_it_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where pictures are large, a few are computed at a time: nobody sees it."""
    images = noise(11, 3, (9, 8))
    seed = secrets.randbelow(2**31)

    def all_of_it() -> list[Tensor]:
        torch.manual_seed(seed)
        return [random_shift(images, 2, flip=True), random_part(images, 0.3)]

    whole = all_of_it()
    monkeypatch.setattr(augment_draws, "LARGEST_PART", 3 * 9 * 8 * 4 + 5)
    assert all(torch.equal(one, other) for one, other in zip(whole, all_of_it(), strict=True))
