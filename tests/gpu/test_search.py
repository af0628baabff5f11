"""The search on a GPU: rows that join a running batch, and every kind of option, give what they give on the CPU."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest
import torch
from torch import nn

from jumok.data.batch import END
from jumok.models.build import build
from jumok.recipe import Seq2SeqSection
from jumok.search import Hypothesis, SearchOptions, refill

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU (make gpu-check)")

OPTIONS: list[dict[str, Any]] = [
    {},
    {"beam": 5, "nbest": 3, "patience": 1.0},
    {"beam": 4, "coverage_penalty": 0.3, "min_length": 4},
    {"beam": 4, "required": ((7, 9), (11,)), "no_repeat_ngram": 2},
    {"prefix": (8, 8), "forbidden_phrases": ((5, 6), (7,))},
    {"sample": True, "top_k": 9, "top_p": 0.9, "temperature": 0.7},
]


def test_a_batch_refilled_under_way_equals_the_cpu() -> None:
    """In float64, where a tie is no chance: token for token."""
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    torch.manual_seed(seed)
    source = random.Random(seed)
    section = {"attention": "luong", "embedding": 32, "width": 48, "layers": 1, "dropout": 0.0}
    on_cpu = build(Seq2SeqSection.model_validate(section), 50, 50).double().eval()
    with torch.no_grad():
        for parameter in on_cpu.parameters():
            nn.init.normal_(parameter, std=0.3)
        on_cpu.bias[END] += 1.0
    on_gpu = copy.deepcopy(on_cpu).cuda()
    rows = [
        (
            [source.randint(4, 49) for _ in range(source.randint(1, 12))],
            SearchOptions(**OPTIONS[place % len(OPTIONS)], max_extra=9, stream=place),
        )
        for place in range(40)
    ]
    found: list[dict[int, list[Hypothesis]]] = [
        dict(refill(model, rows, capacity=8, device=device)) for model, device in ((on_cpu, "cpu"), (on_gpu, "cuda"))
    ]
    for place in range(len(rows)):
        expected, here = (results[place] for results in found)
        assert [h.tokens for h in here] == [h.tokens for h in expected], (place, rows[place][1])
        assert [h.score for h in here] == pytest.approx([h.score for h in expected], abs=1e-5)
