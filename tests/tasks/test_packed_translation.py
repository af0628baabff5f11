"""The loss of a packed batch is that of the padded one, R-Drop included, however it is filled up or cut."""

from __future__ import annotations

import pytest
import torch
from packed_checks import WORDS, random_pairs, some_lengths
from seeded import seed  # noqa: F401  fresh inputs in every run
from torch import Tensor

from jumok.data.batch import PairBatch
from jumok.data.packing import PackedPairs
from jumok.errors import BadInput
from jumok.models.build import build
from jumok.recipe import Seq2SeqSection, TransformerSection
from jumok.tasks.translation import TranslationObjective

SMALL = {
    "width": 16, "heads": 2, "feed_forward": 24, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.0,
    "activation": "gelu",  # smooth: where ReLU has its edge, the last digit decides about a whole gradient
}  # fmt: skip


def objective_of(r_drop: float) -> TranslationObjective:
    model = build(TransformerSection(**SMALL), WORDS, WORDS)
    return TranslationObjective(model, label_smoothing=0.1, r_drop=r_drop)


def found(objective: TranslationObjective, batches: list[PairBatch] | list[PackedPairs]) -> tuple[Tensor, Tensor, int]:
    """The loss and its parts, all gradients, and the count; summed over batches."""
    losses = [objective(batch) for batch in batches]
    total = torch.stack([one.sum for one in losses]).sum()
    parts = [sum(one.parts[name] for one in losses) for name in losses[0].parts]
    gradients = torch.autograd.grad(total, list(objective.parameters()))
    numbers = torch.stack([total.detach(), *parts])
    return numbers, torch.cat([gradient.flatten() for gradient in gradients]), sum(one.count for one in losses)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("r_drop", [0.0, 2.0])
def test_the_loss_is_that_of_the_padded_batch(r_drop: float, training: bool) -> None:
    objective, batch = objective_of(r_drop).train(training), random_pairs(some_lengths(5, 12))
    expected = found(objective, [batch])
    exact, filled = PackedPairs.of(batch), PackedPairs.of(batch, (150, 160))
    told = filled.repeating()
    assert told is not None
    for packed in ([exact], [filled], exact.split(3), filled.split(2), [told]):
        numbers, gradients, count = found(objective, packed)
        torch.testing.assert_close(numbers, expected[0], atol=1e-4, rtol=1e-5)
        torch.testing.assert_close(gradients, expected[1], atol=1e-4, rtol=1e-4)
        assert count == expected[2] or packed == [told]  # who repeats does not know its count


def test_the_two_passes_of_r_drop_have_dropout_of_their_own() -> None:
    model = build(TransformerSection(**{**SMALL, "dropout": 0.2}), WORDS, WORDS)
    objective = TranslationObjective(model, r_drop=1.0)
    batch = PackedPairs.of(random_pairs(some_lengths(5, 12)), (150, 160))
    divergence = float(objective(batch).parts["kl"].detach()) / batch.tokens
    assert 0.001 < divergence < 1.0, "words of different pairs would be further apart, equal masks not at all"


def test_a_recurrent_model_says_that_it_cannot() -> None:
    model = build(Seq2SeqSection(width=16, embedding=8, layers=1), WORDS, WORDS)
    with pytest.raises(BadInput, match=r"training\.pack needs a Transformer"):
        TranslationObjective(model)(PackedPairs.of(random_pairs([(3, 4)])))
