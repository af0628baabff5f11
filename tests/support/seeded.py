"""Fresh random inputs in every run; the seed is printed when a test fails."""

from __future__ import annotations

import secrets

import pytest
import torch


@pytest.fixture(autouse=True)
def seed() -> int:
    torch.set_num_threads(1)
    value = secrets.randbelow(2**31)
    print(f"seed {value}")
    torch.manual_seed(value)
    return value
