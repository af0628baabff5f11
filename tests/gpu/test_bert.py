"""BERT on a GPU: packed is padded, recorded and compiled updates are the plain ones, resumed runs the same.

On a machine with a GPU: make gpu-check
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch

from jumok import api
from jumok import recipe as recipes
from jumok.tasks.build import build_task
from jumok.training.optimizer import build_optimizer
from jumok.training.precision import Precision
from jumok.training.run import RunFolder
from jumok.training.step import Step
from jumok.training.verify import differences

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU (make gpu-check)")
SMALL = ["data.train.pairs=1500", "data.valid.pairs=40", "model.width=64", "model.heads=2", "model.layers=2"]
SMALL += ["model.feed_forward=96", "tokenizer.vocabulary=600", "training.batch_tokens=1500", "threads=1", "device=cuda"]
STILL = ["model.dropout=0", "model.attention_dropout=0", "training.epsilon=0.001", "exact=false"]
MODERN = ["model.norm=pre", "model.position=rotary", "model.activation=swiglu"]


@pytest.fixture(autouse=True)
def _full_precision() -> None:
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False


def trained(keys: list[str], updates: int = 6) -> Any:
    """Losses, norms, and all weights after some updates."""
    recipe = recipes.read("bert-tiny", [*SMALL, *STILL, *keys])
    device = torch.device("cuda")
    task = build_task(recipe, device, lambda text: None, None)
    objective = task.objective.to(device)
    optimizer = build_optimizer(objective, recipe.training)
    said: list[str] = []
    step = Step(objective, optimizer, recipe.training, 1, Precision(torch.float32, device), said.append)
    values = [step(task.batches(update), update, 1e-3).values() for update in range(updates)]
    numbers = torch.tensor([[one["loss"], one["gradient_norm"]] for one in values])
    return numbers, torch.cat([parameter.detach().flatten() for parameter in objective.parameters()]).cpu()


@pytest.mark.skipif(find_spec("triton") is None, reason="needs Triton")
@pytest.mark.parametrize("kind", [[], MODERN, ["masking.sentences=next"]], ids=["classic", "modern", "next"])
def test_packed_and_recorded_updates_are_the_plain_ones(kind: list[str]) -> None:
    """The plan differs between packed and padded: so the same packed batches, recorded and not."""
    plain = trained([*kind, "training.pack=true", "training.graphs=false"])
    recorded = trained([*kind, "training.pack=true", "training.graphs=true"])
    torch.testing.assert_close(recorded[0], plain[0], rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(recorded[1], plain[1], rtol=1e-2, atol=2e-3)


@pytest.mark.skipif(find_spec("triton") is None, reason="needs Triton")
@pytest.mark.parametrize("kind", [[], MODERN], ids=["classic", "modern"])
def test_a_packed_batch_is_the_padded_one(kind: list[str]) -> None:
    recipe = recipes.read("bert-tiny", [*SMALL, *STILL, *kind, "training.pack=true"])
    task: Any = build_task(recipe, torch.device("cuda"), lambda text: None, None)
    objective = task.objective.to("cuda").train()
    (packed,) = task.batches(3)
    found = []
    for batch in (packed, packed.repeating(), padded(packed)):
        objective.zero_grad()
        loss = objective(batch.to("cuda"))
        loss.sum.backward()
        gradient = objective.model.reader.embedding.weight.grad.clone()
        found.append((float(loss.sum), gradient))
    for loss, gradient in found[1:]:
        assert loss == pytest.approx(found[0][0], rel=1e-4)
        torch.testing.assert_close(gradient, found[0][1], rtol=1e-3, atol=1e-4)


def padded(packed: Any) -> Any:
    """The same rows side by side."""
    from jumok.data.masked_batch import MaskedBatch
    from jumok.data.masking import Hidden

    ids, lengths, segments = packed._flat()
    hidden = Hidden(ids, packed.places.numpy(), packed.wanted.numpy())
    return MaskedBatch.of(hidden, lengths, segments, None)


@pytest.mark.skipif(find_spec("triton") is None, reason="needs Triton")
def test_compiled_updates_are_the_plain_ones() -> None:
    plain = trained(["training.pack=true", "training.graphs=false"])
    compiled = trained(["training.pack=true", "training.graphs=true", "training.compile=true"])
    torch.testing.assert_close(compiled[0], plain[0], rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(compiled[1], plain[1], rtol=1e-2, atol=2e-3)


@pytest.mark.parametrize("name", ["bert-tiny", "classify", "similarity", "tag", "answer", "classify-lstm"])
def test_a_resumed_run_is_identical(name: str, tmp_path: Path) -> None:
    keys = [
        "data.train.pairs=300", "data.valid.pairs=30", "training.batch_tokens=1024", "device=cuda",
        "training.updates=20", "training.checkpoint_every=10", "training.validate_every=10", "model.dropout=0.2",
        "tokenizer.vocabulary=500", "model.width=32",
    ]  # fmt: skip
    api.train(name, tmp_path / "whole", keys, quiet=True, report=False)

    class Stop:
        def event(self, event: str, update: int, values: dict[str, object]) -> None:
            if event == "valid" and update == 10:
                raise KeyboardInterrupt

        def close(self) -> None: ...

    with pytest.raises(KeyboardInterrupt):
        api.train(name, tmp_path / "stopped", keys, quiet=True, report=False, sinks=[Stop()])
    api.train(None, tmp_path / "stopped", resume=True, quiet=True, report=False)
    assert differences(RunFolder(tmp_path / "whole"), RunFolder(tmp_path / "stopped")) == []
