"""Mixup and CutMix: shares of the right distribution, pictures and labels mixed in the same shares, pixels counted."""

from __future__ import annotations

import math
import secrets
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from jumok.data.images.mixing import Mix, Mixed, beta, cutmix
from jumok.recipe.vision import Augmentation

CPU = torch.device("cpu")
KINDS: list[dict[str, Any]] = [{"mixup": 0.4}, {"cutmix": 1.0}, {"mixup": 0.8, "cutmix": 1.0, "mix": 0.7}]
EACH = pytest.mark.parametrize("keys", KINDS, ids=lambda keys: "+".join(keys))


def mixed(keys: dict[str, Any], images: Tensor, seed: int, call: Any = None) -> Mixed:
    torch.manual_seed(seed)
    mix = Mix(Augmentation(**keys)) if call is None else call
    return mix(images, torch.arange(len(images)))


def pictures(count: int = 23, channels: int = 3, size: tuple[int, int] = (11, 14)) -> Tensor:
    return torch.randint(0, 256, (count, channels, *size), dtype=torch.uint8)


@pytest.mark.parametrize("alpha", [0.05, 0.2, 1.0, 3.0])
def test_beta(alpha: float) -> None:
    count = 20_000
    drawn = beta(alpha, count, CPU).double().numpy()
    other = np.random.default_rng().beta(alpha, alpha, count)
    assert drawn.min() >= 0
    assert drawn.max() <= 1
    # the largest distance of two cumulative distributions (Kolmogorov, Smirnov), away from the ends where float32 ends
    at = np.linspace(0.001, 0.999, 200)
    apart = [abs((drawn < place).mean() - (other < place).mean()) for place in at]
    assert max(apart) < 2.5 * math.sqrt(2 / count)


def test_beta_of_a_tiny_alpha() -> None:
    """Two gamma variables would both be 0: half of the pictures are themselves, half the others."""
    drawn = beta(1e-6, 4000, CPU)
    assert not drawn.isnan().any()
    assert ((drawn == 0) | (drawn == 1)).float().mean() > 0.99
    assert abs(drawn.mean() - 0.5) < 6 * 0.5 / math.sqrt(4000)


@pytest.mark.parametrize("channels", [1, 3])
def test_mixup(channels: int) -> None:
    images = pictures(channels=channels)
    made = mixed({"mixup": 1.0}, images, secrets.randbelow(2**31))
    assert made.images.dtype == torch.float32
    assert made.others.tolist() == [22, *range(22)]
    share = made.share.double()[:, None, None, None]
    expected = share * images + (1 - share) * images[made.others]
    assert (made.images - expected).abs().max() < 1e-4
    assert made.share.unique().numel() == 23, "each picture has its own share"


@pytest.mark.parametrize("size", [(1, 1), (8, 8), (9, 31)], ids=str)
def test_cutmix_counts_its_pixels(size: tuple[int, int]) -> None:
    count, pixels = 300, size[0] * size[1]
    images = torch.stack([torch.full((3, *size), number % 251, dtype=torch.uint8) for number in range(count)])
    made = mixed({"cutmix": 1.0}, images, secrets.randbelow(2**31))
    own = made.images == images
    other = made.images == images[made.others]
    assert (own ^ other).all(), "every pixel is from one of the two"
    left = own[:, 0].flatten(1).sum(1)
    assert torch.equal(left, (made.share * pixels).round().long())
    assert (made.share * pixels - left).abs().max() < 1e-3
    high, wide = other[:, 0].any(2).sum(1), other[:, 0].any(1).sum(1)
    assert torch.equal(high * wide, pixels - left), "what is pasted in is a rectangle"
    assert (own == own[:, :1]).all(), "the same in all channels"


def test_cutmix_boxes_are_as_large_as_they_should() -> None:
    """The box has √(1 − λ) of the sides before its border is cut off, and lies anywhere."""
    count, side = 4000, 20
    images = torch.zeros(count, 1, side, side, dtype=torch.uint8)
    images[::2] = 255
    made, share = cutmix(images, torch.full((count,), 0.75))
    assert share.min() == 0.75  # all of a box of half the side
    assert share.max() > 0.9  # most of it beyond a corner
    often = (made != images)[:, 0].float().mean(0)
    assert often[10, 10] > often[0, 10] > often[0, 0] > 0.05
    assert abs(often[10, 10] - 0.25) < 6 * 0.5 / math.sqrt(count)
    whole, share = cutmix(images, torch.ones(count))
    assert torch.equal(whole, images)
    assert (share == 1).all()


@pytest.mark.parametrize("mix", [0.0, 0.3, 1.0])
def test_some_are_mixed(mix: float) -> None:
    images = pictures(4000, 1, (16, 16))
    made = mixed({"mixup": 1.0, "mix": mix}, images, secrets.randbelow(2**31))
    near = 6 * math.sqrt(mix * (1 - mix) / 4000)
    assert abs((made.share < 1).float().mean() - mix) <= near + 1e-9
    untouched = made.share == 1
    assert torch.equal(made.images[untouched], images[untouched].float()), "to the bit"


def test_each_half_the_time() -> None:
    images = pictures(4000, 1, (16, 16))
    made = mixed({"mixup": 1.0, "cutmix": 1.0}, images, secrets.randbelow(2**31))
    own, other = images.float(), images[made.others].float()
    pasted = ((made.images == own) | (made.images == other)).flatten(1).all(1)
    assert abs(pasted.float().mean() - 0.5) < 6 * 0.5 / math.sqrt(4000)
    share = made.share[:, None, None, None]
    blended = (made.images - torch.lerp(other, own, share)).abs().flatten(1).amax(1) < 1e-3
    assert (pasted | blended).all(), "never both on one picture"


@EACH
def test_the_seed_decides(keys: dict[str, Any]) -> None:
    images, seed = pictures(), secrets.randbelow(2**31)
    one, again, other = (mixed(keys, images, number) for number in (seed, seed, seed + 1))
    assert torch.equal(one.images, again.images)
    assert torch.equal(one.share, again.share)
    assert not torch.equal(one.images, other.images)


@EACH
def test_it_can_be_traced_whole(keys: dict[str, Any]) -> None:
    images, seed = pictures(), secrets.randbelow(2**31)
    plain = mixed(keys, images, seed)
    torch._dynamo.reset()
    traced = torch.compile(Mix(Augmentation(**keys)), fullgraph=True, backend="aot_eager", dynamic=False)
    compiled = mixed(keys, images, seed, traced)
    assert all(torch.equal(one, two) for one, two in zip(plain, compiled, strict=True))
    on_meta = Mix(Augmentation(**keys))(images.to("meta"), torch.arange(len(images), device="meta"))
    assert [tensor.shape for tensor in on_meta] == [tensor.shape for tensor in plain]


def test_nothing_in_evaluation() -> None:
    images, labels = pictures(), torch.arange(23)
    state = torch.random.get_rng_state()
    for mix in (Mix(Augmentation(**KINDS[2])).eval(), Mix(Augmentation())):
        made = mix(images, labels)
        assert torch.equal(made.images, images.float())
        assert made.others is labels
        assert (made.share == 1).all()
    assert torch.equal(torch.random.get_rng_state(), state), "nor is anything drawn"


def test_a_picture_alone_is_mixed_with_itself() -> None:
    images = pictures(1)
    for keys in KINDS:
        made = mixed(keys, images, secrets.randbelow(2**31))
        assert (made.images - images).abs().max() < 1e-4
