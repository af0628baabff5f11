"""What this machine can do at most: the speed of a large matrix product, measured once and remembered.

MFU = useful operations per second / this. A data sheet's figure is for another clock, and for CPUs there is none.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import time
from pathlib import Path
from typing import Any

import torch

from jumok.data.store import default_cache
from jumok.files import replace_file

FILE = "peak.json"
# On the CPU a product should be over before the system gives the core to somebody else: then the best of many is true.
CPU_SIZES = {4: 512, 16: 1024}  # up to so many threads, so large
CPU_SECONDS, GPU_SIZE, GPU_REPEATS = 0.2, 8192, 10


def matmul_peak(device: torch.device, dtype: torch.dtype, again: bool = False) -> float | None:
    """Operations per second of a large matrix product in these numbers, with the settings of the moment (threads,
    TF32); None where it cannot be measured. `again`: measure anew, the better value counts."""
    file = default_cache() / FILE
    key = _key(device, dtype)
    known = _remembered(file).get(key)
    before = float(known) if isinstance(known, int | float) and known > 0 else 0.0
    if before and not again:
        return before
    try:
        speed = _on_gpu(device, dtype) if device.type == "cuda" else _on_cpu(dtype) if device.type == "cpu" else None
    except RuntimeError:  # no room for the matrices, or no such product here
        return before or None
    if speed is not None:
        speed = max(speed, before)
        with contextlib.suppress(OSError):  # a cache that cannot be written to: measured again the next time
            file.parent.mkdir(parents=True, exist_ok=True)
            replace_file(file, json.dumps({**_remembered(file), key: speed}, indent=1) + "\n")
    return speed


def _key(device: torch.device, dtype: torch.dtype) -> str:
    """What the speed depends on."""
    numbers = str(dtype).removeprefix("torch.")
    if device.type == "cuda":
        tf32 = " tf32" if dtype == torch.float32 and torch.backends.cuda.matmul.allow_tf32 else ""
        return f"{torch.cuda.get_device_name(device)}, {numbers}{tf32}, torch {torch.__version__}"
    processor = f"{platform.node()} {platform.machine()} {torch.backends.cpu.get_cpu_capability()}"
    threads = torch.get_num_threads()
    return f"{processor}, {os.cpu_count()} cores, {threads} threads, {numbers}, torch {torch.__version__}"


def _remembered(file: Path) -> dict[str, Any]:
    try:
        known = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def _matrices(size: int, device: torch.device, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Random ones: a GPU that multiplies zeros draws less power, and runs faster than it ever will.

    From a generator of their own, so that nobody's randomness depends on whether this was measured.
    """
    own = torch.Generator(device).manual_seed(1)
    a, b = (torch.randn(size, size, device=device, generator=own).to(dtype) for _ in range(2))
    return a, b


def _on_cpu(dtype: torch.dtype) -> float:
    """The best of several products: the others shared the machine with somebody."""
    threads = torch.get_num_threads()
    size = next((size for most, size in CPU_SIZES.items() if threads <= most), 2048)
    a, b = _matrices(size, torch.device("cpu"), dtype)
    best, spent = float("inf"), 0.0
    while spent < CPU_SECONDS:
        began = time.perf_counter()
        a @ b
        seconds = time.perf_counter() - began
        best, spent = min(best, seconds), spent + seconds
    return 2 * size**3 / best


def _on_gpu(device: torch.device, dtype: torch.dtype) -> float:
    free = torch.cuda.mem_get_info(device)[0]
    size = GPU_SIZE if free > 16 * GPU_SIZE**2 * dtype.itemsize else GPU_SIZE // 4
    a, b = _matrices(size, device, dtype)
    out = torch.empty_like(a)
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
    for _ in range(3):
        torch.mm(a, b, out=out)
    start.record()
    for _ in range(GPU_REPEATS):
        torch.mm(a, b, out=out)
    end.record()
    torch.cuda.synchronize(device)
    milliseconds = start.elapsed_time(end)
    del a, b, out
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats(device)  # what a run needs is counted from here
    return 2 * size**3 * GPU_REPEATS / (milliseconds / 1e3)
