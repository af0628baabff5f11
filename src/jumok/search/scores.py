"""The one large operation of a search step: from log-probabilities over the vocabulary to the few best of each row.

What may not come next is made impossible first (-∞), then `top` gives the best continuations of every row; `<eos>` is
taken out and kept apart, since it ends a hypothesis instead of continuing it. On the CPU the work is done where the
numbers are; from another device the best of each hypothesis cross in one transfer. Totals are float64 on the host.

Equal totals go to the earlier parent, then to the lower token id, exactly.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jumok.models.native import best_of

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

LANES = 64  # columns a CPU reduces side by side
LOWEST = float(np.finfo(np.float64).min)  # above -∞: what is impossible is never listed


class NotLogProbabilities(Exception):
    """A hypothesis got a value that is no log-probability."""

    def __init__(self, hypothesis: int, value: float) -> None:
        self.hypothesis, self.value = hypothesis, value


class Ranked(NamedTuple):
    """Continuations (M of them) by row, the best first, at most as many as the row's beam."""

    row: Integers
    parent: Integers  # the hypothesis that is continued
    token: Integers
    total: Floats  # log-probability of the whole


class Scores(Protocol):
    """Log-probabilities (N, V) of one step. They are overwritten."""

    end: Floats  # (N,) log-probability of <eos>; from another device it comes with `top`

    def top(self, total_N: Floats, row_N: Integers, beam_R: Integers, even: int) -> Ranked:
        """The best of each row without `<eos>`. `even`: hypotheses of each row if all beams and all counts are equal,
        else 0."""
        ...

    def block(self, hypotheses: Integers, tokens: Integers) -> None:
        """Make single continuations impossible."""
        ...

    def check(self) -> None:
        """Refuse what is no log-probability. `top` does so too."""
        ...

    def silence(self, hypotheses: Integers) -> None:
        """Make every continuation impossible."""
        ...

    def only(self, hypotheses: Integers, tokens: Integers, values: Floats) -> None:
        """Leave nothing but these continuations, with these log-probabilities."""
        ...

    def whole(self, hypotheses: Integers) -> Tensor:
        """(n, V) all log-probabilities of some hypotheses, a copy; without `<eos>` and what is forbidden."""
        ...

    def ends(self, hypotheses: Integers) -> Floats:
        """Log-probability of `<eos>` after some hypotheses."""
        ...

    def pick(self, hypotheses: Integers, tokens: Integers) -> Floats:
        """Log-probabilities as the model gave them, forbidden or not."""
        ...


def scores_of(log_probs_NV: Tensor, end: int, banned: tuple[int, ...]) -> Scores:
    """`banned`: the tokens that no row may generate."""
    return (HostScores if log_probs_NV.device.type == "cpu" else DeviceScores)(log_probs_NV, end, banned)


