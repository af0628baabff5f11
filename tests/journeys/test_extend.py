"""docs/extend.md as written: a new scorer is registered, trained through a recipe, loaded and looked at."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch

import jumok
from jumok.errors import BadInput
from jumok.layers import attention

PAGE = Path(__file__).parents[2] / "docs" / "extend.md"


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(attention, "SCORERS", dict(attention.SCORERS))
    torch.set_num_threads(1)
    definition, use = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    body = [line for line in definition.partition("@register_scorer")[2].splitlines() if line.strip()]
    assert len(body) <= 16  # "about 15 lines"
    names: dict[str, Any] = {"__name__": "extend"}
    exec(compile(definition, "docs/extend.md", "exec"), names)
    exec(compile(use, "docs/extend.md", "exec"), names)

    translator = names["translator"]
    scorer = translator.model.decoder.scorer
    assert type(scorer) is names["Cosine"]
    assert float(scorer.temperature.detach()) != 10.0  # it was trained
    assert "student" in capsys.readouterr().out  # the attention picture names the source words

    monkeypatch.setattr(attention, "SCORERS", {"dot": attention.SCORERS["dot"]})
    with pytest.raises(BadInput, match=r'no scorer "cosine".*import the file that registers it'):
        jumok.load("runs/cosine")
