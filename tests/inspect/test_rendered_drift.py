"""Drift over many words: the sums are right, long words alone are no growth, rendered words have their own places."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from looking_words import reading_model, texts_as_ids
from seeded import seed as seed
from small_fonts import FONTS, PLAIN

from jumok import recipe as recipes
from jumok.data.rendering.pictures import rendered
from jumok.errors import BadInput
from jumok.inspect import rendered_drift as module
from jumok.inspect.reading_attention import Looked
from jumok.inspect.rendered_drift import Drift, Placed, drift_on_rendered, measured
from jumok.recipe import Recipe
from jumok.recipe.recognition import RecognizerSection
from jumok.text.charset import Charset

COLUMNS = 400


class Known:
    """A model whose maps point at columns that a test chooses, and which reads some words right."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.model = reading_model("vit", "transformer", max_length=12)
        self.pointed: list[list[float]] = []
        monkeypatch.setattr(module, "looked_given", self._looked)

    def _looked(self, *_: Any) -> Looked:
        maps = torch.zeros(len(self.pointed), 12, 1, COLUMNS)
        for row, places in enumerate(self.pointed):
            for number, x in enumerate(places):
                maps[row, number, 0, min(COLUMNS - 1, int(x * COLUMNS))] = 1
        return Looked(maps, 0.0)

    def drift(self, words: list[str], centres: list[list[float]], pointed: list[list[float]]) -> Drift:
        self.pointed = pointed
        places = torch.full((len(words), 12, 2), 7.0)
        for row, known in enumerate(centres):
            places[row, : len(known), 0] = torch.tensor(known)
        ids, lengths = texts_as_ids(words, 13)
        images = torch.zeros(len(words), 1, 32, 64, dtype=torch.uint8)
        return measured(self.model, [Placed(images, ids, lengths, places)])


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Known:
    return Known(monkeypatch)


def evenly(count: int) -> list[float]:
    return [(place + 0.5) / count for place in range(count)]


def test_means_by_position_and_by_length(known: Known) -> None:
    away = 0.1  # of the width
    found = known.drift(
        ["12", "1234", ""],
        [evenly(2), evenly(4), []],
        [[x + away for x in evenly(2)], [x - away for x in evenly(4)], []],
    )
    near = 1 / COLUMNS * 4
    assert (found.words, found.characters) == (2, 6)  # the empty one has none
    assert found.mean_share == pytest.approx(away, abs=near)
    assert found.mean.score == pytest.approx((2 * 0.2 + 4 * 0.4) / 6, abs=near)
    assert [(one.number, one.words) for one in found.positions] == [(1, 2), (2, 2), (3, 1), (4, 1)]
    assert [(one.number, one.words) for one in found.lengths] == [(2, 1), (4, 1)]
    assert found.positions[0].mean == pytest.approx(0.3, abs=near)
    assert found.positions[0].signed == pytest.approx(-0.1, abs=near)
    assert found.lengths[0].signed == pytest.approx(0.2, abs=near)
    assert found.lengths[1].signed == pytest.approx(-0.4, abs=near)
    assert found.own == 1.0
    assert found.uniform == pytest.approx((2 * 0.5 + 2 * (0.5 + 1.5)) / 6, abs=1e-6)
    assert found.right.score == 0
    assert math.isnan(found.mean_right)
    assert found.mean_wrong == pytest.approx(found.mean.score)


def test_maps_that_are_the_same_everywhere_are_told(known: Known) -> None:
    """They are farther from characters at the ends of a word, which is no growth along it."""
    words = ["1234", "12345", "123456"] * 5
    middles = known.drift(words, [evenly(len(word)) for word in words], [[0.5] * len(word) for word in words])
    assert middles.verdict == "it is as large as that of maps which are the same everywhere"
    exact = known.drift(words, [evenly(len(word)) for word in words], [evenly(len(word)) for word in words])
    assert exact.verdict != middles.verdict


