"""Rollout: shares that sum to 1, and by hand what the layers pass on."""

from __future__ import annotations

import numpy as np
import pytest
from seeded import seed as seed
from translators import translator

from jumok.errors import BadInput
from jumok.inspect.rollout import rolled_decoder, rolled_encoder, rollout


def random_rows(rows: int, columns: int, causal: bool = False) -> np.ndarray:
    weights = np.random.default_rng().dirichlet(np.ones(columns), rows)
    if causal:
        weights = np.tril(weights)
        weights /= weights.sum(axis=1, keepdims=True)
    return weights.astype(np.float32)


def test_rows_sum_to_one() -> None:
    encoder = rolled_encoder([random_rows(5, 5) for _ in range(3)])
    own, flow = rolled_decoder([random_rows(4, 4, True) for _ in range(2)], [random_rows(4, 5)] * 2, encoder)
    np.testing.assert_allclose(encoder.sum(axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(own.sum(axis=1) + flow.sum(axis=1), 1, atol=1e-5)
    assert not np.triu(own, 1).any()  # nothing comes from words that are not written yet


def test_two_layers_by_hand() -> None:
    first, second = random_rows(3, 3), random_rows(3, 3)
    unit = np.eye(3)
    expected = (0.5 * second + 0.5 * unit) @ (0.5 * first + 0.5 * unit)
    np.testing.assert_allclose(rolled_encoder([first, second]), expected, atol=1e-6)


def test_one_decoder_layer_by_hand() -> None:
    """Half of what came in is left after the causal attention, and half of that after the look at the source."""
    causal, cross, encoder = random_rows(3, 3, True), random_rows(3, 2), random_rows(2, 2)
    own, flow = rolled_decoder([causal], [cross], encoder)
    np.testing.assert_allclose(own, 0.25 * (causal + np.eye(3)), atol=1e-6)
    np.testing.assert_allclose(flow, 0.5 * cross @ encoder, atol=1e-6)


@pytest.mark.parametrize("kind", ["self", "causal", "cross"])
def test_pictures_of_shares_by_words_and_tokens(kind: str) -> None:
    model = translator("transformer")
    for words in (True, False):
        picture = rollout(model, "The cat sees the dogs.", "Le chat voit les chiens.", kind, words)
        np.testing.assert_allclose(picture.weights.sum(axis=1), 1, atol=1e-5)
    assert rollout(model, "The cat.", "Le chat.").source == ("The", "cat.", "<eos>")


def test_a_recurrent_model_is_refused() -> None:
    with pytest.raises(BadInput, match="Transformer"):
        rollout(translator("lstm"), "The cat.", "Le chat.")
