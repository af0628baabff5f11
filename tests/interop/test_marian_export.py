"""Translators written for transformers: what came from there bit for bit; runs of our own, where Marian can say it."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
import torch
from marian_models import sentence, write_marian
from safetensors.torch import load_file, save_file
from seeded import seed  # noqa: F401

from jumok import recipe as recipes
from jumok.errors import BadInput, Failure
from jumok.files import sha256
from jumok.interop import marian_export
from jumok.interop.marian_export import export_marian
from jumok.interop.run_folder import import_huggingface
from jumok.models.transformer import Transformer
from jumok.recipe import TransformerSection
from jumok.tasks.vocabulary import save_tokenizers
from jumok.text.tokenizer import train_tokenizer
from jumok.training import checkpoint
from jumok.training.run import RunFolder
from jumok.training.state import TrainState

transformers = pytest.importorskip("transformers")
pytest.importorskip("sentencepiece")
pytestmark = [pytest.mark.usefixtures("seed"), pytest.mark.filterwarnings("ignore:Recommended")]


@pytest.fixture
def dice(seed: int) -> random.Random:  # noqa: F811
    return random.Random(seed)


def same_tensors(one: Path, other: Path) -> bool:
    first, second = load_file(one / "model.safetensors"), load_file(other / "model.safetensors")
    return first.keys() == second.keys() and all(
        first[name].dtype == second[name].dtype and torch.equal(first[name], second[name]) for name in first
    )


def older(folder: Path, theirs: Any) -> None:
    """As checkpoints of years ago are: half precision, tables of positions, every copy of a shared tensor."""
    tensors = load_file(folder / "model.safetensors")
    words = tensors["model.shared.weight"]
    tensors |= {name: words.clone() for name in ("model.encoder.embed_tokens.weight", "lm_head.weight")}
    tensors |= {
        f"model.{half}.embed_positions.weight": theirs.model.encoder.embed_positions.weight.detach().clone()
        for half in ("encoder", "decoder")
    }
    halves = {name: tensor.half().contiguous() for name, tensor in tensors.items()}
    save_file(halves, folder / "model.safetensors", {"format": "pt"})


@pytest.mark.parametrize("kind", ["shared", "separate", "untied", pytest.param("older", marks=pytest.mark.full)])
def test_there_and_back_bit_for_bit(tmp_path: Path, dice: random.Random, kind: str) -> None:
    changes = {"untied": {"separate": True, "tie_word_embeddings": False}, "separate": {"separate": True}}
    theirs = write_marian(tmp_path / "hf", dice, **changes.get(kind, {}))
    if kind == "older":
        older(tmp_path / "hf", theirs)
    import_huggingface(tmp_path / "hf", tmp_path / "run")
    notes = export_marian(RunFolder.open(tmp_path / "run"), tmp_path / "out")
    assert notes[-1].startswith("checked: max|Δ|")
    assert "20 of 20" in notes[-1]
    assert notes[-1].endswith("texts are cut alike")
    assert same_tensors(tmp_path / "hf", tmp_path / "out")
    for file in (tmp_path / "hf").iterdir():
        if file.name != "model.safetensors":
            assert (tmp_path / "out" / file.name).read_bytes() == file.read_bytes()
    tokenizer = transformers.MarianTokenizer.from_pretrained(tmp_path / "out")
    texts = [sentence(dice) for _ in range(5)]
    expected = transformers.MarianTokenizer.from_pretrained(tmp_path / "hf")(texts)["input_ids"]
    assert tokenizer(texts)["input_ids"] == expected
    card = (tmp_path / "out" / "README.md").read_text()
    assert sha256(tmp_path / "out" / "model.safetensors") in card
    assert "max|Δ|" in card
    # and in again: the same run
    import_huggingface(tmp_path / "out", tmp_path / "again")
    first, second = (tmp_path / name / "checkpoints" / "step-0" / checkpoint.MODEL for name in ("run", "again"))
    assert sha256(first) == sha256(second)


def own_run(path: Path, dice: random.Random, *keys: str, kind: str = "bpe", joint: bool = True) -> RunFolder:
    """A run as training leaves it: a random Transformer, its tokenizers, a validation."""
    lines = [sentence(dice) for _ in range(200)]
    shape = ["width=32", "heads=4", "encoder_layers=2", "decoder_layers=1", "feed_forward=48"]
    fitting = ["model.norm=post", "model.position=sinusoidal-halves", f"tokenizer.joint={str(joint).lower()}"]
    given = [*(f"model.{key}" for key in shape), *fitting, f"tokenizer.kind={kind}", *keys]
    recipe = recipes.read("transformer-base", given)
    run = RunFolder.create(path, recipe)
    size = 300 if kind == "byte" else 90
    tokenizers = {"source": train_tokenizer(lines, kind, size)}
    if not joint:
        tokenizers["target"] = train_tokenizer([line.upper() for line in lines], kind, size - 10)
    save_tokenizers(run.tokenizer, tokenizers)
    assert isinstance(recipe.model, TransformerSection)
    model = Transformer(recipe.model, tokenizers["source"].size, list(tokenizers.values())[-1].size)
    for parameter in model.parameters():
        parameter.data.add_(0.3 * torch.randn_like(parameter))
    checkpoint.write(run.checkpoints / "step-7", checkpoint.stored_tensors(model), None, TrainState(update=7))
    run.point("best", 7)
    run.metrics.write_text(json.dumps({"event": "valid", "step": 7, "loss": 1.5, "bleu": 33.25}) + "\n")
    return run


@pytest.mark.parametrize(
    ("keys", "joint", "kind"),
    [
        (["model.tie_embeddings=all"], True, "bpe"),
        (["model.tie_embeddings=target", "model.activation=gelu"], False, "unigram"),
        (["model.tie_embeddings=none", "model.activation=silu"], False, "byte"),
    ],
)
def test_a_run_of_ours(tmp_path: Path, dice: random.Random, keys: list[str], joint: bool, kind: str) -> None:
    run = own_run(tmp_path / "run", dice, *keys, kind=kind, joint=joint)
    notes = export_marian(run, tmp_path / "out")
    assert notes[-1].startswith("checked: max|Δ|")
    assert notes[-1].endswith("texts are cut alike")
    assert "33.25" in (tmp_path / "out" / "README.md").read_text()
    source, target = (tmp_path / "out", tmp_path / "out" if joint else tmp_path / "out" / "target")
    ours = run.tokenizer / "source"
    reader = transformers.AutoTokenizer.from_pretrained(source)
    writer = transformers.AutoTokenizer.from_pretrained(target)
    texts = [sentence(dice) for _ in range(20)]
    expected = [[*row, 3] for row in marian_export.Tokenizer.load(ours).encode(texts)]
    assert reader(texts)["input_ids"] == expected
    model = transformers.MarianMTModel.from_pretrained(tmp_path / "out")
    rows = model.generate(**reader(texts, return_tensors="pt", padding=True), max_new_tokens=10)
    assert not (rows[:, 1:] == 2).any()  # <sos> is never written
    assert not (rows[:, 1] == 0).any()  # nor <pad>
    assert len(writer.batch_decode(rows, skip_special_tokens=True)) == 20


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("model.norm=pre", r"model\.norm: pre"),
        ("model.position=rotary", r"model\.position: rotary"),
        ("model.position=sinusoidal", r"model\.position: sinusoidal"),
        ("model.activation=swiglu", r"model\.activation: swiglu"),
        ("model.norm_kind=rms", r"model\.norm_kind: rms"),
        ("model.key_value_heads=2", r"model\.key_value_heads: 2"),
        ("model.final_norm=true", r"model\.final_norm: true"),
    ],
)
def test_what_marian_cannot_say_is_named(tmp_path: Path, dice: random.Random, key: str, told: str) -> None:
    run = own_run(tmp_path / "run", dice, key)
    with pytest.raises(BadInput, match=told):
        export_marian(run, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_all_that_marian_cannot_say_is_named_at_once(tmp_path: Path, dice: random.Random) -> None:
    run = own_run(tmp_path / "run", dice, "model.norm=pre", "model.position=rotary")
    with pytest.raises(BadInput, match=r"model\.norm: pre .*post.*, model\.position: rotary .*sinusoidal-halves"):
        export_marian(run, tmp_path / "out")


def test_the_card_says_what_to_decode_with_and_no_paths(tmp_path: Path, dice: random.Random) -> None:
    pytest.importorskip("transformers")
    run = own_run(tmp_path / "run", dice, "model.tie_embeddings=target", joint=False)
    told = export_marian(run, tmp_path / "out")
    card = (tmp_path / "out" / "README.md").read_text()
    assert any("decoded with the tokenizer in target/" in note for note in told)
    assert 'from_pretrained("FOLDER/target")' in card
    assert str(tmp_path) not in card


def test_a_failed_check_leaves_nothing(tmp_path: Path, dice: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
    run = own_run(tmp_path / "run", dice, "model.tie_embeddings=all")
    usual = marian_export.config_of

    def another(*arguments: Any) -> dict[str, Any]:
        return usual(*arguments) | {"activation_function": "gelu"}

    monkeypatch.setattr(marian_export, "config_of", another)
    with pytest.raises(Failure, match="not the same model"):
        export_marian(run, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize("side", ["source", "target"])
def test_words_that_are_cut_otherwise_are_noticed(
    tmp_path: Path, dice: random.Random, monkeypatch: pytest.MonkeyPatch, side: str
) -> None:
    run = own_run(tmp_path / "run", dice, "model.tie_embeddings=target", kind="unigram", joint=False)
    honest = marian_export._fast_tokenizer
    spoiled = marian_export.Tokenizer.load(run.tokenizer / side).content

    def another(tokenizer: marian_export.Tokenizer, recipe: Any) -> dict[str, str]:
        files = honest(tokenizer, recipe)
        if tokenizer.content == spoiled:
            content = json.loads(files["tokenizer.json"])
            content["normalizer"]["normalizers"] = content["normalizer"]["normalizers"][1:]  # nothing is composed
            files["tokenizer.json"] = json.dumps(content)
        return files

    monkeypatch.setattr(marian_export, "_fast_tokenizer", another)
    with pytest.raises(Failure, match="is cut otherwise there"):
        export_marian(run, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_another_folder_is_left_alone(tmp_path: Path, dice: random.Random) -> None:
    run = own_run(tmp_path / "run", dice)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    with pytest.raises(BadInput, match="no export of jumok"):
        export_marian(run, tmp_path / "out")
    assert (tmp_path / "out" / "mine.txt").read_text() == "mine"


def test_without_transformers_it_says_so(tmp_path: Path, dice: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
    run = own_run(tmp_path / "run", dice)
    monkeypatch.setitem(__import__("sys").modules, "transformers", None)
    assert export_marian(run, tmp_path / "out")[-1].startswith("not checked: transformers is not installed")
    assert (tmp_path / "out" / "config.json").is_file()
