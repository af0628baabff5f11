"""The small CNN whose filters stand beside a Vision Transformer's learns what it is given, and nothing by chance."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
import torch
from seeded import seed as seed

from jumok.errors import BadInput
from jumok.inspect.vision_network import Labelled, SmallNetwork, filter_size, learned_filters
from jumok.models.vit import ImageLabeller
from jumok.recipe import VitSection


def vit(patch: tuple[int, int], stem: Literal["patch", "convolution"] = "patch") -> ImageLabeller:
    image = (2 * patch[0] + 8, 2 * patch[1] + 8) if stem == "convolution" else (4 * patch[0], 4 * patch[1])
    section = VitSection(image=image, patch=patch, stem=stem, width=8, heads=2, layers=1, feed_forward=8)
    return ImageLabeller(section, 2)


MODEL = vit((4, 4))


def stripes(count: int, seed: int) -> Labelled:
    """Upright and lying ones, each moved by some pixels."""
    draws = torch.Generator().manual_seed(seed)
    labels = torch.randint(2, (count,), generator=draws)
    phase = torch.randint(4, (count, 1, 1), generator=draws)
    row, column = torch.arange(16)[None, :, None], torch.arange(16)[None, None, :]
    place = torch.where(labels[:, None, None] == 1, row, column) + phase
    images = (place % 4 < 2).to(torch.uint8) * 200 + torch.randint(50, (count, 16, 16), generator=draws)
    return Labelled(images.to(torch.uint8)[:, None].expand(-1, 3, -1, -1).contiguous(), labels)


def test_it_learns_what_tells_classes_apart(seed: int) -> None:
    given = stripes(400, seed)
    found = learned_filters(MODEL, given, updates=150)
    assert found.pictures.shape == (28, 3, 5, 5)
    assert "after 150 updates" in found.name
    right = int(found.name.split("(")[1].split(" %")[0])
    assert right >= 90, found.name  # a coin is right half of the time
    edges = found.pictures.mean(axis=1)
    across, down = (np.abs(edges.sum(axis=axis)).sum(axis=-1) for axis in (1, 2))
    assert (across > 1.5 * down).any()  # some look for the one, some for the other
    assert (down > 1.5 * across).any()


def test_nothing_else_is_changed(seed: int) -> None:
    given = stripes(40, seed)
    before = torch.random.get_rng_state()
    first, again = (learned_filters(MODEL, given, updates=3) for _ in range(2))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert np.array_equal(first.pictures, again.pictures)
    assert all(parameter.grad is None for parameter in MODEL.parameters())


@pytest.mark.parametrize(("patch", "size"), [((1, 1), 3), ((4, 4), 5), ((5, 5), 5), ((16, 16), 11), ((8, 2), 3)])
def test_filters_are_about_as_large_as_patches(patch: tuple[int, int], size: int) -> None:
    assert filter_size(vit(patch)) == size
    assert filter_size(vit(patch, "convolution")) == 3
    assert SmallNetwork(1, size, 3)(torch.zeros(2, 1, 32, 20)).shape == (2, 3)


@pytest.mark.parametrize(("labels", "said"), [([0, 0, 0], "only one"), ([], "none")])
def test_one_class_teaches_nothing(labels: list[int], said: str) -> None:
    given = Labelled(torch.zeros(len(labels), 3, 16, 16, dtype=torch.uint8), torch.tensor(labels, dtype=torch.long))
    with pytest.raises(BadInput, match=said):
        learned_filters(MODEL, given)
