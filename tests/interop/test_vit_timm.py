"""Vision Transformers in timm's layout compute here what their equations say; what none here has is refused by name."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from seeded import seed  # noqa: F401
from timm_layout import complete, forward, random_state
from torch import Tensor

from jumok.errors import BadInput
from jumok.interop.vit import ImportedVit
from jumok.interop.vit_timm import read_timm
from jumok.models.vit import ImageLabeller

pytestmark = pytest.mark.usefixtures("seed")


def save(folder: Path, config: dict[str, Any] | None = None, **arguments: Any) -> dict[str, Tensor]:
    """A folder as timm writes it. Says in `model_args` what was asked for, and what no tensor tells."""
    state = random_state(arguments)
    folder.mkdir(exist_ok=True)
    save_file(state, folder / "model.safetensors")
    whole = complete(arguments)
    told = {
        "architecture": "vit_tiny_patch16_224",
        "num_classes": whole["num_classes"],
        "num_features": whole["embed_dim"],
        "global_pool": whole["global_pool"],
        "model_args": {"num_heads": whole["num_heads"], **arguments},
        "pretrained_cfg": {
            "input_size": [whole["in_chans"], *whole["img_size"]], "mean": [0.4, 0.5, 0.6], "std": [0.2, 0.3, 0.25],
            "crop_mode": "center",
        },
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps({**told, **(config or {})}))
    return state


def labeller(found: ImportedVit) -> ImageLabeller:
    model = ImageLabeller(found.section, len(found.classes)).eval()
    lacking = model.load_state_dict(found.weights, strict=False)
    assert not lacking.unexpected_keys
    assert lacking.missing_keys == ([] if found.has_classifier else ["scores.weight", "scores.bias"])
    return model


@torch.no_grad()
def compare(
    found: ImportedVit, state: dict[str, Tensor], arguments: dict[str, Any], sides: tuple[int, int] | None = None
) -> None:
    whole, model = complete(arguments), labeller(found)
    images = torch.randint(256, (3, whole["in_chans"], *(sides or whole["img_size"])), dtype=torch.uint8)
    mean, deviation = (
        torch.tensor(level[: whole["in_chans"]]) for level in (found.section.mean, found.section.deviation)
    )
    pixels = (images / 255 - mean[:, None, None]) / deviation[:, None, None]
    hidden, scores = forward(state, arguments, pixels)
    close(model.reader(images), hidden)
    if found.has_classifier:
        close(model(images), scores)


def close(found: Tensor, expected: Tensor) -> None:
    """As docs/vision.md says it; of a model without a last norm, whose numbers grow from block to block, as a share of
    the largest."""
    torch.testing.assert_close(found, expected, atol=1e-5 * max(1.0, float(expected.abs().max())), rtol=0)


def random_arguments() -> dict[str, Any]:
    draw = random.Random(int(torch.randint(2**31, ())))
    heads, patch = draw.randint(1, 4), [draw.randint(2, 5), draw.randint(2, 5)]
    pooling, token = draw.choice([("token", True), ("avg", True), ("avg", False)])
    return {
        "img_size": [patch[0] * draw.randint(1, 4), patch[1] * draw.randint(1, 4)], "patch_size": patch,
        "in_chans": draw.choice([1, 3]), "num_classes": draw.randint(2, 6), "global_pool": pooling,
        "class_token": token, "embed_dim": heads * draw.randint(3, 9), "depth": draw.randint(1, 3), "num_heads": heads,
        "mlp_ratio": draw.choice([1.0, 2.5, 3.0]), "qkv_bias": draw.random() < 0.7,
        "init_values": draw.choice([None, 1e-5, 0.1]), "no_embed_class": draw.random() < 0.5,
        "reg_tokens": draw.choice([0, 1, 4]), "fc_norm": draw.choice([None, True, False]),
        "final_norm": draw.random() < 0.8,
    }  # fmt: skip


@pytest.mark.parametrize("turn", range(12))
def test_whatever_it_consists_of(tmp_path: Path, turn: int) -> None:
    arguments = random_arguments()
    state = save(tmp_path, **arguments)
    compare(read_timm(tmp_path), state, arguments)


CASES: dict[str, dict[str, Any]] = {
    "class token": {},
    "mean": {"global_pool": "avg", "class_token": False},
    "mean, with a class token": {"global_pool": "avg"},
    "mean, after the norm": {"global_pool": "avg", "class_token": False, "fc_norm": False},
    "registers": {"reg_tokens": 3},
    "registers without positions": {"reg_tokens": 3, "no_embed_class": True},
    "registers and mean": {"reg_tokens": 2, "global_pool": "avg", "class_token": False, "no_embed_class": True},
    "factors": {"init_values": 0.1},
    "no bias": {"qkv_bias": False},
    "no last norm": {"final_norm": False},
    "no classifier": {"num_classes": 0},
    "no square": {"img_size": (8, 18), "patch_size": (4, 3)},
}


@pytest.mark.parametrize("name", CASES)
def test_each_part_by_itself_and_at_other_sizes(tmp_path: Path, name: str) -> None:
    """Positions for another grid are found with smoothing, as in timm."""
    arguments = CASES[name]
    state = save(tmp_path, **arguments)
    found, rows, columns = read_timm(tmp_path), *complete(arguments)["patch_size"]
    compare(found, state, arguments)
    for _ in range(2):
        sides = (rows * int(torch.randint(1, 8, ())), columns * int(torch.randint(2, 8, ())))
        compare(found, state, arguments, sides)


def test_a_single_column_of_patches(tmp_path: Path) -> None:
    """Smoothed bicubic interpolation on a CPU (torch 2.13) is wrong for one column, unless channels lie innermost."""
    state = save(tmp_path)
    for rows in (2, 5, 7):
        compare(read_timm(tmp_path), state, {}, (4 * rows, 4))


@pytest.mark.parametrize("name", [name for name in CASES if name not in ("no square", "no last norm")])
def test_a_file_by_itself(tmp_path: Path, name: str) -> None:
    """The number of heads follows from no tensor; all else does, if the image is a square."""
    arguments = CASES[name]
    state, file = random_state(arguments), tmp_path / "weights.safetensors"
    save_file(state, file)
    found = read_timm(file, heads=2)
    compare(found, state, {**arguments, "global_pool": "avg"} if name == "mean, after the norm" else arguments)
    assert any("no config.json" in note for note in found.notes)
    assert any("0.5" in note for note in found.notes)


def test_how_many_heads_there_are(tmp_path: Path) -> None:
    file = tmp_path / "weights.safetensors"
    save_file(random_state({}), file)
    refused(file, "--heads")
    with pytest.raises(BadInput, match="not divisible by heads 3"):
        read_timm(file, 3)
    save_file(random_state({"embed_dim": 128}), file)
    found = read_timm(file)
    assert found.section.heads == 2
    assert any("taken to have 2 heads" in note for note in found.notes)
    save(tmp_path / "folder", num_heads=4)
    assert read_timm(tmp_path / "folder").section.heads == 4
    with pytest.raises(BadInput, match=r"num_heads is 4, and --heads is 2"):
        read_timm(tmp_path / "folder", 2)
    for name, width, heads in (
        ("vit_tiny_patch16_224", 192, 3),
        ("vit_base_patch16_gap_224", 768, 16),
        ("vit_base_patch16_224", 768, 12),
        ("vit_so400m_patch14_siglip_gap_224", 1152, 16),
        ("deit3_huge_patch14_224", 1280, 16),
        ("test_vit", 64, 2),
    ):
        save(tmp_path / name, {"architecture": name, "model_args": {}}, embed_dim=width, depth=1, mlp_ratio=1 / width)
        found = read_timm(tmp_path / name)
        assert found.section.heads == heads, name
        assert not [note for note in found.notes if "heads" in note]


def test_the_config_beside_a_file_is_read_too(tmp_path: Path) -> None:
    state = save(tmp_path, num_heads=4, img_size=(8, 20))
    compare(read_timm(tmp_path / "model.safetensors"), state, {"num_heads": 4, "img_size": (8, 20)})
    (tmp_path / "config.json").write_text("{}")  # of somebody else
    refused(tmp_path / "model.safetensors", "pos_embed has 11 positions, which is no square")


def test_what_is_said_about_images_and_classes(tmp_path: Path) -> None:
    save(tmp_path, {"label_names": ["n01", "n02", "n03", "n04", "n05"]})
    found = read_timm(tmp_path)
    assert found.section.mean == (0.4, 0.5, 0.6)
    assert found.section.deviation == (0.2, 0.3, 0.25)
    assert found.section.antialias
    assert found.section.norm_epsilon == 1e-6
    assert found.classes == ("n01", "n02", "n03", "n04", "n05")
    assert found.resize == "crop"
    assert found.notes == []
    save(tmp_path, {"label_names": {str(place): f"c{place}" for place in range(5)}})
    assert read_timm(tmp_path).classes == ("c0", "c1", "c2", "c3", "c4")
    save(tmp_path, {"label_names": ["a", "b"]})
    refused(tmp_path, "label_names: 2 names, but the classifier has 5 classes")
    whole = {"input_size": [3, 12, 12], "mean": [0.5] * 3, "std": [0.5] * 3}
    save(tmp_path, {"pretrained_cfg": {**whole, "crop_mode": "squash"}})
    assert read_timm(tmp_path).resize == "squash"
    (tmp_path / "config.json").write_text(json.dumps({"architecture": "test_vit", "num_classes": 5, **whole}))
    assert read_timm(tmp_path).section.mean == (0.5, 0.5, 0.5), "as the first of its repositories had it"


def test_no_classifier(tmp_path: Path) -> None:
    save(tmp_path, num_classes=0)
    found = read_timm(tmp_path)
    assert not found.has_classifier
    assert found.classes == ("0", "1")
    save(tmp_path, {"num_classes": 7, "model_args": {"num_heads": 2}}, num_classes=0)
    assert len(read_timm(tmp_path).classes) == 7


def test_which_of_two_squares_is_asked_for(tmp_path: Path) -> None:
    """Nine places may be three times three, or two times two and five tokens before them."""
    file = tmp_path / "weights.safetensors"
    save_file(random_state({"reg_tokens": 4, "no_embed_class": True}), file)
    refused(file, "may be two squares")
    arguments = {"reg_tokens": 4, "img_size": (8, 8)}
    state = save(tmp_path / "folder", **arguments)
    compare(read_timm(tmp_path / "folder"), state, arguments)


def refused(path: Path, *told: str) -> None:
    with pytest.raises(BadInput) as caught:
        read_timm(path)
    folder = path if path.is_dir() else path.parent
    for words in (*told, str(folder)):
        assert words in str(caught.value), str(caught.value)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("blocks.0.attn.q_norm.weight", "qk_norm"),
        ("blocks.1.attn.gate.weight", "gated"),
        ("blocks.0.mlp.fc1_g.weight", "SwiGLU"),
        ("blocks.0.mlp.w12.weight", "SwiGLU"),
        ("blocks.0.attn.q_bias", "EVA"),
        ("rope.bands", "rotary"),
        ("dist_token", "distillation"),
        ("head_dist.weight", "distillation"),
        ("norm_pre.weight", "pre_norm"),
        ("attn_pool.latent", "attention pools"),
        ("patch_embed.backbone.stem.conv.weight", "another way to read patches"),
        ("pre_logits.fc.weight", "pre_logits"),
        ("blocks.0.attn.lambda_q1", "differential"),
        ("blocks.0.gamma_1", "BEiT"),
        ("blocks.0.something.else", "nothing here is made for it"),
    ],
)
def test_what_none_here_has_is_refused_by_its_key(tmp_path: Path, name: str, told: str) -> None:
    state = save(tmp_path)
    save_file({**state, name: torch.ones(3)}, tmp_path / "model.safetensors")
    refused(tmp_path, f"{name}: ", told)


def test_two_things_that_no_name_tells(tmp_path: Path) -> None:
    state = save(tmp_path)
    packed = {f"blocks.{n}.mlp.fc2.weight": torch.randn(16, 16) for n in range(2)}
    save_file({**state, **packed}, tmp_path / "model.safetensors")
    refused(tmp_path, "blocks.0.mlp.fc2.weight reads half of what blocks.0.mlp.fc1.weight writes", "SwiGLU")
    save(tmp_path, {"architecture": "vit_base_patch16_rpn_224"})
    refused(tmp_path, "vit_base_patch16_rpn_224", "norms come after")
    save(tmp_path, {"architecture": "vit_so400m_patch16_siglip_gap_256"})
    refused(tmp_path, "gelu_tanh")


def test_a_mask_token_is_only_for_pretraining(tmp_path: Path) -> None:
    state = save(tmp_path)
    save_file({**state, "mask_token": torch.ones(1, 1, 16)}, tmp_path / "model.safetensors")
    assert read_timm(tmp_path).notes == ["1 tensor is not read: mask_token"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"qk_norm": True}, "model_args.qk_norm is True"),
        ({"norm_layer": "rmsnorm"}, "model_args.norm_layer is 'rmsnorm'"),
        ({"act_layer": "quick_gelu"}, "model_args.act_layer 'quick_gelu'"),
        ({"global_pool": "map"}, "global_pool 'map'"),
        ({"pool_include_prefix": True}, "pool_include_prefix"),
        ({"use_rope": True}, "model_args.use_rope is not known"),
        ({"embed_dim": 32}, "embed_dim is 32, but in the weights patch_embed.proj.weight says 16"),
        ({"depth": 3}, "depth is 3"),
        ({"patch_size": 8}, "patch_size is 8"),
        ({"img_size": 16}, "pos_embed is 1 × 10 × 16"),
        ({"num_classes": 7}, "num_classes is 7, but in the weights head.weight says 5"),
        ({"mlp_ratio": 4}, "mlp_ratio is 4"),
        ({"reg_tokens": 1}, "reg_tokens is 1"),
        ({"class_token": False}, "class_token is False"),
        ({"qkv_bias": False}, "qkv_bias is False"),
        ({"in_chans": 1}, "in_chans is 1"),
        ({"no_embed_class": True}, "pos_embed is 1 × 10 × 16"),
        ({"fc_norm": True}, "fc_norm is True"),
        ({"final_norm": False}, "final_norm"),
        ({"num_heads": "2"}, "num_heads is '2'"),
        ({"num_heads": 5}, "not divisible by heads 5"),
        ({"init_values": -1.0}, None),
    ],
)
def test_every_argument_is_held_against_the_weights(
    tmp_path: Path, arguments: dict[str, Any], told: str | None
) -> None:
    save(tmp_path)
    file = tmp_path / "config.json"
    config = json.loads(file.read_text())
    config["model_args"] |= arguments
    file.write_text(json.dumps(config))
    if told is None:
        read_timm(tmp_path)  # there are no factors, so where they begin is nobody's business
    else:
        refused(tmp_path, told)


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"num_classes": 9}, "num_classes is 9"),
        ({"num_features": 9}, "num_features is 9"),
        ({"global_pool": "max"}, "global_pool 'max'"),
        ({"model_args": [1]}, "model_args is [1]"),
        ({"pretrained_cfg": {"input_size": [3, 12]}}, "input_size is [3, 12]"),
        ({"pretrained_cfg": {"input_size": [1, 12, 12]}}, "input_size is [1, 12, 12]"),
        ({"pretrained_cfg": {"input_size": [3, 12, 24]}}, "pos_embed is 1 × 10 × 16"),
        ({"pretrained_cfg": {"input_size": [3, 13, 12]}}, "13×12 cannot be cut"),
        ({"pretrained_cfg": {"input_size": [3, 12, 12], "mean": "x", "std": 1}}, "mean is 'x'"),
        ({"architecture": None, "model_type": "vit"}, "jumok import hf"),
        ({"architecture": None}, "no architecture"),
    ],
)
def test_every_word_beside_the_weights_is_held_against_them(tmp_path: Path, config: dict[str, Any], told: str) -> None:
    save(tmp_path, {"model_args": {"num_heads": 2}, **config})
    refused(tmp_path, told)


def test_missing_and_misshapen_tensors_are_named(tmp_path: Path) -> None:
    state = save(tmp_path)
    file = tmp_path / "model.safetensors"
    for name in state:
        if name == "cls_token":
            continue  # the pooling would miss it: below
        save_file({one: state[one] for one in state if one != name}, file)
        refused(tmp_path, f"no tensor {name}")
    save_file({one: state[one] for one in state if one != "cls_token"}, file)
    refused(tmp_path, "global_pool is token, but in the weights there is no cls_token")
    for name, tensor in state.items():
        for shape in ((*tensor.shape[:-1], tensor.shape[-1] + 1), (*tensor.shape, 1), ()):
            save_file({**state, name: torch.ones(shape)}, file)
            with pytest.raises(BadInput) as caught:
                read_timm(tmp_path)
            assert str(tmp_path) in str(caught.value)
    save_file({**state, "blocks.999999999.norm1.weight": torch.ones(16)}, file)
    refused(tmp_path, "no tensor blocks.2.")
    save_file({**state, "fc_norm.weight": torch.ones(16), "fc_norm.bias": torch.ones(16)}, file)
    refused(tmp_path, "fc_norm")
    save_file({"something": torch.ones(3)}, file)
    refused(tmp_path, "something")


def test_files_that_are_none(tmp_path: Path) -> None:
    refused(tmp_path / "nowhere", "no such file")
    refused(tmp_path, "no weights there")
    file = tmp_path / "model.pth"
    file.write_bytes(b"whatever")
    refused(file, "only safetensors")
    (tmp_path / "model.safetensors").write_bytes(b"whatever")
    refused(tmp_path / "model.safetensors", "damaged")


def test_it_reads_what_was_saved(tmp_path: Path) -> None:
    """Queries, keys and values are taken apart, positions of tokens added to them."""
    state = save(tmp_path, reg_tokens=2)
    found = read_timm(tmp_path)
    assert load_file(tmp_path / "model.safetensors").keys() == state.keys()
    together = state["blocks.1.attn.qkv.weight"]
    for place, part in enumerate(("query", "key", "value")):
        taken = found.weights[f"reader.encoder.blocks.1.attention.{part}.weight"]
        assert torch.equal(taken, together[16 * place : 16 * (place + 1)])
    tokens = torch.cat([state["cls_token"], state["reg_token"]], dim=1)[0] + state["pos_embed"][0, :3]
    assert torch.equal(found.weights["reader.tokens"], tokens)
    assert torch.equal(found.weights["reader.positions.weight"].flatten(0, 1), state["pos_embed"][0, 3:])
