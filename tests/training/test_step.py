"""An update that does not fit into memory is done in pieces, with the same gradient."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from line import Line, LineTask, Points, make
from torch import nn

from jumok.errors import Failure
from jumok.tasks.objective import Loss
from jumok.training.device import is_out_of_memory


class Small(Line):
    """A machine that holds `room` points at a time; it notices in the backward pass, after part of the gradient."""

    def __init__(self, room: int, error: type[RuntimeError] = torch.OutOfMemoryError) -> None:
        super().__init__()
        self.noise = nn.Dropout(0.0)
        self.room, self.error = room, error

    def forward(self, points: Points) -> Loss:
        loss = super().forward(points)
        if len(points) > self.room:

            def full(gradient: Any) -> None:
                raise self.error("DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 byte")

            self.model.weight.grad = torch.ones_like(self.model.weight)  # what a backward pass half done leaves
            loss.sum.register_hook(full)
        return loss


@pytest.mark.parametrize("error", [torch.OutOfMemoryError, RuntimeError])
@pytest.mark.parametrize("room", [1, 2, 3, 5])
def test_pieces_give_the_gradient_of_the_whole(tmp_path: Path, room: int, error: type[RuntimeError]) -> None:
    said: list[str] = []
    weights = []
    for size in (room, 100):
        task = LineTask((7, 4))
        task.objective = Small(size, error)
        loop = make(tmp_path / str(size), task)
        loop.step.say = said.append
        loop._launch()
        weights.append((loop.under_way[0].values(), [p.grad.clone() for p in task.objective.parameters()]))
    (values, gradients), (whole_values, whole_gradients) = weights
    torch.testing.assert_close(gradients, whole_gradients)
    assert values == pytest.approx(whole_values)
    assert "update 1 did not fit into memory (7 rows, 7 tokens)" in said[0]
    assert "training.batch_tokens" in said[0]


@pytest.mark.parametrize(
    ("counted", "key"), [("tokens", "batch_tokens"), ("images", "batch_images"), ("words", "batch_images")]
)
def test_what_to_lower_is_what_batches_are_counted_in(
    tmp_path: Path, counted: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Small, "counted", counted)
    task, said = LineTask((2,)), list[str]()
    task.objective = Small(1)
    loop = make(tmp_path, task)
    loop.step.say = said.append
    loop._launch()
    assert f"lower training.{key} (now " in said[0]


def test_what_never_fits_is_said(tmp_path: Path) -> None:
    task = LineTask((3,))
    task.objective = Small(0)
    loop = make(tmp_path, task)
    with pytest.raises(Failure, match="not even one sentence at a time") as caught:
        loop._launch()
    assert "data.max_length" in str(caught.value)


def test_other_errors_stay_errors(tmp_path: Path) -> None:
    task = LineTask((3,))
    task.objective = Small(0, IndexErrorLike)
    with pytest.raises(IndexErrorLike):
        make(tmp_path, task)._launch()


class IndexErrorLike(RuntimeError):
    def __str__(self) -> str:
        return "shapes do not fit"


def test_a_real_allocation_that_fails_is_recognised() -> None:
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**50)
    assert is_out_of_memory(caught.value)


def test_what_cannot_be_compiled_is_said_once(tmp_path: Path) -> None:
    said: list[str] = []
    loop = make(tmp_path, LineTask((3, 2)), "training.compile=true")
    loop.step.say = said.append
    loop._launch()
    loop._launch()
    assert len(said) == 1
    assert "training.pack=true" in said[0]
