"""Beam search over rows that each stand where they stand: which hypotheses live on, which finish, when a row is done.

At every step all continuations of a row's live hypotheses are ranked by their log-probability. Those that end in
`<eos>` and are among the `beam` best finish; the `beam` best of the others live on, so that a row keeps its size.
Equal ones go to the earlier parent, then to the lower token id; among finished ones, to the one that finished first.
A beam of 1 is greedy search: it ends with its first `<eos>`.

Finished hypotheses are ranked by

    score(y) = log p(y | x) / |y|^α + β Σ_s log min(Σ_t α_ts, 1)        (Wu et al. 2016; α and β off at 0)

where the coverage term counts the attention of every step up to the one that gave `<eos>`. It is added when a
hypothesis finishes and not before: live ones are compared by log-probability alone.

A row is done when nothing lives, when `patience × beam` have finished, or when its n-best are finished and no live
hypothesis can still beat the worst of them. Log-probabilities only fall, the coverage term is never positive and no
output is longer than `max_length`, so `log p / max_length^α` is the best that a live hypothesis can hope for: stopping
there never changes the result. With `stopping` "transformers" the hope is `log p / length^α` at the present length, to
be held against the worst of `beam` finished ones: a guess, which that library makes (its early_stopping=False); and an
`<eos>` that comes because of `max_length` costs nothing there (its forced_eos_token_id).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from jumok.errors import Failure
from jumok.search.events import Completed, Event, Finished, Hypothesis
from jumok.search.restrict import Limits, restrict
from jumok.search.row import Row
from jumok.search.scores import LOWEST, Floats, Integers, NotLogProbabilities, Ranked, Scores
from jumok.search.tree import Tree

Booleans = NDArray[np.bool_]
NOBODY = np.zeros(0, np.int64)
Covered = Callable[[Integers, list[int]], list[float]]  # Σ_s log min(coverage, 1) of hypotheses, their sources' lengths


class Beam:
    """The state of R rows with N live hypotheses, ordered by row and then best first."""

    def __init__(self, end: int, start: int, events: bool = False) -> None:
        self.end, self.start = end, start
        self.tree = Tree() if events else None
        self.rows: list[Row] = []
        self.length_R = np.zeros(0, np.int64)  # tokens of each live hypothesis of the row
        self.row_N = np.zeros(0, np.int64)
        self.total_N = np.zeros(0)  # log-probability
        self.input_N = np.zeros(0, np.int64)  # the last token
        self.tokens_NL = np.zeros((0, 0), np.int32)
        self._rows_changed()

    def add(self, rows: list[Row]) -> None:
        count, before, hypotheses = len(rows), len(self.rows), len(self.row_N)
        self.rows += rows
        self.length_R = np.concatenate([self.length_R, np.zeros(count, np.int64)])
        self.row_N = np.concatenate([self.row_N, np.arange(before, before + count)])
        self.total_N = np.concatenate([self.total_N, np.zeros(count)])
        self.input_N = np.concatenate([self.input_N, np.full(count, self.start)])
        tokens_NL = np.zeros((hypotheses + count, max(row.limit for row in self.rows)), np.int32)
        width = min(tokens_NL.shape[1], self.tokens_NL.shape[1])
        tokens_NL[:hypotheses, :width] = self.tokens_NL[:, :width]
        self.tokens_NL = tokens_NL
        if self.tree:
            self.tree.add(count)
        self._rows_changed()

    def _rows_changed(self) -> None:
        """What follows from which rows there are, computed when that changes and not at every step."""
        rows = self.rows
        self.beam_R = np.array([row.options.beam for row in rows], np.int64)
        self.worst_R = np.array([row.worst for row in rows])
        self.bound_R = np.array([row.bound for row in rows])
        self.guess_R = np.array([row.guesses for row in rows], bool)
        self.penalty_R = np.array([row.options.length_penalty for row in rows], np.float64)
        self.places = int(self.beam_R.sum())  # hypotheses when every row is full
        self.last_R = self.beam_R.cumsum() - 1
        self.equal_beams = int(self.beam_R[0]) if len(rows) and (self.beam_R == self.beam_R[0]).all() else 0
        common = frozenset.intersection(*(row.banned for row in rows)) if rows else frozenset()
        self.banned = tuple(sorted(common))
        self.unequal = any(len(row.banned) > len(common) for row in rows)
        self.calm = self._calm()
        self._shape_changed()

    def _calm(self) -> int:
        """For how many steps from here only the plain rules hold."""
        if self.unequal:
            return 0
        lengths = self.length_R.tolist()
        return min((row.calm(length) for row, length in zip(self.rows, lengths, strict=True)), default=0)

    def _shape_changed(self) -> None:
        """How many hypotheses each row has: the same number, or 0."""
        rows, hypotheses = len(self.rows), len(self.row_N)
        self.even = 0
        if self.equal_beams and hypotheses in (rows, self.places):
            counts = np.bincount(self.row_N, minlength=rows)
            self.even = int(counts[0]) if (counts == counts[0]).all() else 0

    # ------------------------------------------------------------ one step

    def step(self, scores: Scores, covered: Covered) -> tuple[Integers, list[Event]]:
        """Take the step. Returns, for each hypothesis that lives on, which one (N) it continues, and what happened."""
        try:
            limits = restrict(self, scores) if self.calm == 0 else None
            best = scores.top(self.total_N, self.row_N, self.beam_R, self.even)
        except NotLogProbabilities as error:
            raise self._broken(error) from None
        end_total_N = self.total_N + scores.end
        if limits is not None:
            end_total_N[limits.free] = self.total_N[limits.free]
            end_total_N[limits.barred] = -np.inf
        if self.tree:
            self.tree.number_candidates(self, scores, end_total_N)
        self.length_R += 1
        self.calm = self.calm - 1 if self.calm else self._calm()
        full = len(best.parent) == self.places
        finished = self._finishing(best, full, end_total_N, limits)
        happened = self._finish(finished, end_total_N, limits, covered)
        if not full:
            self._barren(best, covered)
        alive_R = self._alive(best, full, len(finished) > 0)
        if self.tree:
            happened += self.tree.told(self, best, finished, alive_R)
        self._follow(best, full)
        if alive_R is None:
            return best.parent, happened
        happened += [Completed(self.rows[index].name, self.rows[index].best) for index in np.flatnonzero(~alive_R)]
        kept_N = alive_R[self.row_N]
        self._keep(kept_N, alive_R)
        return best.parent[kept_N], happened

    def cancel(self, name: int) -> tuple[Integers, list[Event]]:
        """Give a row up. Returns which hypotheses (N) stay."""
        alive_R = np.array([row.name != name for row in self.rows])
        kept_N = alive_R[self.row_N]
        happened = self.tree.cancelled(self, ~kept_N) if self.tree else []
        self._keep(kept_N, alive_R)
        return np.flatnonzero(kept_N), happened

    def outputs(self, name: int) -> tuple[list[list[int]], list[Hypothesis]]:
        """The live hypotheses of a row, and its best finished ones; what its n-best will be comes from these."""
        index = next(index for index, row in enumerate(self.rows) if row.name == name)
        first, end = np.searchsorted(self.row_N, [index, index + 1])
        return self.tokens_NL[first:end, : self.length_R[index]].tolist(), list(self.rows[index].pool)

    # ------------------------------------------------------------ parts of a step

    def _finishing(self, best: Ranked, full: bool, end_total_N: Floats, limits: Limits | None) -> Integers:
        """The hypotheses whose `<eos>` is among the `beam` best of their row, in the order of their rank."""
        if full:
            edge_R = best.total[self.last_R]
        else:
            counts = np.bincount(best.row, minlength=len(self.rows))
            edge_R = np.full(len(self.rows), LOWEST)
            is_full = counts == self.beam_R
            edge_R[is_full] = best.total[counts.cumsum()[is_full] - 1]
        possible_N = end_total_N >= edge_R[self.row_N]
        if limits is not None:
            possible_N |= limits.sure
        if not possible_N.any():
            return NOBODY
        concerned_R = np.zeros(len(self.rows), bool)
        concerned_R[self.row_N[possible_N]] = True
        ending = np.flatnonzero(concerned_R[self.row_N] & (end_total_N > -np.inf))
        others = concerned_R[best.row]
        row = np.concatenate([self.row_N[ending], best.row[others]])
        parent = np.concatenate([ending, best.parent[others]])
        token = np.concatenate([np.full(len(ending), self.end), best.token[others]])
        total = np.concatenate([end_total_N[ending], best.total[others]])
        order = np.lexsort((token, parent, -total, row))
        row = row[order]
        rank = np.arange(len(row)) - np.searchsorted(row, row)
        ranks_high = rank < self.beam_R[row]
        if limits is not None:
            ranks_high |= limits.sure[parent[order]]
        return parent[order[ranks_high & (order < len(ending))]]

    def _finish(self, finished: Integers, end_total_N: Floats, limits: Limits | None, covered: Covered) -> list[Event]:
        happened: list[Event] = []
        terms = self._covered(finished, covered) if len(finished) else []
        for hypothesis, term in zip(finished.tolist(), terms, strict=True):
            index = int(self.row_N[hypothesis])
            row, length = self.rows[index], int(self.length_R[index])
            willing = limits is None or not limits.unwilling[hypothesis]
            tokens = self.tokens_NL[hypothesis, : length - 1].tolist()
            output = row.add(tokens, float(end_total_N[hypothesis]), length, willing, term)
            self.worst_R[index] = row.worst
            node, parent = self.tree.ending(hypothesis, self.end) if self.tree else (-1, -1)
            happened.append(Finished(row.name, node, parent, output))
        return happened

    def _barren(self, best: Ranked, covered: Covered) -> None:
        """Rows without any continuation that have no output either: what there is must do, unless it lacks something
        required. Such a row has no output at all."""
        barren_R = np.array([row.finished == 0 for row in self.rows])
        barren_R[best.row] = False
        left = np.flatnonzero(barren_R[self.row_N])
        for hypothesis, term in zip(left.tolist(), self._covered(left, covered), strict=True):
            index = int(self.row_N[hypothesis])
            length = int(self.length_R[index]) - 1
            row, tokens = self.rows[index], self.tokens_NL[hypothesis, :length].tolist()
            if row.required is None or row.required.missing(tuple(tokens)) == 0:
                row.add(tokens, float(self.total_N[hypothesis]), length, False, term)

    def _covered(self, hypotheses: Integers, covered: Covered) -> list[float]:
        rows = [self.rows[index] for index in self.row_N[hypotheses].tolist()]
        if not any(row.options.coverage_penalty for row in rows):
            return [0.0] * len(rows)
        return covered(hypotheses, [row.source or 0 for row in rows])

    def _alive(self, best: Ranked, full: bool, some_finished: bool) -> Booleans | None:
        """Which rows (R) go on; None: all."""
        settled = bool(self.worst_R.max() > -np.inf)
        if full and not settled and not some_finished:
            return None
        alive_R = np.ones(len(self.rows), bool)
        if not full:
            alive_R = np.bincount(best.row, minlength=len(self.rows)) > 0
        if some_finished:
            alive_R &= np.array([row.finished < row.enough for row in self.rows])
        if settled:
            first_R = np.searchsorted(best.row, np.flatnonzero(alive_R))  # the best of each row
            hope = best.total[first_R] / self._bound()[alive_R]
            alive_R[alive_R] = hope > self.worst_R[alive_R]
        return None if alive_R.all() else alive_R

    def _bound(self) -> Floats:
        """What the log-probability of each row's (R) live hypotheses is divided by, at best."""
        if not self.guess_R.any():
            return self.bound_R
        return np.where(self.guess_R, self.length_R**self.penalty_R, self.bound_R)

    def _follow(self, best: Ranked, full: bool) -> None:
        """The best become the live ones."""
        self.tokens_NL = self.tokens_NL.take(best.parent, axis=0)
        self.tokens_NL[np.arange(len(best.row)), self.length_R[best.row] - 1] = best.token
        self.row_N, self.total_N, self.input_N = best.row, best.total, best.token
        if full:
            self.even = self.equal_beams
        else:
            self._shape_changed()

    def _keep(self, kept_N: Booleans, alive_R: Booleans) -> None:
        self.rows = [row for row, alive in zip(self.rows, alive_R.tolist(), strict=True) if alive]
        self.length_R = self.length_R[alive_R]
        self.row_N = (alive_R.cumsum() - 1)[self.row_N[kept_N]]
        self.total_N, self.input_N = self.total_N[kept_N], self.input_N[kept_N]
        self.tokens_NL = self.tokens_NL[kept_N]
        if self.tree:
            self.tree.keep(kept_N, alive_R)
        self._rows_changed()

    def _broken(self, error: NotLogProbabilities) -> Failure:
        index = int(self.row_N[error.hypothesis])
        what = "not a number" if np.isnan(error.value) else f"{error.value:.3g}, above 0"
        return Failure(
            f"row {self.rows[index].name}, step {self.length_R[index] + 1}: the model's log-probability is {what}. "
            "The weights may be damaged or have diverged: try an earlier checkpoint, or float32."
        )
