"""What every test shares: one thread each (two run side by side), and a cache of their own."""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fresh
import pytest
import unflushed  # noqa: F401  for what it does
from browser import browser, visit  # noqa: F401  one browser for all rooms: a process cannot drive two

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

with contextlib.suppress(ImportError):  # the tests of a GPU do without it
    from hypothesis import HealthCheck, settings

    # how long an example takes is the machine's affair; in CI these are hypothesis's own settings
    settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("patient")


fresh.install()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    fresh.begin(item.nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> Iterator[None]:
    """What several tests share is the same whichever of them comes first, and does not move that one's draws."""
    if fixturedef.scope == "function":
        return (yield)
    with fresh.aside(f"{fixturedef.argname} of {fixturedef.baseid} {getattr(request, 'param', '')!r}"):
        return (yield)


def pytest_collection_finish() -> None:
    """What was imported and collected stays: nobody has to look through it for garbage again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Tests must neither use nor fill the user's cache."""
    cache = tmp_path_factory.mktemp("cache")
    before = os.environ.get("JUMOK_CACHE")
    os.environ["JUMOK_CACHE"] = str(cache)
    yield cache
    if before is None:
        del os.environ["JUMOK_CACHE"]
    else:
        os.environ["JUMOK_CACHE"] = before
