"""How the searches of a translator are run: on which implementation of the model, in which precision, in what batches.

All implementations write what the model itself would write (in float32 to the last ties); they differ in speed alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy

import torch

from jumok.data.batch import source_batch
from jumok.errors import BadInput
from jumok.layers.packed import known_precision
from jumok.layers.tap import Tap
from jumok.models.encoder_decoder import EncoderDecoder
from jumok.models.fast import fast_stepper
from jumok.models.transformer import Transformer
from jumok.search import Ensemble, Hypothesis, SearchOptions, Stepper, generate, refill
from jumok.search.on_device import device_search_fits, forget, generate_on_device

BATCH, GPU_BATCH = 32, 256  # sentences at once, where neither user nor recipe says
GATHERED = 16  # batches

Row = tuple[list[int], SearchOptions]  # a source (token ids) and what is asked of it
Found = Iterator[tuple[int, list[Hypothesis]]]  # a row's place and its n-best


class Engine:
    """`fast`: the weights may be prepared, once for as long as they stay the same and nobody observes the model."""

    name = "torch"  # of --engine
    ahead = 1  # how many searches are worth having under way at a time

    def __init__(
        self, models: Sequence[EncoderDecoder], device: torch.device, precision: str = "float32", fast: bool = False
    ) -> None:
        self.models, self.device, self.precision, self.fast = tuple(models), device, known_precision(precision), fast
        self._copies: dict[int, Stepper] = {}  # by the place of the model

    @property
    def batch(self) -> int:
        return GPU_BATCH if self.device.type == "cuda" else BATCH

    @property
    def gathered(self) -> int:
        """Batches that are sorted together."""
        return GATHERED

    @property
    def stepper(self) -> Stepper:
        """For one search: hooks and changed weights count from the next search on."""
        each = [self._stepper(place, model) for place, model in enumerate(self.models)] if self.fast else self.models
        return Ensemble(each) if len(each) > 1 else each[0]

    def _stepper(self, place: int, model: EncoderDecoder) -> Stepper:
        observed = any(isinstance(module, Tap) and module.watched for module in model.modules())
        if self.device.type == "cpu" or self.precision == "float32" or observed:  # a copy has the hooks of its making
            return stepper_for(model, self.precision, self.device)
        if place not in self._copies:  # another type on another device is a copy of the whole model
            self._copies[place] = stepper_for(model, self.precision, self.device)
        return self._copies[place]

    def asked(self, texts: Sequence[str]) -> None:
        """The sentences that the next searches are for: nothing to an engine, but who records it wants to know."""

    def answered(self, outputs: Sequence[Sequence[tuple[int, ...]]]) -> None:
        """What came of them: the tokens of each one's translations."""

    def search(self, rows: Sequence[Row], size: int, sentences: Sequence[int] = ()) -> Found:
        """The n-best of every row, in any order; `size` rows are searched at a time.

        `sentences`: which of those asked for each row belongs to.
        """
        for model in self.models:
            model.eval()
        # the longest first: less padding, and what is left at the end is short
        order = sorted(range(len(rows)), key=lambda place: -len(rows[place][0]))
        ordered = [rows[place] for place in order]
        on_device = len(self.models) == 1 and self.precision != "int8"
        if on_device and device_search_fits(self.models[0], [options for _, options in rows], self.device):
            found = self._on_device(ordered, size)
        else:
            share = 1.0 if self.device.type == "cpu" else 0.25
            found = refill(self.stepper, ordered, size, share=share, device=self.device)
        for place, hypotheses in found:
            yield order[place], hypotheses

    def _on_device(self, rows: Sequence[Row], size: int) -> Found:
        """A plain search of a Transformer never leaves a GPU: batch after batch, each in shapes that are known.

        Between two updates of training (not `fast`) nothing is captured in a graph, and its memory is given back: it
        belongs to the training. Where that leaves too little, or an operation cannot be repeated exactly and must be,
        the search on the host goes on.
        """
        (model,) = self.models
        assert isinstance(model, Transformer)
        dtype = torch.bfloat16 if self.precision == "bfloat16" else torch.float32
        try:
            for start in range(0, len(rows), size):
                batch = source_batch([source for source, _ in rows[start : start + size]]).to(self.device)
                options = [asked for _, asked in rows[start : start + size]]
                try:
                    found = generate_on_device(model, batch, options, dtype=dtype, graphs=None if self.fast else False)
                except RuntimeError as error:
                    if not isinstance(error, torch.OutOfMemoryError) and "deterministic" not in str(error):
                        raise
                    forget(model)
                    found = generate(self.stepper, batch, options, device=self.device)
                yield from enumerate(found, start)
        finally:
            if not self.fast:
                forget(model)


def stepper_for(model: EncoderDecoder, precision: str, device: torch.device) -> Stepper:
    """The fastest Stepper there is for a model, a precision and a place."""
    if isinstance(model, Transformer) and device.type == "cpu":
        return fast_stepper(model, precision)
    if precision == "float32":
        return model
    if not isinstance(model, Transformer):
        raise BadInput(f"--precision {precision}: recurrent models compute in float32. Leave the option out")
    if precision == "int8":
        raise BadInput(f"--precision int8 is for the CPU; on {device.type} use bfloat16")
    return deepcopy(model).to(torch.bfloat16)
