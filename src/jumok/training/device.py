"""Where to compute, and the settings that make it repeatable."""

from __future__ import annotations

import hashlib
import os

import torch

from jumok.errors import BadInput


def choose_device(name: str) -> torch.device:
    """`auto` takes a GPU where there is one."""
    available = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        name = next(kind for kind in ("cuda", "mps", "cpu") if available[kind])
    if name not in available:
        raise BadInput(f'device "{name}": choose auto, cpu, cuda or mps')
    if not available[name]:
        there = ", ".join(kind for kind, is_there in available.items() if is_there)
        raise BadInput(f"device: {name} is not available on this machine (there is: {there}). Use device=auto")
    return torch.device(name)


def prepare(threads: int, device: torch.device, exact: bool) -> int:
    """Fix the number of threads and, when asked, deterministic kernels. Returns the threads in use."""
    count = threads or os.cpu_count() or 1
    torch.set_num_threads(count)
    if device.type == "cuda":
        # cuBLAS is only repeatable with a fixed workspace; it reads this at its first call
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.backends.cudnn.benchmark = False
        torch.backends.cuda.matmul.allow_tf32 = True
        torch.backends.cudnn.allow_tf32 = True
        torch.use_deterministic_algorithms(exact)
        # it would also fill every new tensor before use: nothing here reads memory that nothing wrote
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    return count


def seed_for(*numbers: int) -> int:
    """One seed from several numbers, the same on every machine."""
    digest = hashlib.blake2b(repr(numbers).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1
