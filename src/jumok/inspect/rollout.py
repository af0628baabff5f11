"""Attention rollout: how much of each input word arrives at each position, through all layers.

One layer's attention says what its queries looked at, but in higher layers these are no longer the words: they are
mixtures. Abnar and Zuidema 2020 ("Quantifying Attention Flow in Transformers") follow the mixing. A layer's output is
half what came in (the residual connection) and half what its heads brought, on average:

    Ã_l = ½ A_l + ½ I        R_l = Ã_l R_(l-1),   R_0 = I

In a decoder two things flow, its own words (R) and the source (F), which comes in at every cross-attention X_l out of
an encoder that has mixed it before (R_enc):

    own words:  R ← ½ (C_l + I) R      F ← ½ (C_l + I) F          (causal attention C_l)
    source:     R ← ½ R                F ← ½ F + ½ X_l R_enc

Rows of R_enc, and of R and F together, sum to 1. What feed-forward layers do is not in it, nor are the values: it is
a way of reading attention, not the truth about the model (jumok attribute sets it beside others).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jumok.errors import BadInput
from jumok.inspect.attention import Attention, Weights
from jumok.inspect.forced import Side, forced_views
from jumok.inspect.view import View, every_view
from jumok.tasks.translator import Translator

HALF = np.float32(0.5)


def rolled_encoder(layers: Sequence[Weights]) -> Weights:
    """R_enc (S, S) from each layer's weights (S, S), the first layer first."""
    rolled: Weights = np.eye(layers[0].shape[-1], dtype=np.float32)
    for weights in layers:
        rolled = HALF * (weights @ rolled + rolled)
    return rolled


def rolled_decoder(causal: Sequence[Weights], cross: Sequence[Weights], encoder: Weights) -> tuple[Weights, Weights]:
    """R (T, T) and F (T, S) from each layer's causal (T, T) and cross (T, S) weights and the encoder's R_enc."""
    own: Weights = np.eye(causal[0].shape[-1], dtype=np.float32)
    flow: Weights = np.zeros_like(cross[0])
    for own_weights, source_weights in zip(causal, cross, strict=True):
        own, flow = HALF * (own_weights @ own + own), HALF * (own_weights @ flow + flow)
        own, flow = HALF * own, HALF * (flow + source_weights @ encoder)
    return own, flow


def rollout(
    translator: Translator,
    sentence: str,
    target: str | Sequence[int],
    kind: str = "cross",
    words: bool = True,
    ended: bool = True,
) -> Attention:
    """Of a sentence and its translation, by words or by tokens: `kind` "self" is R_enc, "causal" R and "cross" F.

    The rows of R and of F are divided by what they sum to, so that each is a picture of shares. `ended`: False for
    a translation that was cut, which has no `<eos>`.
    """
    if not rolls(translator):
        raise BadInput("attention rollout follows attention through the layers of a Transformer; this model is none")
    View(kind=kind).tap(translator.model)
    layers: dict[str, Weights] = {}
    sides: dict[str, tuple[Side, Side]] = {}
    for one in ("self", "causal", "cross"):
        means = [view for view in every_view(translator.model, one) if view.head is None]
        keys, queries, layers[one] = forced_views(translator, sentence, target, means, ended)
        sides[one] = keys, queries
    encoder = rolled_encoder(list(layers["self"]))
    own, flow = rolled_decoder(list(layers["causal"]), list(layers["cross"]), encoder)
    weights = {"self": encoder, "causal": own, "cross": flow}[kind]
    keys, queries = sides[kind]
    shares = weights / weights.sum(axis=1, keepdims=True)
    picture = Attention(tuple(keys.tokens), tuple(queries.tokens), shares, None, kind, f"{kind}, rollout")
    return picture.merge(keys.words, queries.words, keys.texts, queries.texts) if words else picture


def rolls(translator: Translator) -> bool:
    """Whether there are layers of attention to follow."""
    return bool(every_view(translator.model, "self") and every_view(translator.model, "causal"))
