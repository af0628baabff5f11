"""A real browser for the pages: everything outside the machine is cut off, and every complaint is kept."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest


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
