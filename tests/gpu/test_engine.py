"""The training engine on a GPU: recorded, compiled and packed updates are the plain ones, and a resumed run the same.

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
from jumok.data import grammar
from jumok.data.packing import PackedPairs
from jumok.data.pharaoh import format_pharaoh
from jumok.tasks.build import build_task
from jumok.training.optimizer import build_optimizer
from jumok.training.precision import Precision
from jumok.training.run import RunFolder
from jumok.training.step import Step
from jumok.training.verify import differences

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU (make gpu-check)")
SMALL = ["data.train.pairs=3000", "data.valid.pairs=50", "model.width=64", "model.heads=4", "model.feed_forward=128"]
SMALL += ["training.batch_tokens=1500", "threads=1", "device=cuda"]
SMALL += ["training.epsilon=0.001"]  # a gradient that is nothing but rounding (of a key's bias) must not become a step
SMALL += ["exact=false"]


@pytest.fixture(autouse=True)
def _full_precision() -> None:
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False


def trained(
    keys: list[str], updates: int = 8, dtype: torch.dtype = torch.float32, name: str = "transformer-tiny"
) -> Any:
    """Losses, norms, and all weights after some updates; and what was said."""
    recipe = recipes.read(name, [*SMALL, *keys])
    device = torch.device("cuda")
    task = build_task(recipe, device, lambda text: None, None)
    objective = task.objective.to(device)
    said: list[str] = []
    step = Step(
        objective,
        build_optimizer(objective, recipe.training),
        recipe.training,
        1,
        Precision(dtype, device),
        said.append,
    )
    values = [step(task.batches(update), update, 1e-3).values() for update in range(updates)]
    numbers = torch.tensor([[one["loss"], one["gradient_norm"]] for one in values])
    weights = torch.cat([parameter.detach().flatten() for parameter in objective.parameters()]).cpu()
    return numbers, weights, step, said


def test_packed_is_padded_without_dropout() -> None:
    """The same batch, padded and packed: loss and gradients."""
    recipe = recipes.read("transformer-tiny", [*SMALL, "model.dropout=0", "training.pack=false"])
    task = build_task(recipe, torch.device("cuda"), lambda text: None, None)
    objective = task.objective.cuda().train()
    batch = task.batches(0)[0]
    found = []
    for given in (batch, PackedPairs.of(batch), PackedPairs.of(batch, (2048, 2048)).repeating()):
        objective.zero_grad()
        loss = objective(given.to("cuda"))
        loss.sum.backward()
        gradients = torch.cat([parameter.grad.flatten() for parameter in objective.parameters()])
        found.append((loss.sum.detach(), gradients.clone()))
    for other in found[1:]:
        torch.testing.assert_close(other, found[0], rtol=2e-4, atol=2e-3)


@pytest.mark.parametrize("name", ["transformer-tiny", "transformer-lm"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_recorded_updates_are_the_plain_ones(name: str, dtype: torch.dtype) -> None:
    """Dropout on: a replay draws what the launches would have drawn."""
    plain = trained(["training.graphs=false"], dtype=dtype, name=name)
    recorded = trained(["training.graphs=true"], dtype=dtype, name=name)
    assert len(recorded[2].graphs.recordings) >= 1, recorded[3]
    assert not recorded[3]
    print(
        f"\n{name} {dtype}: {len(recorded[2].graphs.recordings)} recordings, largest difference of a loss "
        f"{(plain[0] - recorded[0]).abs().max():.2e}, of a weight {(plain[1] - recorded[1]).abs().max():.2e}"
    )
    torch.testing.assert_close(recorded[0], plain[0], rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(recorded[1], plain[1], rtol=1e-2, atol=2e-3)


@pytest.mark.parametrize("accumulate", [1, 2])
def test_recordings_of_many_shapes_share_their_gradients(accumulate: int) -> None:
    """Batches of several kinds, alone in an update or not: each recording's gradients are those of its own batch."""
    keys = ["model.dropout=0", "training.pack=true", f"training.accumulate={accumulate}", "training.batch_tokens=700"]
    plain = trained([*keys, "training.graphs=false"], updates=12)
    recorded = trained([*keys, "training.graphs=true"], updates=12)
    graphs = recorded[2].graphs
    assert graphs.recordings
    assert all(alone == (accumulate == 1) for alone, _ in graphs.recordings)
    torch.testing.assert_close(recorded[0], plain[0], rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(recorded[1], plain[1], rtol=1e-2, atol=2e-3)
    graphs.most = 1  # what is not recorded from now on adds to the same gradients
    places = {parameter.grad.data_ptr() for parameter in graphs.parameters}
    graphs.zero()
    assert places == {parameter.grad.data_ptr() for parameter in graphs.parameters}
    assert len(places) == len(graphs.parameters)


@pytest.mark.skipif(find_spec("triton") is None, reason="needs Triton")
@pytest.mark.parametrize("graphs", ["false", "true"])
def test_compiled_updates_are_the_plain_ones(graphs: str) -> None:
    plain = trained(["model.dropout=0", "training.graphs=false"])
    compiled = trained(["model.dropout=0", f"training.graphs={graphs}", "training.compile=true"])
    assert "compiled in" in compiled[3][1]
    assert len(compiled[3]) <= 2, compiled[3]
    torch.testing.assert_close(compiled[0], plain[0], rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(compiled[1], plain[1], rtol=1e-2, atol=1e-3)


def test_activations_computed_again_change_nothing_and_take_less() -> None:
    peaks, found = [], []
    for again in ("false", "true"):
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        keys = ["training.graphs=false", f"training.checkpoint_activations={again}", "training.batch_tokens=8000"]
        before = torch.cuda.memory_allocated()
        found.append(trained(keys, updates=3)[:2])
        peaks.append(torch.cuda.max_memory_allocated() - before)
    print(f"\npeak memory: {peaks[0] / 2**20:.0f} MiB, computed again {peaks[1] / 2**20:.0f} MiB")
    torch.testing.assert_close(found[1][0], found[0][0], rtol=1e-4, atol=1e-4)
    assert peaks[1] < peaks[0]


def test_a_batch_that_does_not_fit_is_done_in_pieces() -> None:
    """The GPU is given away but for a little: the update goes through all the same, with the same gradient norm."""
    keys = ["model.dropout=0", "training.graphs=false", "training.pack=false", "training.batch_tokens=30000"]
    whole, _, _, said = trained(keys, updates=1)
    assert not said
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(min(1.0, (torch.cuda.memory_reserved() + 700 * 2**20) / total))
    try:
        pieces, _, _, said = trained(keys, updates=1)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
        torch.cuda.empty_cache()
    if not said:
        pytest.skip("all fitted into 700 MiB: nothing was split")
    assert "did not fit into memory" in said[0]
    torch.testing.assert_close(pieces, whole, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "float16"])
def test_a_resumed_run_is_bit_identical(precision: str, tmp_path: Path) -> None:
    """Packed, recorded, exact: stopped in the middle."""

    def short(updates: int) -> recipes.Recipe:
        keys = [*SMALL[:-1], "exact=true", f"training.precision={precision}", f"training.updates={updates}"]
        keys += [
            "training.checkpoint_every=10",
            "training.log_every=1",
            "training.validate_every=10",
            "training.schedule=constant",
        ]
        return recipes.read("transformer-tiny", [*keys, "training.validate_sentences=20", "training.ema=0.9"])

    class Stop(Exception):
        pass

    class StopAt:
        def event(self, event: str, update: int, values: dict[str, object]) -> None:
            if update == 17:
                raise Stop

        def close(self) -> None: ...

    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    api.train(short(30), whole, quiet=True, report=False)
    with pytest.raises(Stop):
        api.train(short(30), stopped, quiet=True, report=False, sinks=[StopAt()])
    api.train(None, stopped, resume=True, quiet=True, report=False)
    assert differences(RunFolder(whole), RunFolder(stopped)) == []


def test_a_recording_outlives_a_longer_table_of_positions() -> None:
    """The table of positions grows when something longer comes, a validation for example; recordings read the old."""
    recipe = recipes.read("transformer-tiny", [*SMALL, "training.graphs=true", "model.dropout=0"])
    found = []
    for grows in (False, True):
        task = build_task(recipe, torch.device("cuda"), lambda text: None, None)
        objective = task.objective.cuda()
        optimizer, precision = (
            build_optimizer(objective, recipe.training),
            Precision(torch.float32, torch.device("cuda")),
        )
        step = Step(objective, optimizer, recipe.training, 1, precision, print)
        step(task.batches(0), 0, 1e-3)
        rubbish = []
        if grows:
            for stack in (objective.model.encoder, objective.model.decoder):
                stack.reach(600)
            torch.cuda.empty_cache()
            rubbish = [torch.full((256, 64), 1e3, device="cuda") for _ in range(50)]
        found.append([step(task.batches(update), update, 1e-3).values()["loss"] for update in (1, 2)])
        del rubbish
    assert found[0] == pytest.approx(found[1], rel=1e-4)


def test_what_cannot_be_recorded_is_computed_all_the_same() -> None:
    """An objective that waits for the GPU, with dropout: the run says so and goes on, with the right gradients."""
    recipe = recipes.read("transformer-tiny", [*SMALL, "training.graphs=true"])
    found, said = [], []
    for waits in (False, True):
        keys = recipe.training.model_copy(update={"graphs": waits and "auto"})
        task = build_task(recipe, torch.device("cuda"), lambda text: None, None)
        objective = task.objective.cuda()
        if waits:
            plain = objective.forward

            def waiting(batch: Any, plain: Any = plain) -> Any:
                loss = plain(batch)
                float(loss.sum)
                return loss

            objective.forward = waiting  # type: ignore[method-assign]
        precision = Precision(torch.float32, torch.device("cuda"))
        step = Step(objective, build_optimizer(objective, keys), keys, 1, precision, said.append)
        values = [step(task.batches(update), update, 1e-3).values() for update in range(3)]
        found.append(torch.tensor([[one["loss"], one["gradient_norm"]] for one in values]))
    assert any("cannot be recorded" in line for line in said)
    torch.testing.assert_close(found[1], found[0], rtol=1e-3, atol=1e-3)


def test_a_head_is_guided_as_on_the_cpu(tmp_path: Path) -> None:
    """Padded and launched one by one, whatever else is asked for; the loss and the gradients are the CPU's."""
    links = tmp_path / "train.align"
    lines = [format_pharaoh(pair.sure) for pair in grammar.pairs("en", "fr", "train", 3000)]
    links.write_text("".join(f"{line}\n" for line in lines))
    found = []
    for device in ("cpu", "cuda"):
        keys = [f"data.train.alignments={links}", "training.align=0.5", "model.dropout=0", f"device={device}"]
        recipe = recipes.read("transformer-tiny", [*SMALL, *keys])
        task = build_task(recipe, torch.device(device), lambda text: None, None)
        objective, batch = task.objective.to(device).train(), task.batches(0)[0]
        loss = objective(batch.to(device))
        loss.sum.backward()
        gradients = torch.cat([parameter.grad.flatten() for parameter in objective.parameters()])
        found.append((loss.sum.detach().cpu(), loss.parts["alignment"].cpu(), gradients.cpu()))
    assert found[0][1] > 0
    torch.testing.assert_close(found[1], found[0], rtol=1e-3, atol=2e-2)
