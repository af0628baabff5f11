# mypy: ignore-errors
# (Triton's kernels are a language of their own: types of Python say nothing about them.)
"""Attention of short rows of one length (layers/short_attention.py) in Triton: a program has all that a head of a row
needs, so each number is read once and written once, and nothing is added up across programs.

    s_ij = scale · q_i · k_j      p_ij = exp(s_ij − L_i)        o_i = Σ_j p_ij v_j
    dp_ij = do_i · v_j            δ_i = Σ_j p_ij dp_ij          ds_ij = p_ij (dp_ij − δ_i)
    dq_i = scale Σ_j ds_ij k_j    dk_j = scale Σ_i ds_ij q_i    dv_j = Σ_i p_ij do_i

The sums of dq, dk and dv over a row's tokens, which the gradient of their bias is made of, are written beside them.
L_i is the logarithm of the sum of the exponentials. A row of scores is there as a whole: δ needs no o. Queries, keys
and values come as one tensor, the product they are computed in, and so do their gradients. A tile must be a power of
two, so a row is cut in two blocks, a and b, 70 tokens in 64 and 16: a single tile of 128 × 128 would be waste to three
quarters. Where only one token is left over, as the class token is beside a grid of patches, what it sees and who sees
it are sums over rows and columns of the block, not products of matrices.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from jumok.layers.short_and_one import backward_and_one, forward_and_one
from jumok.layers.short_blocks import backward_of_blocks, forward_of_blocks
from jumok.layers.short_tiles import write_vector

LOG2E = tl.constexpr(1.4426950408889634)


@dataclass(frozen=True)
class Tiles:
    """How a program works: so many heads of a row one after another, in so many warps; while it computes one, `stages`
    − 1 others are on their way to it. With fewer registers for each thread more programs fit in at a time."""

    heads: int = 1
    warps: int = 4
    stages: int = 1
    registers: int | None = None


def blocks_of(tokens: int) -> tuple[int, int]:
    """The two tiles that a row is cut in; the second is 0 where one will do, and 1 where a single token is left."""
    for size in (16, 32, 64):
        if tokens <= size:
            return size, 0
        if tokens == size + 1:
            return size, 1
    return 64, max(16, triton.next_power_of_2(tokens - 64))


def tiles_of(qkv: Tensor) -> tuple[Tiles, Tiles]:
    """For the forward and for the backward pass (benchmarks/attention_short_gpu.py --tiles)."""
    if qkv.size(-1) > 64 or qkv.element_size() == 4:
        return Tiles(warps=8), Tiles(warps=8)
    return Tiles(), Tiles()


def short_attention(qkv_BT3HD: Tensor, scale: float, bias_3HD: Tensor | None = None) -> Tensor:
    return _forward_op(qkv_BT3HD, bias_3HD, scale)[0]


# ------------------------------------------------------------ what PyTorch sees


@torch.library.custom_op("jumok::short_attention", mutates_args=())
def _forward_op(qkv: Tensor, bias: Tensor | None, scale: float) -> tuple[Tensor, Tensor]:
    """The output (B, T, H, D), and for the gradient L / log 2 of each head and query (B, H, T)."""
    return forward(qkv, scale, tiles_of(qkv)[0])


@torch.library.custom_op("jumok::short_attention_gradient", mutates_args=())
def _backward_op(gradient: Tensor, qkv: Tensor, level: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """dqkv, and its sum over all rows and tokens (3, H, D) in float32."""
    d_qkv, sums = backward(gradient, qkv, level, scale, tiles_of(qkv)[1])
    return d_qkv, sums.sum(0)


@_forward_op.register_fake
def _(qkv, bias, scale):
    batch, tokens, _, heads, width = qkv.shape
    return qkv.new_empty(batch, tokens, heads, width), qkv.new_empty(batch, heads, tokens, dtype=torch.float32)


@_backward_op.register_fake
def _(gradient, qkv, level, scale):
    return qkv.new_empty(qkv.shape), qkv.new_empty(qkv.shape[2:], dtype=torch.float32)


def _keep(ctx, inputs, output) -> None:
    qkv, bias, ctx.scale = inputs
    ctx.bias = None if bias is None else bias.dtype
    ctx.save_for_backward(qkv, output[1])


def _gradient(ctx, gradient: Tensor, _: Tensor | None):
    d_qkv, sums = _backward_op(gradient, *ctx.saved_tensors, ctx.scale)
    return d_qkv, None if ctx.bias is None else sums.to(ctx.bias), None


_forward_op.register_autograd(_gradient, setup_context=_keep)


# ------------------------------------------------------------ launching


def forward(qkv: Tensor, scale: float, tiles: Tiles) -> tuple[Tensor, Tensor]:
    qkv = qkv.contiguous()
    batch, tokens, _, heads, width = qkv.shape
    out, level = qkv.new_empty(batch, tokens, heads, width), qkv.new_empty(batch, heads, tokens, dtype=torch.float32)
    _forward[(batch * heads // tiles.heads,)](qkv, out, level, scale, tokens, **_constants(qkv, tiles))
    return out, level


def backward(gradient: Tensor, qkv: Tensor, level: Tensor, scale: float, tiles: Tiles) -> tuple[Tensor, Tensor]:
    """dqkv, and its sums over the tokens of each row (B, 3, H, D)."""
    gradient, qkv = gradient.contiguous(), qkv.contiguous()
    batch, tokens, _, heads, width = qkv.shape
    d_qkv, sums = torch.empty_like(qkv), qkv.new_empty(batch, 3, heads, width, dtype=torch.float32)
    grid = (batch * heads // tiles.heads,)
    _backward[grid](gradient, qkv, level, d_qkv, sums, scale, tokens, **_constants(qkv, tiles))
    return d_qkv, sums


def _constants(qkv: Tensor, tiles: Tiles) -> dict[str, object]:
    _, tokens, _, heads, width = qkv.shape
    first, second = blocks_of(tokens)
    tf32 = qkv.dtype == torch.float32 and torch.backends.cuda.matmul.allow_tf32
    return {
        "HEADS": heads,
        "TOGETHER": tiles.heads,
        "FIRST": first,
        "SECOND": second,
        "FULL": tokens == first + second,
        "WIDTH": width,
        "WIDTH_2": max(16, triton.next_power_of_2(width)),
        "PRECISION": "tf32" if tf32 else "tf32x3",  # exact to float32, nearly; "ieee" takes minutes to compile
        "num_warps": tiles.warps,
        "num_stages": tiles.stages,
        "maxnreg": tiles.registers,
    }


# ------------------------------------------------------------ the kernels


@triton.jit
def _forward(
    qkv, out, level, scale, tokens,
    HEADS: tl.constexpr, TOGETHER: tl.constexpr, FIRST: tl.constexpr, SECOND: tl.constexpr, FULL: tl.constexpr,
    WIDTH: tl.constexpr, WIDTH_2: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    groups: tl.constexpr = HEADS // TOGETHER
    all_: tl.constexpr = HEADS * WIDTH  # numbers of a token's queries, keys or values
    image, group = (tl.program_id(0) // groups).to(tl.int64), tl.program_id(0) % groups
    factor = scale * LOG2E
    for number in range(TOGETHER):
        head = group * TOGETHER + number
        q = qkv + image * tokens * (3 * all_) + head * WIDTH
        k = q + all_
        v = k + all_
        o = out + image * tokens * all_ + head * WIDTH
        levels = level + (image * HEADS + head) * tokens
        if SECOND == 1:
            forward_and_one(q, k, v, o, levels, factor, 3 * all_, all_, FIRST, WIDTH, WIDTH_2, PRECISION)
        else:
            forward_of_blocks(
                q, k, v, o, levels, tokens, factor, 3 * all_, all_, FIRST, SECOND, FULL, WIDTH, WIDTH_2, PRECISION
            )


@triton.jit
def _backward(
    gradient, qkv, level, d_qkv, sums, scale, tokens,
    HEADS: tl.constexpr, TOGETHER: tl.constexpr, FIRST: tl.constexpr, SECOND: tl.constexpr, FULL: tl.constexpr,
    WIDTH: tl.constexpr, WIDTH_2: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    groups: tl.constexpr = HEADS // TOGETHER
    all_: tl.constexpr = HEADS * WIDTH
    image, group = (tl.program_id(0) // groups).to(tl.int64), tl.program_id(0) % groups
    factor = scale * LOG2E
    for number in range(TOGETHER):
        head = group * TOGETHER + number
        place = image * tokens * (3 * all_) + head * WIDTH
        q, k, v = qkv + place, qkv + place + all_, qkv + place + 2 * all_
        dq, dk, dv = d_qkv + place, d_qkv + place + all_, d_qkv + place + 2 * all_
        do = gradient + image * tokens * all_ + head * WIDTH
        levels = level + (image * HEADS + head) * tokens
        if SECOND == 1:
            sum_q, sum_k, sum_v = backward_and_one(
                q, k, v, do, levels, dq, dk, dv, scale, factor, 3 * all_, all_, FIRST, WIDTH, WIDTH_2, PRECISION
            )
        else:
            sum_q, sum_k, sum_v = backward_of_blocks(
                q, k, v, do, levels, dq, dk, dv, tokens, scale, factor, 3 * all_, all_,
                FIRST, SECOND, FULL, WIDTH, WIDTH_2, PRECISION,
            )  # fmt: skip
        total = sums + image * (3 * all_) + head * WIDTH
        write_vector(total, sum_q, WIDTH, WIDTH_2)
        write_vector(total + all_, sum_k, WIDTH, WIDTH_2)
        write_vector(total + 2 * all_, sum_v, WIDTH, WIDTH_2)
