"""The load script measures what it says, in a few seconds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.full
def test_it_loads_a_service_and_ends_it() -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "serve_load.py"), "--seconds", "5", "--lines", "128"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    for words in ("beside offline", "× 429", "SIGTERM with", "hang up"):
        assert words in result.stdout
