"""Two processes on GPUs: the same as one. With a single GPU they share it and talk through gloo; with two, NCCL.

On a machine with a GPU: make gpu-check
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
from ranks import together
from safetensors.torch import load_file
from training_together import PAIRS, TRANSFORMER, train

from jumok.training.run import RunFolder
from jumok.training.verify import differences

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU (make gpu-check)")
KEYS = [*PAIRS, *TRANSFORMER, "device=cuda", "training.precision=float32", "training.accumulate=4"]
WAYS = {
    "plain": ["training.pack=false", "training.graphs=false"],
    "packed and recorded": [],
    "split": ["training.shard=true", "training.pack=false"],
}


@pytest.fixture(autouse=True)
def _share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUMOK_SHARE_GPU", "1")


@pytest.mark.parametrize("way", WAYS)
def test_two_processes_learn_what_one_does(tmp_path: Path, way: str) -> None:
    if way == "split" and torch.cuda.device_count() < 2:
        pytest.skip("weights are split between GPUs: needs two")
    keys = [*KEYS, *WAYS[way]]  # dropout on: its masks follow the micro-batch
    train(tmp_path / "one", "transformer-tiny", keys)
    assert together(2, train, tmp_path / "two", "transformer-tiny", keys) == ["trained", "trained"]
    told = [[event["loss"] for event in RunFolder(tmp_path / name).events()] for name in ("one", "two")]
    assert told[1] == pytest.approx(told[0], rel=1e-3)
    files = [tmp_path / name / "checkpoints" / "step-6" / "model.safetensors" for name in ("one", "two")]
    stored = [load_file(file) for file in files]
    worst = max(float((stored[0][name] - stored[1][name]).abs().max()) for name in stored[0])
    print(f"{way}: {torch.cuda.device_count()} GPU(s), largest difference of a weight {worst:.1e}")
    assert worst < 1e-3


def test_a_resumed_run_of_two_is_the_same_to_the_bit(tmp_path: Path) -> None:
    keys = [*KEYS, "exact=true"]
    assert together(2, train, tmp_path / "whole", "transformer-tiny", keys)[0] == "trained"
    assert together(2, train, tmp_path / "run", "transformer-tiny", keys, 5)[0] == "stopped"
    assert together(2, train, tmp_path / "run", "transformer-tiny", keys, 0, True)[0] == "trained"
    assert differences(RunFolder(tmp_path / "whole"), RunFolder(tmp_path / "run")) == []


def test_more_processes_than_gpus_are_refused(tmp_path: Path) -> None:
    del os.environ["JUMOK_SHARE_GPU"]
    world = torch.cuda.device_count() + 1
    results = together(world, train, tmp_path / "run", "transformer-tiny", [*KEYS, f"training.accumulate={world}"])
    assert results[0][0] == 2
    assert "start as many processes as GPUs" in results[0][1]
