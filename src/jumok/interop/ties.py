"""Searches that rounding decides. Two engines add the same numbers in another order, so that what they rank differs in
its last digits; where two candidates are closer than that, either may live on, and all that follows is another.

A search is tied if at one of its steps two candidates that follow each other in rank, among the first 2 × beam + 1 (as
many as matter: so many can end or live on), have log-probabilities closer than `TIE`; or if the two best of what has
finished have scores as close.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor

from jumok.data.batch import source_batch
from jumok.search import Finished, SearchOptions, Stepper, Token
from jumok.search.decoding import Decoding

TIE = 1e-5


class _Overheard:
    """A stepper whose last answer can be read."""

    def __init__(self, stepper: Stepper) -> None:
        self.stepper = stepper
        self.log_probs_NV = torch.zeros(0, 0, dtype=torch.float64)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stepper, name)

    def step(self, *given: Any) -> tuple[Tensor, Any]:
        log_probs_NV, cache = self.stepper.step(*given)
        self.log_probs_NV = log_probs_NV.double()  # a copy: the search writes over what it gets
        return log_probs_NV, cache


def tied(stepper: Stepper, source: list[int], options: SearchOptions) -> bool:
    """Whether somebody else's search for this source may rightly end elsewhere."""
    overheard = _Overheard(stepper)
    decoding = Decoding(cast(Stepper, overheard), events=True)
    decoding.add(source_batch([source]), options)
    total_N, finished = torch.zeros(1, dtype=torch.float64), list[float]()
    while not decoding.done:
        happened = decoding.step()
        candidates_NV = total_N[:, None] + overheard.log_probs_NV
        candidates_NV[:, list(options.forbidden)] = -torch.inf
        if _close(candidates_NV.flatten(), 2 * options.beam + 1):
            return True
        finished += [event.score for event in happened if isinstance(event, Finished)]
        living = [event.log_probability for event in happened if isinstance(event, Token)]
        total_N = torch.tensor(living, dtype=torch.float64)
    return _close(torch.tensor(finished), 2)


def _close(numbers: Tensor, first: int) -> bool:
    """Whether two that follow each other in rank are, among the `first` of these."""
    ranked = numbers.topk(min(first, len(numbers))).values
    ranked = ranked[ranked > -torch.inf]
    return bool((ranked[:-1] - ranked[1:] < TIE).any())
