"""Fresh random inputs in every run, and kernels with one thread and with two."""

from collections.abc import Iterator

import pytest
import torch
from seeded import seed

__all__ = ["seed", "threads"]


@pytest.fixture(params=[1, 2])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)
