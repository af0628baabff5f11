"""How the searches of a translator are run: on which implementation of the model, in which precision, in what batches.

All implementations write what the model itself would write (in float32 to the last ties); they differ in speed alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import torch

from jumok.errors import BadInput
from jumok.models.encoder_decoder import EncoderDecoder
from jumok.search import Ensemble, Hypothesis, SearchOptions, Stepper, refill

PRECISIONS = ("float32", "bfloat16", "int8")
Row = tuple[list[int], SearchOptions]  # a source (token ids) and what is asked of it


class Engine:
    """`fast`: the weights will not change any more, so that they may be prepared once."""

    def __init__(
        self, models: Sequence[EncoderDecoder], device: torch.device, precision: str = "float32", fast: bool = False
    ) -> None:
        if precision not in PRECISIONS:
            raise BadInput(f"--precision {precision}: give {', '.join(PRECISIONS[:-1])} or {PRECISIONS[-1]}")
        self.models, self.device, self.precision, self.fast = tuple(models), device, precision, fast

    @cached_property
    def stepper(self) -> Stepper:
        each = [stepper_for(model, self.precision, self.device) if self.fast else model for model in self.models]
        return Ensemble(each) if len(each) > 1 else each[0]

    def search(self, rows: Sequence[Row], size: int) -> Iterator[tuple[int, list[Hypothesis]]]:
        """The n-best of every row with its place in `rows`, in any order; `size` rows are searched at a time."""
        for model in self.models:
            model.eval()
        # the longest first: less padding, and what is left at the end is short
        order = sorted(range(len(rows)), key=lambda place: -len(rows[place][0]))
        for place, found in refill(self.stepper, (rows[place] for place in order), size, device=self.device):
            yield order[place], found


def stepper_for(model: EncoderDecoder, precision: str, device: torch.device) -> Stepper:
    """The fastest implementation of a model there is for a place and a precision."""
    if precision != "float32":
        raise BadInput(f"--precision {precision}: this model computes in float32 on {device.type}")
    return model
