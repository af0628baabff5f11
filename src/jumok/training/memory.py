"""How much memory there is and how much is in use, as far as the system says; None where it does not."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

import torch

STATUS, MEMORY = Path("/proc/self/status"), Path("/proc/meminfo")
GROUPS = (  # a container's limit and use: control groups version 2, and 1
    (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")),
    (
        Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
        Path("/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ),
)


def in_use(device: torch.device) -> int | None:
    """Bytes: on a GPU the most that tensors took so far, on the CPU what this process has in memory now."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return resident()


def resident() -> int | None:
    """What this process has in memory."""
    return _kilobytes(STATUS, "VmRSS") or peak_resident()


def peak_resident() -> int | None:
    """The most it ever had (since `forget_peak`, where the system can forget)."""
    peak = _kilobytes(STATUS, "VmHWM")
    if peak is not None:
        return peak
    try:
        import resource
    except ImportError:  # Windows
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def forget_peak() -> None:
    """From now on the peak is that of what comes."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def available(device: torch.device) -> int | None:
    """What a new process could take."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    free = [amount for amount in (_kilobytes(MEMORY, "MemAvailable"), _left_in_group()) if amount is not None]
    return min(free) if free else _installed()


def _left_in_group() -> int | None:
    for limit_file, use_file in GROUPS:
        try:
            limit, use = limit_file.read_text().strip(), int(use_file.read_text())
            return max(0, int(limit) - use)
        except (OSError, ValueError):  # there is none, or it says "max"
            continue
    return None


def _installed() -> int | None:
    """All there is, where nobody says how much of it is free: half of it may be hoped for."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (AttributeError, ValueError, OSError):
        return None


def _kilobytes(file: Path, name: str) -> int | None:
    """A line such as `VmRSS:  1234 kB`, in bytes."""
    try:
        lines = file.read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))
    except (OSError, StopIteration, ValueError, IndexError):
        return None


def in_words(count: float) -> str:
    """Bytes for people: 1.5 GB."""
    for size, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB")):
        if count >= 0.9995 * size:
            return f"{count / size:.3g} {unit}"
    return f"{count / 1e3:.3g} kB"


def limit_memory(more: int) -> bool:
    """From now on this process gets at most so many bytes more; False where the system cannot see to it (Linux can)."""
    used = _kilobytes(STATUS, "VmData")
    if used is None:
        return False
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = used + more
    resource.setrlimit(resource.RLIMIT_DATA, (wanted if hard < 0 else min(wanted, hard), hard))
    return True
