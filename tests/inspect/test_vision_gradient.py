"""Gradient-weighted maps: beside a reference that is written out, and without a trace on the model."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from seeded import seed as seed
from torch import Tensor
from torch.nn import functional as F

from jumok.errors import BadInput
from jumok.inspect import vision
from jumok.inspect.vision_gradient import gradient_maps, relevance, written_out
from jumok.layers.tap import Tap
from jumok.models.vit import ImageLabeller
from jumok.recipe import VitSection

SIZES = {"width": 16, "heads": 2, "layers": 3, "feed_forward": 16, "image": (8, 12), "patch": (4, 2)}
KINDS: list[dict[str, Any]] = [
    {},
    {"pooling": "mean", "registers": 2},
    {"pooling": "sequence", "pooled_norm": True},
    {"stem": "convolution", "image": (7, 5), "pooling": "mean", "layer_scale": 0.3},
    {"norm": "post", "key_value_heads": 1, "norm_kind": "rms"},
]


def vit(**keys: Any) -> ImageLabeller:
    model = ImageLabeller(VitSection(**{**SIZES, **keys}), 4)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return model.eval()


def some_images(model: ImageLabeller, count: int = 3) -> Tensor:
    return torch.randint(0, 256, (count, 3, *model.section.image), dtype=torch.uint8)


@torch.no_grad()
def by_hand(model: ImageLabeller, images: Tensor, labels: list[int]) -> tuple[Tensor, list[Tensor], Tensor]:
    """Scores, A of each layer, R − I: all layers written out from the parameters of a pre-norm ViT with a class token.
    The gradient by A is that by zeros which are added to it."""
    reader, heads = model.reader, model.section.heads
    bumps = [torch.zeros(len(images), heads, 13, 13, requires_grad=True) for _ in range(model.section.layers)]
    kept: list[Tensor] = []
    with torch.enable_grad():
        x = reader.embedded(images)
        for block, bump in zip(reader.encoder.blocks, bumps, strict=True):
            own, normed = block.attention, block.attention_norm.norm(x)
            query, key, value = (
                F.linear(normed, one.weight, one.bias).reshape(len(x), 13, heads, -1).transpose(1, 2)
                for one in (own.query, own.key, own.value)
            )
            weights = torch.softmax(query @ key.transpose(2, 3) / math.sqrt(query.size(-1)), dim=-1) + bump
            kept.append(weights.detach())
            mixed = (weights @ value).transpose(1, 2).flatten(2)
            x = x + own.output(mixed)
            x = x + block.feed_forward(block.feed_forward_norm.norm(x))
        scores = model.scores(reader.encoder.norm(x)[:, 0])
        gradients = torch.autograd.grad(scores[range(len(labels)), labels].sum(), bumps)
    whole = torch.eye(13).repeat(len(images), 1, 1)
    for weights, gradient in zip(kept, gradients, strict=True):
        whole = whole + (weights * gradient).clamp(min=0).mean(dim=1) @ whole
    return scores.detach(), kept, whole - torch.eye(13)


@pytest.mark.parametrize("layers", [1, 3])
def test_it_is_the_papers_equation(layers: int, seed: int) -> None:
    model = vit(layers=layers)
    images, labels = some_images(model), [int(one) for one in torch.randint(4, (3,))]
    scores, _, expected = by_hand(model, images, labels)
    found = relevance(model, images, labels)
    torch.testing.assert_close(found.scores, scores, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(found.values, expected, rtol=1e-3, atol=1e-5, msg=f"seed {seed}")
    assert found.labels == tuple(labels)
    maps = gradient_maps(model, images, list(labels))
    for row, one in enumerate(maps):
        np.testing.assert_allclose(one.values.ravel(), expected[row, 0, 1:], rtol=1e-3, atol=1e-5)
        assert one.values.min() >= 0
    # where everything speaks against a label its map is empty, but not all three of them
    assert max(one.values.max() for one in maps) > 0, f"seed {seed}"


@pytest.mark.parametrize("keys", KINDS, ids=str)
def test_scores_with_hooks_are_those_without(keys: Any, seed: int) -> None:
    model = vit(**keys)
    images = some_images(model)
    with torch.no_grad():
        plain = model(images)
        with written_out(model) as weights:
            hooked = model(images)
    torch.testing.assert_close(hooked, plain, rtol=1e-5, atol=1e-5, msg=f"seed {seed}")
    assert sorted(weights) == [0, 1, 2]
    for one in weights.values():
        torch.testing.assert_close(one.sum(dim=-1), torch.ones(one.shape[:-1]))
    found = relevance(model, images, [None] * 3)
    torch.testing.assert_close(found.scores, plain, rtol=1e-5, atol=1e-5)
    assert found.labels == tuple(plain.argmax(dim=-1).tolist())
    for one in gradient_maps(model, images):
        assert one.values.shape == model.section.grid
        assert np.isfinite(one.values).all()
        assert one.values.max() > 0


def test_pooling_says_who_is_asked(seed: int) -> None:
    model = vit(pooling="mean", registers=1)
    images = some_images(model, 1)
    (one,), values = gradient_maps(model, images, [2]), relevance(model, images, [2]).values[0]
    np.testing.assert_allclose(one.values.ravel(), values[1:, 1:].mean(dim=0), atol=1e-6, err_msg=f"seed {seed}")
    assert one.elsewhere == pytest.approx(float(values[1:, 0].mean()), abs=1e-6)


def test_frozen_or_learning_the_model_is_left_as_it_was(seed: int) -> None:
    model = vit(dropout=0.5, attention_dropout=0.4).train()
    images = some_images(model)
    learning = gradient_maps(model, images, [1, 1, 1])
    assert model.training
    assert all(one.grad is None for one in model.parameters())
    assert not any(one.watched for one in model.modules() if isinstance(one, Tap))
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    with torch.inference_mode():
        frozen = gradient_maps(model, images, [1, 1, 1])
    for one, other in zip(learning, frozen, strict=True):
        np.testing.assert_allclose(one.values, other.values, rtol=1e-4, atol=1e-7, err_msg=f"seed {seed}")


def test_images_do_not_touch_each_other(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model = vit(pooling="sequence")
    images = some_images(model, 4)
    together = gradient_maps(model, images, [0, None, 2, 3], ["a", "b", "c", "d"])
    assert [one.name for one in together[::2]] == ["for a", "for c"]
    monkeypatch.setattr(vision, "CELLS", 1)
    alone = gradient_maps(model, images, [0, None, 2, 3])
    for one, other in zip(together, alone, strict=True):
        np.testing.assert_allclose(one.values, other.values, rtol=1e-3, atol=1e-6, err_msg=f"seed {seed}")
    assert not np.allclose(gradient_maps(model, images[:1], [1])[0].values, together[0].values)


def test_labels_that_are_not_there() -> None:
    model = vit()
    with pytest.raises(BadInput, match="label 4: this model tells 4 labels apart"):
        gradient_maps(model, some_images(model, 1), [4])
    with pytest.raises(BadInput, match="2 labels for 1 images"):
        gradient_maps(model, some_images(model, 1), [0, 1])
