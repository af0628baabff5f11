"""What an experiment is: claims of the literature, measured, drawn and judged.

One file of this room is one experiment: it says what is claimed and where, measures it for one seed, judges the numbers
of all seeds, and draws them. `lab/catalogue.py` lists them; `jumok lab run NAME` runs one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Numbers = dict[str, Any]  # what one seed measured: plain JSON values, as they are stored in benchmarks/results/lab.json


@dataclass(frozen=True)
class Verdict:
    """What the numbers say of one claim."""

    claim: str  # one sentence, as the literature has it
    holds: bool
    because: str  # one sentence with the numbers it rests on
    alone: tuple[bool, ...] = ()  # whether it holds with each seed alone, where there are several (the runner asks)

    @property
    def agreement(self) -> str:
        """A verdict on means: how far do the seeds agree?"""
        return f"holds in {sum(self.alone)} of {len(self.alone)} seeds alone" if self.alone else ""


@dataclass(frozen=True)
class Experiment:
    number: int  # its place in the list
    name: str  # what one types: "bottleneck"
    title: str
    source: str  # where the claim is from: authors, year, section or figure
    about: str  # two or three sentences: what is built, what is measured
    measure: Callable[[int, float], Numbers]
    """measure(seed, effort): one seed, at most 60 s on one thread with effort 1.0; less effort means fewer updates, so
    that a test can walk the whole way in a second. All randomness comes from the seed."""
    judge: Callable[[Sequence[Numbers]], list[Verdict]]
    """One verdict for each claim, from the numbers of all seeds (one or several)."""
    draw: Callable[[Any, Sequence[Numbers]], None]
    """draw(figure, numbers): onto a matplotlib Figure, within jumok.inspect.drawing.style."""
    size: tuple[float, float] = (8.0, 4.0)  # of the figure, in inches
