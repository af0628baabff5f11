"""Beam search as tensor operations that stay on the device: the rules of search/beam.py for rows that move in step.

R sentences have K slots each, whether a hypothesis lives in a slot or not. A step changes the state in place, so that
it can be captured in a CUDA graph, and writes into a log what the host needs to put the outputs together at the end:
which token came into each slot and from which slot, and with which total a hypothesis ended (search/device_log.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from jumok.errors import BadInput
from jumok.search.options import SearchOptions
from jumok.search.scores import lowest_at_edge


@dataclass(frozen=True)
class Shortlist:
    """What may follow each of N hypotheses: the K best tokens without `<eos>`, best first, equal ones by token id."""

    values: Tensor  # (N, K) float32 or float64 log-probabilities, -inf where nothing may follow
    tokens: Tensor  # (N, K) int64
    ends: Tensor  # (N,) log-probability of `<eos>`, -inf where it may not come
    willing: Tensor  # (N,) bool, `<eos>` would come first of all


class DeviceBeam:
    """The state of a search in fixed slots; `begin` starts one."""

    def __init__(
        self, rows: int, beam: int, nbest: int, capacity: int, vocabulary: int, end: int, device: torch.device
    ) -> None:
        def numbers(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
            return torch.zeros(shape, dtype=dtype, device=device)

        self.rows, self.beam, self.nbest, self.capacity, self.end = rows, beam, nbest, capacity, end
        # what was asked for
        self.limit_R, self.minimum_R = numbers(rows, dtype=torch.long), numbers(rows, dtype=torch.long)
        self.bound_R = numbers(rows)
        self.norm_C = numbers(capacity)  # length^α of outputs of 1, 2 … tokens
        self.enough = numbers(1)
        self.forbidden_V = numbers(vocabulary, dtype=torch.bool)  # <eos> too where it is
        # where the search stands
        self.position = numbers(1, dtype=torch.long)  # tokens that every live hypothesis has
        self.tokens_RK = numbers(rows, beam, dtype=torch.long)  # the last one of each
        self.live_RK = numbers(rows, beam)  # log-probability; -inf: nothing lives here
        self.ancestry_RKC = numbers(rows, beam, capacity, dtype=torch.int32)  # the slot that held a past token
        self.pool_RB = numbers(rows, nbest)  # the best scores of what has finished
        self.count_R = numbers(rows, dtype=torch.long)  # how many have finished
        self.alive_R = numbers(rows, dtype=torch.bool)
        self.steps_R = numbers(rows, dtype=torch.long)  # how many steps each row took
        self.log = numbers(capacity, 3, rows, beam)  # codes, totals, totals of what ended

    def ask(self, options: Sequence[SearchOptions], limits: Sequence[int]) -> None:
        """Put what is asked for into place: for each row, equal but for its lengths. Rows to spare stay empty."""
        first, spare = options[0], self.rows - len(options)
        enough = 1.0 if self.beam == 1 else float("inf") if first.patience is None else first.patience * self.beam
        lengths = torch.tensor([[*limits, *[0] * spare], [*(o.min_length for o in options), *[0] * spare]])
        alpha = first.length_penalty
        norms = [float(length**alpha) for length in range(1, self.capacity + 1)]
        bounds = [float(limit**alpha) for limit in limits] + [1.0] * spare
        vocabulary = self.forbidden_V.numel()
        if max(first.forbidden, default=0) >= vocabulary:
            raise BadInput(f"forbidden token {max(first.forbidden)} is outside the vocabulary of {vocabulary}")
        forbidden_V = torch.zeros(vocabulary, dtype=torch.bool)
        forbidden_V[list(first.forbidden)] = True
        for place, value in (
            (self.limit_R, lengths[0]),
            (self.minimum_R, lengths[1]),
            (self.bound_R, torch.tensor(bounds, dtype=torch.float64)),
            (self.norm_C, torch.tensor(norms, dtype=torch.float64)),
            (self.enough, torch.tensor([enough], dtype=torch.float64)),
            (self.forbidden_V, forbidden_V),
        ):
            place.copy_(value, non_blocking=True)

    def begin(self, start: int) -> None:
        """Before the first token: one empty hypothesis in each row that was asked for."""
        self.tokens_RK.fill_(start)
        torch.gt(self.limit_R, 0, out=self.alive_R)
        self.live_RK.fill_(float("-inf"))
        self.live_RK[:, 0].masked_fill_(self.alive_R, 0.0)
        self.pool_RB.fill_(float("-inf"))
        for counter in (self.position, self.count_R, self.steps_R):
            counter.zero_()

    # ------------------------------------------------------------ one step

    def shortlist(self, log_probs_NV: Tensor) -> Shortlist:
        """Equal log-probabilities go to the lower token id, which `topk` leaves open."""
        length_N = (self.position + 1).expand(self.rows * self.beam)
        limit_N, minimum_N = self.limit_R.repeat_interleave(self.beam), self.minimum_R.repeat_interleave(self.beam)
        last_N = length_N == limit_N
        ends_N = log_probs_NV[:, self.end]
        barred_N = (length_N < minimum_N) | (self.forbidden_V[self.end] & ~last_N)
        others_NV = log_probs_NV.masked_fill(self.forbidden_V, float("-inf"))
        others_NV[:, self.end] = float("-inf")
        values_NK, tokens_NK = lowest_of_the_best(others_NV, self.beam)
        willing_N = ~(values_NK[:, 0] > ends_N)
        return Shortlist(
            values_NK.masked_fill(last_N[:, None], float("-inf")),
            tokens_NK,
            ends_N.masked_fill(barred_N & ~last_N, float("-inf")),
            willing_N,
        )

    def advance(self, shortlist: Shortlist) -> None:
        """The `beam` best continuations live on; those that end finish if they rank among them."""
        rows, beam = self.rows, self.beam
        lives_RK = self.live_RK > float("-inf")
        totals_RKK = self.live_RK[..., None] + shortlist.values.view(rows, beam, beam).double()
        totals_RKK = totals_RKK.masked_fill(~lives_RK[..., None], float("-inf"))
        sorted_, order = totals_RKK.flatten(1).sort(dim=1, descending=True, stable=True)
        total_RK, order_RK = sorted_[:, :beam], order[:, :beam]
        token_RK, parent_RK = shortlist.tokens.view(rows, -1).gather(1, order_RK), order_RK // beam
        ends_RK = (self.live_RK + shortlist.ends.view(rows, beam).double()).masked_fill(~lives_RK, float("-inf"))

        slots_K = torch.arange(beam, device=total_RK.device)
        mine, other, whose = ends_RK[:, :, None], total_RK[:, None], parent_RK[:, None]
        earlier = (whose < slots_K[:, None]) | ((whose == slots_K[:, None]) & (token_RK < self.end)[:, None])
        rank_RK = ((other > mine) | ((other == mine) & earlier)).sum(2)
        other = ends_RK[:, None]
        rank_RK += ((other > mine) | ((other == mine) & (slots_K < slots_K[:, None]))).sum(2)
        finishes_RK = (rank_RK < beam) & (ends_RK != float("-inf"))  # NaN too: the log must show it
        ended_RK = ends_RK.masked_fill(~finishes_RK, float("-inf"))

        score_RK = ended_RK / self.norm_C.index_select(0, self.position)
        self.pool_RB.copy_(torch.cat([self.pool_RB, score_RK], dim=1).topk(self.nbest, dim=1).values)
        self.count_R += finishes_RK.sum(1)
        self.steps_R += self.alive_R
        self.alive_R &= total_RK[:, 0] / self.bound_R > self.pool_RB[:, -1]  # false where nothing lives
        self.alive_R &= self.count_R < self.enough
        codes_RK = (token_RK * beam + parent_RK) * 2 + shortlist.willing.view(rows, beam)
        entry = torch.stack((codes_RK.double(), total_RK, ended_RK))
        self.log.index_copy_(0, self.position, entry[None])
        self.live_RK.copy_(total_RK.masked_fill(~self.alive_R[:, None], float("-inf")))
        self.tokens_RK.copy_(token_RK)
        if beam > 1:
            ancestry_RKC = self.ancestry_RKC.gather(1, parent_RK[..., None].expand(-1, -1, self.capacity))
            ancestry_RKC.index_copy_(2, self.position, parent_RK[..., None].int())
            self.ancestry_RKC.copy_(ancestry_RKC)
        self.position += 1


def lowest_of_the_best(values_NV: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` largest of each row and where they are, best first; of equal ones those with the lowest places."""
    if count == 1:
        best = values_NV.max(dim=1, keepdim=True)  # the first of equals
        return best.values, best.indices
    values_NK, tokens_NK = values_NV.topk(count, dim=1)
    tokens_NK, order_NK = lowest_at_edge(values_NV, values_NK, tokens_NK).sort(dim=1)
    values_NK, order_NK = values_NK.gather(1, order_NK).sort(dim=1, descending=True, stable=True)
    return values_NK, tokens_NK.gather(1, order_NK)
