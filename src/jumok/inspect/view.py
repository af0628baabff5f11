"""Which of a model's attentions is looked at.

A recurrent model has one. A Transformer has one in each layer of the encoder (kind "self") and two in each layer of the
decoder ("causal" at its own words, "cross" at the source), each with several heads.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from torch import nn

from jumok.errors import BadInput, did_you_mean
from jumok.layers.tap import Tap


@dataclass(frozen=True)
class View:
    """Layers and heads count from 0, as in the names of the taps.

    Without a layer it is the second to last one, whose cross-attention was found to follow the words best (Garg et al.
    2019, "Jointly Learning to Align and Translate"); without a head, the mean over the heads.

    Two things are for alignments only. `shift`: a target word is linked from where the decoder reads it instead of from
    where it predicts it, one position later (Chen et al. 2020, "Accurate Word Alignment Induction from Neural Machine
    Translation"). `reading`: how weights become links (inspect/alignment.py).
    """

    layer: int | None = None
    head: int | None = None
    kind: str = "cross"
    shift: bool = False
    reading: str = "rows"

    def tap(self, model: nn.Module) -> Tap:
        """The one tap of the model that this is about; what does not exist is answered with what does."""
        taps = [module for module in model.modules() if isinstance(module, Tap)]
        if not taps:
            raise BadInput(
                "this model has no attention to show: train lstm-luong, lstm-bahdanau or a transformer instead"
            )
        kinds = sorted({tap.kind for tap in taps})
        if self.kind not in kinds:
            raise BadInput(f'kind "{self.kind}": this model has no such attention.{did_you_mean(self.kind, kinds)}')
        layers = {tap.layer: tap for tap in taps if tap.kind == self.kind}
        layer = max(0, len(layers) - 2) if self.layer is None else self.layer
        if layer not in layers:
            raise BadInput(f"layer {layer}: the {self.kind} attention of this model is in {_numbers('layer', layers)}")
        tap = layers[layer]
        if self.head is not None and tap.heads is None:
            raise BadInput(f"head {self.head}: this model's attention has no heads. Leave it out")
        if self.head is not None and tap.heads is not None and not 0 <= self.head < tap.heads:
            raise BadInput(f"head {self.head}: layer {layer} has {_numbers('head', range(tap.heads))}")
        return tap

    def name(self, model: nn.Module) -> str:
        """In words, as in "decoder.1.cross, head 3"; empty where there is only one thing to see."""
        tap = self.tap(model)
        special = ", shifted" * self.shift + f", read {self.reading}" * (self.reading != "rows")
        if tap.heads is None:
            return tap.name + special if special else ""
        chosen = f"mean of {tap.heads} heads" if self.head is None else f"head {self.head}"
        return f"{tap.name}, {chosen}{special}"


def every_view(model: nn.Module, kind: str = "cross") -> list[View]:
    """All single heads of a kind, and each layer's mean over them."""
    taps = sorted(
        (module for module in model.modules() if isinstance(module, Tap) and module.kind == kind),
        key=lambda tap: tap.layer,
    )
    return [View(tap.layer, head, kind) for tap in taps for head in (None, *range(tap.heads or 0))]


def _numbers(word: str, numbers: Collection[int]) -> str:
    """As in "layer 0" or "layers 0 to 5"."""
    return f"{word} 0, the only one" if len(numbers) == 1 else f"{word}s 0 to {len(numbers) - 1}"
