"""Language models on a GPU: what they are on the CPU, and a resumed run that is bit-identical.

On a machine with a GPU: make gpu-check
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch

from jumok import api
from jumok.data.batch import Sequences
from jumok.models.language import build_language_model
from jumok.recipe import RecurrentLanguageSection, TransformerLanguageSection
from jumok.search import SearchOptions, generate
from jumok.training.run import RunFolder
from jumok.training.verify import differences

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU (make gpu-check)")

SECTIONS: list[Any] = [
    RecurrentLanguageSection(cell="rnn", embedding=32, width=48, dropout=0.0),
    RecurrentLanguageSection(cell="lstm", embedding=32, width=48, dropout=0.0),
    TransformerLanguageSection(width=32, heads=4, layers=2, feed_forward=64, dropout=0.0),
]


@pytest.fixture(autouse=True)
def _full_precision() -> None:
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: getattr(section, "cell", section.kind))
def test_forward_backward_and_generation_equal_the_cpu(section: Any) -> None:
    seed = int(torch.randint(1 << 30, ()))
    torch.manual_seed(seed)
    on_cpu = build_language_model(section, 50)
    on_gpu = copy.deepcopy(on_cpu).cuda()
    ids = torch.randint(4, 50, (5, 20))
    outputs, gradients = [], []
    for model, device in ((on_cpu, "cpu"), (on_gpu, "cuda")):
        logits = model.head(model(ids.to(device)))
        logits.square().mean().backward()
        outputs.append(logits.detach().cpu())
        gradients.append(torch.cat([p.grad.flatten().cpu() for p in model.parameters() if p.grad is not None]))
    torch.testing.assert_close(*outputs, rtol=1e-3, atol=1e-4, msg=lambda m: f"seed {seed}: {m}")
    torch.testing.assert_close(*gradients, rtol=1e-2, atol=1e-4, msg=lambda m: f"seed {seed}: {m}")
    prompts = Sequences.pad([torch.randint(4, 50, (length,)).tolist() for length in (1, 6, 3)])
    options = SearchOptions(beam=3, max_length=12)
    found = [
        generate(model.eval(), prompts.to(device), options) for model, device in ((on_cpu, "cpu"), (on_gpu, "cuda"))
    ]
    for ours, theirs in zip(*found, strict=True):
        assert ours[0].log_probability == pytest.approx(theirs[0].log_probability, abs=1e-3), f"seed {seed}"


@pytest.mark.parametrize("name", ["lstm-lm", "transformer-lm"])
def test_a_resumed_run_is_identical(name: str, tmp_path: Path) -> None:
    keys = [
        "data.train.pairs=500", "data.valid.pairs=50", "data.window=32", "training.batch_tokens=512", "device=cuda",
        "training.updates=30", "training.checkpoint_every=10", "training.validate_every=15", "model.dropout=0.3",
        "model.word_dropout=0.1",
    ]  # fmt: skip
    api.train(name, tmp_path / "whole", keys, quiet=True, report=False)

    class Stop:
        def event(self, event: str, update: int, values: dict[str, object]) -> None:
            if event == "valid" and update == 15:
                raise KeyboardInterrupt

        def close(self) -> None: ...

    with pytest.raises(KeyboardInterrupt):
        api.train(name, tmp_path / "stopped", keys, quiet=True, report=False, sinks=[Stop()])
    api.train(None, tmp_path / "stopped", resume=True, quiet=True, report=False)
    assert differences(RunFolder(tmp_path / "whole"), RunFolder(tmp_path / "stopped")) == []
