"""Where a character looked: what the decoder itself looked at while reading, and for CTC the columns of all paths."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from looking_words import DIGITS, blot_image, blots, digits, reading_model, text_reader, texts_as_ids
from seeded import seed as seed
from torch import Tensor

from jumok.data.images.picture import BadPicture
from jumok.data.images.raw import RawImage
from jumok.errors import BadInput, Failure
from jumok.inspect.reading_attention import CTC, LARGEST, MOST_PICTURES, about, check, frames_of, looked, looked_given
from jumok.inspect.reading_overlay import covered
from jumok.inspect.record import record
from jumok.layers.attention import attention_weights
from jumok.layers.tap import Tap
from jumok.models.permuted import PermutedRecognizer
from jumok.models.recognizer import CtcRecognizer, Recognizer
from jumok.models.recognizer_decoders import WritingRecognizer
from jumok.recipe.recognition import CharsetSection
from jumok.tasks.text_reader import TextReader
from jumok.text.charset import Charset
from jumok.text.special import END

CLOSE = {"atol": 2e-6, "rtol": 1e-4}
WRITERS = [("recurrent", "recurrent"), ("vit", "recurrent"), ("recurrent", "transformer"), ("vit", "transformer")]


def reads_something(encoder: str, decoder: str, **keys: Any) -> tuple[Recognizer, Tensor]:
    """A model and pictures in which it reads words, of several lengths."""
    for _ in range(50):
        model, images = reading_model(encoder, decoder, **keys), blots(5)
        lengths = model.read(images).lengths
        if lengths.max() >= 2:
            return model, images
    raise AssertionError("no model that reads anything")


def cross_taps(model: Recognizer) -> list[Tap]:
    return [one for one in model.modules() if isinstance(one, Tap) and one.kind == "cross"]


def seen_while_reading(model: Recognizer, images: Tensor) -> dict[int, list[Tensor]]:
    """By layer: the weights of each call, from what the tap was given."""
    calls: dict[int, list[Tensor]] = {}

    def after(tap: Any, inputs: Any, _output: Tensor) -> None:
        query, key, _value, mask, scorer, *rest = inputs
        calls.setdefault(tap.layer, []).append(attention_weights(query, key, mask, scorer, *rest[:2]))

    handles = [tap.register_forward_hook(after) for tap in cross_taps(model)]
    with torch.no_grad():
        model.read(images)
    for handle in handles:
        handle.remove()
    return calls


@pytest.mark.parametrize(("encoder", "decoder"), WRITERS)
def test_writers_look_where_they_looked_while_reading(encoder: str, decoder: str, seed: int) -> None:
    model, images = reads_something(encoder, decoder)
    reading, found = looked(model, images)
    calls = seen_while_reading(model, images)
    steps = [torch.cat(each, dim=-2) for each in calls.values()]
    expected = torch.stack([one.mean(dim=1) if one.dim() == 4 else one for one in steps]).mean(dim=0)
    for row, length in enumerate(reading.lengths.tolist()):
        maps = found.maps[row, :length]
        assert maps.shape[1:] == model.encoder.grid
        torch.testing.assert_close(maps.flatten(1), expected[row, :length], **CLOSE)
        torch.testing.assert_close(maps.sum(dim=(1, 2)), torch.ones(length), **CLOSE)
        assert (found.maps[row, length:] == 0).all()
    assert found.max_difference < 1e-4


@pytest.mark.parametrize("refinements", [0, 1, 2])
def test_the_last_round_of_the_position_queries(refinements: int, seed: int) -> None:
    model, images = reads_something("vit", "permuted", refinements=refinements)
    assert isinstance(model, PermutedRecognizer)
    reading, found = looked(model, images)
    plain = model.read(images)
    assert torch.equal(plain.ids, reading.ids)
    calls = seen_while_reading(model, images)
    rounds = [each[-1] if refinements else torch.cat(each, dim=-2) for each in calls.values()]
    assert all(len(each) > refinements for each in calls.values())
    expected = torch.stack([one.mean(dim=1) for one in rounds]).mean(dim=0)
    for row, length in enumerate(reading.lengths.tolist()):
        torch.testing.assert_close(found.maps[row, :length].flatten(1), expected[row, :length], **CLOSE)
        assert (found.maps[row, length:] == 0).all()


def test_a_given_text_is_looked_for_as_a_round_would(seed: int) -> None:
    """What a round that reads the text again as itself looks at, is what the text given looks at."""
    for _ in range(50):
        model, images = reads_something("vit", "permuted", refinements=4)
        reading, found = looked(model, images)
        before = reading_model_with(model, 3).read(images)
        if torch.equal(before.ids, reading.ids):
            break
    else:
        pytest.skip("no reading that a round leaves as it is")
    texts = [DIGITS.decode(row.tolist()) for row in reading.ids]
    given = looked_given(model, images, *texts_as_ids(texts))
    torch.testing.assert_close(given.maps, found.maps, **CLOSE)


def reading_model_with(model: Recognizer, refinements: int) -> Recognizer:
    section = model.section.model_copy(update={"refinements": refinements})
    other = type(model)(section, model.charset)
    other.load_state_dict(model.state_dict())
    return other.eval()


def test_left_to_right_given_texts_equal_reading(seed: int) -> None:
    model, images = reads_something("vit", "permuted", refinements=0)
    reading, found = looked(model, images)
    texts = [DIGITS.decode(row.tolist()) for row in reading.ids]
    torch.testing.assert_close(looked_given(model, images, *texts_as_ids(texts)).maps, found.maps, **CLOSE)


@pytest.mark.parametrize("decoder", ["transformer", "permuted"])
def test_one_layer_and_one_head(decoder: str, seed: int) -> None:
    model, images = reads_something("vit", decoder)
    _, every = looked(model, images)
    parts = {(layer, head): looked(model, images, layer, head)[1].maps for layer in range(2) for head in range(2)}
    torch.testing.assert_close(torch.stack(list(parts.values())).mean(dim=0), every.maps, **CLOSE)
    assert not torch.allclose(parts[0, 0], parts[1, 1])
    torch.testing.assert_close(looked(model, images, 1)[1].maps, (parts[1, 0] + parts[1, 1]) / 2, **CLOSE)
    torch.testing.assert_close(looked(model, images, None, 1)[1].maps, (parts[0, 1] + parts[1, 1]) / 2, **CLOSE)


# ---------------------------------------------------------------- CTC


def collapsed(path: tuple[int, ...]) -> tuple[tuple[int, ...], list[int | None]]:
    """What a path writes, and which character each column belongs to."""
    text: list[int] = []
    places: list[int | None] = []
    before = 0
    for one in path:
        if one and one != before:
            text.append(one)
        places.append(len(text) - 1 if one else None)
        before = one
    return tuple(text), places


@pytest.mark.parametrize("encoder", ["recurrent", "vit"])
def test_ctc_shows_the_columns_of_all_paths(encoder: str, seed: int) -> None:
    model = reading_model(encoder, "ctc", image=(32, 24), patch=(16, 4), max_length=4)
    assert isinstance(model, CtcRecognizer)
    images, words = blots(3, (32, 24)), ["12", "77", digits(1, 3)]
    ids, lengths = texts_as_ids(words, 5)
    found = looked_given(model, images, ids, lengths).maps
    with torch.no_grad():
        log_probs = model.ctc.head.log_probs(model.encoder.columns(model.encoder(images))).double().exp().numpy()
    assert found.shape == (3, 4, 1, 6)
    for row, word in enumerate(words):
        labels = tuple(DIGITS.encode(word))
        share, total = np.zeros((len(word), 6)), 0.0
        for path in itertools.product({0, *labels}, repeat=6):
            text, places = collapsed(path)
            if text != labels:
                continue
            chance = float(np.prod([log_probs[row, column, one] for column, one in enumerate(path)]))
            total += chance
            for column, place in enumerate(places):
                if place is not None:
                    share[place, column] += chance
        share /= share.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(found[row, : len(word), 0].numpy(), share, atol=1e-5, err_msg=f"seed {seed}")
        assert (found[row, len(word) :] == 0).all()


def test_a_ctc_reading_is_looked_for_and_a_word_without_a_path_is_nowhere() -> None:
    for _ in range(50):
        model, images = reading_model("recurrent", "ctc", image=(32, 24), max_length=6), blots(4, (32, 24))
        reading, found = looked(model, images)
        if reading.lengths.max() > 1:
            break
    assert torch.equal(reading.ids, model.read(images).ids)
    for row, length in enumerate(reading.lengths.tolist()):
        torch.testing.assert_close(found.maps[row, :length].sum(dim=(1, 2)), torch.ones(length), **CLOSE)
    nowhere = looked_given(model, images[:1], *texts_as_ids(["111111"], 7)).maps  # needs eleven columns, there are six
    assert (nowhere == 0).all()


# ---------------------------------------------------------------- what there is


def test_what_the_maps_are_called() -> None:
    assert about(reading_model("recurrent", "ctc")) == CTC
    assert about(reading_model("recurrent", "recurrent")) == "attention of the decoder"
    both = reading_model("vit", "transformer")
    assert about(both) == "attention of the decoder, mean of 2 layers and 2 heads"
    assert about(both, 1) == "attention of the decoder, layer 1, mean of 2 heads"
    assert about(both, None, 0) == "attention of the decoder, head 0, mean of 2 layers"
    assert about(both, 1, 0) == "attention of the decoder, layer 1, head 0"
    assert "round 3 of 3" in about(reading_model("vit", "permuted", refinements=2))


def test_what_is_not_there_is_refused() -> None:
    for encoder in ("vit", "recurrent"):
        with pytest.raises(BadInput, match=r"layer 0: a CTC model has no decoder.*Leave --layer out"):
            check(reading_model(encoder, "ctc"), 0, None)
    with pytest.raises(BadInput, match="head 1"):
        check(reading_model("vit", "ctc"), None, 1)
    with pytest.raises(BadInput, match=r"head 0: .*no heads"):
        looked(reading_model("recurrent", "recurrent"), blots(1), None, 0)
    with pytest.raises(BadInput, match=r"layer 2: .*layers 0 to 1"):
        looked(reading_model("vit", "transformer"), blots(1), 2)
    with pytest.raises(BadInput, match="head 2"):
        looked(reading_model("vit", "permuted"), blots(1), 1, 2)
    model = reading_model("vit", "transformer")
    with torch.no_grad():
        next(model.parameters()).fill_(float("nan"))
    with pytest.raises(Failure, match="not numbers"):
        looked(model, blots(1))


@pytest.mark.parametrize("decoder", ["ctc", "recurrent", "transformer", "permuted"])
def test_nothing_is_left_on_the_model(decoder: str, seed: int) -> None:
    model, images = reading_model("vit", decoder).train(), blots(3)
    first, second = looked(model, images)[1].maps, looked(model, images)[1].maps
    assert model.training
    torch.testing.assert_close(first, second)  # dropout was off
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    assert all(parameter.grad is None for parameter in model.parameters())
    with torch.inference_mode():
        torch.testing.assert_close(looked(model, images)[1].maps, first)
    with record(model):
        pass


# ---------------------------------------------------------------- pictures


@pytest.mark.parametrize("resize", ["squash", "crop", "pad"])
@pytest.mark.parametrize("decoder", ["ctc", "transformer", "permuted"])
def test_pictures_keep_their_shape_and_colour(decoder: str, resize: Any, seed: int) -> None:
    reader = text_reader("vit", decoder, resize)
    images = [blot_image("a/1.png"), blot_image("2.png", (90, 40)), blot_image("3.png", (32, 64))]
    found = frames_of(reader, iter(images))
    read = reader.read([image.data for image in images])
    for image, one, same in zip(images, found, read, strict=True):
        assert (one.name, one.text) == (image.name, same.text)
        assert np.array_equal(one.picture, image.data)
        assert one.size == image.data.shape[:2]
        assert one.confidence == pytest.approx(same.confidence, rel=1e-4)
        assert one.confidences == pytest.approx([sure for _, sure in same.characters], rel=1e-4)
        assert one.box == covered(one.size, (32, 64), resize)
        assert len(one.maps) == len(one.characters)
        assert one.is_ctc == (decoder == "ctc")
        for number, (x, y) in enumerate(one.centres):
            weights = one.maps[number]
            rows, columns = weights.shape
            across = [
                one.box.left + (column + 0.5) / columns * (one.box.right - one.box.left) for column in range(columns)
            ]
            down = [one.box.top + (row + 0.5) / rows * (one.box.bottom - one.box.top) for row in range(rows)]
            places = itertools.product(range(rows), range(columns))
            sums = [weights[row, column] * np.array([across[column], down[row]]) for row, column in places]
            np.testing.assert_allclose([x, y], np.sum(sums, axis=0), atol=1e-5)


def test_large_pictures_are_shown_smaller_in_their_shape() -> None:
    reader = text_reader("recurrent", "ctc")
    (one,) = frames_of(reader, [blot_image("large.png", (700, 4000))])
    assert one.size == (700, 4000)
    assert one.picture.shape == (224, 1280, 3)
    assert LARGEST == (640, 1280)


def test_pictures_that_cannot_be_shown() -> None:
    reader = text_reader("recurrent", "ctc")
    with pytest.raises(BadPicture, match=r"broken\.png"):
        frames_of(reader, [blot_image("good.png"), RawImage("broken.png", None, b"\x89PNG\r\n\x1a\n and no more")])
    with pytest.raises(BadInput, match="no picture"):
        frames_of(reader, [])
    images = (blot_image(f"{number}.png") for number in itertools.count())
    with pytest.raises(BadInput, match=f"more than {MOST_PICTURES}"):
        frames_of(reader, images)
    assert next(images).name == f"{MOST_PICTURES + 1}.png"  # no more were asked for


def test_hangul_has_its_names() -> None:
    charset = Charset.of(CharsetSection(sets=("hangul",), hangul="jamo"))
    model = reading_model("vit", "transformer", charset)
    assert isinstance(model, WritingRecognizer)
    with torch.no_grad():
        model.writer.head.map.bias[END] -= 100.0  # one of thousands is rarely likelier than the end
    (one,) = frames_of(TextReader(model, charset, "squash", torch.device("cpu")), [blot_image("x.png")])
    assert len(one.text) == 5
    assert all("가" <= character <= "힣" for character in one.characters)
