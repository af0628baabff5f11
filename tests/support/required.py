"""Libraries that tests compare with: where they are not installed a test is skipped, but never where all must run."""

from __future__ import annotations

import importlib
import os
from typing import Any

import pytest


def required(name: str) -> Any:
    """The module; called at the top of a file, for all tests in it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        message = f'{name} is not installed: pip install ".[test]" brings it'
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message, allow_module_level=True)
