from __future__ import annotations

import html
import itertools
import math
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import typer
from commands import invoke

from jumok import api, recipe
from jumok.cli.describe import describe
from jumok.data.batch import Sequences
from jumok.errors import BadInput
from jumok.inspect.architecture import Architecture, Part, every_part
from jumok.inspect.architecture_drawing import draw_architecture, laid_out
from jumok.inspect.architecture_page import page, write_drawing
from jumok.inspect.describe import describe_recipe, describe_run
from jumok.models.build import build
from jumok.models.forecaster import Forecaster
from jumok.models.language import build_language_model

SMALL = ["model.width=32", "tokenizer.vocabulary=300"]
BLOCKS = ["model.heads=4", "model.feed_forward=48"]
CASES = {
    "rnn": ["model.embedding=24"],
    "lstm": ["model.layers=3", "model.embedding=24", "model.tie_embeddings=false"],
    "gru": ["model.layers=1"],
    "lstm-bahdanau": ["model.cell=gru"],
    "lstm-luong": ["model.input_feeding=true", "model.scorer=location", "model.bidirectional=true"],
    "transformer-tiny": [*BLOCKS, "model.norm=post", "model.position=learned", "model.tie_embeddings=none"],
    "transformer-small": [*BLOCKS, "model.key_value_heads=2", "model.position=relative", "model.norm_kind=rms"],
    "transformer-lm": [*BLOCKS, "model.activation=swiglu"],
    "lstm-lm": ["model.embedding=24"],
    "rnn-lm": ["model.tie_embeddings=false"],
    "forecast": ["data.series.window=20"],
    "forecast-rnn": ["model.highway=false", "data.series.window=20"],
    "forecast-transformer": BLOCKS,
}


def described(name: str, *changes: str) -> Architecture:
    return describe_recipe(recipe.read(name, list(changes)), name)


def case(name: str) -> Architecture:
    small = SMALL if not name.startswith("forecast") else SMALL[:1]
    return described(name, *small, *CASES[name])


def real(name: str) -> Any:
    small = SMALL if not name.startswith("forecast") else SMALL[:1]
    chosen: Any = recipe.read(name, [*small, *CASES[name]])
    if chosen.task == "translation":
        return build(chosen.model, 300, 300)
    if chosen.task == "language":
        return build_language_model(chosen.model, 300)
    window = 96 if name == "forecast-transformer" else 20
    return Forecaster(chosen.model, window, chosen.data.series.horizon)


def leaves(parts: tuple[Part, ...], times: int = 1) -> int:
    return sum(leaves(part.parts, times * part.times) if part.parts else part.total() * times for part in parts)


@pytest.mark.parametrize("name", CASES)
def test_the_parts_add_up_to_the_model(name: str) -> None:
    shown, model = case(name), real(name)
    assert shown.parameters == sum(parameter.numel() for parameter in model.parameters())
    assert sum(leaves(column.parts) for column in shown.columns) == shown.parameters
    for column in shown.columns:
        for part in every_part(column.parts):
            assert not part.parts or part.parameters == leaves(part.parts)


@pytest.mark.parametrize("name", recipe.names())
def test_every_shipped_recipe_is_described_and_drawn(name: str) -> None:
    shown = described(name)
    lines = str(shown).splitlines()
    assert lines[0].startswith(f"{name}: ")
    assert lines[1] == f"{shown.parameters:,} parameters"
    plan = laid_out(shown)
    boxes = sorted(plan.boxes, key=lambda box: (box.x, box.y))
    for one, other in itertools.pairwise(boxes):
        assert one.x != other.x or one.y + one.height <= other.y  # no box lies on another
    assert all(box.x >= 0 and box.x + box.width <= plan.width and box.y + box.height <= plan.height for box in boxes)


