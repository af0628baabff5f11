"""Recurrence or attention: what a training step costs as the text grows.

A recurrent layer must finish word t before it begins word t + 1: O(n) operations that wait for each other, O(n d²) in
all. Self-attention compares every word with every word: O(n² d) in all, but none waits for another, so the chain of
operations that depend on each other is as long for every n. (Vaswani et al. 2017, table 1.)

The chain is counted in the graph that autograd records, so it does not depend on the machine. Time is that of one
thread, where nothing runs in parallel: it shows the amount of work, and what is lost by doing it in small pieces.
Memory is what the allocator had given out at the worst moment of the step: of PyTorch's fused attention kernel, and of
one that keeps all its weights. (jumok itself takes a kernel of its own up to 128 words, which keeps them and is faster
there; here one kernel is to make one curve.)
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from statistics import fmean, median
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.profiler import profile
from torch.nn import functional as F

from jumok.lab.experiment import Experiment, Numbers, Verdict
from jumok.lab.training import seeded
from jumok.layers.attention import Scorer, attention
from jumok.layers.block import Block
from jumok.layers.recurrent import Recurrent
from jumok.layers.stack import Stack
from jumok.layers.tap import Tap
from jumok.recipe import TransformerLanguageSection

WIDTH, HEADS, ROWS = 128, 4, 2
LENGTHS = (16, 32, 64, 128, 256, 512, 1024)
CHAINED = (16, 32, 64, 128)  # the written-out LSTM's graph is long enough by then
ROUNDS = 11
FUSED, KEPT = "Transformer", "Transformer, all weights kept"
KINDS = ("LSTM", FUSED, KEPT)


class Through(Tap):
    """Attention by one function, whatever the house would choose."""

    def __init__(self, attend: Callable[..., Tensor]) -> None:
        super().__init__("causal", "reader.0.causal", HEADS)
        self.attend = attend

    def forward(self, *given: Any) -> Tensor:
        return self.attend(*given)


def fused(
    query: Tensor, key: Tensor, value: Tensor, mask: None, scorer: Scorer, bias: None, causal: bool, dropout: float
) -> Tensor:
    """PyTorch's fused kernel, which never has all weights, at every length."""
    assert mask is None
    assert bias is None
    assert not dropout
    return F.scaled_dot_product_attention(query, key, value, is_causal=causal, scale=scorer.inner_scale)


def written(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scorer: Scorer, *rest: Any) -> Tensor:
    """Attention as softmax(q k / √d) v, with the n x n weights kept for the backward pass."""
    return attention(query, key, value, mask, scorer, False, *rest)


def layer(kind: str, written_out: bool = False) -> nn.Module:
    """One LSTM layer, or one Transformer block of as many parameters (8 d² and a few)."""
    if kind == "LSTM":
        return Recurrent("lstm", WIDTH, WIDTH, forget_bias=1.0, written_out=written_out)
    section = TransformerLanguageSection(width=WIDTH, heads=HEADS, layers=1, feed_forward=2 * WIDTH, dropout=0.0)
    stack = Stack(section, 1, "causal", "reader")
    block = stack.blocks[0]
    assert isinstance(block, Block)
    block.attention.tap = Through(written if kind == KEPT else fused)
    return stack


def output_of(net: nn.Module, x_BLD: Tensor) -> Tensor:
    outputs: Tensor = net(x_BLD)[0] if isinstance(net, Recurrent) else net(x_BLD)
    return outputs


def step(net: nn.Module, x_BLD: Tensor) -> Callable[[], None]:
    """One training step without the optimizer: forward and backward."""

    def go() -> None:
        net.zero_grad()
        output_of(net, x_BLD).square().mean().backward()  # type: ignore[no-untyped-call]

    return go


