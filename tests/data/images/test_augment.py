"""Augment as a training step uses it: the seed decides all, no shape depends on a draw, and evaluation sees nothing."""

from __future__ import annotations

import math
import secrets
from typing import Any

import pytest
import torch
from torch import Tensor

from jumok.data.images.augment import Augment, erase
from jumok.recipe.vision import Augmentation

ALONE: list[dict[str, Any]] = [
    {"crop": 2},
    {"flip": True},
    {"resized_crop": 0.2},
    {"colour": 0.4},
    {"rand_augment": 1},
    {"erase": 0.7},
    {"crop": 2, "beyond": "mirror"},
    {"rand_augment": 1, "spread": 5.0, "beyond": "mirror"},
]
ALL: dict[str, Any] = {"crop": 2, "flip": True, "colour": 0.3, "rand_augment": 2, "erase": 0.5}
EACH = pytest.mark.parametrize("keys", [*ALONE, ALL], ids=lambda keys: "+".join(keys))


def pictures(count: int = 40, channels: int = 3, size: tuple[int, int] = (13, 10)) -> Tensor:
    return torch.randint(0, 256, (count, channels, *size), dtype=torch.uint8)


def seeded(change: Any, images: Tensor, seed: int) -> Tensor:
    torch.manual_seed(seed)
    return change(images)


@EACH
def test_the_seed_decides(keys: dict[str, Any]) -> None:
    images, seed = pictures(), secrets.randbelow(2**31)
    augment = Augment(Augmentation(**keys))
    before = images.clone()
    made = seeded(augment, images, seed)
    assert made.shape == images.shape
    assert made.dtype == torch.uint8
    assert torch.equal(made, seeded(augment, images, seed))
    assert not torch.equal(made, seeded(augment, images, seed + 1))
    assert torch.equal(images, before), "what came in is not written over"
    assert not augment.state_dict(), "nothing of it goes into a checkpoint"


@EACH
def test_each_picture_has_its_own_draws(keys: dict[str, Any]) -> None:
    same = pictures(1).expand(40, -1, -1, -1)
    made = Augment(Augmentation(**keys))(same)
    kinds = len(made.flatten(1).unique(dim=0))
    assert kinds == 2 if keys == {"flip": True} else kinds > 8


@pytest.mark.parametrize(
    "keys", [ALONE[2], {**ALL, "rand_augment": 1}, {**ALONE[-1], "crop": 2}], ids=lambda keys: "+".join(keys)
)
def test_it_can_be_traced_whole(keys: dict[str, Any]) -> None:
    """Nothing waits for a number and no shape depends on one: what torch.compile needs, and CUDA graphs too."""
    images, seed = pictures(17), secrets.randbelow(2**31)
    augment = Augment(Augmentation(**keys))
    torch._dynamo.reset()
    traced = torch.compile(augment, fullgraph=True, backend="aot_eager", dynamic=False)
    made = seeded(traced, images, seed)
    assert torch.equal(made, seeded(augment, images, seed))
    assert torch.equal(seeded(traced, images, seed + 1), seeded(augment, images, seed + 1))


@EACH
def test_no_number_is_looked_at(keys: dict[str, Any]) -> None:
    """On the meta device there are no numbers to look at, only shapes."""
    augment = Augment(Augmentation(**keys)).to("meta")
    made = augment(torch.empty(17, 3, 13, 10, dtype=torch.uint8, device="meta"))
    assert made.shape == (17, 3, 13, 10)
    assert made.device.type == "meta"


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("size", [(3, 3), (7, 31), (28, 28)], ids=str)
@pytest.mark.parametrize("count", [1, 2, 9])
def test_any_size(count: int, channels: int, size: tuple[int, int]) -> None:
    images = pictures(count, channels, size)
    for crop in ({"crop": 2}, {"crop": 0, "resized_crop": 0.3}):
        made = Augment(Augmentation(**{**ALL, "erase": 1.0, **crop}))(images)
        assert made.shape == images.shape


@EACH
def test_bfloat16_of_the_model_is_not_ours(keys: dict[str, Any]) -> None:
    images, seed = pictures(), secrets.randbelow(2**31)
    augment = Augment(Augmentation(**keys))
    plain = seeded(augment, images, seed)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(seeded(augment, images, seed), plain)


def test_nothing_in_evaluation() -> None:
    images = pictures()
    augment = Augment(Augmentation(**ALL))
    state = torch.random.get_rng_state()
    assert augment.eval()(images) is images
    assert Augment(Augmentation())(images) is images
    assert torch.equal(torch.random.get_rng_state(), state), "nor is anything drawn"


@pytest.mark.parametrize("probability", [0.25, 0.5, 1.0])
@pytest.mark.parametrize("channels", [1, 3])
def test_erased(probability: float, channels: int) -> None:
    """Of black pictures: noise in one rectangle, anywhere, of the sizes that were said."""
    count, side = 1600, 30
    made = erase(torch.zeros(count, channels, side, side, dtype=torch.uint8), probability)
    bright = (made > 0).any(1)
    erased = bright.flatten(1).any(1)
    assert abs(erased.float().mean() - probability) <= 1 / count
    rows, columns = bright.any(2).float(), bright.any(1).float()
    high, wide = rows.sum(1)[erased], columns.sum(1)[erased]
    # a pixel of noise is black once in 256 (in all channels), so a few more are within than are bright
    filled = bright.flatten(1).sum(1)[erased] / (high * wide)
    assert filled.min() > (0.5 if channels == 1 else 0.99)
    share = high * wide / side**2
    assert 0.005 < share.min() < 0.03
    assert 0.3 < share.max() < 0.36
    assert abs(share.mean() - (0.02 + 1 / 3) / 2) < 0.03
    near = 8 * 0.5 / math.sqrt(count)
    assert (rows.mean(0) - rows.mean(0).flip(0)).abs().max() < near, "as often at the top as at the bottom"
    assert (columns.mean(0) - columns.mean(0).flip(0)).abs().max() < near
    assert abs((high / wide).log().mean()) < 6 * 0.7 / math.sqrt(len(high))
    assert (high / wide).max() > 2
    noise = made.float().sum() / bright.sum() / channels
    assert abs(noise - 127.5) < 2
