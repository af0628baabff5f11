"""From the log that a search on the device wrote (search/device_beam.py) to its outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jumok.errors import Failure
from jumok.search.events import Hypothesis
from jumok.search.options import SearchOptions, normalised

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]


@dataclass(frozen=True)
class Log:
    """Entry t tells what step t did with each slot. What lived in a slot before the step ended there; what lives in it
    afterwards came from its parent's."""

    token: Integers  # (T, R, K)
    parent: Integers  # (T, R, K)
    total: Floats  # (T, R, K) of what lives in the slot now
    ended: Floats  # (T, R, K) of what ended in it, -inf if nothing did
    willing: Booleans  # (T, R, K) what ended would have done so without a maximum length
    steps: Integers  # (R,) how many entries of each row count

    @classmethod
    def of(cls, log: Floats, steps: Integers) -> Log:
        """From (T, 3, R, K): codes, totals, totals of what ended. A code is (token · K + parent) · 2 + willing."""
        codes, beam = log[:, 0].astype(np.int64), log.shape[3]
        token, parent = np.divmod(codes // 2, beam)
        return cls(token, parent, log[:, 1], log[:, 2], codes % 2 == 1, steps)

    def outputs(self, options: Sequence[SearchOptions], limits: Sequence[int]) -> list[list[Hypothesis]]:
        """The n-best of each row, best first."""
        counts_TR = np.arange(len(self.token))[:, None] < self.steps
        self._check(counts_TR)
        rows, beam, alpha = self.token.shape[1], self.token.shape[2], options[0].length_penalty
        norm_T = np.array([float(length**alpha) for length in range(1, len(self.token) + 1)])
        ended_TRK = np.where(counts_TR[..., None], self.ended, -np.inf)
        # the best scores; among equals who finished first, then who had the better total
        ended_RX = ended_TRK.transpose(1, 0, 2).reshape(rows, -1)
        score_RX = (ended_TRK / norm_T[:, None, None]).transpose(1, 0, 2).reshape(rows, -1)
        step_RX = np.broadcast_to(np.arange(len(norm_T)).repeat(beam), score_RX.shape)
        order_RB = np.lexsort((-ended_RX, step_RX, -score_RX), axis=1)[:, : options[0].nbest]
        step_RB, slot_RB = order_RB // beam, order_RB % beam
        tokens_RBT = self._trace(step_RB, slot_RB)
        score_RB = np.take_along_axis(score_RX, order_RB, 1).tolist()
        total_RB = np.take_along_axis(ended_RX, order_RB, 1).tolist()
        willing_RB = self.willing[step_RB, np.arange(rows)[:, None], slot_RB].tolist()
        results: list[list[Hypothesis]] = []
        for row, (steps, scores, totals, willing) in enumerate(
            zip(step_RB.tolist(), score_RB, total_RB, willing_RB, strict=True)
        ):
            found = [
                Hypothesis(tokens_RBT[row, place, :step].tolist(), score, total, step + 1 < limits[row] or would)
                for place, (step, score, total, would) in enumerate(zip(steps, scores, totals, willing, strict=True))
                if score > -np.inf
            ]
            results.append(found or self._barren(row, options[row]))
        return results

    def _trace(self, step_RB: Integers, slot_RB: Integers) -> Integers:
        """(R, B, T) the tokens of what lived in these slots before these steps."""
        rows_R1 = np.arange(len(step_RB))[:, None]
        tokens_RBT = np.zeros((*step_RB.shape, int(step_RB.max())), np.int64)
        for step in reversed(range(tokens_RBT.shape[2])):
            there_RB = step < step_RB
            tokens_RBT[..., step] = np.where(there_RB, self.token[step][rows_R1, slot_RB], 0)
            slot_RB = np.where(there_RB, self.parent[step][rows_R1, slot_RB], slot_RB)
        return tokens_RBT

    def _barren(self, row: int, options: SearchOptions) -> list[Hypothesis]:
        """Every continuation was impossible and nothing has finished: what lived before that must do."""
        length = int(self.steps[row]) - 1
        if length == 0:
            return [Hypothesis([], 0.0, 0.0, False)]
        slots = np.flatnonzero(self.total[length - 1, row] > -np.inf)
        step_RB, slot_RB = np.zeros((self.token.shape[1], len(slots)), np.int64), np.tile(slots, (len(self.steps), 1))
        step_RB[row] = length
        tokens_BT = self._trace(step_RB, slot_RB)[row]
        found = []
        for tokens, slot in zip(tokens_BT.tolist(), slots.tolist(), strict=True):
            total = float(self.total[length - 1, row, slot])
            found.append(Hypothesis(tokens, normalised(total, length, options.length_penalty), total, False))
        return sorted(found, key=lambda hypothesis: -hypothesis.score)[: options.nbest]

    def _check(self, counts_TR: Booleans) -> None:
        wrong_TR = (np.isnan(self.total) | np.isnan(self.ended)).any(2) & counts_TR
        if wrong_TR.any():
            step, row = (int(place[0]) for place in np.nonzero(wrong_TR))
            raise Failure(
                f"row {row}, step {step + 1}: the model's log-probability is not a number. "
                "The weights may be damaged or have diverged: try an earlier checkpoint, or float32."
            )
