"""The fastest way to search with a model on the CPU: which implementation there is for it, made once and kept.

In order: transformer.c (models/compiled.py) where there is a C compiler, packed weights through PyTorch
(models/fast_cpu.py), the model itself. All give the same numbers in float32.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import torch

from jumok.errors import BadInput
from jumok.layers.packed import Precision, check_precision
from jumok.layers.tap import Tap
from jumok.models.compiled import CompiledTransformer, compiles
from jumok.models.encoder_decoder import EncoderDecoder
from jumok.models.fast_cpu import FastTransformer
from jumok.models.transformer import Transformer

CPUStepper = CompiledTransformer | FastTransformer
State = list[tuple[int, int]]  # of the weights: where they lie and how often they were changed

_MADE: WeakKeyDictionary[Transformer, dict[Precision, tuple[State, CPUStepper]]] = WeakKeyDictionary()


def fast_stepper(model: EncoderDecoder, precision: str = "float32") -> CPUStepper | EncoderDecoder:
    """A Stepper for a model whose weights do not change while it is used.

    In float32 it is the model itself where nothing better is known (a recurrent model, weights that are not float32 on
    the CPU, an attention that somebody observes); bfloat16 and int8 are for Transformers on the CPU only.
    """
    chosen = check_precision(precision)
    plain = (
        isinstance(model, Transformer)
        and model.reader is None
        and all(weight.device.type == "cpu" and weight.dtype == torch.float32 for weight in model.parameters())
    )
    if not plain and chosen != "float32":
        raise BadInput(f"--precision {chosen} is for Transformers on the CPU: leave it out for this model")
    if not isinstance(model, Transformer) or not plain or model.training or _observed(model):
        return model
    state = [(weight.data_ptr(), 0 if weight.is_inference() else weight._version) for weight in model.parameters()]
    made = _MADE.setdefault(model, {})
    if chosen not in made or made[chosen][0] != state:
        made[chosen] = (state, (CompiledTransformer if compiles(model, chosen) else FastTransformer)(model, chosen))
    return made[chosen][1]


def _observed(model: Transformer) -> bool:
    taps: list[Any] = [module for module in model.modules() if isinstance(module, Tap)]
    return any(tap._forward_hooks or tap._forward_pre_hooks for tap in taps)
