"""What a search reports while it runs. The nodes of one row form a tree whose root, before any token, is number 0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ROOT = 0


@dataclass(frozen=True)
class Hypothesis:
    """One output. `tokens` has neither `<sos>` nor `<eos>`; `log_probability` is of all of it, `<eos>` included."""

    tokens: list[int]
    score: float  # log_probability / length ** length_penalty, and the coverage term if there is a penalty
    log_probability: float
    finished: bool  # False: cut where the model would have gone on, or nothing that was asked for could follow


@dataclass(frozen=True)
class Token:
    """A hypothesis lives on with one more token (only with `events=True`)."""

    row: int
    hypothesis: int
    parent: int
    token: int
    log_probability: float  # of the whole hypothesis
    score: float


@dataclass(frozen=True)
class Finished:
    """A hypothesis ended in `<eos>`. It is in the row's results unless better ones push it out."""

    row: int
    hypothesis: int  # this and its parent: -1 without `events=True`
    parent: int
    output: Hypothesis

    @property
    def score(self) -> float:
        return self.output.score


@dataclass(frozen=True)
class Pruned:
    """A hypothesis was given up (only with `events=True`).

    beam: a candidate outranked by others; stopped: its row is done without it; cancelled: by the caller.
    """

    row: int
    hypothesis: int
    parent: int
    token: int
    score: float
    reason: Literal["beam", "stopped", "cancelled"]


@dataclass(frozen=True)
class Completed:
    """A row has left the batch; its n-best, best first. None: no output was found that holds all that is required."""

    row: int
    hypotheses: list[Hypothesis]


Event = Token | Finished | Pruned | Completed