def test_the_shapes_are_those_of_a_real_run() -> None:
    """Letters put in for the sizes of a real batch give what a real model's layers give."""
    shown, model = case("lstm-luong"), real("lstm-luong")
    sizes = {"B": 2, "S": 5, "T": 3}
    seen: list[tuple[int, ...]] = []

    def see(_module: Any, _given: Any, output: Any) -> None:
        seen.append(tuple((output[0] if isinstance(output, tuple) else output).shape))

    for module in (model.encoder.embedding, model.encoder.recurrent, model.decoder):
        module.register_forward_hook(see)
    source = Sequences(torch.ones(2, 5, dtype=torch.long), torch.tensor([5, 5]))
    hidden = model(source, torch.ones(2, 3, dtype=torch.long))
    seen.append(tuple(model.head(hidden).shape))
    reading, writing = shown.columns
    told = [reading.parts[0], reading.parts[1], writing.parts[3], writing.parts[4]]
    values = [tuple(sizes.get(letter) or int(letter) for letter in part.shape.split(" × ")) for part in told]
    assert values == seen


def test_a_size_that_a_layer_has_is_never_taken_for_a_length() -> None:
    shown = described(
        "transformer-tiny", "model.width=12", "model.heads=2", "model.feed_forward=13", "tokenizer.vocabulary=11"
    )
    assert shown.columns[0].parts[0].shape == "B × S × 12"
    assert shown.columns[1].parts[-1].shape == "B × T × 11"


def test_blocks_say_how_often_and_residuals_where_they_lead() -> None:
    pre, post = described("transformer-base", "model.norm=pre"), described("transformer-base", "model.norm=post")
    for shown, order in ((pre, ["LayerNorm", "self-attention", "add"]), (post, ["self-attention", "add", "LayerNorm"])):
        block = next(part for part in shown.columns[0].parts if part.name == "block")
        assert block.times == 6
        assert block.parts[0].residual
        assert [part.name for part in block.parts[0].parts] == order
    assert "block × 6" in str(pre)
    assert [link.end.name for link in pre.links] == ["cross-attention"]


def test_a_run_is_described_with_its_own_vocabularies() -> None:
    shown = describe_run(api.packaged_run())
    model = api.load(None, "cpu")
    assert shown.parameters == sum(parameter.numel() for parameter in model.model.parameters())
    assert f"{model.target.size:,} × " in str(shown)
    assert not shown.notes  # nothing is guessed


@pytest.mark.parametrize("dark", [False, True])
def test_drawings_are_the_same_bytes_each_time_and_hold_no_text_elements(dark: bool) -> None:
    shown = case("lstm-bahdanau")
    first = draw_architecture(shown, "svg", dark=dark)
    assert first == draw_architecture(shown, "svg", dark=dark)
    assert first != draw_architecture(shown, "svg", dark=not dark)
    tags = {element.tag.rsplit("}", 1)[-1] for element in ElementTree.fromstring(first).iter()}
    assert "text" not in tags
    assert draw_architecture(shown, "png", dark=dark).startswith(b"\x89PNG")


def rows_of(text: str) -> list[tuple[str, str, str]]:
    """The table of a page: part, parameters and share."""
    cell = '<td class="number">([^<]*)</td>'
    found = re.findall(rf'<tr class="depth-\d"><th scope="row">([^<]*).*?{cell}{cell}', text)
    return [(html.unescape(name).strip(), number, share) for name, number, share in found]


