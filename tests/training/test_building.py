"""What a recipe alone tells to be impossible is refused before anything is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from jumok import api
from jumok.errors import BadInput


@pytest.mark.parametrize(
    ("name", "key", "message"),
    [
        ("transformer-tiny", "training.precision=float16", r"training\.precision: float16 is for GPUs"),
        ("transformer-tiny", "training.graphs=true", r"training\.graphs needs a GPU"),
        ("lstm", "training.pack=true", r"training\.pack needs a Transformer"),
        ("transformer-tiny", "training.bpe_dropout=0.1 tokenizer.kind=word", r"bpe_dropout: .* kind word has none"),
    ],
)
def test_no_folder_and_no_tokenizer_are_made(
    name: str, key: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(BadInput, match=message):
        api.train(name, tmp_path / "run", ["device=cpu", *key.split()])
    assert not (tmp_path / "run").exists()
    assert "tokenizer" not in capsys.readouterr().err


def test_one_process_has_nothing_to_split(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keys = ["training.shard=true", "data.train.source=[nowhere.en]", "data.train.target=[nowhere.fr]"]
    with pytest.raises(BadInput, match=r"nowhere\.en"):
        api.train("transformer-tiny", tmp_path / "run", ["device=cpu", "data.train.grammar=null", *keys])
    assert "nothing is split" in capsys.readouterr().err
