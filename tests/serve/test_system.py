"""Alive, ready, measured; pages that need nothing from elsewhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from served import client as made
from served import models
from starlette.testclient import TestClient

from jumok.serve.app import create_app
from jumok.serve.settings import Settings


def test_alive_and_ready(client: TestClient) -> None:
    assert client.get("/health").json() == {"status": "alive"}
    assert client.get("/ready").json() == {"status": "ready"}
    assert client.head("/health").status_code == 200


def test_before_the_models_are_there_it_is_alive_but_not_ready() -> None:
    with TestClient(create_app(None), base_url="http://localhost") as client:
        assert client.get("/health").status_code == 200
        for answer in (client.get("/ready"), client.post("/v1/translate", json={"text": "I am"})):
            assert (answer.status_code, answer.json()["error"]["code"]) == (503, "loading")
            assert int(answer.headers["retry-after"]) > 0
        assert client.get("/v1/models").json() == {"models": []}


def test_what_is_served(client: TestClient) -> None:
    found = client.get("/v1/models").json()["models"]
    assert [one["name"] for one in found][:2] == ["en-fr", "labels"]


def test_prometheus_hears_of_requests_and_batches() -> None:
    with made() as client:
        client.post("/v1/translate", json={"text": ["I am a student.", "The cat sleeps."]})
        client.post("/v1/translate", json={"text": 1})
        client.get("/somewhere/else")
        text = client.get("/metrics").text
    assert 'jumok_requests_total{code="200",route="/v1/translate"} 1.0' in text
    assert 'jumok_requests_total{code="422",route="/v1/translate"} 1.0' in text
    assert 'jumok_requests_total{code="404",route="other"} 1.0' in text
    assert 'jumok_jobs_served_total{model="en-fr"} 2.0' in text
    assert 'jumok_queue_waiting{model="en-fr"} 0.0' in text
    assert re.search(r'jumok_batch_sentences_count\{model="en-fr"\} [1-9]', text)
    assert "jumok_ready 1.0" in text


def test_the_pages_need_nothing_from_elsewhere(client: TestClient) -> None:
    for path in ("/", "/docs"):
        page = client.get(path)
        assert page.headers["content-type"].startswith("text/html")
        assert "script" not in page.text.lower().replace("script-src", "")
        links = re.findall(r'(?:src|href)="([^"]*)"', page.text)
        assert all(link.startswith("/") and not link.startswith("//") for link in links)
    assert "/v1/translate" in page.text
    assert "length_penalty" in page.text


@pytest.mark.browser
def test_the_pages_open_in_a_browser(client: TestClient, visit: Any, tmp_path: Path) -> None:
    for path, title in (("/", "jumok serve"), ("/docs", "What can be asked")):
        file = tmp_path / "page.html"
        file.write_text(client.get(path).text, encoding="utf-8")
        page = visit(file)
        assert page.inner_text("h1") == title
        assert page.evaluate("getComputedStyle(document.querySelector('table')).borderCollapse") == "collapse"


def test_examples_name_the_service_as_it_was_called(client: TestClient) -> None:
    page = client.get("/docs", headers={"Host": "localhost:4711"})
    assert "curl -s http://localhost:4711/v1/translate " in page.text
    assert "localhost:8000" not in page.text


def test_openapi_names_only_what_is_there(client: TestClient) -> None:
    found = client.get("/openapi.json").json()
    named = set(re.findall(r"#/components/schemas/(\w+)", str(found)))
    assert named <= set(found["components"]["schemas"])
    assert {"TranslateAsk", "TranslateTold", "ProblemTold", "LibreAsk"} <= named


def test_every_answer_is_guarded(client: TestClient) -> None:
    for answer in (client.get("/health"), client.get("/nothing"), client.post("/v1/translate", json={})):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_what_nobody_foresaw_is_told_without_a_traceback(caplog: pytest.LogCaptureFixture) -> None:
    found = models()
    with made(Settings(), found) as client:
        found.get("labels", "classification").worker.accept = None  # type: ignore[assignment, union-attr]
        answer = client.post("/v1/classify", json={"text": "secret words"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "unforeseen")
    assert "NoneType" not in answer.text
    assert "NoneType" in caplog.text
    assert "secret words" not in caplog.text