@pytest.mark.parametrize("name", ["lstm-luong", "lstm-bahdanau", "transformer-base", "transformer-lm", "lstm-lm"])
def test_drawing_table_and_tree_count_alike(name: str) -> None:
    """What is in a block that is there six times is counted as six of one, wherever it is shown."""
    shown = described(name)
    text = page(shown)
    parts = [one for column in shown.columns for one in every_part(column.parts)]
    rows = dict(zip(parts, rows_of(text), strict=True))
    boxes = {box.part: box for box in laid_out(shown).boxes}
    labels = [html.unescape(label) for label in re.findall(r'<g class="part" [^>]*aria-label="([^"]*)"', text)]
    drawn = [part for part in boxes if part.kind != "add"]
    for part, label in zip(drawn, labels, strict=True):
        _, number, share = rows[part]
        said = f"{number} parameters ({share} of all)" if number else "no parameters"
        assert label.endswith(said)
    # the parts without parts of their own are all there is, in the table as in the drawing and in the tree
    leaf = [part for part in parts if not part.parts]
    assert set(leaf) == set(boxes)
    total = sum(
        math.prod(int(x.replace(",", "")) for x in rows[part][1].split(" × ")) for part in leaf if rows[part][1]
    )
    assert total == shown.parameters
    tree = [line for line in str(shown).splitlines() if re.search("[├└]─", line)]
    tree = [line for line in tree if not any(column.input in line for column in shown.columns)]
    for part, line in zip(parts, tree, strict=True):
        of_one = rows[part][1].rsplit(" × ", 1)[-1]
        if part.times > 1:
            assert f" × {part.times}, {of_one} parameters each" in line
        elif of_one:
            assert line.split()[-1] == of_one
    said = [word.text for word in laid_out(shown).words]
    for frame in laid_out(shown).frames:
        assert any(f"{frame.part.parameters:,} parameters" in text for text in said)


def test_the_page_is_offline_and_strict(evil: tuple[str, ...]) -> None:
    shown = describe_recipe(recipe.read("gru"), evil[0])
    text = page(shown)
    assert text.count("<script") == 1
    assert not re.findall(r"<[^>]* (?:src|href|style|on\w+)=", text)
    assert "<img" not in text
    assert "unsafe" not in text
    assert shown._repr_html_().startswith("<iframe srcdoc=")


def test_the_command(tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(describe)
    told = invoke(app, "gru", "model.width=64").output
    assert "GRU" in told
    assert "B × T × 8000" in told
    for ending in ("svg", "png", "html"):
        told = invoke(app, "gru", "--out", str(tmp_path / f"x.{ending}")).output
        assert "written: " in told
        assert (tmp_path / f"x.{ending}").stat().st_size > 5000
    assert "Luong" in invoke(app, str(api.packaged_run())).output
    for arguments, words in (
        (("grw",), "no recipe"),
        (("gru", "--out", str(tmp_path / "x.pdf")), "none of .svg"),
        ((str(api.packaged_run()), "model.width=3"), "recipe only"),
        ((str(tmp_path),), "recipe.yaml"),
        (("lstm-lm", "task=translation"), "recurrent-lm"),
    ):
        with pytest.raises(BadInput, match=words):
            invoke(app, *arguments)


@pytest.mark.browser
def test_pointing_and_keys_tell_the_numbers(tmp_path: Path, visit: Callable[..., Any]) -> None:
    shown = case("transformer-tiny")
    write_drawing(shown, tmp_path / "x.html")
    papers = []
    for scheme in ("light", "dark"):
        view = visit(tmp_path / "x.html", color_scheme=scheme, viewport={"width": 390, "height": 800})
        assert view.evaluate("document.documentElement.scrollWidth") <= 390
        papers.append(view.evaluate("getComputedStyle(document.querySelector('.drawing')).backgroundColor"))
    assert papers[0] != papers[1]
    part = view.locator(".part", has_text="cross-attention")
    part.focus()
    cross = next(part for part in every_part(shown.columns[1].parts) if part.name == "cross-attention")
    said = view.locator(".readout").inner_text()
    assert f"{cross.parameters:,} parameters" in said
    assert cross.shape in said
    view.keyboard.press("Enter")
    assert part.get_attribute("aria-pressed") == "true"
    view.locator(".part").first.hover()
    assert "word vectors" in view.locator(".readout").inner_text()
    view.locator("h1").hover()
    assert view.locator(".readout").inner_text() == said  # what is pinned stays
    view.keyboard.press("Escape")
    assert view.locator('[aria-pressed="true"]').count() == 0


@pytest.mark.parametrize("key", ["stem_norm=true", "stem_depth=2", "stem_layer_norms=true"])
def test_all_of_a_stem_is_drawn(key: str) -> None:
    shown = describe_recipe(recipe.read("cct", [f"model.{key}"]), "cct")
    assert sum(leaves(column.parts) for column in shown.columns) == shown.parameters
