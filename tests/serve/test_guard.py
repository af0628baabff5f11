"""The door: names, origins, keys, sizes."""

from __future__ import annotations

import secrets

import pytest
from served import client as made
from served import slow_models
from starlette.testclient import TestClient

from jumok.serve.settings import Settings, allowed_hosts

KEY = secrets.token_hex(16)
ASK = {"text": "I am"}


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8000", "127.0.0.1:1", "[::1]:8000", "[::1]"])
def test_the_names_of_this_machine(client: TestClient, host: str) -> None:
    assert client.get("/health", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.org", "localhost.evil.org", "evil.org:8000", "127.0.0.1.evil.org", "10.0.0.1", ""]
)
def test_other_names_are_refused(client: TestClient, host: str) -> None:
    answer = client.get("/health", headers={"host": host})
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "host")


def test_names_that_were_allowed() -> None:
    hosts = allowed_hosts("0.0.0.0", ["Translate.example.org"])
    with made(Settings(hosts=hosts, addresses=True), slow_models(0)) as client:
        for host, code in {
            "translate.example.org:80": 200,
            "192.168.1.7:8000": 200,
            "[fe80::1]": 200,
            "a.b": 403,
        }.items():
            assert client.get("/health", headers={"host": host}).status_code == code, host


def test_pages_of_others_may_not_ask(client: TestClient) -> None:
    for origin in ("https://evil.org", "null", "http://localhost:9000"):
        answer = client.post("/v1/translate", json=ASK, headers={"origin": origin})
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "origin")
    own = client.post("/v1/translate", json=ASK, headers={"origin": "http://localhost:8000"})
    assert own.status_code == 200
    assert "access-control-allow-origin" not in own.headers


def test_pages_that_were_allowed_may_ask() -> None:
    with made(Settings(origins=("https://good.org",)), slow_models(0)) as client:
        asks = {"origin": "https://good.org", "access-control-request-method": "POST"}
        before = client.options("/v1/classify", headers=asks)
        assert before.status_code == 204
        assert before.headers["access-control-allow-origin"] == "https://good.org"
        answer = client.post("/v1/classify", json=ASK, headers={"origin": "https://good.org"})
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, "https://good.org")
        wrong = client.post("/v1/classify", json={}, headers={"origin": "https://good.org"})
        assert wrong.headers["access-control-allow-origin"] == "https://good.org"
        other = client.options("/v1/classify", headers={**asks, "origin": "https://evil.org"})
        assert other.status_code == 403
        assert "access-control-allow-origin" not in other.headers


def test_a_key_is_asked_for() -> None:
    with made(Settings(keys=(secrets.token_hex(16), KEY)), slow_models(0)) as client:
        for headers in ({}, {"authorization": "Bearer wrong"}, {"x-api-key": KEY[:-1]}, {"authorization": KEY}):
            answer = client.post("/v1/classify", json=ASK, headers=headers)
            assert (answer.status_code, answer.json()["error"]["code"]) == (401, "key")
            assert answer.headers["www-authenticate"] == "Bearer"
        for headers in ({"authorization": f"Bearer {KEY}"}, {"x-api-key": KEY}, {"authorization": f"bearer {KEY}"}):
            assert client.post("/v1/classify", json=ASK, headers=headers).status_code == 200
        assert client.get("/metrics").status_code == client.get("/v1/models").status_code == 401
        assert client.get("/health").status_code == client.get("/ready").status_code == 200


def test_the_size_of_a_request(client: TestClient) -> None:
    answer = client.post("/v1/translate", json={"text": "a" * (1 << 20)})
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")
    answer = client.post("/v1/translate", json={"text": "a" * 20_000})
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_long")
    answer = client.post("/v1/translate", json={"text": ["a"] * 200})
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_many")


def test_bytes_of_all_requests_together() -> None:
    with made(Settings(held=1000), slow_models(0)) as client:
        answer = client.post("/v1/classify", json={"text": "a" * 2000})
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")
        assert client.post("/v1/classify", json=ASK).status_code == 200  # they were given back


@pytest.mark.parametrize("kind", ["text/plain", "", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_what_is_no_json_must_not_pass_for_it(client: TestClient, kind: str) -> None:
    answer = client.post("/v1/translate", content=b'{"text": "I am"}', headers={"content-type": kind})
    assert (answer.status_code, answer.json()["error"]["code"]) == (415, "content_type")
