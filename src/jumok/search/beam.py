"""Beam search over rows that move in step: which hypotheses live on, which finish, and when a row is done.

At every step the `beam` best continuations of a row's live hypotheses are kept. Those that end in `<eos>` move to the
row's finished pool, the others live on. Greedy search is a beam of 1. Equal scores go to the earlier parent, then to
the lower token id; among finished ones, to the one that finished first.

A row is done when nothing lives, when `patience × beam` have finished, or when its n-best are finished and no live
hypothesis can still beat the worst of them. Log-probabilities only fall and no output is longer than `max_length`, so
`log p / max_length^α` is the best that a live hypothesis can hope for: stopping there never changes the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from jumok.errors import BadInput, Failure
from jumok.search.events import ROOT, Completed, Event, Finished, Hypothesis, Pruned, Token
from jumok.search.options import SearchOptions, normalised
from jumok.search.shortlist import Shortlist

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]


@dataclass(frozen=True)
class Candidates:
    """Continuations of live hypotheses, sorted by row and then best first; `rank` counts within the row."""

    row: Integers
    parent: Integers  # index of the live hypothesis that is continued
    token: Integers
    log_probability: Floats
    rank: Integers
    kept: Booleans
    tied: bool  # a kept one ties with tokens that the shortlist left out


class Beam:
    """The state of the rows that were added together: R rows, N live hypotheses, ordered by row and then best first."""

    def __init__(self, rows: Sequence[int], options: Sequence[SearchOptions], limits: Sequence[int], end: int) -> None:
        self.options, self.end, self.length = list(options), end, 0
        self.names = np.array(rows, np.int64)  # what the caller calls each row
        self.beam_R = np.array([o.beam for o in options], np.int64)
        self.limit_R = np.array(limits, np.int64)
        self.prefix_R = np.array([len(o.prefix) for o in options], np.int64)
        self.bound_R = np.array([limit**o.length_penalty for o, limit in zip(options, limits, strict=True)])
        self.enough_R = np.array([np.inf if o.patience is None else o.patience * o.beam for o in options])
        widest = max(len(set(o.forbidden)) for o in options)
        self.forbidden_RF = np.array([[*(f := set(o.forbidden)), *[-1] * (widest - len(f))] for o in options], np.int64)
        self.pool: list[list[Hypothesis]] = [[] for _ in options]  # the n-best finished so far
        self.count_R = np.zeros(len(options), np.int64)  # how many have finished
        self.worst_R = np.full(len(options), -np.inf)  # score to beat, once the n-best are full
        self.nodes_R = np.ones(len(options), np.int64)  # nodes of the tree so far, the root included

        self.row_N = np.arange(len(options))
        self.log_probability_N = np.zeros(len(options))
        self.tokens_NL = np.zeros((len(options), 0), np.int64)
        self.node_N = np.full(len(options), ROOT)
        self.parent_N = np.full(len(options), -1)
        for name, option, limit in zip(rows, options, limits, strict=True):
            if len(option.prefix) >= limit:
                raise BadInput(f"row {name}: a prefix of {len(option.prefix)} and <eos> exceed max_length {limit}")
            if end in option.prefix:
                raise BadInput(f"row {name}: the prefix holds <eos> (token {end}); leave it out")

    @property
    def width(self) -> int:
        """How many tokens of each hypothesis a step must see: one more than needed, to notice ties."""
        widest = int(self.beam_R[self.row_N].max())
        return widest + int(self.forbidden_RF.shape[1]) + 1

    @property
    def live(self) -> list[int]:
        return [int(name) for name in self.names[np.unique(self.row_N)]]

    def forced(self) -> tuple[Booleans, Integers]:
        """Which hypotheses (N) have no choice at this step, and their token: from the prefix, or `<eos>` at the end."""
        in_prefix = self.prefix_R[self.row_N] > self.length
        token = np.full(len(self.row_N), self.end, np.int64)
        for index in np.flatnonzero(in_prefix):
            token[index] = self.options[self.row_N[index]].prefix[self.length]
        return in_prefix | (self.limit_R[self.row_N] == self.length + 1), token

    # ------------------------------------------------------------ one step

    def choose(self, shortlist: Shortlist) -> Candidates:
        """Rank the continuations of every row. Changes nothing."""
        tokens_NW, values_NW = shortlist.tokens, shortlist.values
        self._check(values_NW)
        row_N = self.row_N
        open_NW = (tokens_NW[:, :, None] != self.forbidden_RF[row_N][:, None, :]).all(2) & (values_NW > -np.inf)
        open_NW &= np.cumsum(open_NW, 1) <= self.beam_R[row_N, None]
        edge_NW = np.zeros_like(open_NW) if shortlist.complete else values_NW == values_NW[:, -1:]
        forced_N, forced_token_N = self.forced()
        if forced_N.any():
            tokens_NW, values_NW = tokens_NW.copy(), values_NW.copy()
            tokens_NW[forced_N, 0], values_NW[forced_N, 0] = forced_token_N[forced_N], shortlist.wanted[forced_N]
            open_NW[forced_N], edge_NW[forced_N] = False, False
            open_NW[forced_N, 0] = shortlist.wanted[forced_N] > -np.inf
        parent, column = np.nonzero(open_NW)
        token, row = tokens_NW[parent, column], row_N[parent]
        total = self.log_probability_N[parent] + values_NW[parent, column]
        order = np.lexsort((token, parent, -total, row))
        row = row[order]
        rank = np.arange(len(row)) - np.searchsorted(row, row)
        kept = rank < self.beam_R[row]
        tied = bool((edge_NW[parent, column][order] & kept).any())
        return Candidates(row, parent[order], token[order], total[order], rank, kept, tied)

    def advance(self, chosen: Candidates, shortlist: Shortlist, events: bool) -> tuple[Integers, list[Event]]:
        """Take the step. Returns, for each hypothesis that lives on, which one (N) it continues, and what happened."""
        before, self.length = self.row_N, self.length + 1
        ends = chosen.token == self.end
        nodes = self.nodes_R[chosen.row] + chosen.rank
        self.nodes_R += np.bincount(chosen.row, minlength=len(self.nodes_R))
        happened: list[Event] = []
        for index in np.flatnonzero(chosen.kept & ends):
            happened.append(self._finish(chosen, int(index), int(nodes[index]), shortlist))

        barren = np.setdiff1d(before, chosen.row)  # every continuation impossible: what there is must do
        barren = barren[self.count_R[barren] == 0]
        for index in np.flatnonzero(np.isin(before, barren)):
            self._add(
                int(before[index]), self.tokens_NL[index], float(self.log_probability_N[index]), False, self.length - 1
            )

        if events:
            happened += self._pruned(chosen, nodes)
        living = chosen.kept & ~ends
        parent = chosen.parent[living]
        self.row_N = chosen.row[living]
        self.log_probability_N = chosen.log_probability[living]
        self.parent_N, self.node_N = self.node_N[parent], nodes[living]
        self.tokens_NL = np.concatenate([self.tokens_NL[parent], chosen.token[living][:, None]], axis=1)
        if events:
            happened += [
                Token(name, node, above, token, total, score)
                for name, node, above, token, total, score in self._describe(np.arange(len(parent)))
            ]
        hopeless = self.log_probability_N / self.bound_R[self.row_N] <= self.worst_R[self.row_N]
        alive_R = np.zeros(len(self.names), bool)
        alive_R[self.row_N[~hopeless]] = True
        alive_R &= self.count_R < self.enough_R
        keep = alive_R[self.row_N]
        if events:
            happened += self._leaving(~keep, "stopped")
        self._keep(keep)
        for row in np.unique(before[~alive_R[before]]):
            happened.append(Completed(int(self.names[row]), self.pool[row]))
        return parent[keep], happened

    def cancel(self, name: int, events: bool) -> tuple[Integers, list[Event]]:
        """Give a row up. Returns which hypotheses (N) stay."""
        keep = self.names[self.row_N] != name
        happened = self._leaving(~keep, "cancelled") if events else []
        self._keep(keep)
        return np.flatnonzero(keep), happened

    # ------------------------------------------------------------ parts of it

    def _check(self, values_NW: Floats) -> None:
        # topk takes NaN for the largest value, so that one anywhere in the vocabulary shows up here.
        wrong_NW = ~(values_NW <= 1e-3)
        if wrong_NW.any():
            index, column = (int(place[0]) for place in np.nonzero(wrong_NW))
            value = values_NW[index, column]
            what = "not a number" if np.isnan(value) else f"{value:.3g}, above 0"
            raise Failure(
                f"row {self.names[self.row_N[index]]}, step {self.length + 1}: the model's log-probability is {what}. "
                "The weights may be damaged or have diverged: try an earlier checkpoint, or float32."
            )

    def _finish(self, chosen: Candidates, index: int, node: int, shortlist: Shortlist) -> Finished:
        row, parent = int(chosen.row[index]), int(chosen.parent[index])
        willing = self.length < self.limit_R[row] or self._prefers_end(row, parent, shortlist)
        total = float(chosen.log_probability[index])
        output = self._add(row, self.tokens_NL[parent], total, willing, self.length)
        return Finished(int(self.names[row]), node, int(self.node_N[parent]), output)

    def _prefers_end(self, row: int, parent: int, shortlist: Shortlist) -> bool:
        """Whether `<eos>` would have come first without the maximum length."""
        choices = ~np.isin(shortlist.tokens[parent], self.forbidden_RF[row])
        return not (shortlist.values[parent][choices] > shortlist.wanted[parent]).any()

    def _add(self, row: int, tokens: Integers, total: float, finished: bool, length: int) -> Hypothesis:
        options = self.options[row]
        output = Hypothesis(tokens.tolist(), normalised(total, length, options.length_penalty), total, finished)
        pool = self.pool[row]
        pool.append(output)
        pool.sort(key=lambda hypothesis: -hypothesis.score)  # stable: the first to finish wins a tie
        del pool[options.nbest :]
        self.count_R[row] += 1
        if len(pool) == options.nbest:
            self.worst_R[row] = pool[-1].score
        return output

    def _keep(self, keep: Booleans) -> None:
        self.row_N, self.log_probability_N = self.row_N[keep], self.log_probability_N[keep]
        self.node_N, self.parent_N, self.tokens_NL = self.node_N[keep], self.parent_N[keep], self.tokens_NL[keep]

    def _pruned(self, chosen: Candidates, nodes: Integers) -> list[Event]:
        """The candidates that others outranked."""
        return [
            Pruned(
                int(self.names[chosen.row[index]]),
                int(nodes[index]),
                int(self.node_N[chosen.parent[index]]),
                int(chosen.token[index]),
                self._score(int(chosen.row[index]), float(chosen.log_probability[index])),
                "beam",
            )
            for index in np.flatnonzero(~chosen.kept)
        ]

    def _leaving(self, leaving: Booleans, reason: Literal["stopped", "cancelled"]) -> list[Event]:
        described = self._describe(np.flatnonzero(leaving))
        return [Pruned(name, node, above, token, score, reason) for name, node, above, token, _, score in described]

    def _describe(self, which: Integers) -> list[tuple[int, int, int, int, float, float]]:
        """Row, node, parent, last token, log-probability and score of live hypotheses (none before the first step)."""
        if self.length == 0:
            return []
        rows, totals = self.row_N[which].tolist(), self.log_probability_N[which].tolist()
        scores = [self._score(row, total) for row, total in zip(rows, totals, strict=True)]
        names, nodes, parents = self.names[rows].tolist(), self.node_N[which].tolist(), self.parent_N[which].tolist()
        return list(zip(names, nodes, parents, self.tokens_NL[which, -1].tolist(), totals, scores, strict=True))

    def _score(self, row: int, total: float) -> float:
        return normalised(total, self.length, self.options[row].length_penalty)
