"""Memory that is kept is not cleared again: pages are touched for the first time only once."""

from __future__ import annotations

import subprocess
import sys

import pytest

TOUCH = """
import resource, sys
import torch
from jumok.training.heap import give_memory_back, keep_memory

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def touch():
    before = faults()
    for _ in range(20):
        torch.zeros(40_000_000, dtype=torch.uint8)
    return faults() - before

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()

usual = touch()
keep_memory()
touch()  # until the heap has room for every alignment
kept = touch()
held = resident()
give_memory_back()
print(usual, kept, held - resident())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc's own business")
def test_kept_memory_is_not_cleared_again_and_goes_back_in_the_end() -> None:
    run = subprocess.run([sys.executable, "-c", TOUCH], capture_output=True, text=True, check=True)
    usual, kept, returned = map(int, run.stdout.split())
    if not usual > 19:
        pytest.skip("this C library keeps memory by itself")
    assert kept < usual / 10
    assert returned > 30_000_000
