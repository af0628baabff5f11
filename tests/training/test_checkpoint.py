"""Checkpoints: whole or not there, and the newest good one is found."""

from __future__ import annotations

import copy
import json
import os
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from jumok import recipe as recipes
from jumok.errors import BadInput, Failure
from jumok.training import checkpoint
from jumok.training.run import RunFolder
from jumok.training.state import TrainState


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.word = nn.Embedding(5, 3)
        self.out = nn.Linear(3, 5)
        self.out.weight = self.word.weight


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path / "run", recipes.read("lstm"))


def step(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad()
    model.out(model.word(torch.arange(5))).square().mean().backward()  # type: ignore[operator,union-attr]
    optimizer.step()


def test_weights_optimiser_and_state_come_back_to_the_bit(run: RunFolder) -> None:
    model = Tied()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    for _ in range(3):
        step(model, optimizer)
    state = TrainState(update=3, best=0.25, window={"loss": 0.1})
    path = checkpoint.save(run, model, optimizer, state, keep=2, best=True)
    again = Tied()
    other = torch.optim.AdamW(again.parameters(), lr=0.1)
    assert checkpoint.load(path, again, other) == state
    for _ in range(2):
        step(model, optimizer)
        step(again, other)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), again.parameters(), strict=True))
    assert len(load_file(path / "model.safetensors")) == 2, "a tied weight is stored once"


def saved(run: RunFolder, *steps: int, keep: int = 10) -> Tied:
    model = Tied()
    optimizer = torch.optim.AdamW(model.parameters())
    for update in steps:
        checkpoint.save(run, model, optimizer, TrainState(update=update, best_update=steps[0]), keep, best=False)
    return model


@pytest.mark.skipif(os.name != "posix", reason="who may read a file is told otherwise there")
def test_whoever_may_read_one_file_may_read_all(run: RunFolder) -> None:
    saved(run, 1)
    modes = {file.name: file.stat().st_mode for file in (run.checkpoints / "step-1").iterdir()}
    assert len(set(modes.values())) == 1, modes


def test_old_ones_go_but_never_the_best(run: RunFolder) -> None:
    saved(run, 1, 2, 3, 4, 5, keep=2)
    assert sorted(path.name for path in run.checkpoints.iterdir()) == ["step-1", "step-4", "step-5"]


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors", "state.json", "checksums.json"])
@pytest.mark.parametrize("damage", ["cut", "gone", "changed", "empty"])
def test_every_damage_is_seen_and_named(run: RunFolder, name: str, damage: str) -> None:
    saved(run, 8, 9)
    file = run.checkpoints / "step-9" / name
    content = file.read_bytes()
    if damage == "gone":
        file.unlink()
    else:
        changed = bytes([content[0] ^ 1]) + content[1:]
        file.write_bytes({"cut": content[:-1], "changed": changed, "empty": b""}[damage])
    told: list[str] = []
    if name == "checksums.json" and damage == "cut":  # only its last newline is missing: nothing is wrong
        assert checkpoint.newest_good(run, told.append) == run.checkpoints / "step-9"
        return
    assert checkpoint.newest_good(run, told.append) == run.checkpoints / "step-8"
    assert "step-9" in told[0]
    assert "falling back" in told[1]


def test_none_is_none_and_all_damaged_is_an_error(run: RunFolder) -> None:
    assert checkpoint.newest_good(run, print) is None
    saved(run, 1)
    (run.checkpoints / "step-1" / "model.safetensors").write_bytes(b"")
    with pytest.raises(Failure, match="intact"):
        checkpoint.newest_good(run, lambda message: None)


def test_unfinished_writings_are_not_checkpoints(run: RunFolder) -> None:
    saved(run, 1)
    (run.checkpoints / ".writing-step-2-77").mkdir()
    assert checkpoint.newest_good(run, print) == run.checkpoints / "step-1"
    checkpoint.discard_unfinished(run)
    assert [path.name for path in run.checkpoints.iterdir()] == ["step-1"]


def test_weights_that_do_not_fit_are_named() -> None:
    model = Tied()
    weights = {name: tensor.detach().clone() for name, tensor in checkpoint.stored_tensors(model).items()}
    with pytest.raises(BadInput, match=r"out\.bias"):
        checkpoint.load_weights(copy.deepcopy(model), {**weights, "out.bias": torch.zeros(7)}, "file")
    del weights["out.bias"]
    with pytest.raises(BadInput, match=r"missing \['out\.bias'\]"):
        checkpoint.load_weights(model, weights, "file")


def test_pointers_survive_nonsense(run: RunFolder) -> None:
    run.point("last", 7)
    assert run.pointed("last") == 7
    assert json.loads((run.path / "last.json").read_text()) == {"step": 7}
    for nonsense in ("", "[]", '{"step": "x"}', "\x00"):
        (run.path / "last.json").write_text(nonsense)
        assert run.pointed("last") is None


def test_an_average_of_tied_weights_comes_back_beside_the_models_own(run: RunFolder) -> None:
    model = Tied()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    step(model, optimizer)
    averaged = {name: torch.randn_like(p) for name, p in model.named_parameters()}
    path = checkpoint.save(run, model, optimizer, TrainState(update=1), keep=2, best=True, averaged=averaged)
    again, empty = Tied(), {name: torch.zeros_like(p) for name, p in model.named_parameters()}
    checkpoint.load(path, again, torch.optim.AdamW(again.parameters()), empty)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), again.parameters(), strict=True))
    assert all(torch.equal(empty[name], averaged[name]) for name in averaged)
    assert again.out.weight is again.word.weight
    used = Tied()
    checkpoint.load(path, used)
    assert torch.equal(used.out.weight, averaged["word.weight"])
