"""Images on a GPU: recorded and compiled updates are the plain ones, a resumed run is the undisturbed one, and what is
computed is what the CPU computes."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from stopping import StopAt

from jumok import api
from jumok import recipe as recipes
from jumok.layers import short_attention
from jumok.models.vit import ImageLabeller
from jumok.recipe import VitSection
from jumok.tasks.build import build_task
from jumok.training.optimizer import build_optimizer
from jumok.training.precision import Precision
from jumok.training.run import RunFolder
from jumok.training.step import Step
from jumok.training.verify import differences

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU (make gpu-check)")
SMALL = ["data.train.pairs=300", "data.valid.pairs=60", "model.width=64", "model.heads=2", "model.layers=2"]
SMALL += [
    "model.stem=patch",
    "model.pooling=mean",
    "training.batch_images=64",
    "training.epsilon=0.001",
    "device=cuda",
    "threads=1",
    "training.warmup=0",
]
VARIED = ["augment.crop=3", "augment.flip=true", "augment.rand_augment=2", "augment.erase=0.25", "augment.mixup=0.8"]
VARIED += ["augment.cutmix=1.0", "model.stochastic_depth=0.2", "model.dropout=0.1"]
CCT = ["model.stem=convolution", "model.stem_layers=2", "model.pooling=sequence"]
STILL = ["augment.crop=0", "augment.flip=false"]  # a compiled program draws other numbers


@pytest.fixture(autouse=True)
def _full_precision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUMOK_CACHE", str(tmp_path / "cache"))
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False


def trained(keys: list[str], updates: int = 6, dtype: torch.dtype = torch.float32) -> Any:
    """Losses, norms, and all weights after some updates; and what was said."""
    recipe = recipes.read("vit-demo", [*SMALL, *keys])
    device = torch.device("cuda")
    task = build_task(recipe, device, lambda text: None, None)
    objective = task.objective.to(device)
    said: list[str] = []
    optimizer = build_optimizer(objective, recipe.training)
    step = Step(objective, optimizer, recipe.training, 1, Precision(dtype, device), said.append)
    start = torch.cat([parameter.detach().flatten() for parameter in objective.parameters()]).cpu()
    values = [step(task.batches(update), update, 1e-3).values() for update in range(updates)]
    numbers = torch.tensor([[one["loss"], one["gradient_norm"]] for one in values])
    weights = torch.cat([parameter.detach().flatten() for parameter in objective.parameters()]).cpu()
    return numbers, weights, step, said, weights - start


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("pooling", ["class", "mean"])
def test_recorded_updates_are_the_plain_ones(dtype: torch.dtype, pooling: str) -> None:
    keys = [*VARIED, "exact=false", f"model.pooling={pooling}"]
    plain = trained([*keys, "training.graphs=false"], dtype=dtype)
    recorded = trained([*keys, "training.graphs=true"], dtype=dtype)
    assert len(recorded[2].graphs.recordings) == 1, recorded[3]
    torch.testing.assert_close(recorded[0], plain[0], rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(recorded[1], plain[1], rtol=1e-2, atol=2e-3)


@pytest.mark.skipif(find_spec("triton") is None, reason="needs Triton")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("keys", [[], CCT, [*CCT, "training.optimizer=muon"]], ids=["patches", "cct", "muon"])
def test_compiled_updates_are_the_plain_ones(keys: list[str], dtype: torch.dtype) -> None:
    keys = [*STILL, *keys, "exact=false"]
    plain = trained([*keys, "training.graphs=false"], dtype=dtype)
    compiled = trained([*keys, "training.graphs=true", "training.compile=true"], dtype=dtype)
    assert "compiled in" in compiled[3][1], compiled[3]
    exact = dtype == torch.float32 and "training.optimizer=muon" not in keys  # which turns in bfloat16
    torch.testing.assert_close(compiled[0], plain[0], rtol=1e-3 if exact else 3e-2, atol=1e-3)
    assert (compiled[1] - plain[1]).norm() < (0.02 if exact else 0.15) * plain[4].norm()  # of the way they have gone


@pytest.mark.skipif(find_spec("triton") is None, reason="needs Triton")
@pytest.mark.parametrize("keys", [[], CCT], ids=["patches", "cct"])
def test_all_weights_have_the_gradient_of_a_plain_update(keys: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each by itself, in the numbers that GPUs train in: one that stays behind is not seen in the norm of all. The
    plain one has no kernel of ours."""
    found = []
    for on, more in ((False, ["training.graphs=false"]), (True, ["training.graphs=true", "training.compile=true"])):
        monkeypatch.setattr(short_attention, "ON_A_GPU", on)
        step = trained([*STILL, *keys, "exact=false", *more], updates=1, dtype=torch.bfloat16)[2]
        found.append(list(step.objective.named_parameters()))
    for (name, plain), (_, compiled) in zip(*found, strict=True):
        assert plain.grad is not None, name
        assert compiled.grad is not None, name
        # what moves all scores of a softmax alike changes nothing: its gradient is rounding
        if not name.endswith(("key.bias", "weigh.bias")):
            assert (compiled.grad - plain.grad).norm() < 0.1 * plain.grad.norm(), name


@pytest.mark.skipif(find_spec("triton") is None, reason="needs Triton")
def test_all_that_varies_can_be_compiled() -> None:
    numbers, _, _, said, _ = trained([*VARIED, "exact=false", "training.compile=true"], updates=3)
    assert "compiled in" in said[1], said
    assert torch.isfinite(numbers).all()


@pytest.mark.parametrize(
    "keys", [{}, {"stem": "convolution", "stem_layers": 2, "pooling": "sequence"}, {"registers": 2}]
)
def test_the_gpu_computes_what_the_cpu_does(keys: dict[str, Any]) -> None:
    model = ImageLabeller(VitSection(width=64, heads=2, layers=2, feed_forward=128, **keys), 10).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.1)
    images = torch.randint(0, 256, (5, 3, 32, 32), dtype=torch.uint8)
    with torch.no_grad():
        expected = model(images)
        torch.testing.assert_close(model.cuda()(images.cuda()).cpu(), expected, rtol=1e-3, atol=1e-3)


def test_a_resumed_run_is_the_undisturbed_one(tmp_path: Path) -> None:
    keys = [*SMALL, *VARIED, "training.updates=12", "training.validate_every=5", "training.checkpoint_every=5"]
    recipe = recipes.read("vit-demo", [*keys, "training.log_every=1", "training.ema=0.9"])
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    api.train(recipe, whole, quiet=True, report=False)

    with pytest.raises(KeyboardInterrupt):
        api.train(recipe, cut, quiet=True, report=False, sinks=[StopAt(8)])
    api.train(None, cut, resume=True, quiet=True, report=False)
    assert differences(RunFolder(whole), RunFolder(cut)) == []
