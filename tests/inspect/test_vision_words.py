"""Where the encoder of a reader of words looks: its own weights, whatever the decoder is."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from seeded import seed  # noqa: F401

from jumok.errors import BadInput
from jumok.inspect.record import record
from jumok.inspect.vision import attention_maps, rollout_maps
from jumok.inspect.vision_words import word_looker
from jumok.models.recognizer import Recognizer, build_recognizer
from jumok.recipe.recognition import CharsetSection, RecognizerSection
from jumok.text.charset import Charset


def recognizer(**keys: Any) -> Recognizer:
    small: dict[str, Any] = {
        "image": (16, 32), "patch": (8, 4), "width": 16, "heads": 2, "layers": 2, "feed_forward": 16,
        "decoder_heads": 2, "max_length": 4, **keys,
    }  # fmt: skip
    model = build_recognizer(RecognizerSection(**small), Charset.of(CharsetSection(sets=("digits",))))
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model.eval()


@pytest.mark.parametrize("stem", ["patch", "convolution"])
@pytest.mark.parametrize("decoder", ["ctc", "permuted"])
def test_the_weights_are_those_of_reading(stem: str, decoder: str) -> None:
    model = recognizer(stem=stem, decoder=decoder)
    images = torch.randint(0, 256, (2, 3, 16, 32), dtype=torch.uint8)
    with torch.inference_mode(), record(model, kinds=("self",)) as seen:
        model.read(images)
    weights = {one.layer: one.weights for one in seen.records}
    looker = word_looker(model)
    maps = attention_maps(looker, images, 1, [1], place=5)
    for number, (found,) in enumerate(maps):
        assert found.values.shape == (2, 8)
        torch.testing.assert_close(torch.from_numpy(found.values).flatten(), weights[1][number, 1, 5])
        assert found.elsewhere == 0
    (whole,) = attention_maps(looker, images[:1], 0, [0])[0]
    torch.testing.assert_close(torch.from_numpy(whole.values).flatten(), weights[0][0, 0].mean(dim=0))
    assert float(rollout_maps(looker, images)[0].values.sum()) == pytest.approx(1.0, abs=1e-4)


def test_convolutions_and_recurrence_have_no_attention() -> None:
    with pytest.raises(BadInput, match="jumok attend"):
        word_looker(recognizer(encoder="recurrent", decoder="ctc"))
