"""Configurations and vocabularies that somebody made to do harm: refused in words, and little memory used."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
from hostile import TOKENS, answer, bert_folder, little_memory, refused, vit_folder
from marian_models import write_marian
from safetensors.torch import save_file
from seeded import seed  # noqa: F401
from timm_layout import random_state

from jumok.interop import wordpiece
from jumok.interop.run_folder import import_huggingface, import_timm

pytestmark = pytest.mark.usefixtures("seed")
NASTY = [
    10**12, 10**400, -1, 0, 1.5, 1e308, 5e-324, "8", "x" * 10**5, None, [], {}, [[]], True, [1] * 1000, {"a": {"b": 1}},
]  # fmt: skip
UNREAD = {
    "architectures", "dtype", "initializer_range", "label2id", "image_processor_type", "resample", "do_resize",
    "do_convert_rgb",
}  # fmt: skip
PROMISED = {"hidden_size", "intermediate_size", "vocab_size", "max_position_embeddings", "image_size", "patch_size"}


OTHERS = {"vit": ["preprocessor_config.json"], "marian": ["generation_config.json", "tokenizer_config.json"]}


@pytest.mark.parametrize("kind", ["bert", "vit", "marian"])
def test_configurations_of_every_kind(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any value in any place: read, where it changes nothing that matters, or refused in words."""
    if kind == "marian":
        folder = tmp_path / "it"
        write_marian(folder, random.Random(random.randrange(1000)))
    else:
        folder = bert_folder(tmp_path / "it") if kind == "bert" else vit_folder(tmp_path / "it", monkeypatch)
    with little_memory():
        for name in ("config.json", *(one for one in OTHERS.get(kind, []) if (folder / one).exists())):
            file = folder / name
            whole = json.loads(file.read_text())
            for key in whole:
                for number, value in enumerate(NASTY if key not in UNREAD else random.sample(NASTY, 1)):
                    file.write_text(json.dumps({**whole, key: value}))
                    run = tmp_path / f"{name}-{key}-{number}"
                    said = answer(import_huggingface, folder, run)
                    assert run.exists() == (said is None)
                    assert str(folder) in (said or str(folder))
                    assert len(said or "") < 2000  # what somebody put there is not read out
                    assert said is not None or key not in PROMISED or value == whole[key]
            file.write_text(json.dumps(whole))


def test_configurations_of_timm(tmp_path: Path) -> None:
    folder = tmp_path / "timm"
    folder.mkdir()
    save_file(random_state({}), folder / "model.safetensors")
    arguments = {"depth": 2, "num_heads": 2, "qkv_bias": True, "act_layer": "gelu", "class_token": True, "img_size": 12}
    arguments |= {"mlp_ratio": 3, "patch_size": 4, "init_values": None, "reg_tokens": 0, "global_pool": "token"}
    whole = {"architecture": "test_vit", "num_classes": 3, "global_pool": "token", "label_names": ["a", "b", "c"]}
    picture = {"input_size": [3, 12, 12], "mean": [0.5] * 3, "std": [0.5] * 3, "crop_mode": "center"}
    tables: dict[str, dict[str, Any]] = {"": whole, "model_args": arguments, "pretrained_cfg": picture}
    with little_memory():
        for table, values in tables.items():
            for key in values:
                for number, value in enumerate(NASTY):
                    changed_one = {**values, key: value}
                    told = {**whole, "model_args": arguments, "pretrained_cfg": picture}
                    told = {**told, **changed_one} if not table else {**told, table: changed_one}
                    (folder / "config.json").write_text(json.dumps(told))
                    run = tmp_path / f"{table}-{key}-{number}"
                    said = answer(import_timm, folder, run)
                    assert run.exists() == (said is None)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b'{"model_type": "bert", "hidden_size": NaN}', "NaN is not a number"),
        (b'{"model_type": "bert", "hidden_size": -Infinity}', "-Infinity is not a number"),
        (b'{"model_type": "bert", "layer_norm_eps": 1e999}', "1e999 is not a number"),
        (b'{"model_type": "bert", "hidden_size": 8, "hidden_size": 9}', "'hidden_size' stands there twice"),
        (b'{"model_type": "bert", "hidden_size": ' + b"9" * 10_000 + b"}", "not JSON"),
        (b'{"model_type": "bert", "more": "\\ud800"}', "not JSON"),
        (b'{"a":' * 100_000, "not JSON"),
        (b"[" * 1_000_000, "not JSON"),
        (b'{"a": [' + b"{}," * (1 << 21) + b"{}]}", "objects and lists"),
        (b"\x80\x04\x95", "not JSON"),
        (b"PK\x03\x04", "not JSON"),
        (b"", "not JSON"),
        (b"null", "not a JSON object"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_configurations_that_are_none(tmp_path: Path, text: bytes, told: str) -> None:
    folder = bert_folder(tmp_path / "bert")
    (folder / "config.json").write_bytes(text)
    refused(folder, "config.json", told)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt"])
def test_a_gigabyte_is_not_read(tmp_path: Path, name: str) -> None:
    folder = bert_folder(tmp_path / "bert")
    (folder / name).touch()
    os.truncate(folder / name, 1 << 30)
    refused(folder, name, "bytes, which no")


def tokenizer_json(**changes: Any) -> dict[str, Any]:
    model = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##"}
    model |= {"max_input_chars_per_word": 100, "vocab": {token: id for id, token in enumerate(TOKENS)}}
    return {
        "version": "1.0", "added_tokens": [], "pre_tokenizer": {"type": "BertPreTokenizer"},
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
                       "strip_accents": None, "lowercase": True},
        "post_processor": None, "decoder": None, "model": model, **changes,
    }  # fmt: skip


