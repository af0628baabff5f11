"""Attention of packed sentences on a GPU: the kernel for short ones beside flash attention and padded rows.

    python benchmarks/attention_gpu.py [--tokens 25000] [--rounds 20] [--tiles] [--out benchmarks/results/attention-gpu]

Forward and backward in bfloat16, recorded as CUDA graphs so that launching costs nothing, microseconds, the median over
the rounds. First sentences as in WMT (log-normal around 23 tokens), as an encoder, a decoder and its look at the source
have them; then sentences of one length from 64 to 4096, which say from where on flash attention is the faster one
(`LONG` in layers/packed_attention.py). `--tiles` goes through sizes of tiles (`tiles_of` in layers/spans_triton.py) for
each of the three kernels.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from jumok.data.batch import PairBatch
from jumok.data.packing import PackedPairs
from jumok.layers import spans_triton
from jumok.layers.flash import flash_attention
from jumok.layers.spans import Spans, mask_of, side_by_side
from jumok.layers.spans_triton import Tiles, span_attention

WIDTH = 64
LENGTHS = [64, 128, 256, 512, 1024, 2048, 4096]
SIZES = [
    Tiles(*sizes) for sizes in product((32, 64, 128), (32, 64), (4, 8), (1, 2, 3)) if sizes[0] > 32 or sizes[2] == 4
]

Attention = Callable[[Tensor, Tensor, Tensor], Tensor]


def log_normal_lengths(tokens: int, seed: int) -> list[tuple[int, int]]:
    """Pairs until the larger side has so many tokens; a translation is about as long as its source."""
    draw, found = np.random.default_rng(seed), list[tuple[int, int]]()
    while True:
        source = int(np.clip(draw.lognormal(np.log(20), 0.55), 1, 200))
        target = int(np.clip(source * draw.lognormal(0.05, 0.2), 1, 200))
        found.append((source, target))
        if max(sum(one + 1 for one, _ in found), sum(other + 1 for _, other in found)) > tokens:
            return sorted(found[:-1])


def packed_of(lengths: Sequence[tuple[int, int]]) -> PackedPairs:
    sides = [[[5] * length for length in side] for side in zip(*lengths, strict=True)]
    return PackedPairs.of(PairBatch.of(sides[0], sides[1])).to("cuda")


def inputs_of(spans: Spans, heads: int) -> list[Tensor]:
    sizes = len(spans.low), len(spans.first), len(spans.first)
    return [torch.randn(size, heads, WIDTH, device="cuda", dtype=torch.bfloat16) for size in sizes]


# ------------------------------------------------------------ time


def recorded(work: Callable[[], Any]) -> torch.cuda.CUDAGraph:
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph


def microseconds(work: Callable[[], Any], rounds: int, repeats: int = 10) -> float:
    graph, times = recorded(work), []
    for _ in range(rounds):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(repeats):
            graph.replay()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1000 / repeats)
    return statistics.median(times)


def forward_and_backward(
    attention: Attention, inputs: Sequence[Tensor], rounds: int
) -> tuple[float, float, list[Tensor]]:
    """Microseconds of the forward pass and of both; and what came out, with its gradients."""
    leaves = [tensor.detach().clone().requires_grad_() for tensor in inputs]
    pull = torch.randn(inputs[0].shape, device="cuda", generator=torch.Generator("cuda").manual_seed(1)).bfloat16()

    def both() -> list[Tensor]:
        out = attention(*leaves)
        return [out, *torch.autograd.grad(out, leaves, pull.view_as(out))]

    with torch.no_grad():
        forward = microseconds(lambda: attention(*leaves), rounds)
    return forward, microseconds(both, rounds), [one.detach().float() for one in both()]


# ------------------------------------------------------------ ways


def ways(spans: Spans, heads: int) -> dict[str, tuple[Attention, list[Tensor]]]:
    """Each with what it is given: padded rows lie side by side from the start, as in a batch that was never packed."""
    inputs, scale, seed = inputs_of(spans, heads), WIDTH**-0.5, torch.tensor([7], device="cuda")
    sides = spans.queries, spans.keys, spans.keys
    rows = [side_by_side(x, side).contiguous() for x, side in zip(inputs, sides, strict=True)]
    mask = None if spans.causal else mask_of(spans.keys)[:, None, None]

    def padded(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(query, key, value, mask, is_causal=spans.causal, scale=scale)

    return {
        "span kernel": (lambda q, k, v: span_attention(q, k, v, spans, scale), inputs),
        "flash (varlen_attn)": (lambda q, k, v: flash_attention(q, k, v, spans, scale), inputs),
        "padded rows": (padded, rows),
        "span kernel, dropout 0.1": (lambda q, k, v: span_attention(q, k, v, spans, scale, 0.1, seed), inputs),
    }


def compare(name: str, spans: Spans, heads: int, rounds: int) -> list[dict[str, Any]]:
    table: list[dict[str, Any]] = []
    first: list[Tensor] = []
    for way, (attention, inputs) in ways(spans, heads).items():
        try:
            forward, both, found = forward_and_backward(attention, inputs, rounds)
        except RuntimeError as error:  # out of memory, mostly
            print(f"{name:24} {way:26} {str(error).splitlines()[0][:90]}")
            continue
        first = first or found
        apart = None
        if way == "flash (varlen_attn)":
            apart = max(float((one - other).abs().max()) for one, other in zip(found, first, strict=True))
        said = "" if apart is None else f"{apart:9.4f}"
        print(f"{name:24} {way:26} {forward:9.1f} {both:9.1f} {said}", flush=True)
        table.append({"case": name, "heads": heads, "way": way, "forward_us": forward, "both_us": both, "apart": apart})
    return table


def tune(name: str, spans: Spans, heads: int, rounds: int) -> list[dict[str, Any]]:
    """Each kernel by itself at several sizes of tiles, the fastest first."""
    query, key, value = inputs_of(spans, heads)
    edges, scale = (spans.low, spans.high, spans.first, spans.last), WIDTH**-0.5
    chosen = spans_triton.tiles_of(query)
    out, level = spans_triton.forward(query, key, value, *edges[:2], None, scale, 0.0, chosen[0])

    def backward(for_query: Tiles, for_key: Tiles) -> Any:
        arguments = out, query, key, value, out, level, *edges, None, scale, 0.0
        return spans_triton.backward(*arguments, for_query, for_key)

    kernels: dict[str, Callable[[Tiles], Any]] = {
        "forward": lambda tiles: spans_triton.forward(query, key, value, *edges[:2], None, scale, 0.0, tiles),
        "backward, dq varied": lambda tiles: backward(tiles, chosen[2]),
        "backward, dk and dv varied": lambda tiles: backward(chosen[1], tiles),
    }
    table = []
    for kernel, launch in kernels.items():
        found = []
        for tiles in SIZES:
            try:
                found.append((microseconds(lambda t=tiles, launch=launch: launch(t), rounds), tiles))
            except Exception as error:  # too large for the card: Triton says so in several ways
                print(f"{name} {kernel} {tiles}: {type(error).__name__}")
        for time, tiles in sorted(found, key=lambda one: one[0])[:5]:
            print(f"{name:24} {kernel:26} {time:9.1f}  {tiles}", flush=True)
        table += [{"case": name, "kernel": kernel, "us": time, **vars(tiles)} for time, tiles in found]
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=25_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--tiles", action="store_true", help="also try sizes of tiles")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.manual_seed(0)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, bfloat16, heads of {WIDTH}")
    print("microseconds; apart: flash attention from the span kernel, at most")
    print(f"{'':24} {'':26} {'forward':>9} {'both':>9} {'apart':>9}")
    packed = packed_of(log_normal_lengths(options.tokens, 0))
    kinds = {
        "encoder": Spans.own(packed.source),
        "decoder": Spans.past(packed.target),
        "cross": Spans.across(packed.target, packed.source),
    }
    print(f"{len(packed)} pairs, {packed.source.tokens} and {packed.target.tokens} tokens")
    compared, tuned = [], []
    for heads in (8, 16):
        for kind, spans in kinds.items():
            compared += compare(f"{kind}, {heads} heads", spans, heads, options.rounds)
    for length, causal in product(LENGTHS, (False, True)):
        side = packed_of([(length - 1, 1)] * max(1, 32_768 // length)).source
        spans = Spans.past(side) if causal else Spans.own(side)
        name = f"length {length}{', causal' * causal}"
        compared += compare(name, spans, 8, options.rounds)
    if options.tiles:
        for kind, spans in kinds.items():
            tuned += tune(kind, spans, 8, options.rounds)
    if options.out is not None:
        card = {"card": torch.cuda.get_device_name(), "torch": torch.__version__, "tokens": options.tokens}
        results = {**card, "compared": compared, "tiles": tuned}
        options.out.with_suffix(".json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
