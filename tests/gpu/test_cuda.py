"""What only a GPU can show: the same results as the CPU, and a resumed run that is bit-identical there too.

On a machine with a GPU: make gpu-check
"""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch

from jumok import api
from jumok import recipe as recipes
from jumok.data.batch import PairBatch
from jumok.layers.recurrent import Recurrent
from jumok.models.build import build
from jumok.recipe import Seq2SeqSection
from jumok.search import SearchOptions, generate
from jumok.training.run import RunFolder
from jumok.training.verify import differences

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU (make gpu-check)")

KINDS = [
    {"attention": "none", "cell": "lstm", "reverse_source": True},
    {"attention": "none", "cell": "gru"},
    {"attention": "luong", "scorer": "general", "bidirectional": True},
    {"attention": "luong", "scorer": "dot", "input_feeding": True},
    {"attention": "bahdanau", "scorer": "additive", "bidirectional": True},
]


@pytest.fixture(autouse=True)
def _full_precision() -> None:
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False


def a_batch(rows: int = 7) -> PairBatch:
    def ids() -> list[list[int]]:
        lengths = torch.randint(1, 12, (rows,)).tolist()
        return [torch.randint(4, 50, (length,)).tolist() for length in lengths]

    return PairBatch.of(ids(), ids())


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: "-".join(str(v) for v in kind.values()))
def test_forward_backward_and_search_equal_the_cpu(kind: dict[str, object]) -> None:
    seed = int(torch.randint(1 << 30, ()))
    torch.manual_seed(seed)
    section = Seq2SeqSection.model_validate({"embedding": 32, "width": 48, "layers": 2, "dropout": 0.0, **kind})
    on_cpu = build(section, 50, 50)
    on_gpu = copy.deepcopy(on_cpu).cuda()
    batch = a_batch()
    outputs, gradients = [], []
    for model, device in ((on_cpu, "cpu"), (on_gpu, "cuda")):
        here = batch.to(device)
        logits = model.head(model(here.source, here.target.ids[:, :-1]))[here.target.mask[:, 1:]]
        logits.square().mean().backward()
        outputs.append(logits.detach().cpu())
        gradients.append(torch.cat([p.grad.flatten().cpu() for p in model.parameters() if p.grad is not None]))
    torch.testing.assert_close(*outputs, rtol=1e-3, atol=1e-4, msg=lambda m: f"seed {seed}: {m}")
    torch.testing.assert_close(*gradients, rtol=1e-2, atol=1e-4, msg=lambda m: f"seed {seed}: {m}")
    options = SearchOptions(beam=4, nbest=2, max_length=12)
    found = [
        generate(model.eval(), batch.source.to(device), options)
        for model, device in ((on_cpu, "cpu"), (on_gpu, "cuda"))
    ]
    for cpu_row, gpu_row in zip(*found, strict=True):
        assert cpu_row[0].score == pytest.approx(gpu_row[0].score, abs=1e-3), f"seed {seed}"


@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_the_fused_kernel_is_the_equations(cell: str, bidirectional: bool) -> None:
    seed = int(torch.randint(1 << 30, ()))
    torch.manual_seed(seed)
    lengths = torch.randint(1, 13, (7,))
    x = torch.randn(7, int(lengths.max()), 20, device="cuda")
    fused = Recurrent(cell, 20, 32, 2, bidirectional).cuda()
    written = copy.deepcopy(fused)
    written.written_out = True
    results = []
    for layer in (fused, written):
        outputs, state = layer(x, lengths)
        weight = torch.linspace(-1, 1, outputs.size(-1), device="cuda")
        ((outputs * weight).sum() + sum(part.square().sum() for part in state)).backward()
        gradients = [parameter.grad for parameter in layer.parameters()]
        results.append([outputs, *state, *gradients])
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4, msg=lambda m: f"seed {seed}: {m}")


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("lstm", []),
        ("gru", []),
        ("lstm-luong", []),
        ("lstm-luong", ["model.input_feeding=true"]),
        ("lstm-bahdanau", []),
    ],
    ids=["lstm", "gru", "luong", "feeding", "bahdanau"],
)
def test_a_resumed_run_is_bit_identical(name: str, keys: list[str], tmp_path: Path) -> None:
    def short(updates: int) -> recipes.Recipe:
        return recipes.read(
            name,
            [
                *keys,
                "device=cuda",
                "threads=1",
                "data.train.pairs=2000",
                "data.valid.pairs=50",
                "model.width=64",
                "model.embedding=32",
                f"training.updates={updates}",
                "training.checkpoint_every=10",
                "training.validate_every=15",
                "training.log_every=1",
                "training.schedule=constant",
                "tokenizer.kind=word",
            ],
        )

    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    api.train(short(30), whole, quiet=True, report=False)

    class Stop(Exception):
        pass

    class StopAt:
        def event(self, event: str, update: int, values: dict[str, object]) -> None:
            if update == 17:
                raise Stop

        def close(self) -> None: ...

    with pytest.raises(Stop):
        api.train(short(30), stopped, quiet=True, report=False, sinks=[StopAt()])
    api.train(None, stopped, resume=True, quiet=True, report=False)
    assert differences(RunFolder(whole), RunFolder(stopped)) == []
