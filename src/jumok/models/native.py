"""transformer.c and its parts (*.h) as a library (layers/c_library.py compiles it).

Without one the same steps go through PyTorch (models/fast_cpu.py).
"""

from __future__ import annotations

import ctypes
from functools import lru_cache
from pathlib import Path

import torch
from torch import Tensor

from jumok.layers.c_library import c_library
from jumok.layers.packed import Precision

SOURCE = Path(__file__).with_name("transformer.c")


@lru_cache
def library() -> ctypes.CDLL | None:
    """None where there is no compiler, or it does not manage."""
    loaded = c_library(SOURCE)
    if loaded is None:
        return None
    for name in ("jumok_panel", "jumok_has_int8", "jumok_has_bfloat16", "jumok_has_threads"):
        function = getattr(loaded, name)
        function.restype, function.argtypes = ctypes.c_longlong, []
    for name in ("jumok_read", "jumok_encode", "jumok_step", "jumok_best", "jumok_gelu"):
        getattr(loaded, name).restype = None
    return loaded


def computes(precision: Precision, *inputs: int) -> bool:
    """Whether there is a library, with threads, that knows this precision, and maps of so many inputs in it."""
    found = library()
    if found is None or not (found.jumok_has_threads() or torch.get_num_threads() == 1):
        return False
    known = {"float32": 1, "bfloat16": found.jumok_has_bfloat16(), "int8": found.jumok_has_int8()}
    together = {"float32": 1, "bfloat16": 2, "int8": 4}[precision]  # inputs that are multiplied at once
    return bool(known[precision]) and all(width % together == 0 for width in inputs)


def best_of(values_NV: Tensor, count: int) -> tuple[Tensor, Tensor] | None:
    """The `count` largest of each row and where they are, equal ones by place; the first is NaN if any of a row is.

    None if the library is not in use: nothing is compiled for this alone.
    """
    if not library.cache_info().currsize or values_NV.dtype != torch.float32 or not values_NV.is_contiguous():
        return None
    found = library()
    if found is None:
        return None
    (rows, words), number, pointer = values_NV.shape, ctypes.c_longlong, ctypes.c_void_p
    best, place = torch.empty(rows, count), torch.empty(rows, count, dtype=torch.long)
    threads = torch.get_num_threads() if rows * words > 1 << 16 else 1
    found.jumok_best(
        pointer(values_NV.data_ptr()), number(rows), number(words), number(count), number(threads),
        pointer(best.data_ptr()), pointer(place.data_ptr()),
    )  # fmt: skip
    return best, place
