"""Where to compute, and the settings that make it repeatable."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from jumok.errors import BadInput
from jumok.training.heap import give_memory_back, keep_memory


def choose_device(name: str) -> torch.device:
    """`auto` takes a GPU where there is one."""
    available = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        name = next(kind for kind in ("cuda", "mps", "cpu") if available[kind])
    if name not in available:
        raise BadInput(f'device "{name}": choose auto, cpu, cuda or mps')
    if not available[name]:
        there = ", ".join(kind for kind, is_there in available.items() if is_there)
        raise BadInput(f"device: {name} is not available on this machine (there is: {there}). Use auto")
    return torch.device(name)


@contextmanager
def repeatable(threads: int, device: torch.device, exact: bool) -> Iterator[int]:
    """Fix the number of threads and, when asked, deterministic kernels; afterwards all is as it was.

    0 threads leaves the choice to PyTorch, which knows the cores and OMP_NUM_THREADS. Yields the threads in use.
    """
    count, deterministic = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    matmul, cudnn, memory = torch.backends.cuda.matmul, torch.backends.cudnn, torch.utils.deterministic
    before = matmul.allow_tf32, cudnn.allow_tf32, cudnn.benchmark, memory.fill_uninitialized_memory  # type: ignore[attr-defined]
    torch.set_num_threads(threads or count)
    if device.type == "cpu":
        keep_memory()
    if device.type == "cuda":
        # cuBLAS is only repeatable with a fixed workspace; it reads this at its first call
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        cudnn.benchmark = False
        matmul.allow_tf32 = cudnn.allow_tf32 = True
        torch.use_deterministic_algorithms(exact)
        # it would also fill every new tensor before use: nothing here reads memory that nothing wrote
        memory.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    try:
        yield torch.get_num_threads()
    finally:
        if device.type == "cpu":
            give_memory_back()
        torch.set_num_threads(count)
        torch.use_deterministic_algorithms(deterministic)
        matmul.allow_tf32, cudnn.allow_tf32, cudnn.benchmark, memory.fill_uninitialized_memory = before  # type: ignore[attr-defined]


def seed_for(*numbers: int) -> int:
    """One seed from several numbers, the same on every machine."""
    digest = hashlib.blake2b(repr(numbers).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def is_out_of_memory(error: RuntimeError) -> bool:
    """PyTorch has a class of its own for a GPU's; what the CPU's allocator and libraries raise has only its words."""
    words = "can't allocate memory", "CUDA error: out of memory", "STATUS_ALLOC_FAILED"
    return isinstance(error, torch.OutOfMemoryError) or any(part in str(error) for part in words)
