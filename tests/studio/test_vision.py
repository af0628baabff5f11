"""The page "vision": where patches look, with the numbers that Python has; what is no picture is refused."""

from __future__ import annotations

import base64
import io
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from image_runs import image_run
from PIL import Image
from starlette.testclient import TestClient
from studio_server import Studio, until

from jumok.inspect.vision import attention_maps, predictions, rollout_maps
from jumok.inspect.vision_distance import attention_distances
from jumok.inspect.vision_gradient import gradient_maps
from jumok.inspect.vision_weights import principal_filters
from jumok.studio import routes_vision

Open = Callable[..., Any]
FORMS: list[dict[str, Any]] = [{"pooling": "class", "registers": 2}, {"pooling": "sequence"}]


def png(pixels: Any) -> bytes:
    made = io.BytesIO()
    Image.fromarray(pixels).save(made, "PNG")
    return made.getvalue()


def noise(height: int = 8, width: int = 12) -> Any:
    return np.random.default_rng().integers(0, 256, (height, width, 3), np.uint8)


def bomb(width: int, height: int) -> bytes:
    """A PNG of a few bytes that says it is huge."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 99)) + chunk(b"IEND", b"")
    )


def shelved(shelf: Any, path: Path, **model: Any) -> tuple[str, Any]:
    run = shelf.add(path.name, image_run(path, image=[8, 12], **model).path)
    return run, shelf.load(run)


@pytest.fixture(scope="module")
def vit(client: TestClient, tmp_path_factory: pytest.TempPathFactory) -> str:
    return shelved(client.app.state.shelf, tmp_path_factory.mktemp("runs") / "vit")[0]  # type: ignore[attr-defined]


def opened(client: TestClient, run: str, data: bytes, name: str = "mine.png") -> Any:
    return client.post("/api/vision/open", json={"run": run, "file": base64.b64encode(data).decode(), "name": name})


def values(answer: Any) -> np.ndarray[Any, Any]:
    assert answer.status_code == 200, answer.text
    return np.frombuffer(answer.content, "<f4").reshape([int(side) for side in answer.headers["X-Shape"].split(",")])


@pytest.mark.parametrize("form", FORMS)
def test_numbers_are_those_of_the_maps(client: TestClient, tmp_path: Path, form: dict[str, Any]) -> None:
    run, classifier = shelved(client.app.state.shelf, tmp_path / form["pooling"], **form)  # type: ignore[attr-defined]
    model, pixels = classifier.model, noise()
    images = torch.from_numpy(pixels.transpose(2, 0, 1).copy())[None]
    told = opened(client, run, png(pixels)).json()
    assert np.array_equal(np.float32(told["chances"]), predictions(model, images)[0])
    assert (told["grid"], told["labels"]) == ([2, 3], ["고양이", "dog", "cow"])
    seen = Image.open(io.BytesIO(base64.b64decode(told["image"].partition(",")[2])))
    assert np.array_equal(np.asarray(seen), pixels)
    body = {"run": run, "picture": told["picture"]}
    for layer in (0, 1):
        found = values(client.post("/api/vision/looks", json={**body, "layer": layer}))
        assert found.shape == (3, 7, 7)
        for place in (None, 0, 5):
            maps = attention_maps(model, images, layer, place=place)[0]
            row = found[:, 0 if place is None else 1 + place]
            assert np.allclose(row[:, :6], [one.values.ravel() for one in maps], rtol=1e-5, atol=1e-7)
            assert np.allclose(row[:, 6], [one.elsewhere for one in maps], rtol=1e-5, atol=1e-7)
    rolled = values(client.post("/api/vision/looks", json=body))
    for place in (None, 3):
        expected = rollout_maps(model, images, place)[0]
        row = rolled[0, 0 if place is None else 1 + place]
        assert np.allclose(row, [*expected.values.ravel(), expected.elsewhere], rtol=1e-5, atol=1e-7)
    slope = values(client.post("/api/vision/gradient", json={**body, "label": 2}))
    assert np.allclose(slope, gradient_maps(model, images, [2])[0].values, rtol=1e-4, atol=1e-8)
    told = client.post("/api/vision/distance", json=body).json()
    heads = [value for layer in told["layers"] for value in layer["pixels"]]
    assert np.allclose(heads, [one.pixels for one in attention_distances(model, images).heads])
    filters = values(client.post("/api/vision/filters", json={"run": run}))
    assert np.array_equal(filters, principal_filters(model).pictures)


def test_of_many_patches_one_is_looked_from(client: TestClient, vit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes_vision, "MOST_PATCHES", 5)
    body = {"run": vit, "picture": "example-2", "layer": 1}
    assert client.post("/api/vision/open", json={"run": vit, "example": 2}).json()["every"] is False
    assert values(client.post("/api/vision/looks", json=body)).shape == (3, 1, 7)
    few = values(client.post("/api/vision/looks", json={**body, "place": 4}))
    monkeypatch.undo()
    every = values(client.post("/api/vision/looks", json=body))
    assert np.allclose(few, every[:, [0, 5]], rtol=1e-5, atol=1e-7)


def hostile() -> dict[str, tuple[bytes, str]]:
    whole = png(noise(64, 64))
    return {
        "empty": (b"", "empty"),
        "text": (b"hello" * 100, "not an image"),
        "page": (b"<!doctype html><p>no", "web page"),
        "drawing": (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "SVG"),
        "bomb": (bomb(60_000, 60_000), "pixels"),
        "cut": (whole[: len(whole) // 2], "cut off"),
        "broken": (bomb(20, 20), "file"),
    }


@pytest.mark.parametrize("kind", list(hostile()))
def test_hostile_pictures_are_refused_and_not_kept(client: TestClient, vit: str, kind: str) -> None:
    data, words = hostile()[kind]
    answer = opened(client, vit, data, f"{kind}.png")
    assert answer.status_code == 400
    assert words in answer.json()["error"]["message"]
    assert kind in answer.json()["error"]["message"]
    assert all(one.data != data for one in routes_vision._files.values())


def test_only_a_few_files_are_kept(client: TestClient, vit: str) -> None:
    names = [opened(client, vit, png(noise())).json()["picture"] for _ in range(routes_vision.KEPT + 1)]
    again = client.post("/api/vision/open", json={"run": vit, "picture": names[-1]}).json()
    assert (again["picture"], again["name"]) == (names[-1], "mine.png")
    lost = client.post("/api/vision/open", json={"run": vit, "picture": names[0]})
    assert "no longer kept" in lost.json()["error"]["message"]


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("open", {}, "one of them"),
        ("open", {"example": 0, "picture": "x"}, "one of them"),
        ("open", {"example": 3}, "example"),
        ("open", {"file": "é!"}, "base64"),
        ("open", {"picture": "../../etc/passwd"}, "no longer kept"),
        ("open", {"run": "en-fr", "example": 0}, "does not look at pictures"),
        ("looks", {"picture": "example-0", "layer": 7}, "layer"),
        ("looks", {"picture": "example-0", "place": 6}, "patch"),
        ("gradient", {"picture": "example-0", "label": 3}, "label"),
    ],
)
def test_what_is_not_there_is_refused(
    client: TestClient, vit: str, path: str, body: dict[str, Any], words: str
) -> None:
    answer = client.post(f"/api/vision/{path}", json={"run": vit, **body})
    assert answer.status_code == 400
    assert words in answer.json()["error"]["message"]


def example(classifier: Any, number: int) -> torch.Tensor:
    return routes_vision._seen(classifier, f"example-{number}")[0]


def drawn(page: Any) -> np.ndarray[Any, Any]:
    return np.float32(page.eval_on_selector(".vision-frame", "one => [...one.numbers]"))


@pytest.mark.browser
def test_page_shows_where_a_patch_looks(studio: Studio, open_page: Open, tmp_path: Path) -> None:
    run, classifier = shelved(studio.shelf, tmp_path / "vit", pooling="class")
    images, model = example(classifier, 1), classifier.model
    page = open_page(f"#/vision?run={run}&picture=example-1&layer=0&head=1")
    page.wait_for_selector(".vision-filters")

    def expected(place: int | None, layer: int = 0) -> Any:
        return attention_maps(model, images, layer, [1], place)[0][0].values.ravel()

    assert np.allclose(drawn(page), expected(None), rtol=1e-5, atol=1e-7)
    box = page.locator(".vision-frame canvas").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.75)  # row 1, column 1
    until(lambda: "row 1, column 1" in page.inner_text(".vision-left .readout"))
    assert np.allclose(drawn(page), expected(4), rtol=1e-5, atol=1e-7)
    page.mouse.move(2, 2)
    page.focus(".vision-frame")
    for key in ("ArrowRight", "ArrowRight", "ArrowDown"):  # the first of all, the next, the one below
        page.keyboard.press(key)
    until(lambda: "patch=4" in page.evaluate("location.hash"))
    page.wait_for_timeout(50)
    assert np.allclose(drawn(page), expected(4), rtol=1e-5, atol=1e-7)
    most = float(page.inner_text(".vision-left .readout b").split()[1])
    assert np.isclose(most, expected(4).max(), rtol=6e-3, atol=6e-4)
    shares = [float(one.split()[0]) for one in page.locator(".vision-answer .number").all_inner_texts()]
    assert np.allclose(shares, sorted(100 * predictions(model, images)[0], reverse=True), atol=0.06)
    page.click(".vision-answer >> nth=0")
    until(lambda: "view=gradient" in page.evaluate("location.hash"))
    page.wait_for_selector(".vision-answer[aria-pressed=true]")
    page.wait_for_timeout(100)
    assert np.allclose(drawn(page), gradient_maps(model, images)[0].values.ravel(), rtol=1e-4, atol=1e-8)


# ---------------------------------------------------------------- everything else


@pytest.mark.full
@pytest.mark.browser
def test_rollout_and_layers(studio: Studio, open_page: Open, tmp_path: Path) -> None:
    run, classifier = shelved(studio.shelf, tmp_path / "vit", pooling="class", registers=1)
    images = example(classifier, 0)
    page = open_page(f"#/vision?run={run}&view=rollout&patch=2&layer=99&head=-7&label=1e9")
    assert np.allclose(drawn(page), rollout_maps(classifier.model, images, 2)[0].values.ravel(), rtol=1e-5, atol=1e-7)
    page.click(".segment label:text-is('Attention')")
    page.click(".segment label:text-is('0')")
    page.wait_for_timeout(200)
    maps = attention_maps(classifier.model, images, 0, [None], 2)[0]
    assert np.allclose(drawn(page), maps[0].values.ravel(), rtol=1e-5, atol=1e-7)
    assert page.locator(".vision-tile").count() == 3
    page.reload()
    page.wait_for_selector("#view:not([aria-busy])")
    assert np.allclose(drawn(page), maps[0].values.ravel(), rtol=1e-5, atol=1e-7)


@pytest.mark.full
@pytest.mark.browser
def test_a_file_of_ones_own(studio: Studio, open_page: Open, tmp_path: Path) -> None:
    run, classifier = shelved(studio.shelf, tmp_path / "vit")
    pixels = noise()
    page = open_page(f"#/vision?run={run}")
    file = {"name": "<b>mine</b>.png", "mimeType": "image/png", "buffer": png(pixels)}
    page.set_input_files(".vision-choose input", file)
    until(lambda: "picture=" in (hash := page.evaluate("location.hash")) and "example" not in hash)
    page.wait_for_timeout(200)
    images = torch.from_numpy(pixels.transpose(2, 0, 1).copy())[None]
    expected = attention_maps(classifier.model, images, 1, [None])[0][0].values
    assert np.allclose(drawn(page), expected.ravel(), rtol=1e-5, atol=1e-7)
    page.goto(page.url.replace("picture=", "picture=0"))
    page.wait_for_selector(".notice")
    until(lambda: "example-0" in page.evaluate("location.hash"))
    assert len(page.complaints) == 1  # the browser tells of the refusal
    page.complaints.clear()


@pytest.mark.full
@pytest.mark.browser
def test_hostile_files_are_told_in_the_page(studio: Studio, open_page: Open, tmp_path: Path) -> None:
    run, _ = shelved(studio.shelf, tmp_path / "vit")
    page = open_page(f"#/vision?run={run}")
    for kind, (data, words) in hostile().items():
        page.set_input_files(".vision-choose input", {"name": f"{kind}.png", "mimeType": "image/png", "buffer": data})
        until(lambda told=(f"{kind}.png", words): all(one in page.inner_text(".vision-wrong") for one in told))
    large = {"name": "large.png", "mimeType": "image/png", "buffer": b"0" * (13 << 20)}
    page.set_input_files(".vision-choose input", large)
    page.wait_for_selector("text=13.0 MB is more")
    page.complaints.clear()
    assert page.locator(".vision-tile").count() == 3  # what was shown before is still there


@pytest.mark.full
@pytest.mark.browser
@pytest.mark.parametrize("language", ["en", "ko"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everybody_can_use_it(
    studio: Studio, open_page: Open, axe: Callable[[Any], None], tmp_path: Path, language: str, theme: str
) -> None:
    run, _ = shelved(studio.shelf, tmp_path / f"vit-{language}-{theme}")
    for view in ("attention&patch=1", "gradient"):
        page = open_page(f"#/vision?run={run}&view={view}", language=language, theme=theme)
        page.wait_for_selector(".vision-filters")
        axe(page)
        assert ("조각" in page.inner_text("#view")) == (language == "ko")


@pytest.mark.full
@pytest.mark.browser
def test_it_fits_a_phone(studio: Studio, open_page: Open, tmp_path: Path) -> None:
    run, _ = shelved(studio.shelf, tmp_path / "vit")
    page = open_page(f"#/vision?run={run}", viewport={"width": 390, "height": 844})
    assert page.eval_on_selector("#view", "one => one.scrollWidth <= one.clientWidth")
