"""What the shell asks, and how answers are made."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np
import pytest
import torch
from starlette.testclient import TestClient

from jumok import __version__
from jumok.studio.answers import Asked, asked, computed, floats, get, json_answer, post
from jumok.studio.app import PAGES, create_app, prepare
from jumok.studio.shelf import Shelf


def test_runs_are_listed(client: TestClient) -> None:
    told = client.get("/api/runs").json()
    assert told["version"] == __version__
    (run,) = told["runs"]
    assert (run["name"], run["task"], run["family"], run["recurrent"]) == ("en-fr", "translation", "seq2seq", True)
    assert run["languages"] == ["en", "fr"]
    assert run["checkpoints"]
    assert "/" not in json.dumps(run["title"])


def test_nothing_of_this_machines_folders_is_told(client: TestClient) -> None:
    text = client.get("/api/runs").text
    assert "site-packages" not in text
    assert "pretrained" not in text


def test_without_a_first_run_there_is_none(client: TestClient) -> None:
    assert client.get("/api/first").json() == {"state": "none"}


def test_page_and_files(client: TestClient) -> None:
    page = client.get("/")
    assert page.headers["content-type"].startswith("text/html")
    assert client.get("/static/shell.js").headers["content-type"].startswith("text/javascript")
    assert client.get("/static/studio.css").headers["content-type"].startswith("text/css")


class Ask(Asked):
    text: str
    head: int = 0


@pytest.fixture(scope="module")
def answering() -> Any:
    async def words(request: Any) -> Any:
        return json_answer({"text": (await asked(request, Ask)).text, "nothing": [float("nan"), float("inf")]})

    async def numbers(request: Any) -> Any:
        array = torch.tensor([[0.1, -2.5, float("nan")], [3e38, 1e-30, 0.0]], dtype=torch.float64)
        return floats(await computed(request, lambda: array.T), name="주목", nothing=float("nan"))

    app = create_app(Shelf())
    app.router.routes[:0] = [post("/api/x", words), get("/api/numbers", numbers)]
    with TestClient(app, base_url="http://localhost") as client:
        yield client


def test_floats_are_float32_in_rows(answering: TestClient) -> None:
    answer = answering.get("/api/numbers")
    assert answer.headers["x-shape"] == "3,2"
    assert json.loads(answer.headers["x-about"]) == {"name": "주목", "nothing": None}
    assert answer.headers["x-about"].isascii()
    got = np.array(struct.unpack("<6f", answer.content), dtype=np.float32)
    expected = np.array([0.1, 3e38, -2.5, 1e-30, np.nan, 0], dtype=np.float32)
    np.testing.assert_array_equal(got, expected)


def test_a_number_alone_has_no_shape() -> None:
    assert floats(np.float32(1.5)).headers["x-shape"] == ""


def test_what_is_no_number_is_null(answering: TestClient) -> None:
    assert answering.post("/api/x", json={"text": "a"}).json()["nothing"] == [None, None]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"{", "JSON"),
        (b"", "JSON"),
        (b"\xff\xfe", "JSON"),
        (b"[]", "object"),
        (b"{}", "text"),
        (b'{"text": 3}', "text"),
        (b'{"text": "a", "head": "1"}', "head"),
        (b'{"text": "a", "more": 1}', "more"),
        (b'{"text": "a", "head": 1e999}', "head"),
        (json.dumps({"text": "a" * 20_001}).encode(), "text"),
        (b'{"text": ' + b"[" * 100_000, "JSON"),
        (b'{"text":"a",' + b",".join(b'"k%d":1' % number for number in range(2000)) + b"}", "2,000"),
    ],
)
def test_what_is_wrong_is_told(answering: TestClient, body: bytes, words: str) -> None:
    answer = answering.post("/api/x", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400
    assert words in answer.json()["error"]["message"]


def test_every_page_has_routes_under_its_own_name() -> None:
    for page in PAGES:
        name = page.__name__.rsplit("_", 1)[1]
        assert all(route.path.startswith(f"/api/{name}/") for route in page.ROUTES)


def test_pages_prepare_in_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[tuple[str, Shelf]] = []

    def ready(shelf: Shelf) -> None:
        import threading

        called.append((threading.current_thread().name, shelf))

    for page in PAGES:
        monkeypatch.setattr(page, "prepare", ready, raising=False)
    app = create_app(Shelf())
    prepare(app)
    assert len(called) == len(PAGES)
    assert all(name.startswith("jumok-studio") and shelf is app.state.shelf for name, shelf in called)
