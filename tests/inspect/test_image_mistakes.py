"""Which mistakes are kept: as if all had been held until the end."""

from __future__ import annotations

import random
from collections import defaultdict

import numpy as np
import pytest
from image_files import guessed

from jumok.inspect.image_mistakes import LARGEST, Mistake, Mistakes, kept_pixels, resized


def of_each(mistakes: list[Mistake], most: int) -> set[int]:
    """All cells in turns, written plainly."""
    cells = defaultdict(list)
    for one in sorted(mistakes, key=lambda one: -one.probability):
        cells[one.gold, one.said].append(one)
    chosen: list[Mistake] = []
    turn = 0
    while len(chosen) < min(most, len(mistakes)):
        row = sorted((cell[turn] for cell in cells.values() if len(cell) > turn), key=lambda one: -one.probability)
        chosen += row[: most - len(chosen)]
        turn += 1
    return {one.number for one in chosen}


@pytest.mark.parametrize(("sheet", "page"), [(5, 11), (3, 40), (12, 0), (0, 7)])
def test_nothing_is_lost_by_letting_go_on_the_way(sheet: int, page: int) -> None:
    _, mistakes = guessed(["a", "b", "c", "d"], 600)
    random.shuffle(mistakes)
    kept, largest = Mistakes(sheet, page), 0
    for one in mistakes:
        kept.add(one)
        largest = max(largest, len(kept._held))
    assert kept.count == len(mistakes) > 100
    assert largest <= 2 * (sheet + page)
    worst = sorted(mistakes, key=lambda one: -one.probability)
    assert kept.worst() == worst[:sheet]
    shown = kept.of_each()
    assert {one.number for one in shown} == of_each(mistakes, page)
    assert [one.probability for one in shown] == sorted((one.probability for one in shown), reverse=True)


def test_who_wants_to_see_nothing_holds_nothing() -> None:
    _, mistakes = guessed(["a", "b"], 100)
    kept = Mistakes(0, 0)
    for one in mistakes:
        kept.add(one)
    assert (kept.count, kept.worst(), kept.of_each()) == (len(mistakes), [], [])


def test_sizes() -> None:
    chance = np.random.default_rng()
    small = chance.integers(0, 256, (8, 16, 3)).astype(np.uint8)
    assert kept_pixels(small) is small
    doubled = resized(small, 64)
    assert doubled.shape == (32, 64, 3)
    np.testing.assert_array_equal(doubled[::4, ::4], small)  # pixels are squares
    grey = chance.integers(0, 256, (300, 200, 1)).astype(np.uint8)
    assert kept_pixels(grey).shape == (LARGEST, 128, 1)
    assert resized(np.zeros((400, 2, 3), np.uint8), 100).shape == (100, 1, 3)
