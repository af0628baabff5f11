"""The door of the studio, against hostile use."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from studio_server import Studio, until

from jumok.errors import BadInput
from jumok.studio.answers import act, computed, get, json_answer, post
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


# ---------------------------------------------------------------- behind a proxy

PROXIED = ("studio.example.org", "[2001:db8::1]")


@pytest.fixture(scope="module")
def proxied() -> Any:
    async def seen(request: Any) -> Any:
        return json_answer({})

    app = create_app(Shelf(), Settings(proxied=PROXIED))
    app.router.routes[:0] = [post("/api/x", seen), act("/api/do", seen)]
    with TestClient(app, base_url=OWN) as client:
        yield client


@pytest.mark.parametrize(
    "host", ["studio.example.org", "Studio.Example.ORG:8443", "[2001:db8::1]:443", "127.0.0.1:8765"]
)
@pytest.mark.parametrize(
    "origin", ["https://studio.example.org", "http://STUDIO.example.org:8080", "https://[2001:db8::1]:8443"]
)
def test_a_proxy_that_was_named_may_ask(proxied: TestClient, host: str, origin: str) -> None:
    """It may give the Host that it was asked under, or ours."""
    headers = {"Host": host, "Origin": origin, "Sec-Fetch-Site": "same-origin"}
    assert proxied.get("/", headers={"Host": host}).status_code == 200
    assert proxied.get("/api/runs", headers=headers).status_code == 200
    assert proxied.post("/api/x", json={}, headers=headers).status_code == 200
    assert proxied.post("/api/do", json={}, headers=headers).status_code == 401  # the token is needed all the same


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("evil.example", "https://studio.example.org"),
        ("studio.example.org.evil.example", None),
        ("evil.studio.example.org", None),
        ("studio.example.org", "https://evil.example"),
        ("studio.example.org", "https://studio.example.org.evil.example"),
        ("studio.example.org", "https://evil.example:443@studio.example.org"),
        ("studio.example.org", "https://a.studio.example.org"),
        ("studio.example.org", "https://studio.example.org/x"),
        ("studio.example.org", "https://studio.example.org:evil"),
        ("studio.example.org", "ftp://studio.example.org"),
        ("studio.example.org", "null"),
        ("127.0.0.1:8765", "http://127.0.0.1:3000"),  # that any port will do is for the proxy's name alone
    ],
)
def test_what_looks_like_a_proxy_is_refused(proxied: TestClient, host: str, origin: str | None) -> None:
    headers = {"Host": host} | ({} if origin is None else {"Origin": origin})
    assert proxied.get("/api/runs", headers=headers).status_code == 403
    assert proxied.post("/api/x", json={}, headers=headers).status_code == 403


def test_nobody_is_a_proxy_unless_named(door: TestClient) -> None:
    assert Settings().proxied == ()
    for headers in ({"Host": PROXIED[0]}, {"Origin": f"https://{PROXIED[0]}"}):
        assert door.get("/api/runs", headers=headers).status_code == 403


def test_the_command_names_proxies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the runs under runs/, however deep."""
    from jumok import recipe as recipes
    from jumok.cli.studio import studio
    from jumok.training.run import RunFolder

    monkeypatch.chdir(tmp_path)
    RunFolder.create(tmp_path / "runs" / "a" / "b", recipes.read("demo-transformer"))
    given: list[Any] = []
    monkeypatch.setattr("jumok.studio.server.serve", lambda *arguments: given.append(arguments))

    def start(*names: str) -> Settings:
        studio([], "127.0.0.1", list(names), 0, "cpu", open_browser=False, first=False)
        shelf, settings, listener, *_ = given.pop()
        listener.close()
        assert shelf.names == ["en-fr", "a/b"]
        assert isinstance(settings, Settings)
        return settings

    assert start().proxied == ()
    settings = start("Studio.example.org", "2001:db8::1")
    assert settings.proxied == PROXIED
    assert settings.hosts == Settings().hosts
    with pytest.raises(BadInput, match="--allow-host"):
        start("https://studio.example.org")


# ---------------------------------------------------------------- all together


