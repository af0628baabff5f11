"""The loss of predicted words, the same for every task: some words at a time where the model can, else written out."""

from __future__ import annotations

from torch import Tensor

from jumok.layers.chunked_loss import vocabulary_loss, vocabulary_r_drop
from jumok.layers.loss import smoothed_cross_entropy
from jumok.layers.r_drop import r_drop
from jumok.models.predictor import Predictor


def word_loss(
    model: Predictor, hidden_ND: Tensor, target_N: Tensor, smoothing: float, chunk: int = 0
) -> tuple[Tensor, Tensor]:
    """The smoothed and the plain cross-entropy of N words, summed."""
    if _has_head_of_its_own(model):
        return smoothed_cross_entropy(model.head(hidden_ND), target_N, smoothing)
    return vocabulary_loss(*model.output(hidden_ND), target_N, smoothing, chunk)


def word_r_drop(
    model: Predictor,
    hidden_2ND: Tensor,
    target_N: Tensor,
    smoothing: float,
    strength: float,
    chunk: int = 0,
) -> tuple[Tensor, Tensor, Tensor]:
    """R-Drop's loss of N words that two passes predict, the plain cross-entropy and the divergence, summed."""
    if _has_head_of_its_own(model):
        return r_drop(model.head(hidden_2ND), target_N, smoothing, strength)
    return vocabulary_r_drop(*model.output(hidden_2ND), target_N, smoothing, strength, chunk)


def _has_head_of_its_own(model: Predictor) -> bool:
    """A model of someone's own may compute its logits in any way: its `head` is then what counts."""
    return type(model).head is not Predictor.head
