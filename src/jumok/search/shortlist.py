"""The one large operation of a search step: from log-probabilities over the vocabulary to the few best of each row.

At most `beam` continuations of one hypothesis can be among the `beam` best of its row, so the top of each hypothesis is
all the search needs. It crosses from the device in one transfer; what follows happens on the host, in float64.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


@dataclass(frozen=True)
class Shortlist:
    """The best `W` tokens of each of N hypotheses, best first, equal ones by token id."""

    tokens: NDArray[np.int64]  # (N, W)
    values: NDArray[np.float64]  # (N, W)
    wanted: NDArray[np.float64]  # (N,) log-probability of the one token that was asked for
    complete: bool  # every token that ties with the last one is either here or has a higher id

    @classmethod
    def of(cls, log_probs_NV: Tensor, wanted: Tensor | int, width: int, exact: bool = False) -> Shortlist:
        """`exact` settles ties at the edge of the list for the lowest token id, which `topk` leaves open."""
        width = min(width, log_probs_NV.size(1))
        values_NW, tokens_NW = log_probs_NV.topk(width, dim=1)
        if exact:
            tokens_NW = _lowest_at_edge(log_probs_NV, values_NW, tokens_NW)
        if isinstance(wanted, int):
            wanted_N1 = log_probs_NV.select(1, wanted)[:, None]
        else:
            wanted_N1 = log_probs_NV.gather(1, wanted[:, None])
        # Token ids below 2^24 are exact in float32, so that one transfer carries everything.
        kind = torch.float64 if log_probs_NV.dtype == torch.float64 else torch.float32
        packed = torch.cat([values_NW.to(kind), tokens_NW.to(kind), wanted_N1.to(kind)], dim=1)
        host = packed.cpu().numpy().astype(np.float64)
        values, tokens = host[:, :width], host[:, width:-1].astype(np.int64)
        order = np.lexsort((tokens, -values), axis=1)
        return cls(
            np.take_along_axis(tokens, order, 1),
            np.take_along_axis(values, order, 1),
            host[:, -1],
            exact or width == log_probs_NV.size(1),
        )


def _lowest_at_edge(log_probs_NV: Tensor, values_NW: Tensor, tokens_NW: Tensor) -> Tensor:
    """Of all tokens that tie with the last value of a list, put the lowest ids into it."""
    vocabulary, edge_N1 = log_probs_NV.size(1), values_NW[:, -1:]
    countdown = torch.arange(vocabulary, 0, -1, device=log_probs_NV.device)
    highest_NW = torch.where(log_probs_NV == edge_N1, countdown, 0).topk(values_NW.size(1), dim=1).values
    tie_NW = values_NW == edge_N1
    nth_NW = (tie_NW.cumsum(1) - 1).clamp(min=0)
    return torch.where(tie_NW, vocabulary - highest_NW.gather(1, nth_NW), tokens_NW)
