"""Models that timm itself has made and computed with (`benchmarks/timm_golden.py`) compute the same when imported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

import jumok
from jumok.interop.run_folder import import_timm

GOLDEN = Path(__file__).parent / "golden"
FILES = sorted(GOLDEN.glob("*.safetensors"))
CASES = {
    "class_token", "mean", "registers", "registers_without_positions", "factors_without_bias", "rectangle",
}  # fmt: skip


def test_the_files_are_there() -> None:
    """Without them nothing below would be compared, and that would look like success."""
    assert {file.stem for file in FILES} == CASES, (
        f"{GOLDEN} lacks files: on a machine with timm, python benchmarks/timm_golden.py tests/interop/golden"
    )


@torch.no_grad()
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
@pytest.mark.parametrize("alone", [False, True], ids=["with config.json", "alone"])
def test_what_timm_has_computed(file: Path, alone: bool, tmp_path: Path) -> None:
    stored = load_file(file)
    with safe_open(file, "pt") as opened:
        told = opened.metadata()
    weights, theirs = tmp_path / "model.safetensors", json.loads(told["config"])
    save_file({name[8:]: one for name, one in stored.items() if name.startswith("weights.")}, weights)
    if alone and file.stem == "rectangle":
        pytest.skip("nothing but its config.json tells its shape")
    if not alone:
        (tmp_path / "config.json").write_text(told["config"])
    path, heads = (weights, json.loads(told["arguments"])["num_heads"]) if alone else (tmp_path, None)
    import_timm(path, tmp_path / "run", heads)
    model = jumok.load(tmp_path / "run", device="cpu").model
    channels = model.section.channels
    assert list(model.section.mean[:channels]) == theirs["pretrained_cfg"]["mean"][:channels]
    assert list(model.section.deviation[:channels]) == theirs["pretrained_cfg"]["std"][:channels]
    for name in ("own", "other"):
        images = stored[f"{name}.images"]
        torch.testing.assert_close(model.reader(images), stored[f"{name}.features"], atol=1e-5, rtol=0)
        torch.testing.assert_close(model(images), stored[f"{name}.scores"], atol=1e-5, rtol=0)
