"""Experiment 11: what a step costs as the text grows."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from jumok.lab.parallelism import EXPERIMENT, FUSED, KEPT, KINDS, chain, growth, layer, output_of, peak_bytes
from jumok.lab.report import drawn


@pytest.fixture(scope="module", autouse=True)
def _no_garbage() -> Iterator[None]:
    """What other tests left must not be freed while memory is measured: in the lab, that is in a new process."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture(scope="module")
def numbers() -> dict[str, Any]:
    return EXPERIMENT.measure(1, 0.3)


def test_the_way_from_seed_to_verdicts_and_figure(numbers: dict[str, Any]) -> None:
    assert json.loads(json.dumps(numbers, allow_nan=False)) == numbers
    assert len(EXPERIMENT.judge([numbers, numbers])) == 4
    assert all(picture.startswith(b"\x89PNG") for picture in drawn(EXPERIMENT, [numbers, numbers]))
    assert abs(numbers["parameters"]["LSTM"] / numbers["parameters"][FUSED] - 1) < 0.01  # a fair comparison


def test_what_is_no_matter_of_time_is_the_same_each_time(numbers: dict[str, Any]) -> None:
    again = EXPERIMENT.measure(1, 0.3)
    assert again["chain"] == numbers["chain"]
    assert again["megabytes"] == numbers["megabytes"]


def test_a_chain_is_the_longest_way() -> None:
    x = torch.ones(2, requires_grad=True)
    assert chain(x.exp()) == 2  # the leaf and one operation
    assert chain(x.exp().exp() + x.exp().exp().exp()) == 5
    assert chain(torch.stack([x.exp() for _ in range(50)]).sum()) == 4


def test_peak_memory_counts_what_is_alive_at_once() -> None:
    kept: list[torch.Tensor] = []

    def two_at_a_time() -> None:
        kept.clear()
        first = torch.empty(1000, 250)  # a megabyte
        second = torch.empty(1000, 250)
        del first
        kept.append(torch.empty(1000, 250))
        del second

    net = torch.nn.Linear(1, 1)
    assert peak_bytes(net, two_at_a_time) in range(1_000_000, 2_000_100)  # what an earlier call left may be freed


def test_all_weights_kept_is_the_same_attention() -> None:
    fused, kept = layer(FUSED), layer(KEPT)
    kept.load_state_dict(fused.state_dict())
    x = torch.randn(2, 9, 128)
    torch.testing.assert_close(output_of(kept, x), output_of(fused, x), rtol=1e-4, atol=1e-5)


def test_one_kernel_at_every_length() -> None:
    """The house has one of its own for short texts, which keeps the weights."""
    net = layer(FUSED)
    for length in (16, 64, 256):
        graph, seen = [output_of(net, torch.randn(2, length, 128)).grad_fn], set()
        while graph:
            node = graph.pop()
            if node is not None and node not in seen:
                seen.add(node)
                graph += [parent for parent, _ in node.next_functions]
        names = {type(node).__name__ for node in seen}
        assert any(name.startswith("ScaledDotProduct") for name in names)
        assert not any("NativeAttention" in name for name in names)


def made(time: dict[str, float], memory: dict[str, float], waits: dict[str, float], slower: float) -> dict[str, Any]:
    lengths = [64, 128, 256, 512]
    return {
        "lengths": lengths,
        "chained": lengths,
        "milliseconds": {
            kind: [n ** time[kind] * (slower if kind == "LSTM" else 1) for n in lengths] for kind in KINDS
        },
        "megabytes": {kind: [n ** memory[kind] for n in lengths] for kind in KINDS},
        "chain": {kind: [n ** waits[kind] for n in lengths] for kind in KINDS},
        "parameters": dict.fromkeys(KINDS, 100),
    }


def test_verdicts_follow_the_growth() -> None:
    assert growth([4, 8, 16], [16.0, 64.0, 256.0]) == pytest.approx(2)
    as_told = made(
        dict(zip(KINDS, (1.0, 1.5, 2.0), strict=True)),
        dict(zip(KINDS, (1.0, 2.0, 2.0), strict=True)),
        dict(zip(KINDS, (1.0, 0.0, 0.0), strict=True)),
        1000.0,
    )
    verdicts = EXPERIMENT.judge([as_told])
    assert [verdict.holds for verdict in verdicts] == [True] * 4
    assert "n^1.50" in verdicts[2].because
    assert verdicts[1].claim.endswith("even on one thread.")
    same = dict.fromkeys(KINDS, 1.0)
    assert not any(verdict.holds for verdict in EXPERIMENT.judge([made(same, same, same, 0.5)]))