class HostScores:
    def __init__(self, log_probs_NV: Tensor, end: int, banned: tuple[int, ...]) -> None:
        if log_probs_NV.dtype not in (torch.float32, torch.float64):
            log_probs_NV = log_probs_NV.float()
        self.tensor, self.values = log_probs_NV, log_probs_NV.numpy()
        self.vocabulary = self.values.shape[1]
        columns = [end, *banned]
        self.before = dict(zip(columns, self.values[:, columns].T.astype(np.float64), strict=True))
        self.end = self.before[end]
        self.values[:, columns] = -np.inf

    def top(self, total_N: Floats, row_N: Integers, beam_R: Integers, even: int) -> Ranked:
        _check(self.end)
        beam = int(beam_R[0]) if even else int(beam_R.max())
        if even == 1 == beam:
            return self._greedy(total_N, row_N)
        values_NV, total_N1 = self.values, total_N[:, None]
        lanes = self._lanes(beam)
        if not lanes:
            _check(values_NV)
            sums_NV = values_NV + total_N1
            parent, token = np.nonzero(sums_NV >= _edges(sums_NV, beam, even))
            return _ranked(row_N[parent], parent, token, sums_NV[parent, token], beam_R)
        if (best := best_of(self.tensor, min(beam, self.vocabulary))) is not None:
            best_NK, tokens_NK = best[0].numpy(), best[1].numpy()
            _check(best_NK)
            sums_NK = best_NK + total_N1
            parent, place = np.nonzero(sums_NK >= _edges(sums_NK, beam, even))
            return _ranked(row_N[parent], parent, tokens_NK[parent, place], sums_NK[parent, place], beam_R)
        # The b best totals of a row lie in columns whose best is at least the b-th best column: look only into those.
        depth, rest = divmod(self.vocabulary, lanes)
        best_NG = self.tensor[:, : depth * lanes].reshape(-1, depth, lanes).amax(1).numpy()
        if rest:
            np.maximum(best_NG[:, :rest], values_NV[:, -rest:], out=best_NG[:, :rest])
        _check(best_NG)
        sums_NG = best_NG + total_N1
        edge_N1 = _edges(sums_NG, beam, even)
        hypothesis, column = np.nonzero(sums_NG >= edge_N1)
        tokens = column[:, None] + np.arange(0, self.vocabulary, lanes)
        if rest:
            outside = tokens >= self.vocabulary
            tokens[outside] = 0
        sums = values_NV[hypothesis[:, None], tokens] + total_N1[hypothesis]
        if rest:
            sums[outside] = -np.inf
        place, deep = np.nonzero(sums >= edge_N1[hypothesis])
        parent = hypothesis[place]
        return _ranked(row_N[parent], parent, tokens[place, deep], sums[place, deep], beam_R)

    def _greedy(self, total_N: Floats, row_N: Integers) -> Ranked:
        token = self.values.argmax(1)  # the first of equals, or NaN
        parent = np.arange(len(token))
        value = self.values[parent, token]
        _check(value)
        total = total_N + value
        if total.min() == -np.inf:
            possible = total > -np.inf
            row_N, parent, token, total = row_N[possible], parent[possible], token[possible], total[possible]
        return Ranked(row_N, parent, token, total)

    def _lanes(self, beam: int) -> int:
        """Into how many columns to fold the vocabulary; 0: it is too small to be worth it."""
        return LANES if self.vocabulary >= 8 * LANES and beam <= LANES // 2 else 0

    def check(self) -> None:
        _check(self.values)
        _check(self.end)

    def block(self, hypotheses: Integers, tokens: Integers) -> None:
        self.values[hypotheses, tokens] = -np.inf

    def silence(self, hypotheses: Integers) -> None:
        self.values[hypotheses] = -np.inf

    def only(self, hypotheses: Integers, tokens: Integers, values: Floats) -> None:
        self.silence(hypotheses)
        self.values[hypotheses, tokens] = values

    def whole(self, hypotheses: Integers) -> Tensor:
        return torch.from_numpy(self.values[hypotheses])

    def ends(self, hypotheses: Integers) -> Floats:
        return self.end[hypotheses]

    def pick(self, hypotheses: Integers, tokens: Integers) -> Floats:
        pairs = zip(hypotheses.tolist(), tokens.tolist(), strict=True)
        return np.array([float(self.before[t][h] if t in self.before else self.values[h, t]) for h, t in pairs])


