"""Connectionist temporal classification (Graves et al. 2006): T frames each say a label or nothing (blank), and a word
is what is left when repeated labels are taken together and blanks are taken out.

    −log p(y) = −log Σ_(paths that become y) Π_t p_t(path_t)

With l = blank y_1 blank y_2 … y_S blank, the probability of all beginnings of paths that stand at l_s in frame t is

    α_t(s) = p_t(l_s) · (α_(t−1)(s) + α_(t−1)(s−1) + α_(t−1)(s−2) if l_s is neither blank nor l_(s−2))

β is the same from the end. The gradient is what a frame has to do with the word: ∂/∂ log p_t(l_s) = −α β / (p_t p(y)).

All in log space. β is α of the mirrored word in mirrored time, so both go through the frames together: half as many
steps. Only labels that a row has are looked at, never the vocabulary. Nothing waits for the GPU and no shape depends on
the lengths: it can be compiled and recorded as a CUDA graph.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from jumok.text.special import PAD

NEVER = -1e30  # log of a probability that counts as 0; −∞ would become NaN where two of them meet
BLANK = PAD


def ctc_loss(log_probs_BTS: Tensor, blank_BT: Tensor, ids_BS: Tensor, lengths_B: Tensor) -> Tensor:
    """−log p of each row's first `lengths` ids, (B,). `log_probs` are those of the row's own ids in every frame, as
    `CharacterHead.among` gives them; `blank` is that of nothing.

    A row that has no path at all (T frames cannot say so many labels and the blanks between equal neighbours) has loss
    and gradient 0, as F.ctc_loss with zero_infinity.
    """
    return _Ctc.apply(log_probs_BTS, blank_BT, ids_BS, lengths_B)  # type: ignore[no-untyped-call]


class _Ctc(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, log_probs_BTS: Tensor, blank_BT: Tensor, ids_BS: Tensor, lengths_B: Tensor) -> Tensor:
        total_B, share_BTL = _said(log_probs_BTS, blank_BT, ids_BS, lengths_B)
        ctx.save_for_backward(share_BTL)
        return torch.where(total_B > NEVER / 2, -total_B, 0.0)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None]:
        (share_BTL,) = ctx.saved_tensors
        gradient_BTL = -gradients[0][:, None, None] * share_BTL
        return gradient_BTL[..., 1::2], gradient_BTL[..., ::2].sum(dim=-1), None, None


def said_as(log_probs_BTS: Tensor, blank_BT: Tensor, ids_BS: Tensor, lengths_B: Tensor) -> tuple[Tensor, Tensor]:
    """How likely each row's text is, log p(y) (B,), below `NEVER` / 2 where no path says it; and log p of each of its
    labels (B, S), in the frame that has most to do with it."""
    total_B, share_BTL = _said(log_probs_BTS, blank_BT, ids_BS, lengths_B)
    frame_BS = share_BTL[..., 1::2].argmax(dim=1)
    of_each_BS = log_probs_BTS.gather(1, frame_BS[:, None])[:, 0]
    return total_B, of_each_BS.masked_fill(
        torch.arange(ids_BS.size(1), device=ids_BS.device) >= lengths_B[:, None], 0.0
    )


def _said(log_probs_BTS: Tensor, blank_BT: Tensor, ids_BS: Tensor, lengths_B: Tensor) -> tuple[Tensor, Tensor]:
    """log p(y), (B,), and α β / (p_t p(y)), (B, T, L): the share of the paths of y that stand at l_s in frame t."""
    rows, frames, labels = log_probs_BTS.shape
    states = 2 * labels + 1
    emission_BTL = blank_BT[..., None].expand(rows, frames, states).clone()
    emission_BTL[..., 1::2] = log_probs_BTS
    both_2BTL = torch.stack([emission_BTL, emission_BTL.flip(1, 2)])
    # a path begins at one of the first two states, and ends at one of the two around the row's end
    place_L = torch.arange(states, device=ids_BS.device)
    last_B1 = 2 * lengths_B[:, None]
    begins_BL = (place_L < 2).expand(rows, -1)
    ends_BL = (place_L == last_B1) | (place_L == last_B1 - 1)
    open_2BL = torch.stack([begins_BL, ends_BL.flip(1)])
    reached_2BTL = _along(both_2BTL, open_2BL, _skips(ids_BS))
    alpha_BTL, beta_BTL = reached_2BTL[0], reached_2BTL[1].flip(1, 2)
    # whatever the frame: the sum over its states of α β / p is p(y); taken from the last one
    total_B = alpha_BTL[:, -1].masked_fill(~ends_BL, NEVER).logsumexp(dim=-1)
    share_BTL = (alpha_BTL + beta_BTL - emission_BTL - total_B[:, None, None]).exp_()
    return total_B, torch.where((total_B > NEVER / 2)[:, None, None], share_BTL, 0.0)


def _skips(ids_BS: Tensor) -> Tensor:
    """(2, B, L): 0 where a path may come from two states before, passing a blank by, NEVER where it may not; of the
    word, and of the mirrored word."""
    rows, labels = ids_BS.shape
    closed_BL = torch.ones(rows, 2 * labels + 1, dtype=torch.bool, device=ids_BS.device)
    closed_BL[:, 3::2] = ids_BS[:, 1:] == ids_BS[:, :-1]
    # the way from s − 2 to s is, mirrored, the one to the place of s − 2
    mirrored_BL = closed_BL.flip(1).roll(2, dims=1)
    return torch.stack([closed_BL, mirrored_BL]) * NEVER


def _along(emission_2BTL: Tensor, open_2BL: Tensor, skips_2BL: Tensor) -> Tensor:
    """α of every frame, (2, B, T, L)."""
    emission_T2BL, skips_2BL = emission_2BTL.movedim(2, 0), skips_2BL.to(emission_2BTL.dtype)
    frames, *rows, states = emission_T2BL.shape
    # two states before the first, never reached: who looks back meets no border
    reached = emission_T2BL.new_full((frames, *rows, states + 2), NEVER)
    reached[0, ..., 2:] = emission_T2BL[0].masked_fill(~open_2BL, NEVER)
    for frame in range(1, frames):
        before = reached[frame - 1]
        stays_or_next = torch.logaddexp(before[..., 2:], before[..., 1:-1])
        arrives = torch.logaddexp(stays_or_next, before[..., :-2] + skips_2BL)
        reached[frame, ..., 2:] = (arrives + emission_T2BL[frame]).clamp_(min=NEVER)
    return reached[..., 2:].movedim(0, 2)


def best_path(log_prob_BT: Tensor, ids_BT: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """What the likeliest label of every frame becomes: ids (B, T) with PAD behind the end, lengths (B,), log p of each
    id (B, T) with 0 behind the end, and the sum of the blanks' log p (B,).

    A label's log p is the largest over its frames: the frame in which it is surest. Their sum would be the path's own
    probability, but a wide letter, which is said in more frames, would then count as a doubtful one.
    """
    said_BT = ids_BT != BLANK
    begins_BT = said_BT.clone()
    begins_BT[:, 1:] &= ids_BT[:, 1:] != ids_BT[:, :-1]
    number_BT = begins_BT.cumsum(dim=1) - 1
    lengths_B = number_BT[:, -1] + 1
    frames = ids_BT.size(1)
    place_BT = number_BT.masked_fill(~said_BT, frames)  # blanks go to one more place, which is cut off
    room = (len(ids_BT), frames + 1)
    ids = torch.full(room, PAD, dtype=ids_BT.dtype, device=ids_BT.device).scatter(1, place_BT, ids_BT)[:, :frames]
    least = log_prob_BT.new_full(room, float("-inf"))
    surest = least.scatter_reduce(1, place_BT, log_prob_BT, "amax")[:, :frames]
    behind = torch.arange(frames, device=ids_BT.device) >= lengths_B[:, None]
    return ids, lengths_B, surest.masked_fill(behind, 0.0), log_prob_BT.masked_fill(said_BT, 0.0).sum(dim=1)
