# mypy: ignore-errors
# (Triton's kernels are a language of their own: types of Python say nothing about them.)
"""The operations of models/step_torch.py, each as one Triton kernel: a GPU's step is as slow as its kernels are many.

All sums are taken in float32. Loops end at the position that the device knows: nothing is computed for empty columns.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from jumok.models.step_torch import Norm, Past

COLUMNS = 32  # of keys, taken at a time


def prepare(past: Past) -> Past:
    return past


def self_attention(qkv_NX: Tensor, bias_X: Tensor, past: Past, layer: int, heads: int) -> Tensor:
    _, _, rows, capacity, beam, groups, head_width = past.cache.shape
    out = qkv_NX.new_empty(rows * beam, heads * head_width)
    keys, values = past.cache[layer]
    _self_attention[(rows * beam, heads)](
        qkv_NX, bias_X, keys, values, past.ancestry, past.position,
        bias_X if past.relative is None else past.relative, bias_X if past.turns is None else past.turns, out,
        head_width**-0.5, capacity, BEAM=beam, HEADS=heads, GROUPS=groups, WIDTH=head_width,
        WIDTH_2=triton.next_power_of_2(head_width), RELATIVE=past.relative is not None, ROTARY=past.turns is not None,
        COLUMNS=COLUMNS, num_warps=2,
    )  # fmt: skip
    return out


@triton.jit
def _self_attention(
    qkv, bias, keys, values, ancestry, position, relative, turns, out, scale, capacity,
    BEAM: tl.constexpr, HEADS: tl.constexpr, GROUPS: tl.constexpr, WIDTH: tl.constexpr, WIDTH_2: tl.constexpr,
    RELATIVE: tl.constexpr, ROTARY: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    hypothesis, head = tl.program_id(0), tl.program_id(1)
    group = head // (HEADS // GROUPS)
    row, slot = hypothesis // BEAM, hypothesis % BEAM
    now = tl.load(position).to(tl.int32)
    d = tl.arange(0, WIDTH_2)
    inside = d < WIDTH
    x = qkv + hypothesis.to(tl.int64) * ((HEADS + 2 * GROUPS) * WIDTH)
    at_query, at_key, at_value = head * WIDTH, (HEADS + group) * WIDTH, (HEADS + GROUPS + group) * WIDTH
    query = _part(x, bias, at_query, d, inside)
    key = _part(x, bias, at_key, d, inside)
    value = _part(x, bias, at_value, d, inside)
    if ROTARY:
        half: tl.constexpr = WIDTH // 2
        cosine = tl.load(turns + now * 2 * WIDTH + d, mask=inside, other=0.0).to(tl.float32)
        sine = tl.load(turns + now * 2 * WIDTH + WIDTH + d, mask=inside, other=0.0).to(tl.float32)
        other = tl.where(d < half, d + half, d - half)
        sine = tl.where(d < half, -sine, sine)
        query = query * cosine + _part(x, bias, at_query, other, inside) * sine
        key = key * cosine + _part(x, bias, at_key, other, inside) * sine
    key = key.to(keys.dtype.element_ty)
    value = value.to(values.dtype.element_ty)
    column_size: tl.constexpr = BEAM * GROUPS * WIDTH
    base = row.to(tl.int64) * capacity * column_size + group * WIDTH
    if head % (HEADS // GROUPS) == 0:
        here = base + now * column_size + slot * (GROUPS * WIDTH) + d
        tl.store(keys + here, key, mask=inside)
        tl.store(values + here, value, mask=inside)

    query = query * scale
    highest = tl.sum(query * key.to(tl.float32), 0)
    if RELATIVE:
        highest += tl.load(relative + head * capacity + now).to(tl.float32)
    weight = 1.0
    seen = value.to(tl.float32)
    for first in range(0, now, COLUMNS):
        c = first + tl.arange(0, COLUMNS)
        open_ = c < now
        wrote = tl.load(ancestry + hypothesis * capacity + c, mask=open_, other=0)
        at = base + c[:, None] * column_size + wrote[:, None] * (GROUPS * WIDTH) + d[None, :]
        tile = open_[:, None] & inside[None, :]
        score = tl.sum(tl.load(keys + at, mask=tile, other=0.0).to(tl.float32) * query[None, :], 1)
        if RELATIVE:
            score += tl.load(relative + head * capacity + c, mask=open_, other=0.0).to(tl.float32)
        score = tl.where(open_, score, float("-inf"))
        higher = tl.maximum(highest, tl.max(score, 0))
        shrink = tl.exp(highest - higher)
        p = tl.exp(score - higher)
        seen = seen * shrink + tl.sum(tl.load(values + at, mask=tile, other=0.0).to(tl.float32) * p[:, None], 0)
        weight = weight * shrink + tl.sum(p, 0)
        highest = higher
    place = out + hypothesis.to(tl.int64) * (HEADS * WIDTH) + head * WIDTH + d
    tl.store(place, (seen / weight).to(out.dtype.element_ty), mask=inside)


@triton.jit
def _part(x, bias, start, d, inside):
    """Numbers of one head, with their bias."""
    values = tl.load(x + start + d, mask=inside, other=0.0).to(tl.float32)
    return values + tl.load(bias + start + d, mask=inside, other=0.0).to(tl.float32)


def cross_attention(
    query_NX: Tensor, bias_X: Tensor, memory: Tensor, lengths_R: Tensor, layer: int, heads: int
) -> Tensor:
    rows, width, _, _, groups, head_width = memory.shape
    out = torch.empty_like(query_NX)
    beam = query_NX.size(0) // rows
    beam_2, width_2 = triton.next_power_of_2(beam), triton.next_power_of_2(head_width)
    columns = min(COLUMNS, max(1, 4096 // (beam_2 * width_2)))  # what fits into registers
    _cross_attention[(rows, heads)](
        query_NX, bias_X, memory[:, :, layer], lengths_R, out, head_width**-0.5, width, memory.stride(1),
        BEAM=beam, HEADS=heads, GROUPS=groups, WIDTH=head_width, WIDTH_2=width_2, BEAM_2=beam_2, COLUMNS=columns,
        num_warps=4 if beam > 2 else 2,
    )  # fmt: skip
    return out


@triton.jit
def _cross_attention(
    query, bias, memory, lengths, out, scale, width, column_size,
    BEAM: tl.constexpr, HEADS: tl.constexpr, GROUPS: tl.constexpr, WIDTH: tl.constexpr, WIDTH_2: tl.constexpr,
    BEAM_2: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """All hypotheses of a sentence at once: its keys are read once."""
    row, head = tl.program_id(0), tl.program_id(1)
    group = head // (HEADS // GROUPS)
    length = tl.load(lengths + row).to(tl.int32)
    d, k = tl.arange(0, WIDTH_2), tl.arange(0, BEAM_2)
    inside = d < WIDTH
    at = (row * BEAM + k[:, None]).to(tl.int64) * (HEADS * WIDTH) + head * WIDTH + d[None, :]
    here = (k < BEAM)[:, None] & inside[None, :]
    q = tl.load(query + at, mask=here, other=0.0).to(tl.float32)
    q = (q + tl.load(bias + head * WIDTH + d, mask=inside, other=0.0).to(tl.float32)[None, :]) * scale
    highest = tl.full((BEAM_2,), -1e30, tl.float32)
    weight = tl.zeros((BEAM_2,), tl.float32)
    seen = tl.zeros((BEAM_2, WIDTH_2), tl.float32)
    base = memory + row.to(tl.int64) * width * column_size + group * WIDTH
    for first in range(0, length, COLUMNS):
        s = first + tl.arange(0, COLUMNS)
        open_ = s < length
        place = base + s[:, None] * column_size + d[None, :]
        tile = open_[:, None] & inside[None, :]
        keys = tl.load(place, mask=tile, other=0.0).to(tl.float32)
        score = tl.sum(q[:, None, :] * keys[None, :, :], 2)
        score = tl.where(open_[None, :], score, float("-inf"))
        higher = tl.maximum(highest, tl.max(score, 1))
        shrink = tl.exp(highest - higher)
        p = tl.exp(score - higher[:, None])
        values = tl.load(place + GROUPS * WIDTH, mask=tile, other=0.0).to(tl.float32)
        seen = seen * shrink[:, None] + tl.sum(p[:, :, None] * values[None, :, :], 1)
        weight = weight * shrink + tl.sum(p, 1)
        highest = higher
    tl.store(out + at, (seen / weight[:, None]).to(out.dtype.element_ty), mask=here)


def normalise(x_NW: Tensor, norm: Norm) -> Tensor:
    return _norm(x_NW, None, None, norm)[1]


def add_norm(x_NW: Tensor, y_NW: Tensor, bias_W: Tensor, norm: Norm) -> tuple[Tensor, Tensor]:
    return _norm(x_NW, y_NW, bias_W, norm)


def _norm(x_NW: Tensor, y_NW: Tensor | None, bias_W: Tensor | None, norm: Norm) -> tuple[Tensor, Tensor]:
    rows, width = x_NW.shape
    normed = torch.empty_like(x_NW)
    total = x_NW if y_NW is None else torch.empty_like(x_NW)
    _add_norm[(rows,)](
        x_NW, x_NW if y_NW is None else y_NW, norm.weight if bias_W is None else bias_W, norm.weight,
        norm.weight if norm.bias is None else norm.bias, total, normed, width, norm.epsilon,
        ADD=y_NW is not None, LAYER=norm.bias is not None, WIDTH_2=triton.next_power_of_2(width),
        num_warps=4 if width <= 1024 else 8,
    )  # fmt: skip
    return total, normed


@triton.jit
def _add_norm(
    x, y, bias, norm_weight, norm_bias, total, normed, width, epsilon,
    ADD: tl.constexpr, LAYER: tl.constexpr, WIDTH_2: tl.constexpr,
):  # fmt: skip
    start = tl.program_id(0).to(tl.int64) * width
    w = tl.arange(0, WIDTH_2)
    inside = w < width
    v = tl.load(x + start + w, mask=inside, other=0.0).to(tl.float32)
    if ADD:
        v += tl.load(y + start + w, mask=inside, other=0.0).to(tl.float32)
        v += tl.load(bias + w, mask=inside, other=0.0).to(tl.float32)
        tl.store(total + start + w, v.to(total.dtype.element_ty), mask=inside)
    if LAYER:
        mean = tl.sum(v, 0) / width
        v = tl.where(inside, v - mean, 0.0)
    scaled = v * tl.rsqrt(tl.sum(v * v, 0) / width + epsilon)
    scaled *= tl.load(norm_weight + w, mask=inside, other=0.0).to(tl.float32)
    if LAYER:
        scaled += tl.load(norm_bias + w, mask=inside, other=0.0).to(tl.float32)
    tl.store(normed + start + w, scaled.to(normed.dtype.element_ty), mask=inside)


def activate(inner_NF: Tensor, bias_F: Tensor, activation: str) -> Tensor:
    rows, width = inner_NF.shape
    gated = activation == "swiglu"
    wanted = width // 2 if gated else width
    out = inner_NF.new_empty(rows, wanted)
    block = min(1024, triton.next_power_of_2(wanted))
    _activate[(rows, triton.cdiv(wanted, block))](
        inner_NF, bias_F, out, width, wanted, ACTIVATION=activation, BLOCK=block, num_warps=4
    )
    return out


@triton.jit
def _activate(inner, bias, out, width, wanted, ACTIVATION: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    f = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = f < wanted
    v = _part(inner + row * width, bias, 0, f, inside)
    if ACTIVATION == "relu":
        v = tl.maximum(v, 0.0)
    elif ACTIVATION == "gelu":
        v = 0.5 * v * (1.0 + tl.erf(v * 0.7071067811865476))
    else:
        v = v * tl.sigmoid(v)
    if ACTIVATION == "swiglu":
        v *= _part(inner + row * width, bias, wanted, f, inside)
    tl.store(out + row * wanted + f, v.to(out.dtype.element_ty), mask=inside)
