"""Positions as numbers and pictures, beside the formulas they come from."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from seeded import seed as seed

from jumok.data.batch import Sequences
from jumok.errors import BadInput
from jumok.inspect.positions import KINDS, Positions, formula, positions_of, to_json
from jumok.inspect.positions_picture import _row, draw, page, text, write_positions
from jumok.layers.multihead import Look, MultiHeadAttention
from jumok.layers.position import Rotary
from jumok.models.build import build
from jumok.models.language import build_language_model
from jumok.models.recognizer import Recognizer, build_recognizer
from jumok.models.vit import ImageLabeller
from jumok.recipe import Seq2SeqSection, TransformerLanguageSection, TransformerSection, VitSection
from jumok.recipe.models import Position
from jumok.recipe.recognition import CharsetSection, RecognizerSection
from jumok.text.charset import Charset

SMALL = {"width": 16, "heads": 2, "feed_forward": 16}


def translator(position: str, **options: Any) -> Any:
    section = TransformerSection(position=position, encoder_layers=1, decoder_layers=1, **SMALL, **options)  # type: ignore[arg-type]
    return build(section, 11, 11)


def recognizer(encoder: Any, decoder: Any) -> Recognizer:
    section = RecognizerSection(
        encoder=encoder, decoder=decoder, max_length=5, **{**SMALL, "layers": 1, "decoder_heads": 2}
    )  # type: ignore[arg-type]
    return build_recognizer(section, Charset.of(CharsetSection(sets=("digits",))))


# ---------------------------------------------------------------- numbers


@given(st.integers(1, 12), st.integers(2, 60))
@settings(max_examples=20, deadline=None)
def test_sinusoidal_similarity_is_the_mean_of_cosines(half: int, length: int) -> None:
    found = formula("sinusoidal", width=2 * half, length=length)
    angles = [10000.0 ** (-i / half) for i in range(half)]
    for alike in (*found.by_offset(), *found.by_offset(beyond=True)):
        expected = sum(math.cos(alike.offset * angle) for angle in angles) / half
        assert alike.low - 1e-5 <= expected <= alike.high + 1e-5
        assert alike.high - alike.low < 1e-5  # it does not matter where the two stand


def test_the_halves_are_the_same_numbers_in_another_order() -> None:
    plain, halves = formula("sinusoidal", width=8, length=20), formula("sinusoidal-halves", width=8, length=20)
    assert (halves.kind, halves.name) == ("sinusoidal-halves", "sinusoidal-halves")
    np.testing.assert_array_equal(halves.table, np.concatenate([plain.table[:, 0::2], plain.table[:, 1::2]], axis=1))
    np.testing.assert_allclose(halves.similarity, plain.similarity, atol=1e-6)
    (of_model,) = positions_of(translator("sinusoidal-halves"), length=20)
    assert of_model.name == "sinusoidal-halves"


@pytest.mark.parametrize("kind", get_args(Position))
def test_every_kind_of_the_recipes_is_drawn_or_refused_with_a_reason(kind: str) -> None:
    """A new kind of positions must not end as "no positions"."""
    if kind in KINDS:
        assert formula(kind, width=8, length=6).kind == kind
    else:
        with pytest.raises(BadInput, match=f"^kind {kind}: "):
            formula(kind)


def test_rotary_is_what_attention_does_with_queries_and_keys(seed: int) -> None:
    found = formula("rotary", width=8, length=20)
    rotary = Rotary(8)
    start = torch.cat([torch.ones(4), torch.zeros(4)])
    attention = MultiHeadAttention(8, 1, 1, 0.0, "self", "test")
    with torch.no_grad():
        for linear in (attention.query, attention.key):
            linear.weight.copy_(torch.eye(8))
        turns = Look(turns=rotary(torch.arange(20))).turns
        key = attention.project(start.expand(1, 20, 8), turns).key[0, :, 0]
    np.testing.assert_allclose(found.table, key.numpy(), atol=1e-6)
    np.testing.assert_allclose(found.similarity, (key @ key.T / 4).numpy(), atol=1e-5)


def test_pairs_are_parted_by_the_length_of_training() -> None:
    table = np.zeros((6, 2), dtype=np.float32)
    similarity = np.arange(36, dtype=np.float32).reshape(6, 6)
    found = Positions("learned", "made up", table, similarity, trained=4)
    within = {alike.offset: alike for alike in found.by_offset()}
    beyond = {alike.offset: alike for alike in found.by_offset(beyond=True)}
    assert within[1][1:] == (8.0, 1.0, 15.0)  # (0,1) (1,2) (2,3)
    assert beyond[1][1:] == (25.5, 22.0, 29.0)  # (3,4) (4,5)
    assert max(within) == 3
    assert max(beyond) == 5
    assert not Positions("learned", "", table, similarity).by_offset(beyond=True)


def test_learned_positions_come_from_the_weights_and_end(seed: int) -> None:
    model = translator("learned", max_positions=10)
    encoder, decoder = positions_of(model, length=14, trained=8)
    assert (encoder.name, decoder.name) == ("encoder: learned", "decoder: learned")
    np.testing.assert_array_equal(encoder.table[:10], model.encoder.added.weight.detach().numpy())
    np.testing.assert_array_equal(decoder.table[:10], model.decoder.added.weight.detach().numpy())
    assert np.isnan(encoder.table[10:]).all()
    assert encoder.reach == 10
    assert max(alike.offset for alike in encoder.by_offset(beyond=True)) == 9
    assert json.loads(to_json([encoder]))["positions"][0]["table"][12] == [None] * 16


def test_relative_positions_are_what_the_stack_adds_to_the_scores(seed: int) -> None:
    model = translator("relative")
    for stack in (model.encoder, model.decoder):
        torch.nn.init.normal_(stack.relative.weight.weight)
    encoder, decoder = positions_of(model, length=9, trained=5)
    biases: list[torch.Tensor] = []
    handle = model.encoder.blocks[0].attention.tap.register_forward_pre_hook(
        lambda _tap, inputs: biases.append(inputs[5].detach()[0])
    )
    model(Sequences.pad([[1] * 9]), torch.ones(1, 9, dtype=torch.int64))
    handle.remove()
    np.testing.assert_allclose(encoder.similarity, biases[0].mean(dim=0).numpy(), atol=1e-6)
    assert (encoder.first, len(encoder.table)) == (-8, 17)
    np.testing.assert_allclose(encoder.table[8 + 3], biases[0][:, 2, 5].numpy(), atol=1e-6)  # three ahead
    assert {alike.offset for alike in decoder.by_offset()} == set(range(-4, 1))  # it never looks ahead
    assert np.isnan(decoder.similarity[0, 1])


def test_one_formula_is_told_once_and_the_length_follows_the_training() -> None:
    (found,) = positions_of(translator("sinusoidal"), trained=40)
    assert (found.kind, found.length, found.trained) == ("sinusoidal", 80, 40)
    language = build_language_model(TransformerLanguageSection(layers=1, position="rotary", **SMALL), 9)  # type: ignore[arg-type]
    (turned,) = positions_of(language, length=300)
    assert turned.table.shape == (300, 8)  # a head's width, and more rows than the table began with


@pytest.mark.parametrize("encoder", ["vit", "recurrent"])
def test_readers_of_words_have_places_of_characters(encoder: str) -> None:
    permuted = recognizer(encoder, "permuted")
    (found,) = positions_of(permuted, trained=6)
    assert (found.kind, found.name, found.length, found.reach) == ("learned", "decoder: learned", 12, 6)
    np.testing.assert_array_equal(found.table[:6], permuted.get_parameter("positions").detach().numpy())
    (found,) = positions_of(recognizer(encoder, "transformer"))
    assert found.kind == "sinusoidal"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: formula("rotari"), 'Did you mean "rotary"'),
        (lambda: formula("relativ"), 'Did you mean "relative"'),
        (lambda: formula("relative"), "kind relative: .* only in a trained model: name one with --run"),
        (lambda: formula("none"), "a model without positions has none to show"),
        (lambda: formula("sinusoidal", width=5), "must be even"),
        (lambda: formula("learned", length=10**6), "length 1000000: from 2 to 2048"),
        (lambda: formula("learned", length=1), "length 1"),
        (lambda: formula("learned", trained=0), "above zero"),
        (lambda: positions_of(translator("none")), "model.position: none"),
        (lambda: positions_of(build(Seq2SeqSection(width=8, embedding=8), 9, 9)), "it is recurrent"),
        (lambda: positions_of(recognizer("recurrent", "ctc")), "it is recurrent"),
        (lambda: positions_of(recognizer("vit", "ctc")), "--what positions"),
        (lambda: positions_of(ImageLabeller(VitSection(width=16, heads=2, layers=1), 3)), "--what positions"),
    ],
)
def test_what_cannot_be_shown_is_refused(call: Callable[[], object], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        call()


# ---------------------------------------------------------------- pictures


def test_the_terminal_says_where_training_ends() -> None:
    shown = text(formula("learned", width=32, length=40, trained=20), width=60)
    assert "longer than in training (20)" in shown
    assert "(no such position)" in shown
    plain = text(formula("sinusoidal", width=32, length=40), width=60, ascii_only=True)
    assert plain.isascii()
    assert all(len(line) <= 100 for line in plain.splitlines())
    assert re.search(r"^\s+0 \+1\.000", plain, re.MULTILINE)


def test_files_of_every_kind_are_the_same_each_time(tmp_path: Path) -> None:
    relative = translator("relative")
    found = [formula("learned", 8, 20), *positions_of(relative, 12, 6)]
    light = draw(found, "svg")
    assert light.startswith(b"<?xml")
    assert draw(found, "svg") == light
    assert draw(found[:1], "png", dark=True).startswith(b"\x89PNG")
    write_positions(found, tmp_path / "positions.json")
    stored = json.loads((tmp_path / "positions.json").read_text(encoding="utf-8"))
    assert [one["kind"] for one in stored["positions"]] == ["learned", "relative", "relative"]
    with pytest.raises(BadInput, match=r"none of \.png"):
        write_positions(found, tmp_path / "positions.bmp")


def test_the_page_answers_with_numbers(tmp_path: Path, visit: Callable[..., Any]) -> None:
    found = [formula("sinusoidal", 16, 32), formula("learned", 16, 32), *positions_of(translator("relative"), 12, 6)]
    path = tmp_path / "positions.html"
    path.write_text(page(found), encoding="utf-8")
    browser = visit(path)
    sections = browser.locator("section.positions")
    assert sections.count() == 4
    first, readout = sections.nth(0), sections.nth(0).locator(".readout")
    box = first.locator("canvas.map").nth(0).bounding_box()
    browser.mouse.move(box["x"] + box["width"] * 3.5 / 16, box["y"] + box["height"] * 2.5 / 32)
    told = readout.text_content()
    assert "position 2, dimension 3" in told
    value = float(re.search(r"value ([−\d.]+)", told).group(1).replace("−", "-"))  # type: ignore[union-attr]
    assert value == pytest.approx(float(found[0].table[2, 3]), abs=0.005)
    pairs = first.locator("canvas.map").nth(1)
    pairs.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "Enter"):
        browser.keyboard.press(key)
    assert "positions 1 and 1, 0 apart · pinned" in readout.text_content()
    first.locator("canvas.curve").hover()
    assert "beyond training" in readout.text_content()
    learned = sections.nth(1).locator("canvas.map").nth(0)
    box = learned.bounding_box()
    learned.hover(position={"x": 5, "y": box["height"] - 5})
    assert "there is no such position" in sections.nth(1).locator(".readout").text_content()


@pytest.mark.parametrize("both_ways", [True, False])
def test_distances_are_marked_on_both_sides_of_training(both_ways: bool) -> None:
    """An encoder's distances go both ways, a decoder's only back: no line outside of the map."""
    found = [one for one in positions_of(translator("relative"), 20, trained=8) if (len(one.table) > 20) == both_ways]
    (one,) = found
    axes = _lines(one)
    assert sorted(axes) == ([-7.5, 7.5] if both_ways else [-7.5])
    told = text(one, 80).splitlines()
    marks = [line.split("─ ")[-1] for line in told if "─" in line]
    ends = ["longer than in training (8)"] if both_ways else []
    assert marks == ["longer than in training (8)", "as in training", *ends]


def _lines(one: Positions) -> list[float]:
    """Where the first map has a line across."""
    figure = plt.figure()
    panels = figure.subplots(1, 3)
    _row(panels, one, dark=False)
    lines = {float(np.asarray(line.get_ydata())[0]) for line in panels[0].lines}
    plt.close(figure)
    return list(lines)
