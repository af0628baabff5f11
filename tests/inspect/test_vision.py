"""Where a Vision Transformer looks: every pooling, registers, grids that are no squares; against plain loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from seeded import seed as seed
from torch import Tensor

from jumok.errors import BadInput, Failure
from jumok.inspect import vision as module
from jumok.inspect.record import record
from jumok.inspect.vision import attention_maps, from_name, predictions, read_place, rollout_maps
from jumok.layers.tap import Tap
from jumok.models.vit import ImageLabeller
from jumok.recipe import VitSection

SIZES = {"width": 16, "heads": 4, "layers": 3, "feed_forward": 16, "image": (8, 12), "patch": (4, 2)}
KINDS: list[dict[str, Any]] = [
    {},
    {"pooling": "mean"},
    {"pooling": "sequence", "position": "sinusoidal"},
    {"registers": 3},
    {"pooling": "mean", "registers": 2, "pooled_norm": True, "position": "none"},
    {"stem": "convolution", "stem_layers": 2, "pooling": "sequence", "image": (13, 9)},
    {"channels": 1, "norm": "post", "key_value_heads": 2},
]


def vit(labels: int = 5, **keys: Any) -> ImageLabeller:
    """With weights so large that heads differ."""
    model = ImageLabeller(VitSection(**{**SIZES, **keys}), labels)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return model.eval()


def some_images(model: ImageLabeller, count: int = 3) -> Tensor:
    section = model.section
    return torch.randint(0, 256, (count, section.channels, *section.image), dtype=torch.uint8)


def pooled_by_hand(model: ImageLabeller, images: Tensor) -> Tensor:
    """(B, T): what the model pools, from its own equations."""
    hidden = model.reader(images)
    start = torch.zeros(hidden.shape[:2])
    if model.section.pooling == "class":
        start[:, 0] = 1
    elif model.section.pooling == "mean":
        start[:, model.reader.added :] = 1 / model.section.max_positions
    else:
        assert model.weigh is not None
        start[:, model.reader.added :] = torch.softmax(model.weigh(hidden[:, model.reader.added :]), dim=1)[..., 0]
    return start


@pytest.mark.parametrize("keys", KINDS, ids=str)
@torch.no_grad()
def test_maps_are_the_recorded_weights(keys: Any, seed: int) -> None:
    model = vit(**keys)
    images = some_images(model)
    rows, columns = model.section.grid
    added = model.reader.added
    with record(model) as seen:
        model(images)
    start = pooled_by_hand(model, images)
    for layer in range(3):
        weights = seen.weights(f"encoder.{layer}.self")
        torch.testing.assert_close(weights.sum(dim=-1), torch.ones(weights.shape[:-1]), msg=f"seed {seed}")
        place = int(torch.randint(rows * columns, ()))
        for where in (None, place):
            found = attention_maps(model, images, layer, place=where)
            assert [one.name for one in found[0]] == ["mean of heads", "head 0", "head 1", "head 2", "head 3"]
            for row, maps in enumerate(found):
                for one in maps:
                    assert one.values.shape == (rows, columns)
                    assert one.place == where
                    assert one.values.sum() + one.elsewhere == pytest.approx(1.0, abs=1e-5), f"seed {seed}"
                for head in range(4):
                    expected = start[row] @ weights[row, head] if where is None else weights[row, head, added + place]
                    np.testing.assert_allclose(maps[head + 1].values.ravel(), expected[added:], atol=1e-6)
                mean = np.mean([one.values for one in maps[1:]], axis=0)
                np.testing.assert_allclose(maps[0].values, mean, atol=1e-6)


@pytest.mark.parametrize("keys", KINDS, ids=str)
@torch.no_grad()
def test_rollout_follows_the_mean_of_heads_through_the_layers(keys: Any, seed: int) -> None:
    model = vit(**keys)
    images = some_images(model, 2)
    with record(model) as seen:
        model(images)
    start, added = pooled_by_hand(model, images), model.reader.added
    for row in range(2):
        rolled = torch.eye(start.size(1))
        for layer in range(3):
            mean = seen.weights(f"encoder.{layer}.self")[row].mean(dim=0)
            rolled = (0.5 * mean + 0.5 * torch.eye(start.size(1))) @ rolled
        for where in (None, 1):
            found = rollout_maps(model, images, where)[row]
            expected = start[row] @ rolled if where is None else rolled[added + 1]
            np.testing.assert_allclose(found.values.ravel(), expected[added:], atol=1e-6, err_msg=f"seed {seed}")
            assert found.values.sum() + found.elsewhere == pytest.approx(1.0, abs=1e-5)


@torch.no_grad()
def looking_alike(**keys: Any) -> ImageLabeller:
    """Every head of every layer looks at all tokens alike."""
    model = vit(**keys)
    for block in model.reader.encoder.blocks:
        torch.nn.init.zeros_(block.attention.query.weight)
        torch.nn.init.zeros_(block.attention.query.bias)
    return model


@pytest.mark.parametrize("keys", [{}, {"pooling": "mean"}, {"registers": 2}], ids=str)
def test_uniform_attention_is_uniform_in_every_map(keys: Any) -> None:
    model = looking_alike(**keys)
    images = some_images(model)
    tokens = model.reader.added + 12
    for one in (*(each for maps in attention_maps(model, images, 1) for each in maps),):
        np.testing.assert_allclose(one.values, 1 / tokens, rtol=1e-4)
    for one in rollout_maps(model, images):
        np.testing.assert_allclose(one.values, one.values.mean(), rtol=1e-4)
    if keys.get("pooling") == "mean":
        np.testing.assert_allclose(rollout_maps(model, images)[0].values, 1 / 12, rtol=1e-4)


def test_the_model_is_left_as_it_was_and_dropout_is_off(seed: int) -> None:
    model = vit(dropout=0.5, attention_dropout=0.5, stochastic_depth=0.5, pooling="sequence").train()
    images = some_images(model)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    first, again = (attention_maps(model, images, 2) for _ in range(2))
    for one, other in zip(first[0], again[0], strict=True):
        np.testing.assert_array_equal(one.values, other.values)
    rollout_maps(model, images)
    predictions(model, images)
    assert model.training
    assert not any(one.watched for one in model.modules() if isinstance(one, Tap))
    assert model.weigh is not None
    assert not model.weigh._forward_hooks
    for name, value in model.state_dict().items():
        torch.testing.assert_close(value, before[name], rtol=0, atol=0)


def test_in_pieces_it_is_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model = vit(registers=1)
    images = some_images(model, 5)
    whole = [attention_maps(model, images, 1, [None, 2], 3), [[one] for one in rollout_maps(model, images)]]
    monkeypatch.setattr(module, "CELLS", 1)  # one image and one layer at a time
    parts = [attention_maps(model, images, 1, [None, 2], 3), [[one] for one in rollout_maps(model, images)]]
    for one, other in zip(whole, parts, strict=True):
        for maps, others in zip(one, other, strict=True):
            for each, too in zip(maps, others, strict=True):
                np.testing.assert_allclose(each.values, too.values, atol=1e-6, err_msg=f"seed {seed}")


def test_larger_images_than_it_has_learned_from(seed: int) -> None:
    model = vit()
    images = torch.randint(0, 256, (1, 3, 16, 20), dtype=torch.uint8)
    (maps,) = attention_maps(model, images)
    assert maps[0].values.shape == (4, 10)
    assert read_place("3,9", (4, 10)) == 39


@pytest.mark.parametrize(
    ("text", "place"), [("class", None), (" Class ", None), ("0", 0), ("11", 11), ("1,5", 11), (" 1 , 0 ", 6)]
)
def test_patches_as_they_are_typed(text: str, place: int | None) -> None:
    assert read_place(text, (2, 6)) == place


@pytest.mark.parametrize("text", ["12", "2,0", "0,6", "-1", "middle", "", "1,2,3", "999999999999"])
def test_patches_that_are_not_there(text: str) -> None:
    with pytest.raises(BadInput, match="2 rows of 6 patches, counted by rows from 0 to 11"):
        read_place(text, (2, 6))


def test_where_it_is_seen_from_in_words() -> None:
    assert from_name(vit(), 7, (2, 6)) == "patch 7 (row 1, column 1)"
    assert from_name(vit(), None, (2, 6)) == "class token"
    assert from_name(vit(pooling="mean"), None, (2, 6)) == "mean of all patches"


def test_what_there_is_not_is_refused_in_words() -> None:
    model = vit()
    images = some_images(model)
    with pytest.raises(BadInput, match=r"layer 3: .* layers 0 to 2"):
        attention_maps(model, images, 3)
    with pytest.raises(BadInput, match="head 4: layer 0 has heads 0 to 3"):
        attention_maps(model, images, 0, [4])
    with pytest.raises(BadInput, match="patch 12: there are 2 rows of 6 patches"):
        attention_maps(model, images, 0, place=12)
    with pytest.raises(BadInput, match="patch 99"):
        rollout_maps(model, images, 99)
    with pytest.raises(BadInput, match="one at least"):
        attention_maps(model, images[:0])
    with pytest.raises(BadInput, match=r"\(B, C, H, W\)"):
        attention_maps(model, images[0])
    with pytest.raises(BadInput, match="1 channels"):
        attention_maps(model, images[:, :1])
    with pytest.raises(BadInput, match="both sides must be multiples"):
        attention_maps(model, torch.zeros(1, 3, 9, 12, dtype=torch.uint8))
    with torch.no_grad():
        model.scores.weight[0, 0] = float("nan")
    with pytest.raises(Failure, match="not numbers"):
        attention_maps(model, images)
