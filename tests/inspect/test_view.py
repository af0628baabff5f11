"""Which attention is looked at: by itself, by choice, and what is said when there is no such thing."""

from __future__ import annotations

import pytest

from jumok.errors import BadInput
from jumok.inspect.view import View, every_view
from jumok.models.build import build
from jumok.models.encoder_decoder import EncoderDecoder
from jumok.recipe import Seq2SeqSection, TransformerSection


def transformer(encoder: int = 2, decoder: int = 3) -> EncoderDecoder:
    section = TransformerSection(width=8, heads=2, feed_forward=8, encoder_layers=encoder, decoder_layers=decoder)
    return build(section, 10, 10)


def recurrent(**keys: str) -> EncoderDecoder:
    return build(Seq2SeqSection.model_validate({"width": 8, "embedding": 8, "layers": 1, **keys}), 10, 10)


def test_by_itself_it_is_the_second_to_last_layer_and_the_mean_of_its_heads() -> None:
    assert View().name(transformer()) == "decoder.1.cross, mean of 2 heads"
    assert View().name(transformer(decoder=1)) == "decoder.0.cross, mean of 2 heads"
    assert View().name(transformer(decoder=2)) == "decoder.0.cross, mean of 2 heads"
    assert View().name(recurrent()) == ""  # there is only one: nothing to tell apart


def test_any_layer_head_and_kind_can_be_chosen() -> None:
    model = transformer()
    assert View(2, 1).name(model) == "decoder.2.cross, head 1"
    assert View(2, 0, "causal").name(model) == "decoder.2.causal, head 0"
    assert View(1, None, "self").name(model) == "encoder.1.self, mean of 2 heads"
    assert View(0).tap(recurrent()).name == "decoder"


@pytest.mark.parametrize(
    ("view", "words"),
    [
        (View(3), "layer 3: the cross attention of this model is in layers 0 to 2"),
        (View(-1), "layer -1: .* layers 0 to 2"),
        (View(2, kind="self"), "layer 2: the self attention of this model is in layers 0 to 1"),
        (View(0, 2), "head 2: layer 0 has heads 0 to 1"),
        (View(None, -1), "head -1: layer 1 has heads 0 to 1"),
        (View(kind="slef"), 'kind "slef": this model has no such attention. Did you mean "self"'),
        (View(kind="everything"), "Known: causal, cross, self"),
    ],
    ids=str,
)
def test_what_does_not_exist_is_answered_with_what_does(view: View, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        view.tap(transformer())


def test_recurrent_models_have_one_layer_and_no_heads() -> None:
    for view, words in (
        (View(1), "layer 1: the cross attention of this model is in layer 0, the only one"),
        (View(head=0), "head 0: this model's attention has no heads"),
        (View(kind="self"), "Known: cross"),
    ):
        with pytest.raises(BadInput, match=words):
            view.tap(recurrent())
    with pytest.raises(BadInput, match="no attention to show"):
        View().tap(recurrent(attention="none"))


def test_every_view() -> None:
    found = every_view(transformer())
    assert found == [View(layer, head) for layer in range(3) for head in (None, 0, 1)]
    assert every_view(transformer(), "self")[-1] == View(1, 1, "self")
    assert every_view(recurrent()) == [View(0)]
