"""BERTs and Vision Transformers written for transformers: bit for bit what came from there, and the same numbers."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from image_runs import image_run
from PIL import Image
from safetensors.torch import load_file
from seeded import seed  # noqa: F401
from torch import Tensor

from jumok import api
from jumok import recipe as recipes
from jumok.errors import BadInput, Failure
from jumok.files import sha256
from jumok.interop import export_huggingface as exporting
from jumok.interop.export_huggingface import export_huggingface
from jumok.interop.run_folder import import_huggingface
from jumok.models.vit import ImageLabeller
from jumok.recipe import VitSection
from jumok.training.run import RunFolder

transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.usefixtures("seed")
MINILM = Path(__file__).parents[2] / ".device-minilm"
TOKENS = ["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefgh", *("##" + c for c in "abcdefgh")]


def drawn(low: int, high: int) -> int:
    return int(torch.randint(low, high + 1, ()))


def saved(folder: Path, kind: str, config: Any, newer: bool = False) -> dict[str, Tensor]:
    """A random model of theirs, in a folder; and its tensors."""
    model = getattr(transformers, kind)(config).eval()
    for parameter in model.parameters():  # norms and biases are not ones and zeros
        parameter.data.add_(0.1 * torch.randn_like(parameter))
    model.save_pretrained(folder)
    kept = load_file(folder / "model.safetensors")
    if newer:
        model.save_pretrained(folder, save_original_format=False)
    return kept


def bert_config(**more: Any) -> Any:
    heads = drawn(1, 3)
    sizes = {"hidden_size": heads * drawn(3, 8), "num_hidden_layers": drawn(1, 3), "num_attention_heads": heads}
    sizes |= {"intermediate_size": drawn(8, 40), "max_position_embeddings": drawn(16, 40)}
    kinds = {"hidden_act": ["gelu", "relu", "silu"][drawn(0, 2)], "layer_norm_eps": [1e-12, 1e-5][drawn(0, 1)]}
    return transformers.BertConfig(**sizes, **kinds, initializer_range=0.2, **{"vocab_size": len(TOKENS), **more})


def same(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        assert torch.equal(found[name], tensor), name


@pytest.mark.parametrize("kind", ["BertForMaskedLM", "BertModel"])
@pytest.mark.parametrize("extra", [0, 7])
def test_a_bert_comes_back_bit_for_bit(tmp_path: Path, kind: str, extra: int) -> None:
    kept = saved(tmp_path / "theirs", kind, bert_config(vocab_size=len(TOKENS) + extra))
    (tmp_path / "theirs" / "vocab.txt").write_text("\n".join(TOKENS) + "\n")
    import_huggingface(tmp_path / "theirs", tmp_path / "run")
    notes = export_huggingface(RunFolder(tmp_path / "run"), tmp_path / "back")
    same(load_file(tmp_path / "back" / "model.safetensors"), kept)
    assert notes[-1].startswith("checked: the largest difference from transformers")
    assert (tmp_path / "back" / "vocab.txt").read_text() == "\n".join(TOKENS) + "\n"
    config = json.loads((tmp_path / "back" / "config.json").read_text())
    before = json.loads((tmp_path / "theirs" / "config.json").read_text())
    before["initializer_range"] = config["initializer_range"]  # how a model begins, which nobody needs to know
    assert {key: before[key] for key in config if key in before}.items() <= config.items()
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "back")
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "theirs")
    for text in ("Abc de [MASK] h", "xyz ab  gh,a"):
        assert tokenizer(text, "b [SEP]").data == theirs(text, "b [SEP]").data
    assert (tokenizer.mask_token_id, tokenizer.pad_token_id) == (5, 0)
    assert tokenizer.model_max_length == config["max_position_embeddings"]
    import_huggingface(tmp_path / "back", tmp_path / "again")
    first, second = (load_file(tmp_path / run / "checkpoints/step-0/model.safetensors") for run in ("run", "again"))
    same(second, first)


def test_a_pooler_stays_with_hidden_words(tmp_path: Path) -> None:
    kept = saved(tmp_path / "theirs", "BertForPreTraining", bert_config())
    (tmp_path / "theirs" / "vocab.txt").write_text("\n".join(TOKENS) + "\n")
    import_huggingface(tmp_path / "theirs", tmp_path / "run")
    export_huggingface(RunFolder(tmp_path / "run"), tmp_path / "back")
    expected = {name: tensor for name, tensor in kept.items() if "seq_relationship" not in name}
    same(load_file(tmp_path / "back" / "model.safetensors"), expected)


@pytest.mark.skipif(not (MINILM / "model.safetensors").is_file(), reason="no weights of MiniLM here")
def test_minilm_comes_back_bit_for_bit(tmp_path: Path) -> None:
    import_huggingface(MINILM, tmp_path / "run")
    notes = export_huggingface(RunFolder(tmp_path / "run"), tmp_path / "back")
    assert "checked" in notes[-1]
    kept = load_file(MINILM / "model.safetensors")
    same(load_file(tmp_path / "back" / "model.safetensors"), {n: t for n, t in kept.items() if "position_ids" not in n})
    assert (tmp_path / "back" / "vocab.txt").read_bytes() == (MINILM / "vocab.txt").read_bytes()
    assert json.loads((tmp_path / "back" / "1_Pooling" / "config.json").read_text())["pooling_mode_mean_tokens"] is True
    ours, theirs = (transformers.AutoTokenizer.from_pretrained(place) for place in (tmp_path / "back", MINILM))
    for text in ("Attention is all you need, isn't it?", "주목 Ünaffable 中文 [MASK]"):
        assert ours(text)["input_ids"] == [id for id in theirs(text, padding=False)["input_ids"] if id]


def vit_config(**more: Any) -> Any:
    heads, patch, grid = drawn(1, 3), (drawn(2, 4), drawn(2, 4)), (drawn(1, 4), drawn(1, 4))
    return transformers.ViTConfig(
        **{
            "hidden_size": heads * drawn(3, 8), "num_hidden_layers": drawn(1, 3), "num_attention_heads": heads,
            "intermediate_size": drawn(8, 40), "image_size": [a * b for a, b in zip(patch, grid, strict=True)],
            "patch_size": list(patch), "num_channels": [1, 3][drawn(0, 1)], "num_labels": drawn(3, 5),
            "hidden_act": ["gelu", "relu", "silu"][drawn(0, 2)], "initializer_range": 0.2, **more,
        }
    )  # fmt: skip


@pytest.mark.parametrize("newer", [False, True], ids=["files", "transformers 5"])
@pytest.mark.parametrize("biased", [True, False], ids=["biases", "none"])
def test_a_vit_comes_back_bit_for_bit(tmp_path: Path, newer: bool, biased: bool) -> None:
    config = vit_config(qkv_bias=biased)
    kept = saved(tmp_path / "theirs", "ViTForImageClassification", config, newer)
    told = {"image_mean": [0.25] * config.num_channels, "image_std": [0.125] * config.num_channels}
    (tmp_path / "theirs" / "preprocessor_config.json").write_text(json.dumps(told))
    import_huggingface(tmp_path / "theirs", tmp_path / "run")
    notes = export_huggingface(RunFolder(tmp_path / "run"), tmp_path / "back")
    same(load_file(tmp_path / "back" / "model.safetensors"), kept)
    assert "checked: the largest difference" in notes[-1]
    written = json.loads((tmp_path / "back" / "preprocessor_config.json").read_text())
    assert {key: written[key] for key in told} == told
    assert written["size"] == dict(zip(("height", "width"), config.image_size, strict=True))
    assert json.loads((tmp_path / "back" / "config.json").read_text())["id2label"] == {
        str(number): name for number, name in config.id2label.items()
    }


def test_a_vit_without_a_classifier(tmp_path: Path) -> None:
    kept = saved(tmp_path / "theirs", "ViTModel", vit_config())
    import_huggingface(tmp_path / "theirs", tmp_path / "run")
    export_huggingface(RunFolder(tmp_path / "run"), tmp_path / "back")
    expected = {name: tensor for name, tensor in kept.items() if "pooler" not in name}
    same(load_file(tmp_path / "back" / "model.safetensors"), expected)


@pytest.mark.parametrize(
    "model",
    [{}, {"pooled_norm": True}, {"position": "none"}, {"position": "sinusoidal"}, {"channels": 1, "patch": [2, 4]}],
    ids=str,
)
def test_what_a_vit_may_have(tmp_path: Path, model: dict[str, Any]) -> None:
    run = image_run(tmp_path / "run", **model)
    assert "checked" in export_huggingface(run, tmp_path / "out")[-1]
    import_huggingface(tmp_path / "out", tmp_path / "again")
    section = RunFolder(tmp_path / "again").recipe().model
    assert isinstance(section, VitSection)
    ours, theirs = (ImageLabeller(recipe, 3).eval() for recipe in (run.recipe().model, section))  # type: ignore[arg-type]
    ours.load_state_dict(load_file(run.checkpoints / "step-0/model.safetensors"))
    theirs.load_state_dict(load_file(tmp_path / "again/checkpoints/step-0/model.safetensors"))
    images = torch.randint(256, (3, section.channels, 8, 8), dtype=torch.uint8)
    with torch.no_grad():
        torch.testing.assert_close(ours(images), theirs(images), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("registers", 2), ("layer_scale", 0.1), ("pooling", "mean"), ("pooling", "sequence"), ("norm", "post"),
        ("norm_kind", "rms"), ("activation", "swiglu"), ("final_norm", False), ("stem", "convolution"),
        ("key_value_heads", 1),
    ],
)  # fmt: skip
def test_what_a_vit_may_not_have_is_named(tmp_path: Path, key: str, value: Any) -> None:
    run = image_run(tmp_path / "run", **{key: value})
    with pytest.raises(BadInput, match=rf"model\.{key}: {str(value).lower()}"):
        export_huggingface(run, tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]


def test_sizes_of_images(tmp_path: Path) -> None:
    for resize, size, crop in (("crop", {"shortest_edge": 8}, True), ("squash", {"height": 8, "width": 8}, False)):
        export_huggingface(image_run(tmp_path / resize, resize), tmp_path / f"{resize} out")
        told = json.loads((tmp_path / f"{resize} out/preprocessor_config.json").read_text())
        assert (told["size"], "crop_size" in told, told["do_resize"]) == (size, crop, True)
    notes = export_huggingface(image_run(tmp_path / "pad", "pad"), tmp_path / "pad out")
    assert any("data.resize: pad" in note for note in notes)
    assert json.loads((tmp_path / "pad out/preprocessor_config.json").read_text())["do_resize"] is False


@torch.no_grad()
@pytest.mark.parametrize("channels", [3, 1])
@pytest.mark.parametrize("resize", ["squash", "crop"])
def test_from_picture_to_score(tmp_path: Path, resize: str, channels: int) -> None:
    run = image_run(tmp_path / "run", resize, channels=channels, mean=[0.4, 0.5, 0.6], deviation=[0.2, 0.3, 0.25])
    export_huggingface(run, tmp_path / "out")
    model = transformers.ViTForImageClassification.from_pretrained(tmp_path / "out").eval()
    processor = transformers.AutoImageProcessor.from_pretrained(tmp_path / "out")
    side = 4 * drawn(2, 6)
    pixels = np.random.default_rng().integers(0, 256, (side, 2 * side, channels), np.uint8)
    picture = Image.fromarray(pixels if channels == 3 else pixels[:, :, 0])
    found = model(**processor(picture, return_tensors="pt")).logits.softmax(-1)[0].tolist()
    (said,) = api.load(run.path, "cpu").predict([pixels])
    assert found == pytest.approx(list(said.probabilities.values()), abs=1e-3)
    assert list(model.config.id2label.values()) == list(said.probabilities)


def test_the_card_tells_what_the_run_knows(tmp_path: Path) -> None:
    run = image_run(tmp_path / "my shapes")
    notes = export_huggingface(run, tmp_path / "out")
    card = (tmp_path / "out" / "README.md").read_text()
    for words in (
        "# my shapes", "pipeline_tag: image-classification", "drawn: shapes", "| accuracy | 0.8125 |", "kind: vit",
        f"model.safetensors: `{sha256(tmp_path / 'out' / 'model.safetensors')}`", notes[-1],
        "ViTForImageClassification.from_pretrained",
    ):  # fmt: skip
        assert words in card


def test_a_difference_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = image_run(tmp_path / "run")
    honest = exporting.outgoing_vit

    def spoiled(*given: Any) -> Any:
        made = honest(*given)
        made.weights["vit.encoder.layer.1.output.dense.bias"][0] += 0.01
        return made

    export_huggingface(run, tmp_path / "before")
    monkeypatch.setattr(exporting, "outgoing_vit", spoiled)
    for out in ("deep/er/out", "before"):
        with pytest.raises(Failure, match=r"in the scores of 4 random images is .*, more than"):
            export_huggingface(run, tmp_path / out)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["before", "run"]
    assert (tmp_path / "before" / "README.md").is_file()


def test_only_an_export_is_written_over(tmp_path: Path) -> None:
    run, out = image_run(tmp_path / "run"), tmp_path / "deep" / "out"
    export_huggingface(run, out)
    export_huggingface(run, out)
    assert [path.name for path in out.parent.iterdir()] == ["out"]
    (out / "config.json").write_text("mine")
    with pytest.raises(BadInput, match=r"config\.json came there, or changed"):
        export_huggingface(run, out)
    assert (out / "config.json").read_text() == "mine"
    with pytest.raises(BadInput, match="no export of jumok"):
        export_huggingface(run, tmp_path / "run")
    (tmp_path / "file").write_text("x")
    with pytest.raises(BadInput, match="is a file"):
        export_huggingface(run, tmp_path / "file")


def test_without_the_library_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    notes = export_huggingface(image_run(tmp_path / "run"), tmp_path / "out")
    assert notes[-1].startswith("not checked: transformers is not installed")


def test_other_models_are_named(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path / "run", recipes.read("lstm-luong"))
    with pytest.raises(BadInput, match="kind seq2seq"):
        export_huggingface(run, tmp_path / "out")
