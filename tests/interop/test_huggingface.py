"""Whole checkpoints: what transformers saves is read here and computes the same; what does not fit is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from seeded import seed  # noqa: F401

from jumok.data.batch import Sequences
from jumok.errors import BadInput
from jumok.interop.huggingface import Imported, kind_of, read_checkpoint
from jumok.models.bert import Bert, HiddenWords

transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.usefixtures("seed")
TOKENS = ["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefgh", *("##" + c for c in "abcdefgh")]
TEXTS = ["abc de [MASK]", "h", "fgh fgh ab xyz"]


def save(folder: Path, kind: str = "BertModel", words: int = len(TOKENS), **config: Any) -> Any:
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
    sizes |= {"max_position_embeddings": 20, "initializer_range": 0.2, "vocab_size": words}
    model = getattr(transformers, kind)(transformers.BertConfig(**{**sizes, **config})).eval()
    for parameter in model.parameters():  # norms and biases are not ones and zeros
        parameter.data.add_(0.1 * torch.randn_like(parameter))
    model.save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(TOKENS) + "\n")
    return model


def rows_of(found: Imported) -> Sequences:
    specials = found.tokenizer.specials
    return Sequences.pad([[specials.start, *row, specials.end] for row in found.tokenizer.encode(TEXTS)])


def hidden(found: Imported) -> tuple[torch.Tensor, Sequences, Bert]:
    bert = Bert(found.section, found.tokenizer.size).eval()
    bert.load_state_dict(found.encoder, strict=found.has_pooler)
    words = rows_of(found)
    return bert(words), words, bert


def their_inputs(words: Sequences) -> dict[str, torch.Tensor]:
    return {"input_ids": words.ids, "attention_mask": words.mask.long()}


@torch.no_grad()
def test_a_checkpoint_computes_what_it_computes_there(tmp_path: Path) -> None:
    theirs = save(tmp_path)
    found = read_checkpoint(tmp_path)
    states, words, bert = hidden(found)
    expected = theirs(**their_inputs(words))
    torch.testing.assert_close(states[words.mask], expected.last_hidden_state[words.mask], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(bert.pooled(states), expected.pooler_output, atol=1e-5, rtol=1e-5)
    assert (found.vocabulary, found.hidden_words, found.ignored, found.notes) == (len(TOKENS), {}, [], [])


@torch.no_grad()
@pytest.mark.parametrize("kind", ["BertForMaskedLM", "BertForPreTraining"])
def test_the_head_that_guesses_hidden_words(tmp_path: Path, kind: str) -> None:
    theirs = save(tmp_path, kind)
    found = read_checkpoint(tmp_path)
    states, words, bert = hidden(found)
    head = HiddenWords(bert).eval()
    lacking = head.load_state_dict(found.hidden_words, strict=False)
    assert not lacking.unexpected_keys
    assert all(name in {f"reader.{of_bert}" for of_bert in bert.state_dict()} for name in lacking.missing_keys)
    output = theirs(**their_inputs(words))
    expected = output.logits if kind == "BertForMaskedLM" else output.prediction_logits
    torch.testing.assert_close(head.head(states)[words.mask], expected[words.mask], atol=1e-4, rtol=1e-4)
    assert found.has_pooler == (kind == "BertForPreTraining")
    assert any("no pooler" in note for note in found.notes) == (not found.has_pooler)
    named = ["cls.seq_relationship.bias", "cls.seq_relationship.weight"] if found.has_pooler else []
    assert sorted(found.ignored) == named


def test_heads_of_tasks_are_left_out_by_name(tmp_path: Path) -> None:
    save(tmp_path, "BertForSequenceClassification")
    found = read_checkpoint(tmp_path)
    assert sorted(found.ignored) == ["classifier.bias", "classifier.weight"]
    assert "2 tensors are not read" in found.notes[0]


def test_a_head_with_words_of_its_own_is_not_taken_for_ours(tmp_path: Path) -> None:
    save(tmp_path, "BertForMaskedLM", tie_word_embeddings=False)
    found = read_checkpoint(tmp_path)
    assert found.hidden_words == {}
    assert any("tie_word_embeddings" in note for note in found.notes)
    assert "cls.predictions.decoder.weight" in found.ignored


def test_of_tensors_that_share_their_numbers_either_will_do(tmp_path: Path) -> None:
    save(tmp_path, "BertForMaskedLM")
    before = read_checkpoint(tmp_path)
    renamed = {
        "bert.embeddings.word_embeddings.weight": "cls.predictions.decoder.weight",
        "cls.predictions.bias": "cls.predictions.decoder.bias",
    }
    change(tmp_path, lambda state: {renamed.get(name, name): tensor for name, tensor in state.items()})
    after = read_checkpoint(tmp_path)
    assert all(torch.equal(after.encoder[name], before.encoder[name]) for name in before.encoder)
    assert all(torch.equal(after.hidden_words[name], before.hidden_words[name]) for name in before.hidden_words)
    assert after.ignored == []


@torch.no_grad()
def test_more_vectors_than_words(tmp_path: Path) -> None:
    theirs = save(tmp_path, words=32)
    found = read_checkpoint(tmp_path)
    assert found.vocabulary == found.tokenizer.size == 32
    assert any(f"{32 - len(TOKENS)} of 32 word vectors" in note for note in found.notes)
    states, words, _ = hidden(found)
    expected = theirs(**their_inputs(words)).last_hidden_state
    torch.testing.assert_close(states[words.mask], expected[words.mask], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float64])
def test_other_precisions_become_float32(tmp_path: Path, kind: torch.dtype) -> None:
    save(tmp_path)
    change(tmp_path, lambda state: {name: tensor.to(kind) for name, tensor in state.items()})
    found = read_checkpoint(tmp_path)
    stored = load_file(tmp_path / "model.safetensors")["embeddings.word_embeddings.weight"]
    assert all(tensor.dtype == torch.float32 for tensor in found.encoder.values())
    assert torch.equal(found.encoder["embedding.weight"], stored.float())


def test_several_files_with_an_index(tmp_path: Path) -> None:
    theirs = save(tmp_path / "one")
    theirs.save_pretrained(tmp_path / "many", max_shard_size="4KB")
    (tmp_path / "many/vocab.txt").write_text("\n".join(TOKENS))
    assert len(list((tmp_path / "many").glob("*.safetensors"))) > 2
    one, many = read_checkpoint(tmp_path / "one"), read_checkpoint(tmp_path / "many")
    assert one.encoder.keys() == many.encoder.keys()
    assert all(torch.equal(one.encoder[name], many.encoder[name]) for name in one.encoder)
    index = tmp_path / "many/model.safetensors.index.json"
    whole = json.loads(index.read_text())
    part = whole["weight_map"]["pooler.dense.bias"]
    for content, told in [
        ({"weight_map": {"a": 3}}, "weight_map"),
        ({"weight_map": {"a": "../one/model.safetensors"}}, "not the name of a safetensors file"),
        ({"weight_map": {**whole["weight_map"], "lost": part}}, "has no tensor lost"),
        ({"weight_map": {**whole["weight_map"], "lost": "model-9.safetensors"}}, "model-9.safetensors: is missing"),
    ]:
        index.write_text(json.dumps(content))
        refused(tmp_path / "many", told)


def change(folder: Path, how: Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]) -> None:
    file = folder / "model.safetensors"
    save_file(how(load_file(file)), file)


def refused(folder: Path, *told: str) -> None:
    with pytest.raises(BadInput) as caught:
        read_checkpoint(folder)
    for words in (*told, str(folder)):
        assert words in str(caught.value)


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("vocab_size", 30, ("embeddings.word_embeddings.weight is 22 × 16", "30 × 16", "vocab_size 30")),
        ("vocab_size", 9, ("the tokenizer has 22 tokens", "vocab_size 9")),
        ("vocab_size", "22", ("vocab_size is '22'",)),
        ("hidden_size", 32, ("is 22 × 16", "22 × 32", "hidden_size 32")),
        ("intermediate_size", 25, ("intermediate.dense.weight is 24 × 16", "25 × 16", "intermediate_size 25")),
        ("max_position_embeddings", 512, ("position_embeddings.weight is 20 × 16", "max_position_embeddings 512")),
        ("type_vocab_size", 3, ("token_type_embeddings.weight is 2 × 16", "type_vocab_size 3")),
        ("num_hidden_layers", 3, ("encoder.layer.2.attention.self.query.weight and 15 more", "num_hidden_layers 3")),
        ("num_hidden_layers", 10**9, ("num_hidden_layers 1000000000",)),
        ("model_type", "gpt2", ("model_type",)),
    ],
)
def test_every_tensor_is_held_against_the_configuration(
    tmp_path: Path, key: str, value: Any, told: tuple[str, ...]
) -> None:
    save(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, key: value}))
    refused(tmp_path, *told)


def test_layers_that_the_configuration_leaves_out_are_named(tmp_path: Path) -> None:
    save(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 1}))
    found = read_checkpoint(tmp_path)
    assert len(found.ignored) == 16
    assert all(".layer.1." in name for name in found.ignored)
    hidden(found)


def test_missing_and_doubled_tensors_are_named(tmp_path: Path) -> None:
    save(tmp_path)
    whole = load_file(tmp_path / "model.safetensors")
    for name in ("embeddings.LayerNorm.weight", "pooler.dense.bias", "encoder.layer.1.output.dense.weight"):
        change(tmp_path, lambda state, lost=name: {one: whole[one] for one in whole if one != lost})  # type: ignore[misc]
        refused(tmp_path, f"no tensor {name}")
    change(tmp_path, lambda _: {**whole, "bert.pooler.dense.bias": whole["pooler.dense.bias"].clone()})
    refused(tmp_path, "two tensors for one weight", "pooler.dense.bias")
    change(tmp_path, lambda _: {**whole, "pooler.dense.bias": torch.ones(16, dtype=torch.int8)})
    refused(tmp_path, "pooler.dense.bias: its numbers are int8")
    change(tmp_path, lambda _: {"something": torch.ones(3)})
    refused(tmp_path, "no tensor embeddings.word_embeddings.weight")


def test_half_a_head_is_damage(tmp_path: Path) -> None:
    save(tmp_path, "BertForMaskedLM")
    change(tmp_path, lambda state: {name: state[name] for name in state if "transform.dense.bias" not in name})
    refused(tmp_path, "cls.predictions", "transform.bias")


def test_missing_and_damaged_files_are_named(tmp_path: Path) -> None:
    refused(tmp_path / "nowhere", "no config.json there")
    save(tmp_path)
    weights, config = tmp_path / "model.safetensors", tmp_path / "config.json"
    whole = weights.read_bytes()
    for damaged in (b"", whole[:5], whole[: len(whole) // 2], whole[:-1], b"\xff" * 100):
        weights.write_bytes(damaged)
        refused(tmp_path, "model.safetensors: damaged")
    weights.unlink()
    refused(tmp_path, "no weights there")
    (tmp_path / "pytorch_model.bin").write_bytes(b"whatever")
    refused(tmp_path, "pytorch_model.bin", "convert it to safetensors")
    weights.write_bytes(whole)
    good = config.read_text()
    for text, told in (("{", "not JSON"), ("[]", "not a JSON object"), ("{}", "model_type")):
        config.write_text(text)
        refused(tmp_path, "config.json", told)
    config.write_text(good)
    read_checkpoint(tmp_path)
    (tmp_path / "vocab.txt").unlink()
    refused(tmp_path, "no tokenizer there")


@pytest.mark.parametrize(
    ("kind", "told"),
    [("BertForSequenceClassification", True), ("BertForQuestionAnswering", True), ("BertModel", False)],
)
def test_a_head_that_is_left_behind_is_said_loudly(tmp_path: Path, kind: str, told: bool) -> None:
    save(tmp_path, kind)
    assert any("NOT taken over" in note for note in read_checkpoint(tmp_path).notes) == told


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "it is empty"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n", "the pointer of Git LFS"),
        (b"<!doctype html><html>", "not a safetensors file"),
    ],
)
def test_what_came_instead_of_the_weights_is_named(tmp_path: Path, content: bytes, told: str) -> None:
    save(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(content)
    refused(tmp_path, told)


def test_a_name_of_the_hub_is_no_folder(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="Nothing is downloaded here"):
        kind_of(tmp_path / "bert-base-uncased")


def test_a_header_whose_length_begins_like_a_page_is_read(tmp_path: Path) -> None:
    """60 is "<" and 123 is "{": any byte may come first in a length."""
    save(tmp_path)
    weights = tmp_path / "model.safetensors"
    whole = weights.read_bytes()
    length = int.from_bytes(whole[:8], "little")
    for wanted in (60, 123):
        more = (wanted - length) % 256
        weights.write_bytes(
            (length + more).to_bytes(8, "little") + whole[8 : 8 + length] + b" " * more + whole[8 + length :]
        )
        assert weights.read_bytes()[0] == wanted
        read_checkpoint(tmp_path)
