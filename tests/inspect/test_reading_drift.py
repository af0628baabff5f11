"""Drift of one word: maps that point at one column have drifts that can be counted."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from looking_words import frames, pointing
from seeded import seed as seed

from jumok.inspect.reading_drift import WordDrift, drift_of
from jumok.inspect.reading_overlay import Box


def test_a_map_on_its_character_does_not_drift() -> None:
    drift = drift_of(pointing([1, 4, 7], 9))  # the middles of the thirds
    np.testing.assert_allclose(drift.places, [1 / 6, 3 / 6, 5 / 6])
    np.testing.assert_allclose(drift.shares, 0, atol=1e-7)
    assert drift.mean == pytest.approx(0, abs=1e-6)
    assert not drift.known
    assert drift.to_json()["places"] == "evenly spaced"


def test_drift_in_shares_and_in_characters() -> None:
    drift = drift_of(pointing([0, 1, 2, 3], 8))  # the columns are half as wide as the characters
    np.testing.assert_allclose(drift.shares, [-0.0625, -0.1875, -0.3125, -0.4375], atol=1e-7)
    np.testing.assert_allclose(drift.widths, [-0.25, -0.75, -1.25, -1.75], atol=1e-6)
    assert drift.width == pytest.approx(0.25)
    assert drift.mean == pytest.approx(1.0)
    assert drift.mean_share == pytest.approx(0.25)
    assert drift.slope == pytest.approx(0.5)


def test_the_slope_is_that_of_the_line(seed: int) -> None:
    chance = np.random.default_rng()
    for count in (3, 4, 9, 25):
        drift = WordDrift(chance.random(count), np.sort(chance.random(count)))
        expected = np.polyfit(np.arange(count), abs(drift.widths), 1)[0]
        assert drift.slope == pytest.approx(expected, rel=1e-6, abs=1e-9), f"seed {seed}"
    assert math.isnan(WordDrift(np.array([0.1, 0.9]), np.array([0.2, 0.7])).slope)


def test_known_places_count_as_they_are() -> None:
    places = np.array([0.1, 0.2, 0.6])
    drift = drift_of(pointing([0, 4, 9], 10, places=places))
    assert drift.known
    np.testing.assert_allclose(drift.shares, [0.05 - 0.1, 0.45 - 0.2, 0.95 - 0.6], atol=1e-7)
    assert drift.width == pytest.approx(0.25)


def test_what_the_model_does_not_see_has_no_characters() -> None:
    drift = drift_of(pointing([0, 3], 4, box=Box(0.25, 0, 0.75, 1)))  # cropped: the middle half
    np.testing.assert_allclose(drift.places, [0.375, 0.625])
    np.testing.assert_allclose(drift.centres, [0.3125, 0.6875])
    bordered = drift_of(pointing([1, 2], 4, box=Box(-0.5, 0, 1.5, 1)))  # borders as wide as the picture, in all
    np.testing.assert_allclose(bordered.places, [0.25, 0.75])
    np.testing.assert_allclose(bordered.shares, 0, atol=1e-7)


def test_one_character_and_none() -> None:
    one = drift_of(pointing([0], 4))
    assert one.mean == pytest.approx(0.375)  # of the picture, which is all its own
    assert math.isnan(one.slope)
    nothing = frames("1", characters=(), confidences=(), maps=np.zeros((0, 2, 8), np.float32))
    none = drift_of(nothing)
    assert math.isnan(none.mean)
    told = json.loads(json.dumps(none.to_json(), allow_nan=False))
    assert (told["mean"], told["slope"], told["character_width"]) == (None, None, None)


def test_letters_below_each_other_do_not_divide_by_nothing() -> None:
    drift = WordDrift(np.array([0.4, 0.6]), np.array([0.5, 0.5]))
    assert np.isfinite(drift.widths).all()