class DeviceScores:
    def __init__(self, log_probs_NV: Tensor, end: int, banned: tuple[int, ...]) -> None:
        if log_probs_NV.is_inference() and not torch.is_inference_mode_enabled():
            log_probs_NV = log_probs_NV.clone()  # may not be overwritten here
        self.values, self.vocabulary = log_probs_NV, log_probs_NV.size(1)
        self.columns = (end, *banned)
        self.before_NC = log_probs_NV.index_select(1, _on(self.columns, log_probs_NV.device))
        log_probs_NV.index_fill_(1, _on(self.columns, log_probs_NV.device), -torch.inf)

    def top(self, total_N: Floats, row_N: Integers, beam_R: Integers, even: int) -> Ranked:
        beam = int(beam_R[0]) if even else int(beam_R.max())
        ranked, tied = self._top(total_N, row_N, beam_R, beam, even, exact=False)
        return self._top(total_N, row_N, beam_R, beam, even, exact=True)[0] if tied else ranked

    def _top(
        self, total_N: Floats, row_N: Integers, beam_R: Integers, beam: int, even: int, exact: bool
    ) -> tuple[Ranked, bool]:
        width = min(beam + 1, self.vocabulary)  # one more than needed, to notice ties
        values_NW, tokens_NW = self.values.topk(width, dim=1)
        if exact:
            tokens_NW = lowest_at_edge(self.values, values_NW, tokens_NW)
        # Token ids below 2^24 are exact in float32, so that one transfer carries everything.
        kind = torch.float64 if self.values.dtype == torch.float64 else torch.float32
        host = torch.cat([values_NW.to(kind), tokens_NW.to(kind), self.before_NC[:, :1].to(kind)], dim=1).cpu().numpy()
        host = host.astype(np.float64)
        values, tokens, self.end = host[:, :width], host[:, width:-1].astype(np.int64), host[:, -1]
        _check(values[:, 0])  # topk takes NaN for the largest value
        _check(self.end)
        sums = values + total_N[:, None]
        parent, place = np.nonzero(sums >= _edges(sums, beam, even))
        ranked = _ranked(row_N[parent], parent, tokens[parent, place], sums[parent, place], beam_R)
        if exact or width == self.vocabulary:
            return ranked, False
        return ranked, bool((ranked.total <= sums[ranked.parent, -1]).any())

    def check(self) -> None:
        most_N = torch.maximum(self.values.amax(dim=1), self.before_NC[:, 0])  # NaN too
        _check(most_N.cpu().double().numpy())

    def block(self, hypotheses: Integers, tokens: Integers) -> None:
        self.values[self._to(hypotheses), self._to(tokens)] = -torch.inf

    def silence(self, hypotheses: Integers) -> None:
        self.values[self._to(hypotheses)] = -torch.inf

    def only(self, hypotheses: Integers, tokens: Integers, values: Floats) -> None:
        self.silence(hypotheses)
        self.values[self._to(hypotheses), self._to(tokens)] = (
            torch.from_numpy(values).to(self.values.dtype).to(self.values.device)  # float64 need not exist there
        )

    def whole(self, hypotheses: Integers) -> Tensor:
        return self.values[self._to(hypotheses)]

    def ends(self, hypotheses: Integers) -> Floats:
        return self.before_NC[self._to(hypotheses), 0].cpu().double().numpy()

    def pick(self, hypotheses: Integers, tokens: Integers) -> Floats:
        known = self.values[self._to(hypotheses), self._to(tokens)].cpu().double().numpy()
        before = self.before_NC[self._to(hypotheses)].cpu().double().numpy()
        for place, token in enumerate(tokens.tolist()):
            if token in self.columns:
                known[place] = before[place, self.columns.index(token)]
        return known

    def _to(self, numbers: Integers) -> Tensor:
        return torch.from_numpy(numbers).to(self.values.device)


def _check(values: NDArray[np.floating]) -> None:
    """Values (N, …) of N hypotheses."""
    if not values.max() <= 1e-3:  # NaN too
        wrong = np.nonzero(~(values <= 1e-3))
        raise NotLogProbabilities(int(wrong[0][0]), float(values[wrong][0]))


def _edges(sums: Floats, beam: int, even: int) -> Floats:
    """(N, 1) what a continuation must reach to be among the `beam` best of its row, or of its hypothesis alone."""
    flat = sums.reshape(-1, even * sums.shape[1]) if even else sums
    if beam >= flat.shape[1]:
        return np.full((len(sums), 1), LOWEST)
    edge = np.maximum(np.partition(flat, -beam, axis=1)[:, -beam], LOWEST)
    return (edge.repeat(even) if even > 1 else edge)[:, None]


def _ranked(row: Integers, parent: Integers, token: Integers, total: Floats, beam_R: Integers) -> Ranked:
    if len(beam_R) == 1:
        order = np.lexsort((token, parent, -total))[: beam_R[0]]
        return Ranked(row[order], parent[order], token[order], total[order])
    order = np.lexsort((token, parent, -total, row))
    rank = np.arange(len(row)) - np.searchsorted(row, row)  # rows are in order already
    order = order[rank < beam_R[row]]
    return Ranked(row[order], parent[order], token[order], total[order])


@lru_cache(maxsize=64)
def _on(numbers: tuple[int, ...], device: torch.device) -> Tensor:
    return torch.tensor(numbers, device=device)


def lowest_at_edge(values_NV: Tensor, best_NW: Tensor, tokens_NW: Tensor) -> Tensor:
    """Of all tokens that tie with the last value of a list, put the lowest ids into it: they may have been left out."""
    vocabulary, edge_N1 = values_NV.size(1), best_NW[:, -1:]
    countdown = torch.arange(vocabulary, 0, -1, device=values_NV.device)
    highest_NW = torch.where(values_NV == edge_N1, countdown, 0).topk(best_NW.size(1), dim=1).values
    tie_NW = best_NW == edge_N1
    nth_NW = (tie_NW.cumsum(1) - 1).clamp(min=0)
    return torch.where(tie_NW, vocabulary - highest_NW.gather(1, nth_NW), tokens_NW)
