"""Vision Transformers that transformers has saved compute here what they compute there, under any of their names."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from required import required
from safetensors.torch import load_file, save_file
from seeded import seed  # noqa: F401
from torch import Tensor

from jumok.errors import BadInput
from jumok.interop.vit import ImportedVit
from jumok.interop.vit_huggingface import read_vit
from jumok.models.vit import ImageLabeller

transformers = required("transformers")
pytestmark = pytest.mark.usefixtures("seed")
SMALL = {
    "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24, "image_size": 8,
    "patch_size": 4,
}  # fmt: skip
Change = Callable[[dict[str, Tensor]], dict[str, Tensor]]


def drawn(low: int, high: int) -> int:
    return int(torch.randint(low, high + 1, ()))


def random_config(square: bool = False, **more: Any) -> dict[str, Any]:
    """Everything that may differ between two of them."""
    heads, patch, image = drawn(1, 4), (drawn(2, 5), drawn(2, 5)), (drawn(1, 4), drawn(1, 4))
    patch, image = ((patch[0], patch[0]), (image[0], image[0])) if square else (patch, image)
    sizes = {"image_size": [a * b for a, b in zip(image, patch, strict=True)], "patch_size": list(patch)}
    return {
        "hidden_size": heads * drawn(3, 9), "num_hidden_layers": drawn(1, 3), "num_attention_heads": heads,
        "intermediate_size": drawn(8, 50), "num_channels": [1, 3][drawn(0, 1)], **sizes,
        "hidden_act": ["gelu", "relu", "silu"][drawn(0, 2)], "layer_norm_eps": [1e-12, 1e-6, 1e-2][drawn(0, 2)],
        "qkv_bias": bool(drawn(0, 1)), "num_labels": drawn(3, 6), "initializer_range": 0.2, **more,
    }  # fmt: skip


def save(folder: Path, kind: str = "ViTForImageClassification", newer: bool = False, **config: Any) -> Any:
    made = transformers.ViTConfig(**config)
    made.architectures = [kind]
    model = getattr(transformers, kind)(made).eval()
    for parameter in model.parameters():  # norms and biases are not ones and zeros
        parameter.data.add_(0.1 * torch.randn_like(parameter))
    model.save_pretrained(folder, save_original_format=not newer)
    mean, deviation = ([round(random.uniform(0.2, 0.8), 3) for _ in range(made.num_channels)] for _ in range(2))
    told = {"image_mean": mean, "image_std": deviation, "do_normalize": True, "size": {"height": 8, "width": 8}}
    (folder / "preprocessor_config.json").write_text(json.dumps(told))
    return model


def labeller(found: ImportedVit) -> ImageLabeller:
    model = ImageLabeller(found.section, len(found.classes)).eval()
    lacking = model.load_state_dict(found.weights, strict=False)
    assert not lacking.unexpected_keys
    assert lacking.missing_keys == ([] if found.has_classifier else ["scores.weight", "scores.bias"])
    return model


def images_of(folder: Path, config: Any, sides: tuple[int, int] | None = None) -> tuple[Tensor, Tensor]:
    """As we take them, and as they do."""
    height, width = sides or config.image_size
    images = torch.randint(256, (3, config.num_channels, height, width), dtype=torch.uint8)
    told = json.loads((folder / "preprocessor_config.json").read_text())
    mean, deviation = (torch.tensor(told[key])[:, None, None] for key in ("image_mean", "image_std"))
    return images, (images / 255 - mean) / deviation


def close(found: Tensor, expected: Tensor) -> None:
    """As docs/vision.md says it, whatever the size of the numbers."""
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


@torch.no_grad()
@pytest.mark.parametrize("newer", [False, True], ids=["older names", "newer names"])
@pytest.mark.parametrize("turn", range(4))
def test_scores_are_theirs(tmp_path: Path, newer: bool, turn: int) -> None:
    theirs = save(tmp_path, newer=newer, **random_config())
    names = load_file(tmp_path / "model.safetensors").keys()
    assert ("vit.layers.0.mlp.fc1.bias" in names) == newer
    assert ("vit.encoder.layer.0.intermediate.dense.bias" in names) == (not newer)
    ours, pixels = images_of(tmp_path, theirs.config)
    model = labeller(read_vit(tmp_path))
    said = theirs(pixels)
    close(model(ours), said.logits)
    close(model.reader(ours), theirs.vit(pixels).last_hidden_state)


@torch.no_grad()
@pytest.mark.parametrize("newer", [False, True], ids=["older names", "newer names"])
def test_a_model_without_a_classifier(tmp_path: Path, newer: bool) -> None:
    theirs = save(tmp_path, "ViTModel", newer, **random_config())
    ours, pixels = images_of(tmp_path, theirs.config)
    found = read_vit(tmp_path)
    close(labeller(found).reader(ours), theirs(pixels).last_hidden_state)
    assert not found.has_classifier
    assert any("2 tensors are not read: pooler.dense.bias, pooler.dense.weight" in note for note in found.notes)
    assert found.classes == tuple(theirs.config.id2label.values())


@torch.no_grad()
@pytest.mark.parametrize("newer", [False, True], ids=["older names", "newer names"])
def test_with_and_without_the_prefix(tmp_path: Path, newer: bool) -> None:
    theirs = save(tmp_path, newer=newer, **random_config())
    ours, pixels = images_of(tmp_path, theirs.config)
    expected = theirs(pixels).logits
    change(tmp_path, lambda state: {name.removeprefix("vit."): tensor for name, tensor in state.items()})
    close(labeller(read_vit(tmp_path))(ours), expected)
    save(tmp_path, "ViTModel", newer, **SMALL)
    before = read_vit(tmp_path)
    change(tmp_path, lambda state: {f"vit.{name}": tensor for name, tensor in state.items()})
    after = read_vit(tmp_path)
    assert before.weights.keys() == after.weights.keys()
    assert all(torch.equal(before.weights[name], after.weights[name]) for name in before.weights)


@torch.no_grad()
@pytest.mark.parametrize("turn", range(3))
def test_images_of_another_size(tmp_path: Path, turn: int) -> None:
    """Larger, smaller and not square: positions are brought to the other grid as they do it, without smoothing."""
    theirs = save(tmp_path, **random_config(square=True, patch_size=4, image_size=[16, 20, 24][drawn(0, 2)]))
    sides = (4 * drawn(1, 9), 4 * drawn(1, 9))
    ours, pixels = images_of(tmp_path, theirs.config, sides)
    close(labeller(read_vit(tmp_path))(ours), theirs(pixels, interpolate_pos_encoding=True).logits)


def test_gradients_are_theirs_too(tmp_path: Path) -> None:
    theirs = save(tmp_path, **SMALL, initializer_range=0.2)
    theirs.config.image_size = (8, 8)
    ours, pixels = images_of(tmp_path, theirs.config)
    model = labeller(read_vit(tmp_path))
    pull = torch.randn(3, theirs.config.num_labels)
    (model(ours) * pull).sum().backward()
    (theirs(pixels).logits * pull).sum().backward()
    pairs = [
        (model.reader.stem.map.weight, theirs.vit.embeddings.patch_embeddings.projection.weight),
        (model.reader.encoder.blocks[1].attention.key.weight, theirs.vit.layers[1].attention.k_proj.weight),
        (model.scores.bias, theirs.classifier.bias),
        (model.reader.tokens, theirs.vit.embeddings.cls_token),
    ]
    # as a share of the largest: pulling twice as hard would double them, and what is lost in adding them up
    for here, there in pairs:
        assert here.grad is not None
        scale = float(there.grad.abs().max()) + 1e-3
        close(here.grad.flatten() / scale, there.grad.flatten() / scale)


def test_what_images_are_like_is_what_their_processor_makes_of_them(tmp_path: Path) -> None:
    save(tmp_path, **SMALL)
    file = tmp_path / "preprocessor_config.json"
    kept = json.loads(file.read_text())
    images = torch.randint(256, (2, 3, 8, 8), dtype=torch.uint8)
    for changes in (
        {},
        {"do_normalize": False},
        {"do_rescale": False},
        {"rescale_factor": 1 / 127.5},
        {"image_mean": [0.5], "image_std": 0.25},
    ):
        file.write_text(json.dumps({**kept, **changes}))
        told = {**kept, "do_rescale": True, "rescale_factor": 1 / 255, "resample": 2, **changes}
        model = labeller(read_vit(tmp_path))
        if "image_std" in changes:
            expected = (images / 255 - 0.5) / 0.25
        else:
            processor = transformers.ViTImageProcessorPil(do_resize=False, **told)
            expected = processor(list(images.permute(0, 2, 3, 1).numpy()), return_tensors="pt")["pixel_values"]
        torch.testing.assert_close(model.reader.normalised(images), expected.float(), atol=1e-4, rtol=1e-5)


def test_without_a_word_about_images(tmp_path: Path) -> None:
    save(tmp_path, **SMALL)
    (tmp_path / "preprocessor_config.json").unlink()
    found = read_vit(tmp_path)
    assert (found.section.mean, found.section.deviation) == ((0.5,) * 3, (0.5,) * 3)
    assert any("no preprocessor_config.json" in note for note in found.notes)
    assert found.resize == "squash"


def test_images_are_brought_to_size_as_they_do_it(tmp_path: Path) -> None:
    save(tmp_path, **SMALL)
    file = tmp_path / "preprocessor_config.json"
    kept = json.loads(file.read_text())
    assert not [note for note in read_vit(tmp_path).notes if "brings" in note]
    file.write_text(json.dumps({**kept, "size": 16}))
    assert any("brings images to 16 × 16" in note for note in read_vit(tmp_path).notes)
    file.write_text(json.dumps({**kept, "resample": 2}))
    assert any("resample 2, jumok with 3 (bicubic)" in note for note in read_vit(tmp_path).notes)
    middle = {"do_center_crop": True, "crop_size": {"height": 8, "width": 8}, "size": {"shortest_edge": 10}}
    file.write_text(json.dumps({**kept, **middle}))
    found = read_vit(tmp_path)
    assert found.resize == "crop"
    assert not [note for note in found.notes if "brings" in note]


def test_classes_keep_their_order(tmp_path: Path) -> None:
    names = dict(enumerate(["tench", "crane", "11", "crane", "고양이", *"fghijkl"]))
    save(tmp_path, **SMALL, id2label=names)
    found = read_vit(tmp_path).classes
    assert found[:5] == ("tench", "crane (1)", "11", "crane (3)", "고양이")
    assert found[5:] == tuple("fghijkl")
    config(tmp_path, id2label={"0": "one", "1": "two"})
    refused(tmp_path, "id2label: 2 names, but the classifier has 12 classes")
    config(tmp_path, id2label={"1": "one", "2": "two"})
    refused(tmp_path, "id2label", "from 0 on")
    config(tmp_path, id2label=None)
    assert read_vit(tmp_path).classes == tuple(map(str, range(12)))


def test_half_precision_becomes_float32(tmp_path: Path) -> None:
    save(tmp_path, **SMALL)
    change(tmp_path, lambda state: {name: tensor.half() for name, tensor in state.items()})
    assert all(tensor.dtype == torch.float32 for tensor in read_vit(tmp_path).weights.values())


def change(folder: Path, how: Change) -> None:
    file = folder / "model.safetensors"
    save_file(how(load_file(file)), file)


def config(folder: Path, **changes: Any) -> None:
    file = folder / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))


def refused(folder: Path, *told: str) -> None:
    with pytest.raises(BadInput) as caught:
        read_vit(folder)
    for words in (*told, str(folder)):
        assert words in str(caught.value)


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("hidden_size", 32, ("embeddings.cls_token is 1 × 1 × 16", "1 × 1 × 32", "hidden_size 32")),
        ("intermediate_size", 25, ("intermediate.dense.weight is 24 × 16", "25 × 16", "intermediate_size 25")),
        ("image_size", 12, ("position_embeddings is 1 × 5 × 16", "1 × 10 × 16", "image_size 12×12", "patch_size 4×4")),
        ("patch_size", 2, ("position_embeddings is 1 × 5 × 16", "patch_size 2×2")),
        ("patch_size", [4, 2], ("image_size 8×8",)),
        ("patch_size", 3, ("8×8 cannot be cut into patches of 3×3",)),
        ("num_channels", 1, ("projection.weight is 16 × 3 × 4 × 4", "num_channels 1")),
        ("num_channels", 4, ("num_channels",)),
        ("num_hidden_layers", 3, ("encoder.layer.2.layernorm_before.weight and 12 more", "num_hidden_layers 3")),
        ("num_hidden_layers", 10**9, ("num_hidden_layers 1000000000",)),
        ("num_attention_heads", 3, ("width 16 is not divisible by heads 3",)),
        ("hidden_act", "quick_gelu", ("hidden_act 'quick_gelu'",)),
        ("image_size", "8", ("image_size is '8'",)),
        ("layer_norm_eps", 0, ("layer_norm_eps",)),
        ("qkv_bias", True, ("encoder.layer.0.attention.attention.query.bias",)),
    ],
)
def test_every_tensor_is_held_against_the_configuration(
    tmp_path: Path, key: str, value: Any, told: tuple[str, ...]
) -> None:
    save(tmp_path, **SMALL, qkv_bias=False)
    read_vit(tmp_path)
    config(tmp_path, **{key: value})
    refused(tmp_path, *told)


def test_what_is_missing_doubled_or_foreign_is_named(tmp_path: Path) -> None:
    save(tmp_path, **SMALL)
    whole = load_file(tmp_path / "model.safetensors")
    for name in ("vit.embeddings.cls_token", "vit.layernorm.bias", "classifier.bias"):
        change(tmp_path, lambda _, lost=name: {one: whole[one] for one in whole if one != lost})  # type: ignore[misc]
        refused(tmp_path, f"no tensor {name.removeprefix('vit.')}")
    change(tmp_path, lambda _: {**whole, "vit.layers.0.mlp.fc1.bias": torch.ones(24)})
    refused(tmp_path, "two tensors for one weight", "vit.encoder.layer.0.intermediate.dense.bias")
    change(tmp_path, lambda _: {**whole, "vit.encoder.layer.0.layer_scale1.lambda1": torch.ones(16)})
    refused(tmp_path, "vit.encoder.layer.0.layer_scale1.lambda1: nothing here computes with")
    change(tmp_path, lambda _: {**whole, "vit.embeddings.distillation_token": torch.ones(1, 1, 16)})
    refused(tmp_path, "vit.embeddings.distillation_token")
    change(
        tmp_path,
        lambda _: {**whole, "vit.embeddings.mask_token": torch.ones(1, 1, 16), "decoder.0.bias": torch.ones(3)},
    )
    assert any("2 tensors are not read" in note for note in read_vit(tmp_path).notes)
    change(tmp_path, lambda _: {**whole, "classifier.weight": torch.ones(2, 15)})
    refused(tmp_path, "classifier.weight is 2 × 15", "hidden_size 16")
    config(tmp_path, num_hidden_layers=1)
    change(tmp_path, lambda _: whole)
    assert any("16 tensors are not read" in note for note in read_vit(tmp_path).notes)


def test_names_of_what_is_missing_are_those_of_the_file(tmp_path: Path) -> None:
    save(tmp_path, newer=True, **SMALL)
    change(tmp_path, lambda state: {name: state[name] for name in state if "1.attention.q_proj.bias" not in name})
    refused(tmp_path, "no tensor layers.1.attention.q_proj.bias")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"image_mean": "0.5"}, "image_mean is '0.5'"),
        ({"image_std": [0.5, 0.5]}, "image_std is [0.5, 0.5]"),
        ({"image_std": [0, 0.5, 0.5]}, "more than 0"),
        ({"rescale_factor": -1}, "rescale_factor"),
        ({"size": {"longest_edge": 8}}, "size"),
    ],
)
def test_damaged_words_about_images_are_named(tmp_path: Path, changes: dict[str, Any], told: str) -> None:
    save(tmp_path, **SMALL)
    file = tmp_path / "preprocessor_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))
    refused(tmp_path, told)
