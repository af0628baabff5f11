"""Readers of words in pictures, described: the parts add up, the shapes are those of real pictures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from seeded import seed  # noqa: F401
from torch import nn

from jumok import recipe
from jumok.inspect.architecture import Architecture, Part, every_part
from jumok.inspect.architecture_drawing import laid_out
from jumok.inspect.architecture_page import write_drawing
from jumok.inspect.describe import describe_recipe, describe_run
from jumok.models.recognizer import Recognizer, build_recognizer
from jumok.recipe.recognition import CharsetSection, RecognizerSection
from jumok.tasks.recognition import CHARSET
from jumok.text.charset import Charset
from jumok.training.run import RunFolder

SMALL = ["model.width=24", "model.heads=2", "model.layers=2", "model.feed_forward=40", "model.decoder_heads=4"]
CASES = {
    "crnn": [*SMALL, "model.channels=1"],
    "attn-lstm": [*SMALL, "model.decoder_layers=2", "charset.sets=[hangul]"],
    "vit-ctc": [*SMALL, "model.stem=patch", "model.patch=[32, 4]"],
    "vit-decoder": [*SMALL, "model.decoder_layers=2", "model.patch=[8, 8]"],
    "permuted": [
        *SMALL,
        "model.patch=[16, 4]",
        "model.decoder_layers=2",
        "model.stem_depth=2",
        "charset.sets=[digits, hangul]",
    ],
    "read-demo": [*SMALL, "model.decoder=permuted", "model.ctc=0", "model.encoder=recurrent", "model.width=28"],
}


def of(name: str) -> tuple[Architecture, Recognizer]:
    chosen = recipe.read(name, CASES[name])
    assert isinstance(chosen.model, RecognizerSection)
    return describe_recipe(chosen, name), build_recognizer(chosen.model, Charset.of(chosen.charset))


def leaves(parts: tuple[Part, ...], times: int = 1) -> int:
    return sum(leaves(part.parts, times * part.times) if part.parts else part.total() * times for part in parts)


@pytest.mark.parametrize("name", CASES)
def test_the_parts_add_up_to_the_model(name: str) -> None:
    shown, model = of(name)
    assert shown.parameters == sum(parameter.numel() for parameter in model.parameters())
    assert sum(leaves(column.parts) for column in shown.columns) == shown.parameters
    for column in shown.columns:
        for part in every_part(column.parts):
            assert not part.parts or part.parameters == leaves(part.parts)


@pytest.mark.parametrize("name", CASES)
def test_the_shapes_are_those_of_real_pictures(name: str) -> None:
    """Letters put in for the sizes of a real batch are sizes that the model's layers give, or take."""
    shown, model = of(name)
    section, seen = model.section, set()

    def see(_module: nn.Module, given: Any, output: Any) -> None:
        first = output[0] if isinstance(output, tuple) else output
        seen.update(tuple(one.shape) for one in (first, given[0]) if isinstance(one, torch.Tensor))

    for module in model.modules():
        module.register_forward_hook(see)
    images = torch.randint(0, 256, (2, section.channels, *section.image), dtype=torch.uint8)
    seen.add(tuple(images.shape))
    lengths = torch.randint(0, section.max_length + 1, (2,))
    model.eval().losses(images, torch.ones(2, section.max_length + 1, dtype=torch.long), lengths)
    parts = [part.shape for column in shown.columns for part in every_part(column.parts) if part.shape]
    for shape in [*parts, *(column.shape for column in shown.columns if column.shape)]:
        assert tuple(2 if letter == "B" else int(letter) for letter in shape.split(" × ")) in seen, shape


def test_what_writes_looks_at_what_was_seen() -> None:
    told = {name: str(of(name)[0]) for name in CASES}
    assert "Convolutions and LSTMs with CTC" in told["crnn"]
    assert "<pad> is the blank" in told["crnn"]
    assert "the largest of 2 × 1" in told["crnn"]
    assert "encoder's LSTM, 2 layers → decoder's attention: hidden states: keys and values" in told["attn-lstm"]
    assert "19 first letters, 21 vowels, 28 last letters" in told["attn-lstm"]
    assert "mean over rows" not in told["vit-ctc"]  # there is one only
    assert "patches: of 32 × 4 pixels" in told["vit-ctc"]
    assert "encoder's LayerNorm → decoder's cross-attention: keys and values" in told["vit-decoder"]
    assert "mean over rows" not in told["vit-decoder"]  # no columns are read
    assert "characters' positions → decoder's attention to characters" in told["permuted"]
    assert "mean over rows: of each column, 2 places" in told["permuted"]
    assert "blank" not in told["read-demo"]


def test_a_way_over_a_column_passes_above_it() -> None:
    """What the picture says goes past the characters to what looks at both."""
    shown, _ = of("permuted")
    plan = laid_out(shown)
    lefts = sorted({box.x for box in plan.boxes})
    between = [box for box in plan.boxes if box.x == lefts[1]]
    ways = [way for way in plan.ways if way.kind == "link"]
    assert len(ways) == 2
    for way in ways:
        for (x, y), (other, end) in zip(way.points, way.points[1:], strict=False):
            for box in between:
                if y == end:  # it lies: above the box, or beside it
                    assert y > box.y + box.height or min(x, other) >= box.x + box.width
                else:  # it stands
                    assert not box.x < x < box.x + box.width


def test_a_run_has_its_own_characters(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path / "run", recipe.read("crnn", CASES["crnn"]))
    charset = Charset.of(CharsetSection(sets=("digits",), extra="★"))
    (run.path / CHARSET).write_text(charset.to_json(), encoding="utf-8")
    assert f"softmax over characters: 24 → {charset.size}" in str(describe_run(run.path))


@pytest.mark.browser
def test_the_page_in_both_themes(tmp_path: Path, visit: Callable[..., Any]) -> None:
    shown, _ = of("permuted")
    write_drawing(shown, tmp_path / "x.html")
    for scheme in ("light", "dark"):
        view = visit(tmp_path / "x.html", color_scheme=scheme, viewport={"width": 390, "height": 800})
        assert view.evaluate("document.documentElement.scrollWidth") <= 390
        view.locator(".part", has_text="attention to characters").focus()
        assert "keys and values through a norm of their own" in view.locator(".readout").inner_text()
