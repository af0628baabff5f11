"""Muon: steps that turn all directions alike, equal to PyTorch's, exact on resume, harmless where a number is none."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from seeded import seed  # noqa: F401  fresh inputs in every run
from torch import nn

from jumok import api
from jumok import recipe as recipes
from jumok.errors import BadInput
from jumok.models.permuted import PermutedRecognizer
from jumok.models.vit import ImageLabeller
from jumok.recipe import Training, VitSection
from jumok.recipe.recognition import RecognizerSection
from jumok.text.charset import Charset
from jumok.training import muon
from jumok.training.muon import Muon, matrices_of, orthogonal
from jumok.training.optimizer import build_optimizer

pytestmark = pytest.mark.usefixtures("seed")


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 16, 40), (4, 40, 16), (2, 1, 7)])
def test_singular_values_come_near_one(shape: tuple[int, ...]) -> None:
    given = torch.randn(shape)
    found = orthogonal(given)
    left, values, right = torch.linalg.svd(given, full_matrices=False)
    # those that were nearly 0 need more rounds than there are
    large = values > 0.05 * values[:, :1]
    turned = torch.linalg.diagonal(left.mT @ found @ right.mT)
    assert ((turned > 0.5) & (turned < 1.3))[large].all()
    torch.testing.assert_close(left * turned[:, None] @ right, found, atol=1e-3, rtol=1e-3)  # no direction is new


@pytest.mark.parametrize("shape", [(12, 12), (24, 12), (12, 30)])
def test_steps_are_those_of_pytorch(shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(muon, "in_products", lambda matrices: matrices.bfloat16())  # as theirs on any device
    ours, theirs = (nn.Parameter(torch.empty(shape)) for _ in "ab")
    nn.init.normal_(ours)
    theirs.data.copy_(ours.data)
    about = {"lr": 0.02, "weight_decay": 0.1}
    other = {"params": [nn.Parameter(torch.zeros(1))], "orthogonal": False, **about}
    here = Muon([{"params": [ours], "orthogonal": True, **about}, other], lr=0.02)
    there = torch.optim.Muon([theirs], momentum=muon.MOMENTUM, adjust_lr_fn="match_rms_adamw", **about)
    for _ in range(6):
        ours.grad = torch.randn(shape)
        theirs.grad = ours.grad.clone()
        before = ours.detach().clone()
        here.step()
        there.step()
        assert (ours - theirs).norm() < 1e-3 * (ours - before).norm()


def small_model() -> ImageLabeller:
    return ImageLabeller(VitSection(image=8, width=16, heads=2, layers=2, feed_forward=24), 3)


def test_matrices_of_blocks_and_nothing_else() -> None:
    model = small_model()
    optimizer = build_optimizer(model, Training(optimizer="muon", weight_decay=0.1))
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    found = {
        names[id(one)]: (bool(group.get("orthogonal")), group["weight_decay"])
        for group in optimizer.param_groups
        for one in group["params"]
    }
    assert len(found) == len(names) == sum(len(group["params"]) for group in optimizer.param_groups)
    for name, (turned, decay) in found.items():
        assert turned == ("blocks" in name and name.endswith("weight") and "norm" not in name), name
        assert decay == (0.1 if dict(model.named_parameters())[name].dim() >= 2 else 0.0), name
    assert len(matrices_of(model)) == 12


def test_a_decoder_with_blocks_of_its_own_has_matrices_too() -> None:
    section = RecognizerSection(
        image=(32, 64), patch=(32, 4), width=24, heads=2, layers=2, feed_forward=32, max_length=8
    )
    model = PermutedRecognizer(section, Charset(("a", "b")))
    turned = matrices_of(model)
    assert sum(one.dim() == 2 for one in turned) == 2 * 6 + 4 + 4 + 2
    # steps of 2×2 twice, then 2×1 three times: five convolutions, of which the first reads the picture
    assert {name for name, one in model.named_parameters() if one in turned and one.dim() == 4} == {
        f"encoder.vit.stem.layers.{number}.weight" for number in range(1, 5)
    }


def test_convolutions_learn_as_the_matrices_they_are() -> None:
    """(D, C, 3, 3) is D rows of all that a channel sees."""
    kernel, matrix = nn.Parameter(torch.randn(6, 4, 3, 3)), nn.Parameter(torch.empty(6, 36))
    matrix.data.copy_(kernel.data.flatten(1))
    about = {"lr": 0.02, "weight_decay": 0.1}
    others = [{"params": [nn.Parameter(torch.zeros(1))], "orthogonal": False, **about} for _ in range(2)]
    first, second = (
        Muon([{"params": [one], "orthogonal": True, **about}, other], lr=0.02)
        for one, other in zip((kernel, matrix), others, strict=True)
    )
    for decided in (False, True, True):
        for optimizer in (first, second):
            optimizer.found_inf = torch.zeros(()) if decided else None
        kernel.grad = torch.randn_like(kernel)
        matrix.grad = kernel.grad.flatten(1).clone()
        first.step()
        second.step()
        assert kernel.shape == (6, 4, 3, 3)
        torch.testing.assert_close(kernel.flatten(1), matrix, atol=1e-6, rtol=1e-5)


def test_matrices_may_learn_at_a_rate_of_their_own() -> None:
    training = Training(optimizer="muon", matrices_rate=3.0, layer_decay=0.5)
    for group in build_optimizer(small_model(), training, 2).param_groups:
        assert group["share"] in ([3, 1.5, 0.75, 0.375] if group["orthogonal"] else [1, 0.5, 0.25, 0.125])


def learn(optimizer: torch.optim.Optimizer, parameters: list[nn.Parameter]) -> None:
    for parameter in parameters:
        parameter.grad = torch.randn_like(parameter)
    optimizer.step()


def test_an_update_that_is_no_number_changes_nothing() -> None:
    """As on a GPU, where what is bad is known there alone."""
    model = small_model()
    parameters = list(model.parameters())
    optimizer = build_optimizer(model, Training(optimizer="muon", weight_decay=0.1, learning_rate=0.01))
    assert isinstance(optimizer, Muon)
    optimizer.found_inf = torch.zeros(())
    learn(optimizer, parameters)
    weights = [one.detach().clone() for one in parameters]
    momenta = [optimizer.state[one]["momentum"].clone() for one in matrices_of(model)]
    optimizer.found_inf = torch.ones(())
    for parameter in parameters:
        parameter.grad = torch.full_like(parameter, torch.nan)
    optimizer.step()
    assert all(torch.equal(one, other) for one, other in zip(parameters, weights, strict=True))
    for one, other in zip((optimizer.state[each]["momentum"] for each in matrices_of(model)), momenta, strict=True):
        assert torch.equal(one, other)


def test_deciding_on_the_device_is_the_same_step() -> None:
    results = []
    for decided in (False, True):
        torch.manual_seed(3)
        model = small_model()
        optimizer = build_optimizer(model, Training(optimizer="muon", weight_decay=0.1, learning_rate=0.01))
        assert isinstance(optimizer, Muon)
        for _ in range(3):
            optimizer.found_inf = torch.zeros(()) if decided else None
            learn(optimizer, list(model.parameters()))
        results.append([one.detach().clone() for one in model.parameters()])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-5)


def test_models_without_blocks_are_refused(tmp_path: Path) -> None:
    """Before anything of the run is there."""
    small = ["data.train.pairs=200", "data.valid.pairs=20", "tokenizer.vocabulary=200", "model.width=8"]
    with pytest.raises(BadInput, match=r"training\.optimizer: muon is for the blocks of a Transformer"):
        api.train("lstm", tmp_path / "run", ["training.optimizer=muon", "model.embedding=8", *small], quiet=True)
    assert not (tmp_path / "run").exists()


def test_groups_cannot_come_later() -> None:
    optimizer = build_optimizer(small_model(), Training(optimizer="muon"))
    with pytest.raises(NotImplementedError):
        optimizer.load_state_dict(optimizer.state_dict())
    with pytest.raises(NotImplementedError):
        optimizer.add_param_group({"params": [nn.Parameter(torch.zeros(1))]})


KEYS = [
    "data.train.pairs=200", "data.valid.pairs=50", "model.width=16", "model.heads=2", "model.layers=2",
    "model.feed_forward=24", "training.optimizer=muon", "training.batch_images=16", "training.updates=8",
    "training.warmup=1", "training.checkpoint_every=4", "training.validate_every=4", "device=cpu",
]  # fmt: skip


def test_a_resumed_run_is_the_same_to_the_bit(tmp_path: Path) -> None:
    recipe = recipes.read("vit-demo", KEYS)
    whole = api.train(recipe, tmp_path / "whole", quiet=True, report=False)
    api.train(recipes.read("vit-demo", [*KEYS, "training.keep=9"]), tmp_path / "cut", quiet=True, report=False)
    folder = tmp_path / "cut" / "checkpoints"
    for path in folder.iterdir():
        if path.name == "step-8":
            for file in path.iterdir():
                file.unlink()
            path.rmdir()
    for name in ("last.json", "best.json"):
        (tmp_path / "cut" / name).unlink(missing_ok=True)
    assert not (folder / "step-8").exists()
    again = api.train(None, tmp_path / "cut", resume=True, quiet=True, report=False)
    assert (folder / "step-8").is_dir()
    for (name, one), other in zip(whole.model.state_dict().items(), again.model.state_dict().values(), strict=True):
        assert torch.equal(one, other), name


def test_a_run_whose_kernels_learned_by_adamw_is_not_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As runs did before a stem's convolutions came to Muon: it would go on, and not be the same run."""
    keys = [*KEYS, "model.stem=convolution", "model.stem_depth=2", "training.updates=6", "training.checkpoint_every=3"]

    def of_blocks(model: nn.Module) -> set[torch.Tensor]:
        return {matrix for matrix in matrices_of(model) if matrix.dim() == 2}

    with monkeypatch.context() as before:
        before.setattr("jumok.training.optimizer.matrices_of", of_blocks)
        api.train(recipes.read("vit-demo", keys), tmp_path / "run", quiet=True, report=False)
    recipe = tmp_path / "run" / "recipe.yaml"
    recipe.write_text(recipe.read_text(encoding="utf-8").replace("updates: 6", "updates: 9"), encoding="utf-8")
    with pytest.raises(BadInput, match=r"stem\.layers\.\d+\.weight learned by AdamW there, .* \(--start\)"):
        api.train(None, tmp_path / "run", resume=True, quiet=True, report=False)
