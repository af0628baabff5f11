# mypy: ignore-errors
# (Triton's kernels are a language of their own: types of Python say nothing about them.)
"""`DeviceBeam.shortlist` and `DeviceBeam.advance` as one Triton kernel each: some forty small ones cost more than the
arithmetic."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from jumok.search.device_beam import DeviceBeam, Shortlist

BLOCK = 4096  # of the vocabulary, taken at a time


def shortlist(beam: DeviceBeam, logits_NV: Tensor, bias_V: Tensor) -> Shortlist:
    """From logits without their bias."""
    hypotheses, vocabulary = logits_NV.shape
    place = logits_NV.device
    found = Shortlist(
        torch.empty(hypotheses, beam.beam, dtype=torch.float32, device=place),
        torch.empty(hypotheses, beam.beam, dtype=torch.long, device=place),
        torch.empty(hypotheses, dtype=torch.float32, device=place),
        torch.empty(hypotheses, dtype=torch.bool, device=place),
    )
    _shortlist[(hypotheses,)](
        logits_NV, bias_V, beam.forbidden_V, beam.position, beam.limit_R, beam.minimum_R,
        found.values, found.tokens, found.ends, found.willing, vocabulary,
        BEAM=beam.beam, END=beam.end, BLOCK=min(BLOCK, triton.next_power_of_2(vocabulary)), num_warps=8,
    )  # fmt: skip
    return found


@triton.jit
def _shortlist(
    logits, bias, forbidden, position, limits, minimums, values, tokens, ends, willing, vocabulary,
    BEAM: tl.constexpr, END: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    hypothesis = tl.program_id(0)
    row = hypothesis // BEAM
    x = logits + hypothesis.to(tl.int64) * vocabulary
    length = tl.load(position) + 1
    last = length == tl.load(limits + row)
    barred = (length < tl.load(minimums + row)) | (tl.load(forbidden + END).to(tl.int32) != 0)

    highest = tl.full((), -3.0e38, tl.float32)
    weight = tl.zeros((), tl.float32)
    for first in range(0, vocabulary, BLOCK):
        v = first + tl.arange(0, BLOCK)
        inside = v < vocabulary
        logit = tl.load(x + v, mask=inside, other=float("-inf")).to(tl.float32)
        logit += tl.load(bias + v, mask=inside, other=0.0).to(tl.float32)
        higher = tl.maximum(highest, tl.max(logit, 0))
        weight = weight * tl.exp(highest - higher) + tl.sum(tl.exp(logit - higher), 0)
        highest = higher
    below = tl.log(weight)
    end = tl.load(x + END).to(tl.float32) + tl.load(bias + END).to(tl.float32)
    end = end - highest - below

    # each pass finds the one that follows the last found, by value and then by place
    above = tl.full((), float("inf"), tl.float32)
    after = tl.full((), -1, tl.int32)
    for rank in range(BEAM):
        best = tl.full((), float("-inf"), tl.float32)
        place = tl.full((), 0, tl.int32)
        for first in range(0, vocabulary, BLOCK):
            v = first + tl.arange(0, BLOCK)
            inside = v < vocabulary
            logit = tl.load(x + v, mask=inside, other=float("-inf")).to(tl.float32)
            logit += tl.load(bias + v, mask=inside, other=0.0).to(tl.float32)
            allowed = inside & (v != END) & (tl.load(forbidden + v, mask=inside, other=1).to(tl.int32) == 0)
            allowed = allowed & ((logit < above) | ((logit == above) & (v > after)))
            logit = tl.where(allowed, logit, float("-inf"))
            most = tl.max(logit, 0)
            where = tl.min(tl.where(allowed & (logit == most), v, vocabulary), 0)
            place = tl.where(most > best, where, place)
            best = tl.maximum(best, most)
        above, after = best, place
        value = best - highest - below
        if rank == 0:
            tl.store(willing + hypothesis, (value <= end) | (value != value))
        # what is not a number stays so
        tl.store(values + hypothesis * BEAM + rank, tl.where(last & (value == value), float("-inf"), value))
        tl.store(tokens + hypothesis * BEAM + rank, place.to(tl.int64))
    tl.store(ends + hypothesis, tl.where(barred & (last == 0) & (end == end), float("-inf"), end))


def advance(beam: DeviceBeam, found: Shortlist) -> None:
    slots = triton.next_power_of_2(beam.beam)
    _advance[(beam.rows,)](
        found.values, found.tokens, found.ends, found.willing,
        beam.live_RK, beam.tokens_RK, beam.ancestry_RKC, beam.pool_RB, beam.count_R, beam.alive_R, beam.steps_R,
        beam.bound_R, beam.norm_C, beam.enough, beam.position, beam.log, beam.rows, beam.capacity,
        BEAM=beam.beam, SLOTS=slots, SQUARE=slots * slots, NBEST=beam.nbest, POOL=triton.next_power_of_2(beam.nbest),
        END=beam.end, COLUMNS=32, num_warps=1,
    )  # fmt: skip
    beam.position.add_(1)


@triton.jit
def _advance(
    values, tokens, ends, willing, live, inputs, ancestry, pool, count, alive, steps,
    bound, norm, enough, position, log, rows, capacity,
    BEAM: tl.constexpr, SLOTS: tl.constexpr, SQUARE: tl.constexpr, NBEST: tl.constexpr, POOL: tl.constexpr,
    END: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0)
    nothing = tl.full((), float("-inf"), tl.float64)
    now = tl.load(position)
    k = tl.arange(0, SLOTS)
    slot = k < BEAM
    f = tl.arange(0, SQUARE)
    listed = f < BEAM * BEAM

    # all continuations, in the order of parent and token
    above = tl.load(live + row * BEAM + f // BEAM, mask=listed, other=float("-inf"))
    value = tl.load(values + row * BEAM * BEAM + f, mask=listed, other=float("-inf")).to(tl.float64)
    total_F = tl.where(above > nothing, above + value, nothing)
    token_F = tl.load(tokens + row * BEAM * BEAM + f, mask=listed, other=0)
    broken = tl.max((total_F != total_F).to(tl.int32), 0) > 0
    total = tl.zeros((SLOTS,), tl.float64) + nothing
    token = tl.zeros((SLOTS,), tl.int64)
    parent = tl.zeros((SLOTS,), tl.int32)
    taken = f >= BEAM * BEAM
    for rank in range(BEAM):
        best = tl.max(tl.where(taken, nothing, total_F), 0)
        at = tl.min(tl.where((taken == 0) & (total_F == best), f, BEAM * BEAM - 1), 0)
        total = tl.where(k == rank, best, total)
        token = tl.where(k == rank, tl.sum(tl.where(f == at, token_F, 0), 0), token)
        parent = tl.where(k == rank, at // BEAM, parent)
        taken = taken | (f == at)
    total = tl.where(broken & slot, float("nan"), total)

    # those that end, if they rank among the best
    lives = tl.load(live + row * BEAM + k, mask=slot, other=float("-inf"))
    end = tl.load(ends + row * BEAM + k, mask=slot, other=float("-inf")).to(tl.float64)
    end = tl.where(lives > nothing, lives + end, nothing)
    mine, other, whose = end[:, None], total[None, :], parent[None, :]
    earlier = (whose < k[:, None]) | ((whose == k[:, None]) & (token < END)[None, :])
    rank_K = tl.sum(((other > mine) | ((other == mine) & earlier)).to(tl.int32), 1)
    other = end[None, :]
    rank_K += tl.sum(((other > mine) | ((other == mine) & (k[None, :] < k[:, None]))).to(tl.int32), 1)
    finishes = slot & (rank_K < BEAM) & (end != nothing)
    ended = tl.where(finishes, end, nothing)
    score = ended / tl.load(norm + now)
    b = tl.arange(0, POOL)
    pooled = tl.load(pool + row * NBEST + b, mask=b < NBEST, other=float("inf"))
    for which in range(BEAM):
        new = tl.max(tl.where(k == which, score, nothing), 0)
        worst = tl.min(pooled, 0)
        first = tl.min(tl.where(pooled == worst, b, POOL), 0)
        pooled = tl.where(b == first, tl.maximum(new, worst), pooled)
    worst = tl.min(pooled, 0)
    finished = tl.load(count + row) + tl.sum(finishes.to(tl.int64), 0)
    was_alive = tl.load(alive + row).to(tl.int32) != 0
    stepped = tl.load(steps + row) + was_alive.to(tl.int64)
    top = tl.max(total, 0)
    goes_on = was_alive & (broken == 0) & (top / tl.load(bound + row) > worst)
    goes_on = goes_on & (finished.to(tl.float64) < tl.load(enough))
    would = tl.load(willing + row * BEAM + k, mask=slot, other=0).to(tl.int64)
    tl.debug_barrier()  # all have read what is overwritten now

    entry = log + now * 3 * rows * BEAM + row * BEAM + k
    tl.store(entry, ((token * BEAM + parent) * 2 + would).to(tl.float64), mask=slot)
    tl.store(entry + rows * BEAM, total, mask=slot)
    tl.store(entry + 2 * rows * BEAM, ended, mask=slot)
    tl.store(pool + row * NBEST + b, pooled, mask=b < NBEST)
    tl.store(count + row, finished)
    tl.store(steps + row, stepped)
    tl.store(alive + row, goes_on)
    tl.store(live + row * BEAM + k, tl.where(goes_on, total, nothing), mask=slot)
    tl.store(inputs + row * BEAM + k, token, mask=slot)
    if BEAM > 1:
        for first in range(0, now + 1, COLUMNS):
            c = first + tl.arange(0, COLUMNS)
            there = slot[:, None] & (c < now)[None, :]
            held = tl.load(ancestry + (row * BEAM + parent[:, None]) * capacity + c[None, :], mask=there, other=0)
            held = tl.where(c[None, :] == now, parent[:, None], held)
            tl.debug_barrier()
            tl.store(ancestry + (row * BEAM + k[:, None]) * capacity + c[None, :], held,
                     mask=slot[:, None] & (c <= now)[None, :])  # fmt: skip
            tl.debug_barrier()
