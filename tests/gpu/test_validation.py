"""Translating between two updates of training on a GPU: what the host's search writes, repeatable, nothing left behind.

On a machine with a GPU: make gpu-check
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import torch
from translators import sentences, translator

from jumok import api
from jumok.search import on_device
from jumok.tasks import engine
from jumok.tasks.engine import Engine
from jumok.tasks.translator import Translation, Translator
from jumok.training.device import repeatable
from jumok.training.run import RunFolder
from jumok.training.verify import differences

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU (make gpu-check)")
CUDA = torch.device("cuda")


def in_training() -> Translator:
    model = translator()
    model.model.to(CUDA)
    model.device, model.engine = CUDA, Engine(model.models, CUDA)
    return model


def timed(model: Translator, count: int = 300) -> tuple[list[Translation], float]:
    torch.cuda.synchronize()
    began = time.perf_counter()
    found = [ranks[0] for ranks in model.nbest(sentences(count), beam=1)]
    torch.cuda.synchronize()
    return found, time.perf_counter() - began


@pytest.mark.parametrize("exact", [True, False])
def test_it_writes_what_the_host_writes(exact: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between exact updates too: no operation may refuse, and a second time gives the same bits."""
    model = in_training()
    went = []
    with monkeypatch.context() as patched, repeatable(0, CUDA, exact):
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        patched.setattr(
            engine,
            "generate_on_device",
            lambda *given, **more: went.append(1) or on_device.generate_on_device(*given, **more),
        )
        patched.setattr(engine, "generate", lambda *given, **more: pytest.fail("it fell back to the host"))
        timed(model)  # compiles
        random, memory = torch.cuda.get_rng_state(), torch.cuda.memory_allocated()
        (here, seconds), (again, _) = timed(model), timed(model)
        assert went
        assert torch.equal(random, torch.cuda.get_rng_state()), "a resumed run would differ"
        assert torch.cuda.memory_allocated() <= memory + (1 << 20), "what it took belongs to the training"
        patched.setattr(engine, "device_search_fits", lambda *given: False)
        timed(model)
        there, slow = timed(model)
    print(f"exact {exact}: 300 sentences in {seconds:.3f} s on the device, {slow:.3f} s from the host")
    assert [one.ids for one in here] == [one.ids for one in again]
    assert [one.score for one in here] == [one.score for one in again]
    for ours, theirs in zip(here, there, strict=True):
        assert ours.ids == theirs.ids or ours.score == pytest.approx(theirs.score, abs=1e-4)


def test_changed_weights_are_followed() -> None:
    model = in_training()
    before, _ = timed(model, 5)
    with torch.no_grad():
        model.model.bias[before[0].ids[0]] -= 9.0
    after, _ = timed(model, 5)
    assert [one.ids for one in after] != [one.ids for one in before]
    assert after[0].ids[:1] != before[0].ids[:1]


def test_a_resumed_run_validates_alike(tmp_path: Path) -> None:
    keys = [
        "data.train.grammar=en-fr", "data.train.pairs=500", "data.valid.grammar=en-fr", "data.valid.pairs=60",
        "training.batch_tokens=512", "device=cuda", "exact=true", "training.updates=30", "training.checkpoint_every=10",
        "training.validate_every=15", "model.dropout=0.2",
    ]  # fmt: skip
    api.train("transformer-tiny", tmp_path / "whole", keys, quiet=True, report=False)

    class Stop:
        def event(self, event: str, update: int, values: dict[str, object]) -> None:
            if event == "valid" and update == 15:
                raise KeyboardInterrupt

        def close(self) -> None: ...

    with pytest.raises(KeyboardInterrupt):
        api.train("transformer-tiny", tmp_path / "stopped", keys, quiet=True, report=False, sinks=[Stop()])
    api.train(None, tmp_path / "stopped", resume=True, quiet=True, report=False)
    assert differences(RunFolder(tmp_path / "whole"), RunFolder(tmp_path / "stopped")) == []
