"""Attention of short rows of one length on a GPU: the kernel made for them beside flash attention and the span kernel.

    python benchmarks/attention_short_gpu.py [--rounds 20] [--tiles] [--out benchmarks/results/attention-short-gpu]

Forward and backward in bfloat16 from the fused product of queries, keys and values (B, T, 3, H, D) to the gradient of
it, recorded as CUDA graphs so that launching costs nothing; microseconds, the median over the rounds. `least` is what
the memory takes to read and write each number once, at the speed of a copy on this card: the product and the output
forward; the product, the output's gradient and the product's gradient backward. `--tiles` goes through heads of a
program, warps, stages and registers (`tiles_of` in layers/short_triton.py) for both kernels.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from attention_gpu import microseconds
from jumok.data.packing import PackedSide
from jumok.layers import short_triton
from jumok.layers.short_triton import Tiles
from jumok.layers.spans import Spans
from jumok.layers.spans_triton import span_attention

CASES = [(1024, 65, 6, 64), (1024, 64, 6, 64), (512, 128, 4, 64)]
TILES = [
    Tiles(heads, warps, stages, registers)
    for heads, warps, stages, registers in product((1, 2), (4, 8), (1, 2), (None, 168, 128))
    if stages == 1 or heads > 1  # what is on its way is the next head
]

Attention = Callable[[Tensor, float], Tensor]


def ways(batch: int, tokens: int) -> dict[str, Attention]:
    side = PackedSide.of_flat(np.zeros(batch * tokens, np.int64), np.full(batch, tokens)).to(torch.device("cuda"))
    spans = Spans.own(side)

    def flash(qkv: Tensor, scale: float) -> Tensor:
        query, key, value = (part.transpose(1, 2) for part in qkv.unbind(2))
        return F.scaled_dot_product_attention(query, key, value, scale=scale).transpose(1, 2)

    def span(qkv: Tensor, scale: float) -> Tensor:
        query, key, value = qkv.flatten(0, 1).unbind(1)
        return span_attention(query, key, value, spans, scale).unflatten(0, (batch, tokens))

    return {"flash (SDPA)": flash, "span kernel": span, "short kernel": short_triton.short_attention}


def inputs_of(case: tuple[int, int, int, int]) -> tuple[Tensor, Tensor, float]:
    batch, tokens, heads, width = case
    qkv = torch.randn(batch, tokens, 3, heads, width, device="cuda", dtype=torch.bfloat16)
    return qkv, torch.randn(batch, tokens, heads, width, device="cuda", dtype=torch.bfloat16), width**-0.5


def least(qkv: Tensor, rounds: int) -> tuple[float, float]:
    """Microseconds of the forward pass and of both."""
    other = torch.empty_like(qkv)
    copied = microseconds(lambda: other.copy_(qkv), rounds)  # six parts: three are read, three written
    return copied * 4 / 6, copied * (4 + 7) / 6


def compare(case: tuple[int, int, int, int], rounds: int) -> list[dict[str, Any]]:
    qkv, pull, scale = inputs_of(case)
    name, (forward, both) = "×".join(map(str, case)), least(qkv, rounds)
    table: list[dict[str, Any]] = [{"case": case, "way": "least", "forward_us": forward, "both_us": both}]
    print(f"{name:18} {'least':14} {forward:9.1f} {both:9.1f} {both - forward:9.1f}")
    leaf, first = qkv.clone().requires_grad_(), list[Tensor]()
    for way, attention in ways(*case[:2]).items():

        def whole(attention: Attention = attention) -> list[Tensor]:
            out = attention(leaf, scale)
            return [out.detach(), *torch.autograd.grad(out, leaf, pull)]

        with torch.no_grad():
            forward = microseconds(lambda attention=attention: attention(leaf, scale), rounds)
        both, found = microseconds(whole, rounds), [one.float() for one in whole()]
        first = first or found
        apart = max(float((one - other).abs().max()) for one, other in zip(found, first, strict=True))
        print(f"{name:18} {way:14} {forward:9.1f} {both:9.1f} {both - forward:9.1f} {apart:9.4f}", flush=True)
        table.append({"case": case, "way": way, "forward_us": forward, "both_us": both, "apart": apart})
    return table


def tune(case: tuple[int, int, int, int], rounds: int) -> list[dict[str, Any]]:
    """Each kernel by itself, the fastest first."""
    qkv, pull, scale = inputs_of(case)
    _, level = short_triton.forward(qkv, scale, Tiles())
    kernels: dict[str, Callable[[Tiles], Any]] = {
        "forward": lambda tiles: short_triton.forward(qkv, scale, tiles),
        "backward": lambda tiles: short_triton.backward(pull, qkv, level, scale, tiles),
    }
    table, name = [], "×".join(map(str, case))
    for kernel, launch in kernels.items():
        found = []
        for tiles in TILES:
            try:
                found.append((microseconds(lambda t=tiles, launch=launch: launch(t), rounds), tiles))
            except Exception as error:  # too large for the card: Triton says so in several ways
                print(f"{name} {kernel} {tiles}: {type(error).__name__}")
        for time, tiles in sorted(found, key=lambda one: one[0])[:6]:
            print(f"{name:18} {kernel:14} {time:9.1f}  {tiles}", flush=True)
        table += [{"case": case, "kernel": kernel, "us": time, **vars(tiles)} for time, tiles in found]
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--tiles", action="store_true", help="also try how a program works")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.manual_seed(0)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, bfloat16; images × tokens × heads × width")
    print("microseconds; apart: from flash attention, at most")
    print(f"{'':18} {'':14} {'forward':>9} {'both':>9} {'backward':>9} {'apart':>9}")
    compared = [row for case in CASES for row in compare(case, options.rounds)]
    tuned = [row for case in CASES for row in tune(case, options.rounds)] if options.tiles else []
    if options.out is not None:
        card = {"card": torch.cuda.get_device_name(), "torch": torch.__version__}
        results = {**card, "compared": compared, "tiles": tuned}
        options.out.with_suffix(".json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
