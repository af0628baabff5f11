"""Imported models held against the library they come from: what differs fails, what cannot be compared is said."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from seeded import seed  # noqa: F401
from timm_layout import complete, forward, random_state
from torch import Tensor, nn

from jumok.errors import Failure
from jumok.interop.run_folder import import_huggingface, import_timm
from jumok.interop.verifying import verify_huggingface, verify_timm

pytestmark = pytest.mark.usefixtures("seed")
SMALL = {
    "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24, "image_size": 8,
    "patch_size": 4, "initializer_range": 0.2,
}  # fmt: skip


def spoil(run: Path, name: str) -> None:
    """One number of one weight is another; the checkpoint's checksum is nobody's business here."""
    file = run / "checkpoints" / "step-0" / "model.safetensors"
    weights = load_file(file)
    weights[name].view(-1)[0] += 0.01
    save_file(weights, file)


@pytest.mark.parametrize(("kind", "what"), [("ViTForImageClassification", "scores"), ("ViTModel", "hidden states")])
def test_beside_transformers(tmp_path: Path, kind: str, what: str) -> None:
    transformers = pytest.importorskip("transformers")
    theirs, run = tmp_path / "theirs", tmp_path / "run"
    getattr(transformers, kind)(transformers.ViTConfig(**SMALL)).half().save_pretrained(theirs)
    import_huggingface(theirs, run)
    told = verify_huggingface(theirs, run)
    assert f"verified: the largest difference from transformers {transformers.__version__} in the {what}" in told
    assert "(layer by layer: " in told
    spoil(run, "reader.stem.map.bias")
    with pytest.raises(Failure, match=r"more than \de-05"):
        verify_huggingface(theirs, run)


def test_a_bert_beside_transformers(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    theirs, run = tmp_path / "theirs", tmp_path / "run"
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefgh"]
    sizes = {key: SMALL[key] for key in SMALL if "size" not in key} | {"hidden_size": 16, "intermediate_size": 24}
    config = transformers.BertConfig(**sizes, vocab_size=len(tokens), max_position_embeddings=9)
    transformers.BertForMaskedLM(config).save_pretrained(theirs)
    (theirs / "vocab.txt").write_text("\n".join(tokens) + "\n")
    import_huggingface(theirs, run)
    assert "verified: the largest difference" in verify_huggingface(theirs, run)
    spoil(run, "reader.positions.weight")
    with pytest.raises(Failure, match="more than"):
        verify_huggingface(theirs, run)


class Written(nn.Module):
    """Stands for timm's VisionTransformer where there is no timm: the same arguments, the equations written out."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__()
        self.arguments = complete(arguments)
        self.tensors = {name: torch.empty_like(tensor) for name, tensor in random_state(self.arguments).items()}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:  # type: ignore[override]
        assert {name: one.shape for name, one in state.items()} == {
            name: one.shape for name, one in self.tensors.items()
        }
        self.tensors = dict(state)

    def forward_features(self, pixels: Tensor) -> Tensor:
        return forward(self.tensors, self.arguments, pixels)[0]

    def forward(self, pixels: Tensor) -> Tensor:
        return forward(self.tensors, self.arguments, pixels)[1]


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    timm, models, vision = ModuleType("timm"), ModuleType("timm.models"), ModuleType("timm.models.vision_transformer")

    def create_model(architecture: str, pretrained: bool, **arguments: Any) -> Written:
        assert not pretrained
        return Written(**{"embed_dim": 64, "patch_size": (4, 4), "mlp_ratio": 3, "num_heads": 2, **arguments})

    timm.create_model = create_model  # type: ignore[attr-defined]
    timm.__version__ = "1.2.3"  # type: ignore[attr-defined]
    vision.VisionTransformer = Written  # type: ignore[attr-defined]
    for module in (timm, models, vision):
        monkeypatch.setitem(sys.modules, module.__name__, module)


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize("classes", [5, 0])
@pytest.mark.parametrize("told", [True, False], ids=["folder", "file"])
def test_beside_timm(tmp_path: Path, classes: int, told: bool) -> None:
    arguments = {"embed_dim": 64, "mlp_ratio": 3, "num_classes": classes, "reg_tokens": 2, "no_embed_class": True}
    arguments |= {"init_values": 0.1, "qkv_bias": False}
    save_file(random_state(arguments), tmp_path / "model.safetensors")
    path = tmp_path if told else tmp_path / "model.safetensors"
    if told:
        given = '{"reg_tokens": 2, "no_embed_class": true, "init_values": 0.1, "qkv_bias": false, "depth": 2}'
        config = f'{{"architecture": "test_vit", "model_args": {given}, "input_size": [3, 12, 12]}}'
        (tmp_path / "config.json").write_text(config)
    import_timm(path, tmp_path / "run", None if told else 2)
    said = verify_timm(path, tmp_path / "run")
    assert f"from timm 1.2.3 in the {'scores' if classes else 'hidden states'} of 4 random images" in said
    spoil(tmp_path / "run", "reader.encoder.blocks.1.feed_forward_norm.scale")
    with pytest.raises(Failure, match="largest difference from timm"):
        verify_timm(path, tmp_path / "run")


@pytest.mark.usefixtures("stand_in")
def test_a_wrong_number_of_heads_shows(tmp_path: Path) -> None:
    """The very thing that no tensor tells."""
    file = tmp_path / "model.safetensors"
    save_file(random_state({"embed_dim": 64, "mlp_ratio": 3}), file)
    import_timm(file, tmp_path / "run", 4)
    (tmp_path / "config.json").write_text('{"architecture": "test_vit"}')  # which has two
    with pytest.raises(Failure, match="largest difference"):
        verify_timm(file, tmp_path / "run")


@pytest.mark.usefixtures("stand_in")
def test_what_the_library_cannot_load_is_no_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "model.safetensors"
    save_file(random_state({}), file)
    import_timm(file, tmp_path / "run", 2)
    monkeypatch.setattr(Written, "forward", lambda self, pixels: 1 / 0)
    with pytest.raises(Failure, match="not verified: timm cannot compute"):
        verify_timm(file, tmp_path / "run")


def test_a_library_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_file(random_state({}), tmp_path / "model.safetensors")
    import_timm(tmp_path / "model.safetensors", tmp_path / "run", 2)
    monkeypatch.setitem(sys.modules, "timm", None)
    told = verify_timm(tmp_path / "model.safetensors", tmp_path / "run")
    assert told.startswith("not verified: timm is not installed here")