def test_long_words_alone_are_no_growth_and_growth_is(known: Known, seed: int) -> None:
    """Every character 2 % of the width away: more of narrow characters, but not more along a word."""
    counts = [3, 12] * 10
    words, centres = ["".join(str(place % 10) for place in range(count)) for count in counts], list(map(evenly, counts))
    flat = known.drift(words, centres, [[x + 0.02 for x in places] for places in centres])
    assert flat.slope.score == pytest.approx(0, abs=0.02)
    assert flat.positions[-1].mean > 1.5 * flat.positions[0].mean  # by position alone it looks like growth
    noise = np.random.default_rng()

    def farther(places: list[float], order: list[int]) -> list[float]:
        return [x + (0.1 * rank + 0.1 * noise.random()) / len(places) for rank, x in zip(order, places, strict=True)]

    grown = known.drift(words, centres, [farther(places, [*range(len(places))]) for places in centres])
    assert grown.slope.score == pytest.approx(0.1, abs=0.03), f"seed {seed}"
    assert grown.verdict == "it grows along the word"
    shrunk = known.drift(words, centres, [farther(places, [*range(len(places))][::-1]) for places in centres])
    assert shrunk.slope.score == pytest.approx(-0.1, abs=0.03), f"seed {seed}"
    assert shrunk.verdict == "it shrinks along the word"


def test_the_slope_has_a_level_for_each_word(known: Known, seed: int) -> None:
    chance = np.random.default_rng()
    counts = [2, 5, 3, 7, 1, 4]
    words = ["".join(chance.choice(list("0123456789"), count)) for count in counts]
    centres = [sorted(chance.uniform(0, 1, count)) for count in counts]
    pointed = [list((chance.integers(0, COLUMNS, count) + 0.5) / COLUMNS) for count in counts]
    found = known.drift(words, centres, pointed)
    rows, values = [], []
    for word, (places, looks) in enumerate(zip(centres, pointed, strict=True)):
        width = float(np.diff(places).mean()) if len(places) > 1 else 1.0
        for number, (x, seen) in enumerate(zip(places, looks, strict=True)):
            rows.append([number, *(float(word == other) for other in range(len(words)))])
            values.append(abs(seen - x) / width)
    expected = np.linalg.lstsq(np.array(rows), np.array(values), rcond=None)[0][0]
    assert found.slope.score == pytest.approx(expected, rel=1e-3, abs=1e-5), f"seed {seed}"


def test_words_read_right_are_told_apart(known: Known, monkeypatch: pytest.MonkeyPatch) -> None:
    ids, _ = texts_as_ids(["123", "456"], 13)
    read = type("Read", (), {"ids": torch.where(ids == 3, 0, ids)[:, :12]})
    read.ids[1, 0] = ids[0, 0]  # the second is misread
    monkeypatch.setattr(known.model, "read", lambda *_: read)
    found = known.drift(["123", "456"], [evenly(3)] * 2, [evenly(3), [x + 0.1 for x in evenly(3)]])
    assert found.right.score == 0.5
    assert found.mean_right == pytest.approx(0, abs=0.01)
    assert found.mean_wrong == pytest.approx(0.3, abs=0.01)


def test_what_is_told_can_be_read(known: Known) -> None:
    found = known.drift(["12", "345"], [evenly(2), evenly(3)], [evenly(2), [0.9, 0.1, 0.5]])
    text = found.summary()
    assert "5 characters in 2 rendered words" in text
    assert all(len(line) < 130 for line in text.splitlines())
    told = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert told["positions"][2]["words"] == 1
    assert told["mean"]["score"] == pytest.approx(found.mean.score)
    with pytest.raises(BadInput, match="none of the words"):
        known.drift([""], [[]], [[]])


# ---------------------------------------------------------------- rendered


