"""What the tests of the service share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from served import client as made
from starlette.testclient import TestClient


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    """A service of every task, with its usual settings."""
    with made() as found:
        yield found
