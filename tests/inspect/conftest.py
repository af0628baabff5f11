"""A real browser for the pages: everything outside the machine is cut off, and every complaint is kept."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jumok.inspect.attention import Attention

EVIL = ('<script>window.hacked="a"</script>', "</script><img src=x onerror='window.hacked=\"b\"'>", "a&b\"q'", "<!--")


def _chromium() -> str:
    found = next(
        (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
    )
    if found is None:
        message = "no Chromium found (apt install chromium)"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    return found


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    path = _chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield running
        running.close()


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[..., Any]]:
    """Open a file; at the end of the test nothing may have been fetched from elsewhere or complained about."""
    complaints: list[str] = []
    requests: list[str] = []
    contexts: list[Any] = []

    def guard(route: Any) -> None:
        if route.request.url.startswith("file://"):
            route.continue_()
        else:
            requests.append(route.request.url)
            route.abort()

    def open_page(path: Path, **options: Any) -> Any:
        context = browser.new_context(**options)
        contexts.append(context)
        context.route("**/*", guard)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(path.absolute().as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert requests == []
    assert complaints == []


@pytest.fixture
def make_attention() -> Callable[..., Attention]:
    """Random weights whose rows sum to 1, for the given words (or that many of them)."""

    def make(source: Any = 5, target: Any = 4, seed: int = 0) -> Attention:
        keys = [f"key{i}" for i in range(source)] if isinstance(source, int) else list(source)
        queries = [f"query{i}" for i in range(target)] if isinstance(target, int) else list(target)
        weights = np.random.default_rng(seed).dirichlet(np.ones(max(len(keys), 1)), len(queries))
        return Attention(tuple(keys), tuple(queries), weights[:, : len(keys)], score=-1.25)

    return make


@pytest.fixture
def evil() -> tuple[str, ...]:
    return EVIL
