"""How far heads look: heads made by hand, analytic means, and the receptive fields of known networks."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from seeded import seed as seed
from torch import Tensor, nn

from jumok.errors import BadInput
from jumok.inspect import vision
from jumok.inspect.record import record
from jumok.inspect.vision_distance import (
    attention_distances,
    even_distance,
    patch_distances,
    receptive_field,
    residual_layers,
)
from jumok.models.vit import ImageLabeller
from jumok.recipe import VitSection

SIZES = {"width": 16, "heads": 2, "layers": 2, "feed_forward": 16, "image": (8, 12), "patch": (4, 2)}
KINDS: list[dict[str, Any]] = [
    {},
    {"pooling": "mean"},
    {"registers": 3},
    {"stem": "convolution", "stem_layers": 2, "pooling": "sequence", "image": (13, 9)},
]


def vit(**keys: Any) -> ImageLabeller:
    model = ImageLabeller(VitSection(**{**SIZES, **keys}), 3)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return model.eval()


def some_images(model: ImageLabeller, count: int = 3) -> Tensor:
    return torch.randint(0, 256, (count, 3, *model.section.image), dtype=torch.uint8)


def middles(image: tuple[int, int], grid: tuple[int, int]) -> list[tuple[float, float]]:
    down, across = image[0] / grid[0], image[1] / grid[1]
    return [((row + 0.5) * down, (column + 0.5) * across) for row in range(grid[0]) for column in range(grid[1])]


def mean_by_loops(places: list[tuple[float, float]]) -> float:
    return sum(math.dist(one, other) for one in places for other in places) / len(places) ** 2


@pytest.mark.parametrize("keys", KINDS, ids=str)
def test_looking_everywhere_alike_is_the_analytic_mean(keys: Any, seed: int) -> None:
    model = vit(**keys)
    for block in model.reader.encoder.blocks:
        torch.nn.init.zeros_(block.attention.query.weight)
        torch.nn.init.zeros_(block.attention.query.bias)
    found = attention_distances(model, some_images(model))
    grid, added = model.section.grid, model.reader.added
    expected = mean_by_loops(middles(model.section.image, grid))
    assert found.uniform == pytest.approx(expected, rel=1e-6)
    for one in found.heads:
        assert one.pixels == pytest.approx(expected, rel=1e-4), f"seed {seed}"
        assert one.elsewhere == pytest.approx(added / (added + grid[0] * grid[1]), rel=1e-4)


def test_looking_at_oneself_is_no_distance() -> None:
    """One channel for each patch: queries and keys agree only where patch and patch are the same."""
    model = vit(layers=1, heads=1, pooling="mean", position="learned", norm="post", final_norm=False)
    own = model.reader.encoder.blocks[0].attention
    with torch.no_grad():
        for one in (own.query, own.key):
            one.weight.copy_(200 * torch.eye(16))
            one.bias.zero_()
        model.reader.stem.map.weight.zero_()
        model.reader.stem.map.bias.zero_()
        model.reader.positions.weight.copy_(torch.eye(16)[:12].reshape(2, 6, 16))
    (head,) = attention_distances(model, some_images(model)).heads
    assert head.pixels == pytest.approx(0.0, abs=1e-6)
    assert head.elsewhere == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("keys", KINDS, ids=str)
@torch.no_grad()
def test_the_numbers_are_those_of_plain_loops(keys: Any, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model = vit(**keys)
    images = some_images(model, 2)
    with record(model) as seen:
        model(images)
    places, added = middles(model.section.image, model.section.grid), model.reader.added
    found = attention_distances(model, images)
    assert [(one.layer, one.head) for one in found.heads] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    for one in found.heads:
        weights = seen.weights(f"encoder.{one.layer}.self")[:, one.head, added:, added:]
        total = 0.0
        for image in range(2):
            for t, here in enumerate(places):
                row = [float(weight) for weight in weights[image, t]]
                far = sum(weight * math.dist(here, there) for weight, there in zip(row, places, strict=True))
                total += far / sum(row)
        assert one.pixels == pytest.approx(total / (2 * len(places)), rel=1e-4), f"seed {seed}"
        assert one.elsewhere == pytest.approx(float(1 - weights.sum(dim=-1).mean()), abs=1e-5)
    monkeypatch.setattr(vision, "CELLS", 1)
    batches = attention_distances(model, iter([images[:1], images[1:]]))
    assert batches.images == 2
    assert [one.pixels for one in batches.heads] == pytest.approx([one.pixels for one in found.heads], rel=1e-4)


def test_what_is_told(seed: int) -> None:
    model = vit()
    found = attention_distances(model, some_images(model, 1))
    told = json.loads(json.dumps(found.to_json()))
    assert told["diagonal"] == pytest.approx(math.hypot(8, 12))
    assert told["first"] == told["layers"][0]
    assert told["last"] == told["layers"][-1]
    assert told["last"]["layer"] == 1
    assert told["first"]["lowest"] == min(found.of_layer(0))
    assert told["first"]["highest_share"] == pytest.approx(max(found.of_layer(0)) / math.hypot(8, 12))
    assert len(told["cnn"]["receptive_field"]) == len(told["cnn"]["distance"]) == 2
    assert found.max_difference < 1e-4
    lines = found.summary().splitlines()
    assert "4 heads" in lines[0]
    assert "1 image of 8×12 pixels." in lines[0]
    difference = "Largest difference between what the recorded weights give and what the model computes"
    assert lines[-1] == f"{difference}: {found.max_difference:.1e}."
    assert [line.split()[0] for line in lines[3:5]] == ["0", "1"]


@given(
    st.tuples(st.integers(1, 7), st.integers(1, 7)), st.tuples(st.floats(0.5, 4), st.floats(0.5, 4)), st.integers(0, 8)
)
@settings(max_examples=30, deadline=None)
def test_the_even_distance_is_that_of_loops(grid: tuple[int, int], pitch: tuple[float, float], reach: int) -> None:
    distance = patch_distances(grid, pitch)
    places = [(row, column) for row in range(grid[0]) for column in range(grid[1])]
    total = 0.0
    for t, (row, column) in enumerate(places):
        near = [s for s, (r, c) in enumerate(places) if abs(r - row) <= reach and abs(c - column) <= reach]
        total += sum(float(distance[t, s]) for s in near) / len(near)
    assert even_distance(grid, pitch, reach) == pytest.approx(total / len(places), rel=1e-6, abs=1e-9)
    assert even_distance(grid, pitch) == pytest.approx(float(distance.mean()), rel=1e-6, abs=1e-9)


# ---------------------------------------------------------------- beside a convolutional network


def seen_pixels(layers: list[tuple[int, int]]) -> int:
    """How many pixels of a row have a gradient from one output: convolutions of ones, in float64."""
    network = nn.Sequential(
        *(
            nn.Conv1d(1, 1, kernel, stride, padding=kernel // 2, bias=False, dtype=torch.float64)
            for kernel, stride in layers
        )
    )
    for parameter in network.parameters():
        nn.init.ones_(parameter)
    row = torch.zeros(1, 1, 1001, dtype=torch.float64, requires_grad=True)
    output = network(row)[0, 0]
    output[len(output) // 2].backward()
    assert row.grad is not None
    return int((row.grad != 0).sum())


@given(st.lists(st.tuples(st.sampled_from([1, 3, 5, 7]), st.integers(1, 2)), min_size=1, max_size=6))
@settings(max_examples=25, deadline=None)
def test_the_receptive_field_is_what_a_gradient_reaches(layers: list[tuple[int, int]]) -> None:
    assume(all(stride <= kernel for kernel, stride in layers))  # others leave pixels out, and the field has holes
    assert seen_pixels(layers) == receptive_field(layers)[-1]


def test_known_networks() -> None:
    assert receptive_field([(3, 1)] * 3) == [3, 5, 7]
    resnet_18 = [(7, 2), (3, 2), *[(3, 1)] * 4, *([(3, 2)] + [(3, 1)] * 3) * 3]
    assert receptive_field(resnet_18)[-1] == 435  # as is known of it
    assert residual_layers(3) == [(3, 1), (3, 1), (3, 1), (3, 2), (3, 1), (3, 2), (3, 1)]
    assert receptive_field(residual_layers(9))[-1] == 3 + 2 * (2 * 3) + (2 + 4 * 5) + (4 + 8 * 5)  # ResNet-20
    with pytest.raises(BadInput, match="kernel 0"):
        receptive_field([(0, 1)])


def test_layers_of_ones_own_stand_beside_the_models() -> None:
    model = vit()
    found = attention_distances(model, some_images(model), layers=[(3, 1), (3, 2), (5, 1), (3, 1)])
    assert found.fields == (5, 17)
    assert found.field_distances[0] == pytest.approx(even_distance((8, 12), (1, 1), 2))
    assert found.field_distances[1] == pytest.approx(even_distance((8, 12), (1, 1), 8))
    with pytest.raises(BadInput, match="3 layers of a CNN beside 2"):
        attention_distances(model, some_images(model), layers=[(3, 1)] * 3)


def test_without_images_or_with_several_sizes() -> None:
    model = vit()
    with pytest.raises(BadInput, match="no image to measure"):
        attention_distances(model, iter([]))
    with pytest.raises(BadInput, match="several sizes"):
        attention_distances(model, [some_images(model), torch.zeros(1, 3, 16, 12, dtype=torch.uint8)])
