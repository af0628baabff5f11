"""One image as a page: nothing from elsewhere, text stays text, and what is pressed in a browser is shown."""

from __future__ import annotations

import base64
import io
import json
import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from seeded import seed as seed
from torch import Tensor

from jumok.errors import BadInput
from jumok.inspect import vision_page as module
from jumok.inspect.vision import attention_maps, rollout_maps
from jumok.inspect.vision_page import page
from jumok.inspect.vision_weights import network_filters
from jumok.models.vit import ImageLabeller
from jumok.recipe import VitSection

SIZES = {"width": 16, "heads": 3, "layers": 2, "feed_forward": 16, "image": (8, 12), "patch": (4, 2)}
LABELS = ["cat", "개", "<b>dog</b>"]
Visit = Callable[..., Any]


def vit(**keys: Any) -> ImageLabeller:
    model = ImageLabeller(VitSection(**{**SIZES, "width": 12 if keys.get("position") == "none" else 24, **keys}), 3)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return model.eval()


def image_of(model: ImageLabeller) -> Tensor:
    return torch.randint(0, 256, (model.section.channels, *model.section.image), dtype=torch.uint8)


def data_of(text: str) -> Any:
    found = re.search(r'id="vision-data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def maps_of(text: str, rows: int) -> list[tuple[Any, Any]]:
    """(rows, patches) of each head and (rows,) what goes elsewhere, as the script reads them."""
    found = re.search(r'id="vision-maps">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    maps = []
    for line in found[1].split("\n"):
        raw = zlib.decompress(base64.b64decode(line))
        steps = np.frombuffer(raw[: 4 * rows], "<f4")
        weights = np.frombuffer(raw[4 * rows : -rows], np.uint8).reshape(rows, -1) * steps[:, None]
        maps.append((weights, np.frombuffer(raw[-rows:], np.uint8) / 255))
    return maps


@pytest.mark.parametrize(
    "keys",
    [{}, {"pooling": "mean", "registers": 2}, {"pooling": "sequence", "position": "none", "channels": 1}],
    ids=str,
)
def test_the_page_holds_what_the_heads_see(keys: Any, seed: int) -> None:
    model = vit(**keys)
    image, added = image_of(model), model.reader.added
    text = page(model, image, "one.png", LABELS, layer=0, place=4, network=network_filters(torch.randn(5, 3, 3, 3)))
    data = data_of(text)
    assert (data["grid"], data["added"], data["rows"], data["first"]) == ([2, 6], added, 13, [0, -1, 4])
    maps = maps_of(text, 13)
    assert len(maps) == 2 * 3 + 1
    for place in (None, 4):
        row = 0 if place is None else place + 1
        for layer in range(2):
            (expected,) = attention_maps(model, image[None], layer, place=place)
            for head in range(3):
                seen, elsewhere = maps[3 * layer + head]
                wanted = expected[head + 1]
                near = wanted.values.max() / 254 / 2 + 1e-6
                np.testing.assert_allclose(seen[row], wanted.values.ravel(), atol=near, err_msg=f"seed {seed}")
                assert elsewhere[row] == pytest.approx(wanted.elsewhere, abs=0.002 + 1e-5)
        rolled = rollout_maps(model, image[None], place)[0]
        np.testing.assert_allclose(maps[-1][0][row], rolled.values.ravel(), atol=rolled.values.max() / 508 + 1e-6)
    assert ("Cosines of position" in text) == (keys.get("position") != "none")


def test_nothing_comes_from_elsewhere_and_text_stays_text(evil: tuple[str, ...]) -> None:
    model = vit()
    text = page(model, image_of(model), evil[0], [evil[1], evil[2], evil[3]], label=2)
    assert not re.search(r'(?:src|href|srcset|action)="(?!data:image/png;base64,)', text)
    assert "http:" not in text.replace("http-equiv", "")
    assert "https:" not in text
    assert "default-src 'none'" in text
    for word in evil[:2]:
        assert word not in text
    for source in re.findall(r'(?:src|srcset)="data:image/png;base64,([^"]+)"', text):
        with Image.open(io.BytesIO(base64.b64decode(source))) as picture:
            picture.verify()


def test_many_patches_keep_only_the_row_of_the_image(monkeypatch: pytest.MonkeyPatch) -> None:
    model = vit()
    monkeypatch.setattr(module, "MOST_PATCHES", 11)
    text = page(model, image_of(model), "one.png", LABELS, place=3)
    data = data_of(text)
    assert (data["rows"], data["first"][2]) == (1, -1)
    assert [one.shape for one, _ in maps_of(text, 1)] == [(1, 12)] * 7
    assert "would be too much to keep" in text


def test_what_cannot_be_shown() -> None:
    model = vit()
    image = image_of(model)
    with pytest.raises(BadInput, match="one image"):
        page(model, image[None], "x", LABELS)
    with pytest.raises(BadInput, match="2 names"):
        page(model, image, "x", LABELS[:2])
    with pytest.raises(BadInput, match="layer 2"):
        page(model, image, "x", LABELS, layer=2)
    with pytest.raises(BadInput, match="patch 12"):
        page(model, image, "x", LABELS, place=12)


# ---------------------------------------------------------------- in a browser


@pytest.mark.browser
def test_a_patch_is_pressed_and_every_head_shows_it(tmp_path: Path, visit: Visit, evil: tuple[str, ...]) -> None:
    model = vit(registers=1)
    image = image_of(model)
    (tmp_path / "x.html").write_text(page(model, image, evil[0], [evil[1], "b", "c"]), encoding="utf-8")
    view = visit(tmp_path / "x.html")
    view.locator('#vision[data-ready="yes"]').wait_for()
    assert view.evaluate("window.hacked") is None
    tiles, readout = view.locator("#vision .maps button"), view.locator("#vision .readout")
    assert tiles.count() == 4  # the mean and three heads
    assert "class token" in readout.inner_text()
    large = view.locator("#vision .large canvas")
    box = large.bounding_box()
    large.click(position={"x": box["width"] * (4.5 / 6), "y": box["height"] * 0.75})  # row 1, column 4
    view.locator("#vision .readout", has_text="patch 10 (row 1, column 4)").wait_for()
    (expected,) = attention_maps(model, image[None], 1, place=10)
    small = tiles.nth(2).locator("canvas")  # head 1
    area = small.bounding_box()
    for place in (0, 7):
        row, column = divmod(place, 6)
        small.hover(position={"x": area["width"] * (column + 0.5) / 6, "y": area["height"] * (row + 0.5) / 2})
        said = readout.inner_text()
        assert f"to row {row}, column {column}" in said
        number, wrong = (float(part) for part in re.findall(r"[\d.]+", said)[:2])
        assert abs(number - expected[2].values[row, column]) <= wrong
    view.locator("#vision .segments button", has_text="rollout").click()
    view.locator("#vision .maps button", has_text="rollout").wait_for()
    assert tiles.count() == 1
    view.locator("#vision .segments button").first.click()
    view.locator("#vision .maps button", has_text="head 2").wait_for()
    tiles.nth(3).click()
    assert tiles.nth(3).get_attribute("aria-pressed") == "true"
    assert "head 2 over the image" in view.locator("#vision .large p").inner_text()
    large.focus()
    large.press("ArrowLeft")
    view.locator("#vision .readout", has_text="patch 9 (row 1, column 3)").wait_for()
    large.press("Escape")
    view.locator("#vision .readout", has_text="class token").wait_for()
    assert view.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


@pytest.mark.browser
def test_on_a_phone_nothing_is_wider_than_the_screen(tmp_path: Path, visit: Visit) -> None:
    model = vit(pooling="mean")
    (tmp_path / "x.html").write_text(page(model, image_of(model), "one.png", LABELS), encoding="utf-8")
    view = visit(tmp_path / "x.html", viewport={"width": 360, "height": 740})
    view.locator('#vision[data-ready="yes"]').wait_for()
    assert "mean of all patches" in view.locator("#vision .start").inner_text()
    assert view.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
