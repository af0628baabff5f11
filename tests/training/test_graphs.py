"""What recordings and compiled programs are keyed by, and that a compiled run learns what a plain one does."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from line import LineTask, make

from jumok import recipe as recipes
from jumok.data.batch import PairBatch
from jumok.data.packing import PackedPairs
from jumok.data.windows import TextBatch
from jumok.errors import BadInput
from jumok.tasks.build import build_task
from jumok.training.batches import kind, mapped, numbers, repeating_part, tensors
from jumok.training.compiling import Compiled
from jumok.training.graphs import Graphs
from jumok.training.precision import Precision


def pairs(*lengths: int) -> PairBatch:
    return PairBatch.of([[7] * length for length in lengths], [[8] * (length + 1) for length in lengths])


def test_batches_of_one_budget_are_of_one_kind_whatever_they_hold() -> None:
    first, second = (PackedPairs.of(pairs(*lengths), (64, 72)) for lengths in ((3, 5, 20), (9, 9, 1, 1, 1, 12)))
    assert kind(repeating_part(first)) == kind(repeating_part(second))
    assert kind(repeating_part(PackedPairs.of(pairs(3, 5, 20), (80, 72)))) != kind(repeating_part(first))


def test_what_has_a_size_of_its_own_does_not_repeat() -> None:
    assert repeating_part(pairs(3, 5)) is None
    assert repeating_part(PackedPairs.of(pairs(3, 5))) is None
    assert repeating_part(PackedPairs.of(pairs(30, 50), (64, 64))) is None  # larger than its budget
    text = TextBatch(torch.zeros(2, 5), torch.zeros(2, 5), (4, 9))
    assert kind(repeating_part(text)) == kind(TextBatch(torch.ones(2, 5), torch.ones(2, 5)))


def test_a_walk_finds_all_tensors_and_all_numbers() -> None:
    batch = PackedPairs.of(pairs(3, 5), (16, 16))
    assert len(tensors(batch)) == 6
    doubled = mapped(batch, lambda tensor: tensor * 2)
    assert torch.equal(doubled.target.table, batch.target.table * 2)
    assert {batch.source.longest, batch.source.tokens, batch.target.longest, batch.target.tokens} <= set(numbers(batch))


def test_a_repeating_batch_gives_the_same_loss() -> None:
    """Here the padding is a sentence of its own, and sentences that do not exist are there, empty."""
    torch.manual_seed(1)
    recipe = recipes.read("transformer-tiny", ["data.train.pairs=200", "data.valid.pairs=50", "model.dropout=0"])
    task = build_task(recipe, torch.device("cpu"), print, None)
    batch = task.batches(0)[0]
    exact, filled = PackedPairs.of(batch), PackedPairs.of(batch, (batch.source.tokens + 33, batch.tokens + 21))
    losses = []
    for given in (exact, filled, filled.repeating()):
        assert given is not None
        task.objective.zero_grad()
        loss = task.objective(given)
        loss.sum.backward()
        losses.append(
            (loss.sum.detach(), loss.parts["nll"].detach(), task.objective.model.embedding.weight.grad.clone())
        )
    for other in losses[1:]:
        torch.testing.assert_close(other, losses[0], rtol=1e-4, atol=1e-4)


def test_graphs_need_a_gpu(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"training\.graphs needs a GPU"):
        make(tmp_path, LineTask(), "training.graphs=true")


def test_without_a_compiler_the_run_goes_on(tmp_path: Path) -> None:
    said: list[str] = []
    objective = LineTask().objective
    compiled = Compiled(objective, said.append)

    def broken(batch: object) -> None:
        raise RuntimeError("no C++ compiler\nwas found")

    compiled.compiled = broken
    batch = LineTask().batches(0)[0]
    torch.manual_seed(2)
    found = compiled(batch)
    torch.manual_seed(2)
    assert torch.equal(found.sum, objective(batch).sum)
    compiled(batch)
    assert len(said) == 2
    assert "compiling: a minute" in said[0]
    assert "cannot compile" in said[1]
    assert "no C++ compiler)" in said[1]


@pytest.mark.full
def test_a_compiled_run_learns_what_a_plain_one_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from jumok import api

    monkeypatch.setenv("JUMOK_CACHE", str(tmp_path / "cache"))
    keys = ["training.updates=6", "training.log_every=1", "model.layers=2", "model.width=32", "model.heads=2"]
    keys += ["model.dropout=0", "data.train.pairs=400", "data.valid.pairs=50", "training.batch_tokens=256"]
    for compiled in ("false", "true"):
        api.train("transformer-lm", tmp_path / compiled, [*keys, f"training.compile={compiled}"], report=False)
    import json

    losses = []
    for compiled in ("false", "true"):
        lines = (tmp_path / compiled / "metrics.jsonl").read_text().splitlines()
        losses.append([event["loss"] for event in map(json.loads, lines) if event["event"] == "train"])
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
    assert any((tmp_path / "cache" / "compiled").rglob("*.cpp"))


@pytest.mark.parametrize("alone", [False, True])
def test_what_is_recorded_has_the_gradients_of_a_backward_pass(alone: bool) -> None:
    """The part of a recording that is no CUDA: to the bit, on top of what is there already or instead of it."""
    recipe = recipes.read("transformer-tiny", ["data.train.pairs=200", "data.valid.pairs=50", "model.dropout=0"])
    task = build_task(recipe, torch.device("cpu"), print, None)
    objective, batch = task.objective.train(), task.batches(0)[0]
    unused = torch.nn.Parameter(torch.ones(3))
    parameters = [*(parameter for parameter in objective.parameters() if parameter.requires_grad), unused]
    share = torch.tensor(0.125)
    for parameter in parameters:
        parameter.grad = torch.full_like(parameter, 0.0 if alone else 0.25)
    (objective(batch).sum * share).backward()
    expected = [parameter.grad.clone() for parameter in parameters if parameter.grad is not None]
    graphs = Graphs(objective, parameters, Precision(torch.float32, torch.device("cpu")), lambda text: None)
    for recorded in (False, True):  # tried out, and recorded
        for parameter in parameters:
            parameter.grad = torch.full_like(parameter, 0.25)
        former = [parameter.grad for parameter in parameters]
        names, sums = graphs._once(batch, share, alone, recorded)
        assert names[0] == "loss"
        assert sums[0] == objective(batch).sum
        found = [parameter.grad for parameter in parameters if parameter.grad is not None]
        assert len(found) == len(parameters)
        assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))
        kept = [one is other for one, other in zip(former, found, strict=True)]
        assert all(kept) if not (alone and recorded) else sum(kept) < len(kept) / 2
        assert len({gradient.data_ptr() for gradient in found}) == len(found)


def test_memory_that_is_the_gradient_of_two_is_taken_by_one() -> None:
    one, other = torch.nn.Parameter(torch.ones(4)), torch.nn.Parameter(torch.ones(4))
    turned = torch.nn.Parameter(torch.ones(3, 2))
    graphs = Graphs(lambda batch: None, [one, other, turned], Precision(torch.float32, torch.device("cpu")), print)  # type: ignore[arg-type, return-value]
    graphs.zero()
    gradient = torch.randn(4)
    graphs._take((gradient, gradient, torch.randn(2, 3).T))
    assert one.grad is gradient
    assert other.grad is not gradient
    assert turned.grad is not None
    assert turned.grad.is_contiguous()
    graphs.gradients = [parameter.grad for parameter in graphs.parameters if parameter.grad is not None]
    one.grad = None
    graphs.zero()
    assert one.grad is gradient
    assert not gradient.any()
