"""Folders of checkpoints that are right, for tests that spoil one thing; and what a refusal must be like."""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from image_runs import image_run
from safetensors.torch import save_file

from jumok.cli.main import run as command
from jumok.errors import BadInput
from jumok.interop.bert import NAMES
from jumok.interop.export_bert import renamed
from jumok.interop.export_huggingface import export_huggingface
from jumok.interop.run_folder import import_huggingface, import_timm
from jumok.models.bert import Bert
from jumok.recipe import BertSection

TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefgh", *("##" + letter for letter in "abcdefgh")]
MEGABYTES = 400  # that a refusal may take: the library's own included
BERT: dict[str, Any] = {
    "model_type": "bert", "vocab_size": len(TOKENS), "hidden_size": 8, "num_hidden_layers": 1, "hidden_act": "gelu",
    "num_attention_heads": 2, "intermediate_size": 12, "max_position_embeddings": 10, "type_vocab_size": 2,
    "layer_norm_eps": 1e-12, "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1,
}  # fmt: skip


def bert_folder(folder: Path) -> Path:
    folder.mkdir()
    section = BertSection(width=8, heads=2, layers=1, feed_forward=12, max_positions=10)
    save_file(renamed(Bert(section, len(TOKENS)).state_dict(), NAMES), folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(BERT))
    (folder / "vocab.txt").write_text("\n".join(TOKENS) + "\n")
    return folder


def vit_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(sys.modules, "transformers", None)  # not for them to check
    export_huggingface(image_run(folder.with_name("a run")), folder)
    return folder


@contextmanager
def little_memory() -> Iterator[None]:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MEGABYTES * 1024


def refused(folder: Path, *told: str, door: str = "hf") -> None:
    """By the command itself: exit code 2, a message, no run and nothing beside it."""
    run = folder.parent / "run"
    before = sorted(folder.parent.rglob("*"))
    read = import_huggingface if door == "hf" else import_timm
    with little_memory(), pytest.raises(BadInput) as caught:
        read(folder, run)
    for words in told:
        assert words in str(caught.value)
    assert len(str(caught.value)) < 3000
    assert command(["import", door, str(folder), "--run", str(run)]) == 2
    assert sorted(folder.parent.rglob("*")) == before


def answer(read: Callable[[Path, Path], object], folder: Path, run: Path) -> str | None:
    """What is said against it; None, where it was read."""
    try:
        read(folder, run)
    except BadInput as error:
        return str(error)
    return None