def test_so_many_are_answered_at_once_and_the_rest_is_told(studio: Studio, monkeypatch: pytest.MonkeyPatch) -> None:
    """Event sources count; when they have gone, there is room again."""
    port = int(studio.url.rsplit(":", 1)[1])
    most = studio.settings.at_once
    assert 16 <= most <= 64
    ask = b"GET /api/train/events HTTP/1.1\r\nHost: localhost\r\n\r\n"
    wires = []
    try:
        for _ in range(most):
            wires.append(socket.create_connection(("127.0.0.1", port), 10))
            wires[-1].sendall(ask)
        assert all(wire.recv(4000).startswith(b"HTTP/1.1 200") for wire in wires)
        status, said = _asked(port)
        assert status == b"503"
        assert f"{most} requests".encode() in said
        assert b"what_to_do" in said
        assert b"content-security-policy" in said
    finally:
        for wire in wires:
            wire.close()
    until(lambda: _asked(port)[0] == b"200")


def _asked(port: int) -> tuple[bytes, bytes]:
    with socket.create_connection(("127.0.0.1", port), 10) as wire:
        wire.sendall(b"GET /api/first HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        said = b"".join(iter(lambda: wire.recv(65536), b""))
    return said.split()[1], said


def test_bodies_of_all_together_have_a_limit() -> None:
    """While one is being answered, another has what is left; then all of it."""
    inside, free = threading.Event(), threading.Event()

    async def slow(request: Any) -> Any:
        def wait() -> int:
            inside.set()
            return len(body) * free.wait(20)

        body = await request.body()
        return json_answer({"bytes": await computed(request, wait)})

    async def seen(request: Any) -> Any:
        return json_answer({"bytes": len(await request.body())})

    app = create_app(Shelf(), Settings(bytes=2000, held=3000))
    app.router.routes[:0] = [post("/api/slow", slow), post("/api/x", seen)]
    headers = {"Content-Type": "application/json"}
    with TestClient(app, base_url=OWN) as client:
        first: list[Any] = []
        thread = threading.Thread(
            target=lambda: first.append(client.post("/api/slow", content=b" " * 2000, headers=headers).json())
        )
        thread.start()
        assert inside.wait(20)
        assert client.post("/api/x", content=b" " * 1000, headers=headers).json() == {"bytes": 1000}
        answer = client.post("/api/x", content=b" " * 1001, headers=headers)
        assert answer.status_code == 503
        assert "3,000 bytes" in answer.json()["error"]["message"]
        free.set()
        thread.join(20)
        assert first == [{"bytes": 2000}]
        assert client.post("/api/x", content=b" " * 2000, headers=headers).json() == {"bytes": 2000}


def test_nothing_is_computed_for_who_has_gone(studio: Studio, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither for one who waits for the worker; one whose turn has come is not waited for."""
    inside, free, done = threading.Event(), threading.Event(), list[str]()

    def work(name: str) -> str:
        if name == "first":
            inside.set()
            free.wait(20)
        done.append(name)
        return name

    came: list[str] = []

    async def worked(request: Any) -> Any:
        name = request.query_params["name"]
        came.append(name)
        return json_answer(await computed(request, work, name))

    monkeypatch.setattr(studio.app.router, "routes", [get("/api/worked", worked), *studio.app.router.routes])
    port = int(studio.url.rsplit(":", 1)[1])

    def ask(name: str) -> socket.socket:
        wire = socket.create_connection(("127.0.0.1", port), 20)
        wire.sendall(f"GET /api/worked?name={name} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        until(lambda: name in came)
        return wire

    wires = [ask("first")]
    assert inside.wait(20)
    wires += [ask(name) for name in ("gone", "stays", "gone-too")]
    wires[1].close()
    wires[3].close()
    time.sleep(0.3)  # until the server has noticed
    free.set()
    assert b"200 OK" in wires[2].recv(4000)
    assert done == ["first", "stays"]
    wires[2].close()
    wires[0].close()
    again = ask("last")
    assert b"200 OK" in again.recv(4000)
    again.close()
    assert done == ["first", "stays", "last"]
