"""Experiment 18: patches of an image in another order."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest
import torch

from jumok.lab.report import drawn
from jumok.lab.shuffled_patches import (
    BAG,
    EXPERIMENT,
    LEARNED,
    MOVED,
    NONE,
    PATCH,
    PATCHES,
    ROWS,
    SIZE,
    WAYS,
    Pictures,
    build,
    orders,
    reordered,
    scores,
)
from jumok.lab.training import seeded

TINY = 0.004


@pytest.fixture(scope="module")
def numbers() -> Any:
    return json.loads(json.dumps(EXPERIMENT.measure(1, TINY), allow_nan=False))


def test_the_whole_way(numbers: Any) -> None:
    assert json.loads(json.dumps(EXPERIMENT.measure(1, TINY))) == numbers  # the seed decides
    assert EXPERIMENT.measure(2, TINY)["scores change by"] != numbers["scores change by"]
    assert set(numbers["right"]) == set(WAYS)
    assert all(len(values) == len(MOVED) for values in numbers["right"].values())
    assert len(EXPERIMENT.judge([numbers, numbers])) == 6
    assert all(picture.startswith(b"\x89PNG") for picture in drawn(EXPERIMENT, [numbers, numbers]))


def test_every_picture_gets_an_order_of_its_own(seed: int) -> None:
    random = torch.Generator().manual_seed(seed)
    for moved in MOVED:
        order = orders(300, moved, random)
        assert torch.equal(order.sort(dim=1).values, torch.arange(PATCHES).expand(300, -1))  # no patch is lost
        away = (order != torch.arange(PATCHES)).sum(dim=1)
        if moved < PATCHES:
            assert (away == moved).all()
        else:  # in an order of any kind one patch of a picture stays in the mean
            assert away.float().mean().item() == pytest.approx(PATCHES - 1, abs=0.35), f"seed {seed}"
        assert len(order.unique(dim=0)) > 100 or not moved
    assert not torch.equal(orders(300, PATCHES, random), orders(300, PATCHES, random))


def test_patches_move_and_their_pixels_stay(seed: int) -> None:
    images = torch.randint(0, 256, (5, 3, SIZE, SIZE), dtype=torch.uint8)
    order = orders(5, PATCHES, torch.Generator().manual_seed(seed))
    found = reordered(images, order)
    for picture in range(5):
        for place in range(PATCHES):
            (row, column), (old_row, old_column) = (divmod(one, ROWS) for one in (place, int(order[picture, place])))
            new = found[picture, :, row * PATCH :, column * PATCH :][:, :PATCH, :PATCH]
            old = images[picture, :, old_row * PATCH :, old_column * PATCH :][:, :PATCH, :PATCH]
            assert torch.equal(new, old), f"seed {seed}"
    assert torch.equal(reordered(images, torch.arange(PATCHES).repeat(5, 1)), images)


def test_only_positions_see_the_order(seed: int) -> None:
    pictures = Pictures.of("test", 40, seed)
    shuffled = reordered(pictures.images, orders(40, PATCHES, torch.Generator().manual_seed(seed)))
    for way, sees in ((LEARNED, True), (NONE, False)):
        with seeded(seed):
            model = build(way).eval()
        whole = scores(model, pictures.images)
        change = float((scores(model, shuffled) - whole).abs().max() / whole.abs().max())
        assert change > 1e-2 if sees else change < 1e-5, f"seed {seed}"


def test_seeds_and_splits_have_pictures_of_their_own() -> None:
    one, other, held = (Pictures.of(split, 20, seed) for split, seed in (("train", 1), ("train", 2), ("test", 1)))
    assert one.images.shape == (20, 3, SIZE, SIZE)
    assert one.labels.bincount(minlength=10).tolist() == [2] * 10
    for different in (other, held):
        assert not (one.images == different.images).flatten(1).all(dim=1).any()


def with_right(numbers: Any, learned: tuple[float, float], none: tuple[float, float], bag: float) -> Any:
    changed = deepcopy(numbers)
    for way, (whole, shuffled) in {LEARNED: learned, NONE: none, BAG: (bag, bag)}.items():
        changed["right"][way] = [whole, *[shuffled] * (len(MOVED) - 1)]
    changed["scores change by"] = {LEARNED: 5.0, NONE: 1e-6, BAG: 1.0}
    changed["largest score"] = dict.fromkeys(WAYS, 10.0)
    return changed


def test_verdicts_follow_the_numbers(numbers: Any) -> None:
    def holds(*seeds: Any) -> list[bool]:
        return [verdict.holds for verdict in EXPERIMENT.judge(seeds)]

    good = with_right(numbers, (0.8, 0.2), (0.5, 0.5), 0.4)
    assert holds(good) == holds(good, good) == [True] * 6
    bad = with_right(numbers, (0.5, 0.5), (0.5, 0.4), 0.6)
    bad["scores change by"][NONE] = 1e-2
    assert holds(bad) == [False] * 6
    assert holds(good, bad)[:2] == [False, False]  # an exact property must be one with every seed
    blind = deepcopy(good)
    blind["scores change by"][LEARNED] = 0.0  # nothing is shown by scores that never change
    assert not holds(blind)[0]
    assert holds(with_right(numbers, (0.8, 0.2), (0.5, 0.5), 0.6)) == [True] * 5 + [False]
    # in one seed a large fall, in the other none: no larger than its spread
    assert not holds(good, with_right(numbers, (0.8, 0.8), (0.5, 0.5), 0.4))[2]
