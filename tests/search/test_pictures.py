"""The search for what stands in pictures: greedy is what `read` gives, a beam finds what is likelier."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from torch import Tensor

from jumok.data.batch import END
from jumok.inspect.record import record
from jumok.models.recognizer import Reading, build_recognizer
from jumok.models.recognizer_decoders import WritingRecognizer
from jumok.recipe.recognition import CharsetSection, RecognizerSection
from jumok.search import generate
from jumok.search.pictures import reading_options, search_pictures
from jumok.text.charset import Charset

CLOSE = {"atol": 1e-5, "rtol": 1e-5}
KINDS = [("recurrent", "recurrent"), ("vit", "transformer"), ("vit", "recurrent"), ("recurrent", "transformer")]
kinds = pytest.mark.parametrize(("encoder", "decoder"), KINDS)


def model_of(encoder: str, decoder: str, charset: CharsetSection, end: float = 0.0, longest: int = 5) -> Any:
    section = RecognizerSection.model_validate(
        {
            "image": (32, 64), "channels": 1, "encoder": encoder, "decoder": decoder, "width": 32, "heads": 2,
            "decoder_heads": 2, "feed_forward": 48, "layers": 1, "decoder_layers": 2, "max_length": longest,
        }
    )  # fmt: skip
    model = build_recognizer(section, Charset.of(charset))
    assert isinstance(model, WritingRecognizer)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.15 * torch.randn_like(parameter))
        model.writer.head.map.bias[END] += end
    return model.eval()


def pictures(rows: int) -> Tensor:
    return torch.nn.functional.interpolate(torch.rand(rows, 1, 4, 8) * 255, (32, 64)).to(torch.uint8)


def rows_of(reading: Reading) -> list[list[int]]:
    assert (reading.ids != 0).sum(dim=1).tolist() == reading.lengths.tolist()
    return [ids[:length] for ids, length in zip(reading.ids.tolist(), reading.lengths.tolist(), strict=True)]


@pytest.mark.parametrize("sets", [("digits", "latin"), ("digits", "hangul")])
@kinds
def test_a_beam_of_one_is_greedy_reading(encoder: str, decoder: str, sets: Any) -> None:
    for end in (-50.0, 0.0, 3.0, 50.0):  # all cut, some of both, all empty
        model, images = model_of(encoder, decoder, CharsetSection(sets=sets), end), pictures(6)
        direct, searched = model.read(images), search_pictures(model, images)
        assert rows_of(searched) == rows_of(direct)
        torch.testing.assert_close(searched.ending, direct.ending, **CLOSE)
        width = min(direct.ids.size(1), searched.ids.size(1))
        torch.testing.assert_close(searched.log_probs[:, :width], direct.log_probs[:, :width], **CLOSE)
        found = generate(model, model.batch(images), reading_options(model))
        totals = torch.tensor([hypotheses[0].log_probability for hypotheses in found])
        torch.testing.assert_close(direct.log_probs.sum(dim=1) + direct.ending, totals, **CLOSE)


@kinds
@torch.no_grad()
def test_a_beam_finds_the_likeliest_of_all_texts(encoder: str, decoder: str) -> None:
    """Where there are few enough to try each: it is never worse than greedy reading, and no text is better."""
    model, images = model_of(encoder, decoder, CharsetSection(sets=(), extra="abc"), end=1.0, longest=3), pictures(5)
    texts = [list(text) for length in range(4) for text in itertools.product((4, 5, 6), repeat=length)]
    ids = torch.tensor([[*text, END, 0, 0, 0][:4] for text in texts])
    lengths = torch.tensor([len(text) for text in texts])
    reading, greedy = search_pictures(model, images, beam=40), model.read(images)
    for row, text in enumerate(rows_of(reading)):
        each = -model.losses(images[[row]].expand(len(texts), -1, -1, -1), ids, lengths)["loss"]
        total = reading.log_probs[row].sum() + reading.ending[row]
        torch.testing.assert_close(total, each.max(), **CLOSE)
        torch.testing.assert_close(each[texts.index(text)], total, **CLOSE)
        assert total >= greedy.log_probs[row].sum() + greedy.ending[row] - 1e-5


@kinds
def test_a_reading_does_not_depend_on_its_neighbours(encoder: str, decoder: str) -> None:
    model, images = model_of(encoder, decoder, CharsetSection(), end=2.0), pictures(5)
    together = search_pictures(model, images, beam=3)
    for row, text in enumerate(rows_of(together)):
        alone = search_pictures(model, images[row : row + 1], beam=3)
        assert rows_of(alone) == [text]
        torch.testing.assert_close(alone.ending[0], together.ending[row], **CLOSE)


def test_no_pictures_give_no_readings() -> None:
    reading = search_pictures(model_of("vit", "transformer", CharsetSection()), pictures(0), beam=5)
    assert (len(reading.ids), len(reading.ending)) == (0, 0)


def test_gradients_are_neither_needed_nor_kept() -> None:
    model, images = model_of("vit", "transformer", CharsetSection()), pictures(2)
    with torch.inference_mode():
        inside = search_pictures(model, images, beam=3)
    outside = search_pictures(model, images, beam=3)
    assert rows_of(inside) == rows_of(outside)
    assert not outside.log_probs.requires_grad
    assert not outside.ending.requires_grad


@kinds
def test_what_the_best_text_looked_at_can_be_seen(encoder: str, decoder: str) -> None:
    """Along the path of its hypothesis: a row of weights over the grid for each character and for <eos>."""
    model, images = model_of(encoder, decoder, CharsetSection(), end=1.0), pictures(3)
    name = "decoder" if decoder == "recurrent" else "decoder.1.cross"
    places, heads = model.encoder.grid[0] * model.encoder.grid[1], () if decoder == "recurrent" else (2,)
    with record(model) as seen:
        reading = search_pictures(model, images, beam=4)
    assert seen.max_difference < 1e-5
    for row, text in enumerate(rows_of(reading)):
        path = seen.path(row)
        assert list(path.tokens) == text
        written = len(text) + path.finished
        assert path[name].shape == (*heads, written, places)
        torch.testing.assert_close(path[name].sum(dim=-1), torch.ones(*heads, written))
        torch.testing.assert_close(seen.weights(name)[row, ..., :written, :], path[name], **CLOSE)
