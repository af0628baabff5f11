"""A matrix turned on its side on a CPU, by all threads, with the sums of its columns: turned.c.

PyTorch's copy of a transposed matrix is the work of one thread, whatever there are.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache
from pathlib import Path

import torch
from torch import Tensor

from jumok.layers.c_library import c_library

SOURCE = Path(__file__).with_name("turned.c")
LEAST = 2**16  # numbers: below it nothing is gained, and nobody has to wait for a compiler
NUMBER, POINTER = ctypes.c_longlong, ctypes.c_void_p


@lru_cache
def library() -> ctypes.CDLL | None:
    """None where there is no compiler, or it does not manage."""
    loaded = c_library(SOURCE)
    if loaded is not None:
        loaded.jumok_turned.restype = None
        loaded.jumok_turned.argtypes = [POINTER, NUMBER, NUMBER, NUMBER, POINTER, POINTER, NUMBER]
    return loaded


def turned(x_NO: Tensor) -> Tensor:
    """xᵀ, laid out so: (O, N)."""
    return _turned(x_NO, wants_sums=False)[0]


def turned_with_sums(x_NO: Tensor) -> tuple[Tensor, Tensor]:
    """The same, and Σ_n x_n."""
    x_ON, sums_O = _turned(x_NO, wants_sums=True)
    return x_ON, x_NO.sum(dim=0) if sums_O is None else sums_O


def _turned(x_NO: Tensor, wants_sums: bool) -> tuple[Tensor, Tensor | None]:
    known = x_NO.device.type == "cpu" and x_NO.dtype == torch.float32
    found = library() if known and x_NO.numel() >= LEAST and x_NO.stride(1) == 1 else None
    if found is None:
        return x_NO.t().contiguous(), None
    rows, columns = x_NO.shape
    x_ON, sums_O = x_NO.new_empty(columns, rows), x_NO.new_empty(columns) if wants_sums else None
    found.jumok_turned(
        x_NO.data_ptr(), x_NO.stride(0), rows, columns, x_ON.data_ptr(),
        None if sums_O is None else sums_O.data_ptr(), torch.get_num_threads(),
    )  # fmt: skip
    return x_ON, sums_O