def chain(output: Tensor) -> int:
    """The longest way through autograd's graph: operations of which each waits for the one before."""
    assert output.grad_fn is not None
    longest: dict[Any, int] = {}
    waiting: list[Any] = [output.grad_fn]
    while waiting:
        node = waiting[-1]
        before = [parent for parent, _ in node.next_functions if parent is not None]
        unknown = [parent for parent in before if parent not in longest]
        if unknown:
            waiting += unknown
        else:
            longest[node] = 1 + max((longest[parent] for parent in before), default=0)
            waiting.pop()
    return longest[output.grad_fn]


def peak_bytes(net: nn.Module, go: Callable[[], None]) -> int:
    """The most that the allocator had given out at once for a step, by the profiler's account of every block."""
    go()  # whatever is made once is made now
    net.zero_grad()
    with _profiler_quiet(), profile(profile_memory=True) as recorded:
        go()
    assert recorded.kineto_results is not None
    blocks = [
        (each.start_ns(), each.nbytes()) for each in recorded.kineto_results.events() if each.name() == "[memory]"
    ]
    return int(np.cumsum([size for _, size in sorted(blocks)]).max())


@contextmanager
def _profiler_quiet() -> Iterator[None]:
    """The profiler's library tells of every start and stop on the system's own stderr, and has no setting for it."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def measure(seed: int, effort: float) -> Numbers:
    lengths = LENGTHS if effort >= 1 else LENGTHS[: max(3, round(len(LENGTHS) * effort))]
    rounds = max(2, round(ROUNDS * effort))
    with seeded(seed):
        nets = {kind: layer(kind) for kind in KINDS}
        texts = {length: torch.randn(ROWS, length, WIDTH) for length in lengths}
        chains = {
            kind: [chain(output_of(net, torch.randn(1, length, WIDTH))) for length in CHAINED]
            for kind, net in {**nets, "LSTM": layer("LSTM", written_out=True)}.items()
        }
    steps = {kind: [step(net, text) for text in texts.values()] for kind, net in nets.items()}
    memory = {kind: [peak_bytes(nets[kind], go) for go in all_of] for kind, all_of in steps.items()}
    times: dict[str, list[list[float]]] = {kind: [[] for _ in lengths] for kind in KINDS}
    for _ in range(rounds):  # all take turns, so that a slow minute of the machine is everybody's
        for kind, all_of in steps.items():
            for number, go in enumerate(all_of):
                begun = time.process_time()
                go()
                times[kind][number].append(time.process_time() - begun)
    return {
        "lengths": list(lengths),
        "milliseconds": {kind: [1000 * median(of) for of in times[kind]] for kind in KINDS},
        "megabytes": {kind: [size / 1e6 for size in memory[kind]] for kind in KINDS},
        "chained": list(CHAINED),
        "chain": chains,
        "parameters": {kind: sum(each.numel() for each in net.parameters()) for kind, net in nets.items()},
    }


def growth(lengths: Sequence[int], values: Sequence[float]) -> float:
    """The exponent p of value ~ n^p over the two longest doublings."""
    return math.log(values[-1] / values[-3]) / math.log(lengths[-1] / lengths[-3])


def mean_of(numbers: Sequence[Numbers], what: str, kind: str) -> list[float]:
    return [fmean(values) for values in zip(*(one[what][kind] for one in numbers), strict=True)]


def judge(numbers: Sequence[Numbers]) -> list[Verdict]:
    lengths, chained = numbers[0]["lengths"], numbers[0]["chained"]
    times = {kind: mean_of(numbers, "milliseconds", kind) for kind in KINDS}
    memory = {kind: mean_of(numbers, "megabytes", kind) for kind in KINDS}
    chains = {kind: mean_of(numbers, "chain", kind) for kind in KINDS}
    waits = {kind: growth(chained, chains[kind]) for kind in KINDS}
    ratio = {length: slow / fast for length, slow, fast in zip(lengths, times["LSTM"], times[FUSED], strict=True)}
    in_time = {kind: growth(lengths, times[kind]) for kind in KINDS}
    in_memory = {kind: growth(lengths, memory[kind]) for kind in KINDS}
    last = lengths[-1]
    return [
        Verdict(
            "A recurrent layer's operations wait for each other, O(n) of them; in self-attention O(1) do.",
            waits["LSTM"] > 0.9 and waits[FUSED] < 0.1,
            f"The longest chain of operations grows from {chains['LSTM'][0]:.0f} at {chained[0]} words to "
            f"{chains['LSTM'][-1]:.0f} at {chained[-1]} in the LSTM (n^{waits['LSTM']:.2f}), and stays at "
            f"{chains[FUSED][-1]:.0f} in the Transformer (n^{abs(waits[FUSED]):.2f}).",
        ),
        Verdict(
            "Where a text is shorter than the layers are wide (n < d), a Transformer's step takes less time than an "
            "LSTM's, even on one thread.",
            all(each > 1 for length, each in ratio.items() if length < WIDTH),
            "On one thread, where nothing is gained by computing all words at once, the LSTM's step takes "
            + ", ".join(f"{each:.2f}" for each in ratio.values())
            + f" times as long as the Transformer's at {', '.join(map(str, lengths))} words (width {WIDTH}, "
            f"{numbers[0]['parameters']['LSTM']:,} and {numbers[0]['parameters'][FUSED]:,} parameters).",
        ),
        Verdict(
            "In long texts the Transformer's time grows faster than the LSTM's (n² against n).",
            in_time[FUSED] > in_time["LSTM"] + 0.15 and in_time["LSTM"] < 1.2,
            f"From {lengths[-3]} to {last} words time grows as n^{in_time['LSTM']:.2f} in the LSTM, "
            f"n^{in_time[FUSED]:.2f} in the Transformer, n^{in_time[KEPT]:.2f} with all weights kept.",
        ),
        Verdict(
            "A Transformer's memory grows with the square of the length.",
            in_memory[FUSED] > 1.5,
            f"From {lengths[-3]} to {last} words the peak grows as n^{in_memory[KEPT]:.2f} where all weights are kept "
            f"({memory[KEPT][-1]:.0f} MB), but as n^{in_memory[FUSED]:.2f} with the fused kernel, which never has them "
            f"all ({memory[FUSED][-1]:.0f} MB); LSTM n^{in_memory['LSTM']:.2f} ({memory['LSTM'][-1]:.0f} MB).",
        ),
    ]


LOOKS = {"LSTM": ("#4477aa", "-", "s"), FUSED: ("#d9596b", "-", "o"), KEPT: ("#d9596b", "--", "^")}


def draw(figure: Any, numbers: Sequence[Numbers]) -> None:
    panels = figure.subplots(1, 3)
    for kind, (colour, line, marker) in LOOKS.items():
        look = {"color": colour, "linestyle": line, "marker": marker, "markersize": 4, "label": kind}
        for panel, places, what in zip(
            panels, ("lengths", "lengths", "chained"), ("milliseconds", "megabytes", "chain"), strict=True
        ):
            panel.plot(numbers[0][places], mean_of(numbers, what, kind), **look)
    titles = (
        "milliseconds of a step, one thread",
        "peak memory of a step in MB",
        "longest chain of waiting operations",
    )
    for panel, title in zip(panels, titles, strict=True):
        panel.set_xscale("log", base=2)
        panel.set_yscale("log")
        panel.set_xlabel("words in the text, n")
        panel.set_ylabel(title)
        panel.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        panel.grid(alpha=0.25)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].legend(fontsize=8, frameon=False)
    figure.tight_layout()


EXPERIMENT = Experiment(
    number=11,
    name="parallelism",
    title="Time and memory of a step as the text grows",
    source="Vaswani et al. 2017, table 1 and section 4; Dao et al. 2022 (memory of the fused kernel)",
    about="One LSTM layer and one Transformer block with as many parameters take training steps on texts of 16 to 1024 "
    "words: time on one thread (medians of turns taken), the allocator's peak, and the longest chain of operations "
    "that must wait for each other.",
    measure=measure,
    judge=judge,
    draw=draw,
    size=(12.0, 3.8),
)
