"""The whole search as a tree, for those who want to see it: every hypothesis is a node with a number.

The numbers count within a row, from the root (0), step by step and in the order of rank. The candidates of a step are
the `beam` best continuations of each live hypothesis, and its `<eos>`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from jumok.search.events import ROOT, Event, Pruned, Token
from jumok.search.scores import Floats, Integers, Ranked, Scores

if TYPE_CHECKING:
    from jumok.search.beam import Beam, Booleans


class Tree:
    """Numbers for the live hypotheses (N) of the rows (R) of a `Beam`, and what a step did to them."""

    def __init__(self) -> None:
        self.node_N = np.zeros(0, np.int64)
        self.parent_N = np.zeros(0, np.int64)
        self.nodes_R = np.zeros(0, np.int64)  # so far, the root included
        self.number: dict[tuple[int, int], int] = {}  # (hypothesis that is continued, token) -> node
        self.totals: dict[tuple[int, int], float] = {}

    def add(self, rows: int) -> None:
        self.node_N = np.concatenate([self.node_N, np.full(rows, ROOT)])
        self.parent_N = np.concatenate([self.parent_N, np.full(rows, -1)])
        self.nodes_R = np.concatenate([self.nodes_R, np.ones(rows, np.int64)])

    def keep(self, kept_N: Booleans, alive_R: Booleans) -> None:
        self.node_N, self.parent_N, self.nodes_R = self.node_N[kept_N], self.parent_N[kept_N], self.nodes_R[alive_R]

    def number_candidates(self, beam: Beam, scores: Scores, end_total_N: Floats) -> None:
        """Number the candidates of a step, before it is taken."""
        each_N = np.arange(len(beam.row_N))
        listed = scores.top(beam.total_N, each_N, beam.beam_R[beam.row_N], 1 if beam.equal_beams else 0)
        ending = np.flatnonzero(end_total_N > -np.inf)
        parent = np.concatenate([listed.parent, ending])
        token = np.concatenate([listed.token, np.full(len(ending), beam.end)])
        total = np.concatenate([listed.total, end_total_N[ending]])
        row = beam.row_N[parent]
        order = np.lexsort((token, parent, -total, row))
        parent, token, row = parent[order], token[order], row[order]
        node = self.nodes_R[row] + np.arange(len(row)) - np.searchsorted(row, row)
        self.nodes_R += np.bincount(row, minlength=len(self.nodes_R))
        places = list(zip(parent.tolist(), token.tolist(), strict=True))
        self.number = dict(zip(places, node.tolist(), strict=True))
        self.totals = dict(zip(places, total[order].tolist(), strict=True))

    def ending(self, hypothesis: int, end: int) -> tuple[int, int]:
        """The node of a hypothesis that has finished, and its parent."""
        return self.number[hypothesis, end], int(self.node_N[hypothesis])

    def told(self, beam: Beam, best: Ranked, finished: Integers, alive_R: Booleans | None) -> list[Event]:
        """What became of the candidates: pruned, stopped with their row, or alive."""
        living = list(zip(best.parent.tolist(), best.token.tolist(), strict=True))
        outranked = self.number.keys() - set(living) - {(h, beam.end) for h in finished.tolist()}
        happened: list[Event] = [self._pruned(beam, place, "beam") for place in self.number if place in outranked]
        for place, row in zip(living, best.row.tolist(), strict=True):
            if alive_R is not None and not alive_R[row]:
                happened.append(self._pruned(beam, place, "stopped"))
                continue
            name, score = beam.rows[row].name, self._score(beam, place)
            parent = int(self.node_N[place[0]])
            happened.append(Token(name, self.number[place], parent, place[1], self.totals[place], score))
        self.parent_N = self.node_N[best.parent]
        self.node_N = np.array([self.number[place] for place in living], np.int64)
        return happened

    def cancelled(self, beam: Beam, leaving_N: Booleans) -> list[Event]:
        """Live hypotheses given up between two steps. The root, before any token, is no hypothesis yet."""
        happened: list[Event] = []
        for hypothesis in np.flatnonzero(leaving_N).tolist():
            index = int(beam.row_N[hypothesis])
            row, length = beam.rows[index], int(beam.length_R[index])
            if length:
                node, parent = int(self.node_N[hypothesis]), int(self.parent_N[hypothesis])
                score = row.score(float(beam.total_N[hypothesis]), length)
                happened.append(Pruned(row.name, node, parent, int(beam.input_N[hypothesis]), score, "cancelled"))
        return happened

    def _pruned(self, beam: Beam, place: tuple[int, int], reason: Literal["beam", "stopped"]) -> Pruned:
        hypothesis, token = place
        name = beam.rows[beam.row_N[hypothesis]].name
        parent = int(self.node_N[hypothesis])
        return Pruned(name, self.number[place], parent, token, self._score(beam, place), reason)

    def _score(self, beam: Beam, place: tuple[int, int]) -> float:
        row = int(beam.row_N[place[0]])
        return beam.rows[row].score(self.totals[place], int(beam.length_R[row]))
