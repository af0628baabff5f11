"""The door of the studio, against hostile use."""

from __future__ import annotations

import socket
import time
from typing import Any

import pytest
from starlette.testclient import TestClient
from studio_server import Studio

from jumok.studio.answers import act, get, json_answer, post
from jumok.studio.app import create_app
from jumok.studio.settings import Settings
from jumok.studio.shelf import Shelf

OWN = "http://127.0.0.1:8765"
TOKEN = "X-Jumok-Token"


@pytest.fixture(scope="module")
def door() -> Any:
    """A studio with routes that tell what got in."""

    async def seen(request: Any) -> Any:
        return json_answer({"bytes": len(await request.body())})

    async def broken(request: Any) -> Any:
        raise RuntimeError("a secret of the inside")

    app = create_app(Shelf(), Settings(bytes=2000, picture_bytes=5000))
    routes = [post("/api/x", seen), post("/api/vision/x", seen), act("/api/do", seen), get("/api/broken", broken)]
    app.router.routes[:0] = routes
    with TestClient(app, base_url=OWN) as client:
        yield client


@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:8765", "127.0.0.2", "[::2]", "", "a@localhost"],
)
def test_other_hosts_are_refused(door: TestClient, host: str) -> None:
    for path in ("/", "/api/runs", "/static/shell.js"):
        answer = door.get(path, headers={"Host": host})
        assert answer.status_code == 403
        assert set(answer.json()) == {"error"}


@pytest.mark.parametrize("host", ["localhost", "localhost:8765", "LOCALHOST:1", "127.0.0.1", "[::1]:8765"])
def test_own_names_are_answered(door: TestClient, host: str) -> None:
    assert door.get("/", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "null",
        "http://127.0.0.1:3000",
        "http://localhost:8765",
        "file://",
        "",
        "http://127.0.0.1:8765.evil",
    ],
)
def test_other_origins_are_refused(door: TestClient, origin: str) -> None:
    assert door.post("/api/x", json={}, headers={"Origin": origin}).status_code == 403
    assert door.get("/api/runs", headers={"Origin": origin}).status_code == 403


def test_own_origin_is_answered(door: TestClient) -> None:
    assert door.post("/api/x", json={}, headers={"Origin": OWN}).status_code == 200
    assert "access-control-allow-origin" not in door.get("/api/runs", headers={"Origin": OWN}).headers


@pytest.mark.parametrize("site", ["cross-site", "same-site", "whatever"])
def test_pages_of_other_sites_may_only_open_the_page(door: TestClient, site: str) -> None:
    headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate"}
    assert door.get("/", headers=headers).status_code == 200
    for path in ("/api/runs", "/static/shell.js"):
        assert door.get(path, headers=headers).status_code == 403
    assert door.get("/", headers={**headers, "Sec-Fetch-Mode": "no-cors"}).status_code == 403
    assert door.post("/api/x", json={}, headers=headers).status_code == 403


@pytest.mark.parametrize(
    "kind",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "text/plain; application/json", ""],
)
def test_what_is_posted_says_that_it_is_json(door: TestClient, kind: str) -> None:
    answer = door.post("/api/x", content=b"{}", headers={"Content-Type": kind})
    assert answer.status_code == 415
    assert "application/json" in answer.json()["error"]["what_to_do"]


def test_json_may_name_its_encoding(door: TestClient) -> None:
    assert (
        door.post("/api/x", content=b"{}", headers={"Content-Type": "Application/JSON; charset=utf-8"}).status_code
        == 200
    )


@pytest.mark.parametrize(("path", "most"), [("/api/x", 2000), ("/api/vision/x", 5000)])
def test_bodies_have_a_limit(door: TestClient, path: str, most: int) -> None:
    headers = {"Content-Type": "application/json"}
    assert door.post(path, content=b" " * most, headers=headers).json() == {"bytes": most}
    assert door.post(path, content=b" " * (most + 1), headers=headers).status_code == 413
    pieces = (b" " * 1000 for _ in range(9))  # nothing says how many come
    assert door.post(path, content=pieces, headers=headers).status_code == 413


@pytest.mark.parametrize(
    "path",
    [
        "/static/../guard.py", "/static/%2e%2e/guard.py", "/static/..%2fguard.py", "/static//etc/passwd", "/static/%00",
        "/static/pages/../../guard.py", "/static/..\\guard.py", "/static/", "/static", "/guard.py", "/api",
        "/api/offline/../shell", "/api/offline/%2e%2e%2fguard", "/api/offline/nothing",
    ],
)  # fmt: skip
def test_only_files_of_the_list_are_given(door: TestClient, path: str) -> None:
    answer = door.get(path)
    assert answer.status_code == 404
    assert "message" in answer.json()["error"]


def test_what_starts_something_needs_the_token(door: TestClient) -> None:
    token = door.app.state.settings.token  # type: ignore[attr-defined]
    assert len(token) >= 32
    for given in (None, "", token[:-1], token + "x", token.swapcase(), "Ω".encode()):
        headers = {} if given is None else {TOKEN: given}
        answer = door.post("/api/do", json={}, headers=headers)
        assert answer.status_code == 401
        assert token not in answer.text
    assert door.post(f"/api/do?token={token}", json={}).status_code == 401  # never in an address
    assert door.post("/api/do", json={}, headers={TOKEN: token}).status_code == 200
    assert door.get("/api/do", headers={TOKEN: token}).status_code == 405
    hostile = {TOKEN: token, "Origin": "http://evil.example"}
    assert door.post("/api/do", json={}, headers=hostile).status_code == 403


def test_tokens_differ() -> None:
    assert Settings().token != Settings().token
    assert Settings().token not in repr(Settings())


def test_every_answer_is_guarded(door: TestClient) -> None:
    for answer in (door.get("/"), door.get("/api/runs"), door.get("/nothing"), door.get("/", headers={"Host": "evil"})):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'; script-src 'self'; style-src 'self';" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"


def test_the_unforeseen_has_no_traceback(door: TestClient) -> None:
    answer = door.get("/api/broken")
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert "Traceback" not in answer.text


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods_are_refused(door: TestClient, method: str) -> None:
    assert door.request(method, "/api/runs").status_code == 405


def test_two_hosts_and_no_host_over_the_wire(studio: Studio) -> None:
    port = int(studio.url.rsplit(":", 1)[1])
    for head in ("Host: localhost\r\nHost: localhost", "X: y", f"Host: 127.0.0.1:{port}\r\nSec-Fetch-Site: cross-site"):
        with socket.create_connection(("127.0.0.1", port), 5) as wire:
            wire.sendall(f"GET /api/runs HTTP/1.1\r\n{head}\r\nConnection: close\r\n\r\n".encode())
            assert wire.recv(4000).split()[1] in (b"400", b"403")


def test_a_large_body_over_the_wire_is_told_why(studio: Studio) -> None:
    port = int(studio.url.rsplit(":", 1)[1])
    size = studio.settings.bytes + (1 << 20)
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", port), 10) as wire:
        lines = [
            "POST /api/runs HTTP/1.1",
            "Host: localhost",
            "Content-Type: application/json",
            f"Content-Length: {size}",
        ]
        wire.sendall("\r\n".join([*lines, "", ""]).encode() + b" " * size)
        assert wire.recv(4000).split()[1] == b"413"
    assert time.monotonic() - began < 8
