"""RandAugment: every operation comes as often as any other, and a picture gets one of them, not a mixture."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from jumok.data.images import augment_colour as colour
from jumok.data.images.rand_augment import MOVED, OPERATIONS, RandAugment


def each_way(operation: RandAugment, picture: Tensor, step: int = 0) -> dict[str, list[Tensor]]:
    """What each operation makes of a picture, one way and the other."""
    one, level, yes = picture[None], float(operation.levels[step]), torch.ones(1, dtype=torch.bool)
    made: dict[str, list[Tensor]] = {
        "identity": [one],
        "autocontrast": [colour.autocontrast(one, yes)],
        "equalize": [colour.equalize(one, yes)],
        "solarize": [colour.solarize(one, operation.thresholds[step : step + 1])],
        "posterize": [colour.posterize(one, operation.bits[step : step + 1])],
    }
    change = 0.9 * operation.levels[step : step + 1]
    factors = [1 + change, 1 - change]
    for name in ("brightness", "contrast", "saturation", "sharpness"):
        made[name] = [getattr(colour, name)(one, factor) for factor in factors]
    for number, name in enumerate(MOVED):
        ways = [torch.tensor([0]), torch.tensor([1])]
        made[name] = [operation._move(one, torch.tensor([number]), way, torch.tensor([step])) for way in ways]
    assert abs(int(operation.thresholds[step]) - (256 - 256 * level)) <= 1
    assert abs(int(operation.bits[step]) - (8 - 4 * level)) <= 0.51
    assert tuple(made) == OPERATIONS
    return made


@pytest.mark.parametrize("count", [1, 5, 50, 256])
def test_one_of_fourteen(count: int) -> None:
    """A picture that every operation makes another of: which one it was can be seen, and all are as likely."""
    picture = torch.randint(20, 180, (3, 18, 18), dtype=torch.uint8)
    operation = RandAugment(1, 7.0)
    known = each_way(operation, picture)
    flat = [(name, way, made.flatten()) for name, ways in known.items() for way, made in enumerate(ways)]
    table = torch.stack([made for _, _, made in flat])
    assert len(table.unique(dim=0)) == len(flat) == 23
    found = torch.zeros(len(flat))
    tries = 6000 // count if count > 10 else 300
    for _ in range(tries):
        made = operation(picture.expand(count, -1, -1, -1)).flatten(1)
        same = (made[:, None] == table).all(2)
        assert (same.sum(1) == 1).all(), "one operation, whole, and no other"
        found += same.sum(0)
    drawn = tries * count
    for name in OPERATIONS:
        each = torch.tensor([found[number] for number, (other, _, _) in enumerate(flat) if other == name]) / drawn
        near = 6 * math.sqrt(1 / 14 / drawn)
        assert (each - 1 / 14 / len(each)).abs().max() < near, (name, each)


def test_each_picture_at_a_magnitude_of_its_own() -> None:
    """Every magnitude comes as often, and each picture is what the operation makes of it at one of them."""
    picture = torch.randint(20, 180, (3, 18, 18), dtype=torch.uint8)
    operation = RandAugment(1, 8.0, spread=4.0)
    assert operation.levels.tolist() == pytest.approx([0.8 - 0.4 * step / 30 for step in range(31)])
    flat = [
        (name, step, made.flatten())
        for step in range(31)
        for name, ways in each_way(operation, picture, step).items()
        for made in ways
    ]
    table = torch.stack([made for _, _, made in flat])
    brightness = torch.tensor([name == "brightness" for name, _, _ in flat])
    steps = torch.tensor([step for _, step, _ in flat])
    found = torch.zeros(31)
    for _ in range(60):
        made = operation(picture.expand(200, -1, -1, -1)).flatten(1)
        same = (made[:, None] == table).all(dim=2)
        assert same.any(dim=1).all()
        for which in same[:, brightness].any(dim=0).nonzero().flatten():
            found[steps[brightness][which]] += same[:, brightness][:, which].sum()
    assert (found > 0).sum() > 25  # each came 28 times in the mean


def test_mirrored_beyond_the_border() -> None:
    picture = torch.randint(100, 200, (40, 3, 20, 20), dtype=torch.uint8)
    moves = torch.arange(40) % len(MOVED), torch.arange(40) % 2, torch.zeros(40, dtype=torch.long)
    assert (RandAugment(1, 9.0)._move(picture, *moves).flatten(1).amin(1) < 60).all()  # black has come in
    assert RandAugment(1, 9.0, beyond="mirror")._move(picture, *moves).min() >= 99  # nothing but the picture


def test_every_place_gets_everything() -> None:
    """The order in the batch says nothing about the operation, and pictures keep their places."""
    count = 24
    picture = torch.randint(20, 180, (1, 8, 8), dtype=torch.uint8)
    operation = RandAugment(1, 9.0)
    changed = torch.stack([operation(picture.expand(count, -1, -1, -1)) for _ in range(300)])
    often = (changed != picture).flatten(2).any(2).float().mean(0)
    assert often.std() < 0.07
    own = torch.arange(count, dtype=torch.uint8)[:, None, None, None].expand(count, 3, 4, 4) * 10
    assert torch.equal(RandAugment(3, 0.0)(own), own), "at magnitude 0 flat pictures stay, each in its place"


def test_two_operations_on_a_picture() -> None:
    """Both are drawn for themselves: a picture stays as it is once in 14 · 14. (One of under 256 pixels more often.)"""
    picture = torch.randint(20, 180, (3, 18, 18), dtype=torch.uint8)
    batch = picture.expand(280, -1, -1, -1)
    seen = torch.cat([RandAugment(2, 7.0)(batch) for _ in range(10)])
    kinds = len(seen.flatten(1).unique(dim=0))
    assert kinds > 250, "of about 23 · 23"
    same = (seen == picture).flatten(1).all(1).float().mean()
    assert same < 4 / 196


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("size", [(1, 1), (2, 7), (3, 3), (31, 17)], ids=str)
@pytest.mark.parametrize("level", [0, 255])
def test_extremes(channels: int, size: tuple[int, int], level: int) -> None:
    images = torch.full((40, channels, *size), level, dtype=torch.uint8)
    made = RandAugment(2, 10.0)(images)
    assert made.shape == images.shape
    assert made.dtype == torch.uint8


def test_it_leaves_no_trace() -> None:
    images = torch.randint(0, 256, (30, 3, 9, 9), dtype=torch.uint8)
    before = images.clone()
    operation = RandAugment(2, 9.0)
    operation(images)
    assert torch.equal(images, before), "what came in is not written over"
    assert not operation.state_dict(), "nothing of it goes into a checkpoint"
