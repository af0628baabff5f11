"""`jumok import`: Vision Transformers of others become runs; what does not fit is named, and nothing is left behind."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from asked import Ask, refused
from safetensors.torch import load_file, save_file
from seeded import seed  # noqa: F401
from timm_layout import forward, random_state

import jumok

pytestmark = pytest.mark.usefixtures("seed")


def save_vit(folder: Path, kind: str = "ViTForImageClassification", **config: Any) -> Any:
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 24}
    sizes |= {"image_size": (8, 12), "patch_size": 4, "initializer_range": 0.3}
    made = transformers.ViTConfig(**{**sizes, **config})
    model = getattr(transformers, kind)(made).eval()
    model.save_pretrained(folder)
    levels = {"image_mean": [0.1, 0.2, 0.3], "image_std": [0.4, 0.5, 0.6]}
    (folder / "preprocessor_config.json").write_text(json.dumps(levels))
    return model


@torch.no_grad()
def test_a_vit_of_hugging_face_becomes_a_run(ask: Ask, tmp_path: Path) -> None:
    names = ["cat", "dog", "고양이"]
    theirs, run = save_vit(tmp_path / "theirs", id2label=dict(enumerate(names))), tmp_path / "runs" / "vit"
    code, out, err = ask("import", "hf", tmp_path / "theirs", "--run", run, "--verify")
    assert code == 0, err
    for words in ("1 layer, 16 wide, 2 heads", "images of 8 × 12 in patches of 4 × 4", "3 classes"):
        assert words in out
    assert "verified: the largest difference from transformers" in out
    assert f"jumok predict --run {run}" in out
    assert "'model.image=[8,12]'" in out
    model = jumok.load(run, device="cpu")
    assert model.classes.names == tuple(names)
    assert model.recipe.data.resize == "squash"
    images = torch.randint(256, (2, 3, 8, 12), dtype=torch.uint8)
    mean, deviation = (torch.tensor(level)[:, None, None] for level in ([0.1, 0.2, 0.3], [0.4, 0.5, 0.6]))
    expected = theirs((images / 255 - mean) / deviation).logits
    torch.testing.assert_close(model.model(images), expected, atol=1e-5, rtol=1e-5)
    (said,) = model.predict([images[0].permute(1, 2, 0).numpy()])
    assert said.label == names[int(expected[0].argmax())]
    refused(ask("import", "hf", tmp_path / "theirs", "--run", run), "holds a run already")
    refused(ask("train", "--resume", "--run", run), "was imported", "--start")


def test_without_a_classifier_that_is_said(ask: Ask, tmp_path: Path) -> None:
    save_vit(tmp_path / "theirs", "ViTModel", image_size=8)
    code, out, _ = ask("import", "hf", tmp_path / "theirs", "--run", tmp_path / "run", "--verify")
    assert code == 0
    assert "no classifier: one of 2 classes" in out
    assert "hidden states" in out
    assert "model.image=8 " in out
    assert "jumok predict" not in out
    assert jumok.load(tmp_path / "run", device="cpu").classes.names == ("0", "1")


@torch.no_grad()
def test_a_vit_of_timm_becomes_a_run(ask: Ask, tmp_path: Path) -> None:
    arguments = {"reg_tokens": 2, "init_values": 0.1}
    state, theirs = random_state(arguments), tmp_path / "theirs"
    theirs.mkdir()
    save_file(state, theirs / "model.safetensors")
    config = {"architecture": "vit_tiny_patch16_224", "num_classes": 5, "label_names": list("abcde")}
    config |= {"pretrained_cfg": {"input_size": [3, 12, 12], "mean": [0.5] * 3, "std": [0.5] * 3}}
    (theirs / "config.json").write_text(json.dumps({**config, "model_args": {"num_heads": 2}}))
    code, out, err = ask("import", "timm", theirs, "--run", tmp_path / "one")
    assert code == 0, err
    assert "2 layers, 16 wide, 2 heads" in out
    (theirs / "config.json").unlink()
    refused(ask("import", "timm", theirs, "--run", tmp_path / "two"), "--heads", str(theirs))
    code, out, err = ask("import", "timm", theirs / "model.safetensors", "--run", tmp_path / "two", "--heads", 2)
    assert code == 0, err
    images = torch.randint(256, (2, 3, 12, 12), dtype=torch.uint8)
    _, expected = forward(state, arguments, images / 127.5 - 1)
    for run, names in (("one", tuple("abcde")), ("two", tuple("01234"))):
        model = jumok.load(tmp_path / run, device="cpu")
        assert model.classes.names == names
        torch.testing.assert_close(model.model(images), expected, atol=1e-5, rtol=1e-5)


def test_a_missing_library_is_said_and_a_difference_fails(
    ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "model.safetensors"
    save_file(random_state({}), file)
    monkeypatch.setitem(sys.modules, "timm", None)
    code, out, _ = ask("import", "timm", file, "--run", tmp_path / "one", "--heads", 2, "--verify")
    assert code == 0
    assert "not verified: timm is not installed here" in out
    theirs = save_vit(tmp_path / "theirs")
    from jumok.interop import verifying

    monkeypatch.setattr(verifying, "LARGEST", -1.0)
    refused(ask("import", "hf", tmp_path / "theirs", "--run", tmp_path / "two", "--verify"), "more than", code=1)
    assert theirs is not None


def test_what_does_not_fit_leaves_nothing_behind(ask: Ask, tmp_path: Path) -> None:
    theirs, run = tmp_path / "theirs", tmp_path / "runs" / "vit"
    save_vit(theirs)
    said = json.loads((theirs / "config.json").read_text(encoding="utf-8"))
    (theirs / "config.json").write_text(json.dumps({**said, "intermediate_size": 33}), encoding="utf-8")
    refused(ask("import", "hf", theirs, "--run", run), "intermediate", "33 × 16", "config.json")
    (theirs / "config.json").write_text(json.dumps({**said, "model_type": "deit"}), encoding="utf-8")
    refused(ask("import", "hf", theirs, "--run", run), "model_type is 'deit'", "only bert, vit and marian")
    (theirs / "config.json").write_text('{"architecture": "vit_tiny_patch16_224"}', encoding="utf-8")
    refused(ask("import", "hf", theirs, "--run", run), "jumok import timm")
    (theirs / "config.json").write_text(json.dumps(said), encoding="utf-8")
    refused(ask("import", "timm", theirs, "--run", run), "jumok import hf")
    weights = load_file(theirs / "model.safetensors")
    weights["vit.layernorm.bias"][3] = torch.nan
    save_file(weights, theirs / "model.safetensors")
    refused(ask("import", "hf", theirs, "--run", run), "not numbers", "encoder.norm.bias")
    refused(ask("import", "timm", tmp_path / "nowhere", "--run", run), "no such file")
    refused(ask("import", "hf", tmp_path / "nowhere", "--run", run), "no such folder", "Nothing is downloaded")
    assert not run.parent.exists()


@pytest.mark.parametrize("changed", ["encoder.layer.0.output.dense.weight", "classifier.weight"])
def test_what_is_not_the_same_does_not_stay(
    ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    """The check is before "imported", names the layer, and leaves nothing where it fails."""
    from jumok.interop import verifying

    save_vit(tmp_path / "theirs", num_hidden_layers=2)
    other = tmp_path / "other"
    shutil.copytree(tmp_path / "theirs", other)
    tensors = load_file(other / "model.safetensors")
    name = next(one for one in tensors if one.removeprefix("vit.") == changed)
    save_file(tensors | {name: 2 * tensors[name]}, other / "model.safetensors", {"format": "pt"})
    loaded = verifying._loaded
    monkeypatch.setattr(verifying, "_loaded", lambda library, kind, _folder: loaded(library, kind, other))
    code, out, err = ask("import", "hf", tmp_path / "theirs", "--run", tmp_path / "runs" / "vit", "--verify")
    assert code == 1
    assert "imported" not in out
    assert ("in layer 1;" if "layer" in changed else "in the end;") in err
    assert not (tmp_path / "runs" / "vit").exists()


def test_the_folder_that_one_is_in_is_no_run(ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_vit(tmp_path / "theirs")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    refused(ask("import", "hf", tmp_path / "theirs", "--run", "."), "you are in this folder")
    assert ask("import", "hf", tmp_path / "theirs", "--run", "vit")[0] == 0
