"""The Vision Transformer: patches are a convolution, where tokens stand, poolings, sizes, stochastic depth."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jumok.errors import BadInput
from jumok.layers.embedding import Convolutions, groups_of
from jumok.models.bert import depth_of, freeze
from jumok.models.vit import ImageLabeller, Vit
from jumok.recipe import VitSection

CLOSE = {"atol": 1e-5, "rtol": 1e-5}
SMALL: dict[str, Any] = {"image": (8, 12), "patch": (4, 2), "width": 16, "heads": 2, "layers": 2, "feed_forward": 24}
KINDS: list[dict[str, Any]] = [
    {},
    {"pooling": "mean", "registers": 3, "layer_scale": 0.1},
    {"pooling": "mean", "pooled_norm": True, "position": "sinusoidal"},
    {"stem": "convolution", "stem_layers": 2, "pooling": "sequence", "position": "none"},
    {"stem": "convolution", "stem_layers": 2, "stem_depth": 2, "stem_width": 8, "pooling": "sequence"},
    {"stem": "convolution", "stem_layers": 2, "stem_norm": True, "pooling": "sequence"},
    {"stem": "convolution", "stem_depth": 2, "stem_layer_norms": True, "pooling": "sequence"},
    {"channels": 1, "norm": "post", "norm_kind": "rms", "registers": 1},
]


def model_of(**keys: Any) -> ImageLabeller:
    """Every weight off its start, so that it counts."""
    model = ImageLabeller(VitSection(**{**SMALL, **keys}), 5)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return model.eval()


def images_of(model: ImageLabeller, count: int = 3, size: tuple[int, int] | None = None) -> Tensor:
    return torch.randint(0, 256, (count, model.section.channels, *(size or model.section.image)), dtype=torch.uint8)


@pytest.mark.parametrize("keys", KINDS)
def test_each_image_by_itself(keys: dict[str, Any]) -> None:
    model = model_of(**keys)
    images = images_of(model)
    scores = model(images)
    assert scores.shape == (3, 5)
    for number in range(3):
        torch.testing.assert_close(model(images[number : number + 1])[0], scores[number], **CLOSE)
    assert not torch.allclose(scores[0], scores[1], atol=1e-3)


def test_patches_are_a_convolution_with_a_step_of_its_size() -> None:
    reader = model_of().reader
    images = images_of(model_of())
    values = reader.normalised(images)
    weight = reader.stem.map.weight.view(16, 3, 4, 2)  # type: ignore[union-attr]
    expected = F.conv2d(values, weight, reader.stem.map.bias, stride=(4, 2))  # type: ignore[union-attr]
    torch.testing.assert_close(reader.stem(values), expected.permute(0, 2, 3, 1), **CLOSE)


def test_values_are_normalised_from_the_recipe() -> None:
    reader = Vit(VitSection(**SMALL, mean=[0.4, 0.5, 0.6], deviation=[0.2, 0.25, 0.5]))
    images = torch.randint(0, 256, (2, 3, 8, 12), dtype=torch.uint8)
    mean, deviation = torch.tensor([0.4, 0.5, 0.6])[:, None, None], torch.tensor([0.2, 0.25, 0.5])[:, None, None]
    torch.testing.assert_close(reader.normalised(images), (images / 255 - mean) / deviation, **CLOSE)


@pytest.mark.parametrize(
    ("pooling", "registers", "before"), [("class", 0, 1), ("class", 2, 3), ("mean", 2, 2), ("mean", 0, 0)]
)
def test_tokens_stand_before_the_patches(pooling: str, registers: int, before: int) -> None:
    model = model_of(pooling=pooling, registers=registers)
    reader = model.reader
    assert reader.added == before
    embedded = reader.embedded(images_of(model))
    assert embedded.shape == (3, before + 2 * 6, 16)
    if before:
        assert reader.tokens is not None
        torch.testing.assert_close(embedded[0, :before], reader.tokens)
        torch.testing.assert_close(embedded[1, :before], reader.tokens)


def test_poolings() -> None:
    hidden = torch.randn(2, 3 + 12, 16)
    torch.testing.assert_close(model_of(registers=2).pooled(hidden), hidden[:, 0])
    torch.testing.assert_close(model_of(registers=3, pooling="mean").pooled(hidden), hidden[:, 3:].mean(dim=1))
    model = model_of(registers=3, pooling="sequence")
    assert model.weigh is not None
    weights = torch.softmax(hidden[:, 3:] @ model.weigh.weight[0] + model.weigh.bias, dim=1)
    torch.testing.assert_close(model.pooled(hidden), torch.einsum("bt,btd->bd", weights, hidden[:, 3:]), **CLOSE)
    model = model_of(registers=3, pooling="mean", pooled_norm=True)
    expected = F.layer_norm(hidden[:, 3:].mean(dim=1), (16,), model.norm.weight, model.norm.bias, 1e-6)  # type: ignore[arg-type]
    torch.testing.assert_close(model.pooled(hidden), expected, **CLOSE)
    assert isinstance(model.reader.encoder.norm, torch.nn.Identity)


@pytest.mark.parametrize("position", ["learned", "sinusoidal"])
def test_without_positions_patches_are_a_set(position: str) -> None:
    for place in ("none", position):
        model = model_of(position=place, pooling="mean")
        images = images_of(model, 1)
        cut = images.reshape(1, 3, 2, 4, 6, 2)
        order = torch.randperm(6)
        while torch.equal(order, torch.arange(6)):
            order = torch.randperm(6)
        shuffled = cut[:, :, :, :, order].reshape(images.shape)
        same = torch.allclose(model(images), model(shuffled), atol=1e-5)
        assert same == (place == "none")


@pytest.mark.parametrize("antialias", [True, False])
def test_positions_are_brought_to_another_grid(antialias: bool) -> None:
    model = model_of(antialias=antialias)
    wide = images_of(model, 2, (16, 20))
    embedded = model.reader.embedded(wide)
    assert embedded.shape == (2, 1 + 4 * 10, 16)
    places = model.reader.positions.weight.permute(2, 0, 1)[None]  # type: ignore[union-attr, operator]
    expected = F.interpolate(places, (4, 10), mode="bicubic", antialias=antialias)[0].permute(1, 2, 0)
    bare = model.reader.stem(model.reader.normalised(wide))
    torch.testing.assert_close(embedded[:, 1:], (bare + expected).flatten(1, 2), **CLOSE)
    assert model(wide).shape == (2, 5)


def test_sines_of_row_and_column() -> None:
    rows = model_of(position="sinusoidal").reader.positions((2, 6))  # type: ignore[misc]
    assert rows.shape == (2, 6, 16)
    assert torch.equal(rows[:, 0, :8], rows[:, 3, :8])  # the row's half does not know the column
    assert torch.equal(rows[0, :, 8:], rows[1, :, 8:])
    torch.testing.assert_close(rows[1, 2, 0], torch.tensor(1.0).sin())
    torch.testing.assert_close(rows[1, 2, 8], torch.tensor(2.0).sin())
    torch.testing.assert_close(rows[1, 2, 12], torch.tensor(2.0).cos())


def test_what_cannot_be_looked_at_is_said() -> None:
    model = model_of()
    with pytest.raises(BadInput, match="cannot be cut into patches of 4×2"):
        model(images_of(model, 1, (10, 12)))
    with pytest.raises(BadInput, match="images of 1 channels, and this model looks at 3"):
        model(torch.zeros(1, 1, 8, 12, dtype=torch.uint8))


def test_convolutions_take_any_size() -> None:
    model = model_of(stem="convolution", stem_layers=2, position="learned")
    assert model.section.grid == (2, 3)
    for size in ((8, 12), (9, 13), (15, 5)):
        assert model(images_of(model, 2, size)).shape == (2, 5)


def test_layers_between_the_halvings_of_a_convolutional_stem() -> None:
    reader = model_of(stem="convolution", stem_layers=2, stem_depth=3, stem_width=8).reader
    assert reader.section.grid == (2, 3)
    values = reader.normalised(images_of(model_of()))
    kernels = [layer.weight for layer in reader.stem.layers]  # type: ignore[union-attr]
    assert [tuple(kernel.shape[:2]) for kernel in kernels] == [(8, 3), *[(8, 8)] * 4, (16, 8)]
    expected = values
    for stage in (kernels[:3], kernels[3:]):
        for kernel in stage:
            expected = F.conv2d(expected, kernel, padding=1).relu()
        expected = F.max_pool2d(expected, 3, stride=2, padding=1)
    torch.testing.assert_close(reader.stem(values), expected.permute(0, 2, 3, 1), **CLOSE)


def test_norms_between_the_layers_of_a_convolutional_stem() -> None:
    reader = model_of(stem="convolution", stem_layers=2, stem_depth=2, stem_width=32, stem_layer_norms=True).reader
    expected = reader.normalised(images_of(model_of()))
    stem = reader.stem
    assert isinstance(stem, Convolutions)
    for norm in stem.norms:
        nn.init.uniform_(norm.weight, 0.5, 1.5)
        nn.init.normal_(norm.bias)
    made = stem(expected)
    for number, (layer, norm) in enumerate(zip(stem.layers, stem.norms, strict=True), 1):
        x = F.conv2d(expected, layer.weight, padding=1)
        groups = x.unflatten(1, (-1, 16))  # 32 channels: two groups; the last layer has 16 channels, one
        mean, spread = groups.mean((2, 3, 4), keepdim=True), groups.var((2, 3, 4), correction=0, keepdim=True)
        x = ((groups - mean) / (spread + 1e-5).sqrt()).flatten(1, 2)
        expected = (x * norm.weight[:, None, None] + norm.bias[:, None, None]).relu()
        if number % 2 == 0:
            expected = F.max_pool2d(expected, 3, stride=2, padding=1)
    torch.testing.assert_close(made, expected.permute(0, 2, 3, 1), **CLOSE)


def test_a_norm_behind_the_stem() -> None:
    """What the stem gives may be of any size: positions are added to vectors of one."""
    images = images_of(model_of())
    for normalised in (True, False):
        model = model_of(stem="convolution", stem_layers=2, stem_norm=normalised).eval()
        before = model(images)
        model.reader.stem.layers[-1].weight.data.mul_(20)  # type: ignore[union-attr]
        same = torch.allclose(model(images), before, rtol=1e-3, atol=1e-3)
        assert same == normalised


def test_some_images_pass_layers_by_as_they_learn() -> None:
    model = model_of(stochastic_depth=0.9, layers=2)
    first, last = model.reader.encoder.blocks
    assert first.attention_norm.passed_by == 0
    assert last.feed_forward_norm.passed_by == 0.9
    x = torch.randn(2000, 1, 16)
    last.train()
    made = last.feed_forward_norm(x, lambda y: torch.ones_like(y))
    passed = (made == x).all(dim=-1).all(dim=-1)
    assert 0.86 < passed.float().mean() < 0.94
    torch.testing.assert_close(made[~passed] - x[~passed], torch.full_like(x[~passed], 10.0), atol=1e-3, rtol=0)
    last.eval()
    torch.testing.assert_close(last.feed_forward_norm(x, lambda y: torch.ones_like(y)), x + 1)


def test_a_learned_factor_for_each_channel() -> None:
    model = model_of(layer_scale=0.5)
    norm = model.reader.encoder.blocks[0].attention_norm
    assert norm.scale is not None
    x = torch.randn(2, 3, 16)
    torch.testing.assert_close(norm(x, lambda y: torch.ones_like(y)), x + norm.scale)
    assert (
        ImageLabeller(VitSection(**SMALL, layer_scale=1e-5), 2).reader.encoder.blocks[0].attention_norm.scale[0] == 1e-5
    )
    assert model_of().reader.encoder.blocks[0].attention_norm.scale is None


def test_how_far_up_weights_are() -> None:
    model = model_of(registers=1, pooling="sequence")
    depths = {name: depth_of(name, 2) for name, _ in model.named_parameters()}
    for name in ("reader.tokens", "reader.stem.map.weight", "reader.positions.weight"):
        assert depths[name] == 0
    assert depths["reader.encoder.blocks.1.attention.query.weight"] == 2
    assert depths["scores.weight"] == depths["weigh.weight"] == depths["reader.encoder.norm.weight"] == 3
    freeze(model, 1, 2)
    frozen = {name for name, parameter in model.named_parameters() if not parameter.requires_grad}
    assert frozen == {name for name, depth in depths.items() if depth <= 1}


def test_a_stem_and_what_stands_behind_it_are_the_lowest() -> None:
    model = model_of(stem="convolution", stem_depth=2, stem_layer_norms=True, stem_norm=True)
    stem = {name for name, _ in model.named_parameters() if name.startswith("reader.stem")}
    assert {"reader.stem_norm.weight", "reader.stem.norms.0.bias", "reader.stem.layers.1.weight"} <= stem
    assert {depth_of(name, 2) for name in stem} == {0}


@pytest.mark.parametrize("channels", [1, 7, 16, 24, 32, 40, 128, 200, 256])
def test_groups_of_channels(channels: int) -> None:
    groups = groups_of(channels)
    assert channels % groups == 0
    assert groups == 1 or channels // groups >= 16
    assert not any(channels % more == 0 and channels // more >= 16 for more in range(groups + 1, channels + 1))


def test_an_image_consists_of_whole_patches() -> None:
    section = VitSection(**{**SMALL, "image": 30, "patch": 4})  # a run to start from may bring other patches
    with pytest.raises(ValueError, match="image 30×30 cannot be cut into patches of 4×4"):
        Vit(section)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"width": 30, "heads": 4}, "width 30 is not divisible by heads 4"),
        ({"position": "sinusoidal", "width": 18, "heads": 2}, "width 18 % 4"),
        ({"deviation": 0.0}, "must be more than 0"),
        ({"pooled_norm": True, "final_norm": False}, "there is no last norm"),
        ({"stem_layer_norms": True, "stem": "patch"}, "patches have no layers"),
    ],
)
def test_what_cannot_be_built_is_said(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        VitSection(**{**SMALL, **keys})
