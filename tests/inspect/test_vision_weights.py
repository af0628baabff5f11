"""What the weights show by themselves: principal components of filters, and how alike positions are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from seeded import seed as seed
from torch import nn

from jumok.errors import BadInput
from jumok.inspect.vision_weights import (
    embedding_filters,
    first_filters,
    network_filters,
    position_kind,
    position_similarity,
    principal,
    principal_filters,
)
from jumok.models.vit import ImageLabeller
from jumok.recipe import VitSection

SIZES = {"width": 40, "heads": 2, "layers": 1, "feed_forward": 16, "image": (8, 12), "patch": (4, 2)}


def vit(**keys: Any) -> ImageLabeller:
    return ImageLabeller(VitSection(**{**SIZES, **keys}), 3).eval()


# ---------------------------------------------------------------- filters


def test_a_filter_is_what_a_channel_looks_for(seed: int) -> None:
    """A patch that is a filter gives that channel the filter's own length squared."""
    model = vit()
    filters = embedding_filters(model)
    assert filters.shape == (40, 3, 4, 2)
    image = torch.zeros(1, 3, 8, 12)
    image[0, :, 4:8, 6:8] = filters[7]  # row 1, column 3
    with torch.no_grad():
        found = model.reader.stem(image) - model.reader.stem.map.bias
    assert float(found[0, 1, 3, 7]) == pytest.approx(float(filters[7].square().sum()), rel=1e-4), f"seed {seed}"
    assert float(found[0, 0, 0].abs().max()) == pytest.approx(0.0, abs=1e-6)


def test_principal_components_are_orthonormal_and_explain_the_variance(seed: int) -> None:
    model = vit()
    rows = embedding_filters(model).flatten(1).double()
    found = principal_filters(model, 24)
    basis = torch.from_numpy(found.pictures).flatten(1).double()
    torch.testing.assert_close(basis @ basis.T, torch.eye(24, dtype=torch.float64), atol=1e-5, rtol=0)
    assert sum(found.shares) == pytest.approx(1.0, abs=1e-6)  # as many as a patch has numbers
    assert list(found.shares) == sorted(found.shares, reverse=True)
    centred = rows - rows.mean(dim=0)
    variances = (centred @ basis.T).square().sum(dim=0) / centred.square().sum()
    np.testing.assert_allclose(variances, found.shares, rtol=1e-4, err_msg=f"seed {seed}")
    for one in found.pictures:
        assert one.ravel()[np.abs(one).argmax()] > 0
    assert len(principal_filters(model).pictures) == 24
    assert len(principal_filters(model, 5).pictures) == 5


def test_the_components_of_filters_made_of_two_are_these_two() -> None:
    first, second = torch.zeros(2, 3, 2, 2)
    first[0], second[1, 0] = 0.5, 0.5**0.5
    parts = torch.tensor([[3.0, 1.0], [-3.0, 1.0], [3.0, -1.0], [-3.0, -1.0]])
    filters = parts[:, 0, None, None, None] * first + parts[:, 1, None, None, None] * second
    found = principal(filters, 28, "made up")
    np.testing.assert_allclose(found.pictures, torch.stack([first, second]), atol=1e-6)
    assert found.shares == pytest.approx((0.9, 0.1))
    with pytest.raises(BadInput, match="all filters are the same"):
        principal(torch.ones(4, 3, 2, 2), 5, "made up")
    with pytest.raises(BadInput, match="one at least"):
        principal(filters, 0, "made up")


def test_a_convolutional_stem_has_the_filters_of_its_first_layer() -> None:
    model = vit(stem="convolution", stem_layers=2, channels=1)
    assert embedding_filters(model).shape == (64, 1, 3, 3)
    found = principal_filters(model)
    assert found.pictures.shape == (9, 1, 3, 3)
    assert "convolution" in found.name


def test_the_first_filters_of_a_network() -> None:
    network = nn.Sequential(nn.Sequential(nn.Conv2d(3, 6, 5), nn.ReLU()), nn.Conv2d(6, 9, 3))
    weight = network[0][0].weight
    torch.testing.assert_close(first_filters(network), weight.detach())
    found = network_filters(network, 4)
    sizes = weight.detach().flatten(1).norm(dim=1).sort(descending=True).values
    np.testing.assert_allclose(np.sqrt((found.pictures**2).sum(axis=(1, 2, 3))), sizes[:4], rtol=1e-5)
    assert network_filters(torch.ones(40, 1, 3, 3)).pictures.shape == (28, 1, 3, 3)
    for wrong, words in (
        (nn.Linear(2, 2), "Linear has no convolution"),
        (torch.ones(3, 3), r"\(N, C, h, w\)"),
        (torch.ones(4, 6, 3, 3), "1 or 3 channels"),
        (torch.ones(0, 3, 3, 3), "not \\(0, 3"),
    ):
        with pytest.raises(BadInput, match=words):
            first_filters(wrong)


# ---------------------------------------------------------------- positions


@pytest.mark.parametrize("position", ["learned", "sinusoidal"])
def test_positions_are_compared_by_their_cosine(position: str, seed: int) -> None:
    model = vit(position=position)
    alike = position_similarity(model)
    assert position_kind(model) == position
    assert alike.shape == (2, 6, 2, 6)
    table = model.reader.positions((2, 6)).detach()
    for place in ((0, 0), (1, 4)):
        for other in ((1, 4), (0, 5)):
            expected = torch.cosine_similarity(table[place], table[other], dim=0)
            assert alike[(*place, *other)] == pytest.approx(float(expected), abs=1e-5), f"seed {seed}"
        assert alike[(*place, *place)] == pytest.approx(1.0, abs=1e-6)
    np.testing.assert_allclose(alike, alike.transpose(2, 3, 0, 1), atol=1e-6)
    assert position_similarity(model, (3, 5)).shape == (3, 5, 3, 5)


def test_without_positions_there_is_nothing_to_compare() -> None:
    with pytest.raises(BadInput, match="has no positions"):
        position_similarity(vit(position="none"))
