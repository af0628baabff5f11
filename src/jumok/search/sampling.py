"""Drawing the next token instead of choosing the best.

Temperature T, then top-k, then top-p (Holtzman et al. 2020): from p ∝ exp(log p / T) only the k likeliest are left, of
those the smallest set of the likeliest that together reach probability p, and one of these is drawn. One uniform number
decides, by inverting the distribution function; it depends on (seed, stream, position) alone, so that a sample is the
same whatever it is batched with.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import torch
from torch import Tensor

from jumok.search.options import SearchOptions


def uniform(seed: int, stream: int, position: int) -> float:
    """A number in [0, 1), 53 random bits."""
    digest = blake2b(f"{seed}/{stream}/{position}".encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 11) / 2**53


def draw(log_probs_NV: Tensor, options: Sequence[SearchOptions], numbers: Sequence[float]) -> Tensor:
    """A token (N,) for each row, decided by a number in [0, 1). Impossible tokens are -∞; one at least is possible."""
    vocabulary = log_probs_NV.size(1)
    logits_NV = log_probs_NV.double()
    # the best is 0 before it is divided: at a temperature of 1e-310 all others are -∞ then, and it is not
    logits_NV = logits_NV - logits_NV.amax(dim=1, keepdim=True)
    logits_NV = logits_NV / _column([option.temperature for option in options], log_probs_NV)
    if any(option.top_k for option in options):
        k_N1 = _column([min(option.top_k, vocabulary) for option in options], log_probs_NV).long()
        listed_NK = logits_NV.topk(int(k_N1.max())).values
        logits_NV = _above(logits_NV, listed_NK.gather(1, (k_N1 - 1).clamp(min=0)), k_N1 > 0)
    if any(option.top_p < 1 for option in options):
        p_N1 = _column([option.top_p for option in options], log_probs_NV)
        sorted_NV = logits_NV.sort(dim=1, descending=True).values
        sorted_p_NV = torch.softmax(sorted_NV, dim=1)
        count_N1 = (sorted_p_NV.cumsum(dim=1) - sorted_p_NV < p_N1).sum(dim=1, keepdim=True)
        logits_NV = _above(logits_NV, sorted_NV.gather(1, (count_N1 - 1).clamp(min=0)), p_N1 < 1)  # the first is in
    reached_NV = logits_NV.exp().cumsum(dim=1)
    all_N1 = reached_NV[:, -1:]
    aim_N1 = torch.minimum(_column(numbers, log_probs_NV) * all_N1, torch.nextafter(all_N1, torch.zeros_like(all_N1)))
    return torch.searchsorted(reached_NV, aim_N1, right=True)[:, 0]


def _above(logits_NV: Tensor, edge_N1: Tensor, limited_N1: Tensor) -> Tensor:
    """Only what reaches the edge stays possible, ties with it included."""
    return logits_NV.masked_fill((logits_NV < edge_N1) & limited_N1, -torch.inf)


def _column(numbers: Sequence[float], like: Tensor) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64, device=like.device)[:, None]
