"""Words in pictures on a GPU: rendered there as on the CPU, learned from in recorded updates without waiting for
anything, with the CTC of the CPU, by every architecture, and resumed exactly."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_fonts import section, words_of
from stopping import StopAt
from torch import Tensor
from torch.nn import functional as F
from word_runs import words_recipe

from jumok import api
from jumok.data.rendering.renderer import Renderer
from jumok.layers.ctc import BLANK, ctc_loss
from jumok.recipe import Recipe
from jumok.tasks.build import build_task
from jumok.training.optimizer import build_optimizer
from jumok.training.precision import Precision
from jumok.training.run import RunFolder
from jumok.training.step import Step
from jumok.training.verify import differences

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU (make gpu-check)")
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # deterministic products; it is read at the first of them
DEVICE = "cuda"
KINDS: dict[str, dict[str, Any]] = {
    "crnn": {"encoder": "recurrent", "decoder": "ctc", "layers": 1},
    "attn-lstm": {"encoder": "recurrent", "decoder": "recurrent", "layers": 1},
    "vit-ctc": {"encoder": "vit", "decoder": "ctc"},
    "vit-decoder": {"encoder": "vit", "decoder": "transformer"},
    "permuted": {"encoder": "vit", "decoder": "permuted", "stem_depth": 2},
}
RECORDED = ["vit-ctc", "vit-decoder", "permuted"]
EVERYTHING = {
    "colour": 1.0,
    "lettering": 0.3,
    "outline": 0.3,
    "curve": 1.0,
    "perspective": 1.0,
    "blur": 1.0,
    "noise": 1.0,
    "clutter": 0.3,
}


@pytest.fixture(autouse=True)
def _full_precision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUMOK_CACHE", str(tmp_path / "cache"))
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False


def recipe_of(kind: str, model: dict[str, Any] | None = None, exact: bool = False, **training: Any) -> Recipe:
    made = words_recipe(EVERYTHING, **{"width": 64, "feed_forward": 128, **KINDS[kind], **(model or {})})
    # a gradient that is nothing but rounding (of a key's bias) must not become a step
    keys = {"batch_images": 32, "epsilon": 0.001, "warmup": 0, **training}
    changed = {"device": DEVICE, "exact": exact, "training": made.training.model_copy(update=keys)}
    return made.model_copy(update=changed)


# ---------------------------------------------------------------- rendering


def test_pictures_are_like_those_of_the_cpu() -> None:
    """Each device draws by itself: what they have in common are means and spreads over many pictures."""
    words = words_of(section(held_out_fonts=0))
    glyphs = words.batch(np.arange(1024), 1).glyphs
    found = []
    for device in ("cpu", DEVICE):
        renderer = Renderer(words.atlas, section(**EVERYTHING), (32, 96), 3).to(device)
        pictures = renderer(glyphs.to(device))
        assert pictures.images.device.type == device
        images, centres = pictures.images.float().cpu(), pictures.centres.float().cpu()
        inked = images.flatten(2).std(dim=2).mean(dim=1)  # how much there is to see in each
        sharp = images.diff(dim=3).abs().mean(dim=(1, 2, 3))
        level = images.mean(dim=(1, 2, 3))
        first = centres[:, 0].clamp(-1, 2)  # the middle of the first letter
        numbers = [level.mean(), level.std(), inked.mean(), inked.std(), sharp.mean(), *(100 * first.mean(dim=0))]
        found.append(torch.stack([torch.as_tensor(number) for number in numbers]))
    print(
        f"\nlevel, its spread, contrast, its spread, sharpness, first letter: {found[0].tolist()} {found[1].tolist()}"
    )
    torch.testing.assert_close(found[1], found[0], rtol=0.15, atol=4.0)


@pytest.mark.parametrize("exact", [False, True])
def test_the_same_draws_make_the_same_pictures(exact: bool) -> None:
    words = words_of(section(held_out_fonts=0))
    renderer = Renderer(words.atlas, section(**EVERYTHING), (32, 96), 3).to(DEVICE)
    glyphs = words.batch(np.arange(64), 1).glyphs.to(DEVICE)

    def made(seed: int) -> Tensor:
        torch.manual_seed(seed)
        images: Tensor = renderer(glyphs).images
        return images.cpu()

    torch.use_deterministic_algorithms(exact)
    try:
        first = made(11)
        assert torch.equal(made(11), first)
        assert (made(12) != first).flatten(1).any(dim=1).all()
    finally:
        torch.use_deterministic_algorithms(False)


# ---------------------------------------------------------------- learning


def trained(recipe: Recipe, updates: int = 6, dtype: torch.dtype = torch.float32, rate: float = 1e-3) -> Any:
    """Losses, norms, and all weights after some updates; and what was said."""
    device = torch.device(DEVICE)
    task = build_task(recipe, device, lambda text: None, None)
    objective = task.objective.to(device)
    said: list[str] = []
    optimizer = build_optimizer(objective, recipe.training)
    step = Step(objective, optimizer, recipe.training, 1, Precision(dtype, device), said.append)
    values = [step(task.batches(update), update, rate).values() for update in range(updates)]
    numbers = torch.tensor([[one["loss"], one["gradient_norm"]] for one in values])
    weights = torch.cat([parameter.detach().flatten() for parameter in objective.parameters()]).cpu()
    return numbers, weights, step, said


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", RECORDED)
def test_recorded_updates_are_the_plain_ones(kind: str, dtype: torch.dtype) -> None:
    """Rendering is recorded, too: a replay draws what the launches would have drawn."""
    plain = trained(recipe_of(kind, graphs=False), dtype=dtype)
    recorded = trained(recipe_of(kind, graphs=True), dtype=dtype)
    assert len(recorded[2].graphs.recordings) == 1, recorded[3]
    assert not recorded[3]
    torch.testing.assert_close(recorded[0], plain[0], rtol=2e-3, atol=2e-3)
    torch.testing.assert_close(recorded[1], plain[1], rtol=1e-2, atol=2e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_every_architecture_learns_in_bfloat16(kind: str) -> None:
    recipe = recipe_of(kind, {"dropout": 0.0}, graphs="auto")
    numbers, _, step, said = trained(recipe, 60, torch.bfloat16, rate=2e-3)
    assert torch.isfinite(numbers).all()
    first, last = numbers[:5, 0].mean(), numbers[-5:, 0].mean()
    print(f"\n{kind}: loss of a batch from {first:.1f} to {last:.1f}")
    assert last < 0.8 * first
    assert (step.graphs is not None) == (kind in RECORDED), said


@pytest.mark.parametrize("kind", RECORDED)
def test_nothing_waits_for_the_gpu(kind: str) -> None:
    recipe = recipe_of(kind)
    task = build_task(recipe, torch.device(DEVICE), lambda text: None, None)
    objective = task.objective.to(DEVICE).train()
    batches = [task.batches(update)[0].to(DEVICE) for update in range(3)]
    objective(batches[0]).sum.backward()  # the first may make tables
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        for batch in batches[1:]:
            objective(batch).sum.backward()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert all(parameter.grad is not None for parameter in objective.parameters())


@pytest.mark.parametrize("kind", ["crnn", "vit-decoder", "permuted"])
def test_a_resumed_run_is_the_undisturbed_one(kind: str, tmp_path: Path) -> None:
    keys = {"updates": 12, "validate_every": 5, "checkpoint_every": 5, "log_every": 1, "ema": 0.9}
    recipe = recipe_of(kind, exact=True, **keys)
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    api.train(recipe, whole, quiet=True, report=False)
    with pytest.raises(KeyboardInterrupt):
        api.train(recipe, cut, quiet=True, report=False, sinks=[StopAt(8)])
    api.train(None, cut, resume=True, quiet=True, report=False)
    assert differences(RunFolder(whole), RunFolder(cut)) == []


# ---------------------------------------------------------------- CTC and reading


@pytest.mark.parametrize("equal", [False, True], ids=["any labels", "many equal neighbours"])
def test_ctc_is_that_of_the_cpu_and_of_pytorch(equal: bool) -> None:
    rows, frames, labels, classes = 16, 24, 9, 3 if equal else 12
    logits = torch.randn(rows, frames, classes, dtype=torch.float64)
    ids, lengths = torch.randint(1, classes, (rows, labels)), torch.randint(0, labels + 1, (rows,))
    found = []
    for device in ("cpu", DEVICE):
        own = logits.clone().to(device).requires_grad_()
        log_probs = torch.log_softmax(own, dim=-1)
        asked = log_probs.gather(2, ids.to(device)[:, None].expand(-1, frames, -1))
        loss = ctc_loss(asked, log_probs[..., BLANK], ids.to(device), lengths.to(device))
        loss.sum().backward()
        assert own.grad is not None
        found.append((loss.detach().cpu(), own.grad.cpu()))
    own = logits.requires_grad_()
    log_probs = torch.log_softmax(own, dim=-1).transpose(0, 1)
    real = [row[:length] for row, length in zip(ids, lengths, strict=True)]
    full = torch.full((rows,), frames)
    loss = F.ctc_loss(log_probs, torch.cat(real), full, lengths, BLANK, "none", zero_infinity=True)
    loss.sum().backward()
    assert own.grad is not None
    found.append((loss.detach(), own.grad))
    for other in found[1:]:
        torch.testing.assert_close(other, found[0], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_the_gpu_reads_what_the_cpu_reads(kind: str) -> None:
    recipe = recipe_of(kind)
    task = build_task(recipe, torch.device("cpu"), lambda text: None, None)
    model = task.objective.model.eval()
    images = torch.randint(0, 256, (6, 1, 32, 48), dtype=torch.uint8)
    ids, lengths = task.batches(0)[0].ids[:6], task.batches(0)[0].lengths[:6]
    with torch.no_grad():
        expected = model.losses(images, ids, lengths)["loss"], model.read(images)
        model.to(DEVICE)
        losses, read = (
            model.losses(images.to(DEVICE), ids.to(DEVICE), lengths.to(DEVICE)),
            model.read(images.to(DEVICE)),
        )
    torch.testing.assert_close(losses["loss"].cpu(), expected[0], rtol=1e-3, atol=1e-3)
    same = min(read.ids.size(1), expected[1].ids.size(1))
    assert (read.ids.cpu()[:, :same] == expected[1].ids[:, :same]).float().mean() > 0.95  # a tie may go either way
    assert (read.ending.cpu() - expected[1].ending).abs().median() < 1e-3
