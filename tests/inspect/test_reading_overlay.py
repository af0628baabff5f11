"""A grid lies where the model saw it, whatever was done to the picture; between cells a map is interpolated."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest
import torch
from seeded import seed as seed

from jumok.data.images.picture import Fit, fit
from jumok.inspect.reading_overlay import WHOLE, Box, covered, middles, spread

MODEL = (32, 96)
SIZES = [(32, 96), (48, 70), (20, 300), (101, 64), (32, 128), (40, 96), (7, 9), (200, 600)]


@pytest.mark.parametrize("how", get_args(Fit))
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_the_box_is_what_the_model_sees(size: tuple[int, int], how: Any) -> None:
    """Across and down, a picture gets brighter evenly: so a pixel of the model's picture tells where it came from."""
    box = covered(size, MODEL, how)
    for axis, (first, last) in enumerate(((box.top, box.bottom), (box.left, box.right))):
        ramp = np.linspace(20, 235, size[axis])
        pixels = np.broadcast_to(ramp[:, None] if axis == 0 else ramp, size).astype(np.uint8)[..., None]
        seen = fit(np.ascontiguousarray(pixels), MODEL, how)[..., 0].take(MODEL[1 - axis] // 2, axis=1 - axis)
        places = middles(MODEL[axis], first, last)
        expected = np.interp(places, (np.arange(size[axis]) + 0.5) / size[axis], ramp)
        inside = (places > 1.5 / size[axis]) & (places < 1 - 1.5 / size[axis])
        assert inside.sum() >= 2
        step = 215 / size[axis] * max(1.0, size[axis] * (last - first) / MODEL[axis])
        np.testing.assert_allclose(seen[inside], expected[inside], atol=1.5 + 0.5 * step)


def test_what_is_shown_of_a_box() -> None:
    assert covered((30, 200), (30, 100), "crop").shown == (0.25, 0, 0.75, 1)
    assert covered((10, 100), (20, 100), "pad").shown == WHOLE
    assert covered((10, 100), (20, 100), "pad") == Box(0, -0.5, 1, 1.5)


def test_a_map_is_spread_as_torch_does_it(seed: int) -> None:
    for grid, size in (((4, 9), (37, 120)), ((1, 7), (20, 33)), ((3, 1), (9, 5)), ((6, 6), (6, 6))):
        values = np.random.default_rng().random(grid).astype(np.float32)
        expected = torch.nn.functional.interpolate(torch.from_numpy(values)[None, None], size, mode="bilinear")[0, 0]
        np.testing.assert_allclose(spread(values, WHOLE, size), expected.numpy(), atol=1e-5, err_msg=f"seed {seed}")


def test_beyond_the_box_there_is_nothing_and_a_border_is_not_shown() -> None:
    values = np.random.default_rng().random((1, 10)).astype(np.float32) + 0.1
    cut = spread(values, Box(0.25, 0, 0.75, 1), (4, 80))
    assert (cut[:, :20] == 0).all()
    assert (cut[:, 60:] == 0).all()
    assert (cut[:, 20:60] > 0).all()
    whole = spread(values, WHOLE, (4, 40))
    np.testing.assert_allclose(cut[:, 20:60], whole, atol=1e-6)
    bordered = spread(values, Box(-0.5, 0, 1.5, 1), (4, 40))  # the picture is the middle half of the grid
    np.testing.assert_allclose(bordered, spread(values, WHOLE, (4, 80))[:, 20:60], atol=1e-6)
