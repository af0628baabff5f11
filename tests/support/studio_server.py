"""A studio in this process: in memory (`client`), or a real server in a thread (`studio`) with a browser for its pages
(`open_page`), which can reach nothing but that server, and whose complaints end the test."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.testclient import TestClient

from jumok.errors import BadInput
from jumok.serve.listening import listening
from jumok.studio import assets
from jumok.studio.answers import Asked, act, asked, floats, get, json_answer, post
from jumok.studio.app import create_app, prepare
from jumok.studio.server import Server, config_of
from jumok.studio.settings import Settings
from jumok.studio.shelf import Shelf

SERIOUS = ("serious", "critical")


@dataclass
class Studio:
    """`url` without a slash at its end; `shelf` may be added to (`studio.shelf.add(name, folder)`)."""

    url: str
    shelf: Shelf
    settings: Settings
    app: Any


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    """The application without a server; `client.app.state` has the shelf and the settings with the token."""
    with TestClient(create_app(Shelf.of([], device="cpu"), Settings()), base_url="http://127.0.0.1:8765") as found:
        yield found


@pytest.fixture(scope="module")
def studio() -> Iterator[Studio]:
    """A real server on a free port, with the packaged run; tests of a module share it."""
    settings = Settings()
    app = create_app(Shelf.of([], device="cpu"), settings)
    prepare(app)
    listener, url = listening("127.0.0.1", 0)
    begun = threading.Event()
    server = Server(config_of(app), begun.set)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])), daemon=True)
    thread.start()
    assert begun.wait(20)
    try:
        yield Studio(url, app.state.shelf, settings, app)
    finally:
        server.should_exit = True
        thread.join(10)
    assert not thread.is_alive()


@pytest.fixture
def scratch(studio: Studio, monkeypatch: pytest.MonkeyPatch) -> Studio:
    """The studio with a page in the place of the last one that uses everything a page is given (studio_page.js)."""
    monkeypatch.setitem(assets.files(), "pages/lessons.js", Path(__file__).with_name("studio_page.js"))
    kept = list(studio.app.router.routes)
    monkeypatch.setattr(studio.app.router, "routes", [*SCRATCH, *kept])
    return studio


class Text(Asked):
    text: str


HOSTILE = ["<b>the</b>", "cat", "\u202eevil\u0007", "주목 ", "", "\"'&\x00</script><!--"]
NUMBERS = np.sin(np.arange(36, dtype=np.float32)).reshape(6, 6)


async def _words(request: Request) -> Response:
    asked_for = await asked(request, Text)
    return json_answer({"tokens": [*HOSTILE[:5], asked_for.text], "nothing": float("nan")})


async def _floats(request: Request) -> Response:
    return floats(NUMBERS, name="주목", nothing=float("nan"))


async def _act(request: Request) -> Response:
    return json_answer({"done": "It is done."})


async def _fail(request: Request) -> Response:
    raise BadInput("this is wrong: do something else")


SCRATCH = [
    post("/api/scratch/words", _words),
    get("/api/scratch/floats", _floats),
    act("/api/scratch/act", _act),
    get("/api/scratch/fail", _fail),
]


@pytest.fixture
def open_page(browser: Any, studio: Studio) -> Iterator[Callable[..., Any]]:
    """open_page("#/translate?head=3", language="ko", theme="dark", token=True, **options of the browser's context).

    It waits until the page is shown. At the end nothing may have been asked of anybody else, or complained about;
    `page.complaints` is the list, for tests that mean to cause one (they clear it).
    """
    contexts: list[Any] = []
    complaints: list[str] = []
    elsewhere: list[str] = []

    def guard(route: Any) -> None:
        url = route.request.url
        if url.startswith((studio.url, "data:", "blob:", "file:")):
            route.continue_()
        else:
            elsewhere.append(url)
            route.abort()

    def show(hash: str = "", *, language: str = "en", theme: str = "light", token: bool = False, **options: Any) -> Any:
        context = browser.new_context(
            **{"color_scheme": theme, "locale": {"en": "en-GB", "ko": "ko-KR"}[language], **options}
        )
        contexts.append(context)
        context.set_default_timeout(20_000)
        context.route("**/*", guard)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.complaints = complaints
        if token:
            page.goto(f"{studio.url}/#token={studio.settings.token}")
            shown(page)
            page.goto("about:blank")
        page.goto(f"{studio.url}/{hash}")
        shown(page)
        return page

    yield show
    for context in contexts:
        context.close()
    assert elsewhere == []
    assert complaints == []


def shown(page: Any) -> None:
    """Wait until the view stands still."""
    page.wait_for_selector("#view:not([aria-busy])")


@pytest.fixture
def axe() -> Callable[[Any], None]:
    """axe(page) fails on what axe-core finds serious or critical, with what and where."""
    from axe_core_python.sync_playwright import Axe

    def check(page: Any) -> None:
        page.wait_for_timeout(50)
        found = Axe().run(page)
        wrong = [
            f"{one['id']} ({one['impact']}): {one['help']}: {[node['html'][:160] for node in one['nodes'][:3]]}"
            for one in found["violations"]
            if one["impact"] in SERIOUS
        ]
        assert wrong == []

    return check


def click_cell(page: Any, row: int, column: int, *keys: str) -> None:
    """Click on a cell of the scratch page's map, while keys are held."""
    page.wait_for_timeout(100)
    page.locator(".matrix .frame").evaluate("one => one.scrollIntoView({block: 'center'})")
    frame, spread = page.locator(".matrix .frame").bounding_box(), page.locator(".matrix .spread").bounding_box()
    cell = 40  # the largest that a cell gets: six of them fit everywhere
    for key in keys:
        page.keyboard.down(key)
    page.mouse.click(
        frame["x"] + spread["width"] - (5.5 - column) * cell, frame["y"] + spread["height"] - (5.5 - row) * cell
    )
    for key in keys:
        page.keyboard.up(key)


def holds(page: Any, expression: str, seconds: float = 20) -> None:
    """Wait until it does. Playwright's own way (wait_for_function) is forbidden by the page's policy."""
    limit = time.monotonic() + seconds
    while not page.evaluate(expression):
        assert time.monotonic() < limit, expression
        page.wait_for_timeout(20)


def until(condition: Callable[[], bool], seconds: float = 20) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.02)
