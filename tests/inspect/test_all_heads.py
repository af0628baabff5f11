from __future__ import annotations

import numpy as np
import pytest
import torch
from translators import translator

from jumok.errors import BadInput
from jumok.inspect.all_heads import AllHeads, Kind, Place, all_heads, of_attention, of_records
from jumok.inspect.attention import Attention
from jumok.inspect.forced import Side, forced_attention
from jumok.inspect.record import record
from jumok.inspect.view import View
from jumok.models.language import TransformerLanguageModel
from jumok.recipe import TransformerLanguageSection

SENTENCE, TARGET = "the student reads a book .", "l' étudiant lit un livre ."


def test_every_head_is_what_its_own_picture_shows() -> None:
    model = translator("transformer")
    shown = all_heads(model, SENTENCE, TARGET)
    assert [kind.kind for kind in shown.kinds] == ["cross", "self", "causal"]
    assert shown.maps() == 3 * 2 * 5  # three kinds, two layers, a mean and four heads
    for kind in shown.kinds:
        assert kind.heads() == 4
        for place in (Place(0), Place(1, 3)):
            view = View(place.layer, place.head, kind.kind)
            (picture,) = forced_attention(model, [SENTENCE], [TARGET], words=False, view=view)
            np.testing.assert_array_equal(kind.weights[kind.places.index(place)], picture.weights)
            assert (tuple(kind.keys.tokens), tuple(kind.queries.tokens)) == (picture.source, picture.target)


def test_the_models_own_translation_and_one_without_heads() -> None:
    model = translator("lstm", wordy=True)
    shown, best = all_heads(model, SENTENCE), model.nbest([SENTENCE])[0][0]
    assert [kind.kind for kind in shown.kinds] == ["cross"]
    assert shown.kinds[0].places == (Place(0),)
    assert shown.score == pytest.approx(best.log_probability)
    assert list(shown.kinds[0].queries.tokens) == model.target.pieces(best.ids)  # it never ends: it was cut


def test_a_model_that_does_not_look_is_refused() -> None:
    with pytest.raises(BadInput, match="no attention"):
        all_heads(translator("plain"), SENTENCE, TARGET)
    with pytest.raises(BadInput, match="self"):
        all_heads(translator("lstm"), SENTENCE, TARGET, kinds=["self"])


def test_what_was_recorded_of_any_model() -> None:
    section = TransformerLanguageSection(width=16, heads=2, layers=3, feed_forward=16)
    model = TransformerLanguageModel(section, 50).eval()
    with record(model) as seen, torch.no_grad():
        model(torch.randint(4, 50, (2, 7)))
    shown = of_records(seen.records, row=1)
    (kind,) = shown.kinds
    assert (kind.kind, kind.heads(), kind.weights.shape) == ("causal", 2, (9, 7, 7))
    np.testing.assert_array_equal(kind.weights[kind.places.index(Place(2, 1))], seen.weights("decoder.2.causal")[1, 1])
    np.testing.assert_allclose(kind.weights[kind.places.index(Place(2))], kind.weights[-2:].mean(axis=0), atol=1e-6)
    with pytest.raises(BadInput, match="nothing was recorded"):
        of_records([])


def test_shapes_are_checked_and_one_picture_is_all_there_is() -> None:
    side = Side(("a", "b"), (0, 1), ("a", "b"))
    with pytest.raises(ValueError, match="ask for"):
        Kind("cross", side, side, (Place(0),), np.zeros((1, 2, 3), dtype=np.float32))
    one = of_attention(Attention(("a", "b"), ("x",), np.array([[0.25, 0.75]]), score=-1.0))
    assert one.maps() == 1
    assert one.score == -1.0
    frame = AllHeads(one.kinds)._repr_html_()
    assert frame.startswith("<iframe srcdoc=")
    assert "<script" not in frame  # escaped: it is the frame's, not the notebook's