def grows(content: str, pattern: dict[str, str]) -> dict[str, Any]:
    return {"type": "Replace", "pattern": pattern, "content": content}


BOMBS: dict[str, tuple[dict[str, Any], str]] = {
    "letters that double": (
        {
            "normalizer": {
                "type": "Sequence",
                "normalizers": [grows(c * 2, {"String": c}) for c in "ABCDEFGHIKLMNPSUTabcd"],
            }
        },
        "normalizer",
    ),
    "one letter, forty times": (
        {"normalizer": {"type": "Sequence", "normalizers": [grows("LL", {"String": "L"})] * 40}},
        "at most 8 steps",
    ),
    "a long word for a letter": ({"normalizer": grows("x" * 10**6, {"String": "L"})}, "more than a letter"),
    "letters between all": (
        {"normalizer": {"type": "Sequence", "normalizers": [grows("L", {"Regex": ""})] * 40}},
        "at most 8 steps",
    ),
    "what stands before all": ({"normalizer": {"type": "Prepend", "prepend": "x" * 10**6}}, "Prepend"),
    "sequences in sequences": (
        {"normalizer": {"type": "Sequence", "normalizers": [{"type": "Sequence", "normalizers": []}]}},
        "Sequence",
    ),
    "a table of its own": ({"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA"}}, "Precompiled"),
    "ids without end": ({"added_tokens": [{"id": 10**15, "content": "x", "special": False}]}, "highest id"),
    "many that were added": (
        {"added_tokens": [{"id": 21 + n, "content": f"x{n}"} for n in range(70_000)]},
        "added tokens, more than",
    ),
    "no vocabulary": ({"model": {"type": "WordPiece", "vocab": []}}, "model.vocab"),
    "ids below zero": ({"model": {"type": "WordPiece", "vocab": {"[PAD]": -1}}}, "model.vocab"),
    "another model": ({"model": {"type": "BPE", "vocab": {}, "merges": []}}, "BPE"),
    "a normalizer of nothing known": ({"normalizer": [1, 2]}, "normalizer"),
}


@pytest.mark.parametrize("which", BOMBS)
def test_a_tokenizer_that_explodes(tmp_path: Path, which: str) -> None:
    changes, told = BOMBS[which]
    folder = bert_folder(tmp_path / "bert")
    (folder / "vocab.txt").unlink()
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer_json()))
    import_huggingface(folder, tmp_path / "good")
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer_json(**changes)))
    refused(folder, "tokenizer.json", told)


def test_a_vocabulary_of_millions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert wordpiece.MOST_TOKENS <= 1 << 20
    monkeypatch.setattr(wordpiece, "MOST_TOKENS", 1000)  # fewer are quicker made
    folder = bert_folder(tmp_path / "bert")
    (folder / "vocab.txt").write_text("".join(f"{number:x}\n" for number in range(1001)))
    refused(folder, "more than any vocabulary has")