@pytest.fixture
def recipe(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Recipe]:
    monkeypatch.setenv("JUMOK_CACHE", str(tmp_path_factory.getbasetemp() / "drift-cache"))

    def make(**model: Any) -> Recipe:
        keys = {"kind": "recognizer", "channels": 1, "image": [32, 64], "width": 24, "heads": 2, "layers": 1,
                "patch": [16, 8], "feed_forward": 32, "decoder_heads": 2, "max_length": 6, **model}  # fmt: skip
        render = {"fonts": [str(FONTS / "DejaVuSans.ttf")], "size": 24, **PLAIN, "held_out_fonts": 0,
                  "texts": {"words": 0, "letters": 1, "numbers": 0, "empty": 0.1}}  # fmt: skip
        return recipes.check(
            {"task": "recognition", "charset": {"sets": ["digits"]}, "render": render, "model": keys,
             "data": {"train": {"rendered": "words"}, "resize": "squash"}}, "test",
        )  # fmt: skip

    return make


@pytest.mark.parametrize(("encoder", "decoder"), [("recurrent", "ctc"), ("vit", "transformer"), ("vit", "permuted")])
def test_rendered_words(recipe: Callable[..., Recipe], encoder: str, decoder: str) -> None:
    made = recipe(encoder=encoder, decoder=decoder)
    assert isinstance(made.model, RecognizerSection)
    model = reading_model(
        encoder, decoder, Charset.of(made.charset), **made.model.model_dump(exclude={"encoder", "decoder"})
    )
    seen: list[torch.Tensor] = []
    watched = model.encoder.register_forward_pre_hook(lambda _module, inputs: seen.append(inputs[0].clone()))
    found = drift_on_rendered(model, made, 40, 5)
    watched.remove()
    again = drift_on_rendered(model, made, 40, 5)
    assert found.to_json() == again.to_json()
    assert 20 <= found.words <= 40
    assert found.positions[0].words == found.words
    assert sum(one.words for one in found.lengths) == found.words
    assert found.uniform > 0
    expected = torch.cat([part.images for part in rendered(made, model.charset, "test", 40, 5)])
    assert torch.equal(seen[0], expected)  # what others render with this seed
    assert drift_on_rendered(model, made, 40, 6).to_json() != found.to_json()


def test_what_a_model_has_not_is_refused_before_rendering(
    recipe: Callable[..., Recipe], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = recipe(encoder="recurrent", decoder="ctc")
    monkeypatch.setattr(module, "RenderedWords", None)
    with pytest.raises(BadInput, match="CTC"):
        drift_on_rendered(reading_model("recurrent", "ctc"), made, 3, 1, layer=0)


def test_a_map_on_the_ink_is_on_the_character(recipe: Callable[..., Recipe], monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that looks at the ink nearest to where the renderer says a character is: drift is next to nothing."""
    made = recipe(encoder="recurrent", decoder="ctc")
    model = reading_model("recurrent", "ctc", Charset.of(made.charset), image=(32, 64), max_length=6)

    def on_ink(_model: Any, images: torch.Tensor, _ids: Any, lengths: torch.Tensor, *_: Any) -> Looked:
        dark = (255 - images.float()).mean(dim=(1, 2))  # (B, W)
        maps = torch.zeros(len(images), 6, 1, images.size(3))
        for row, length in enumerate(lengths.tolist()):
            total = dark[row].cumsum(0) / dark[row].sum().clamp(min=1)
            for place in range(length):  # digits of this font are equally wide, and nearly as dark
                inside = (total >= place / length) & (total <= (place + 1) / length)
                maps[row, place, 0] = dark[row] * inside / (dark[row] * inside).sum().clamp(min=1e-6)
        return Looked(maps, 0.0)

    monkeypatch.setattr(module, "looked_given", on_ink)
    found = drift_on_rendered(model, made, 60, 3)
    assert found.mean.score < 0.3
    assert found.uniform > 2 * found.mean.score
