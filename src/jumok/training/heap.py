"""On a CPU: memory that an update was computed in is kept for the next one.

glibc gives a large block back to the system as soon as it is free, and the system clears all its pages when such a
block is asked for again. Activations and gradients are such blocks; to clear them took a twentieth of the time of an
update. Other C libraries are left alone.
"""

from __future__ import annotations

import ctypes
import sys

# of malloc.h: from which size on a block is none of the heap, and when the heap shrinks by what is free at its end
MMAP_THRESHOLD, TRIM_THRESHOLD = -3, -1
KEEP, USUAL = 1 << 30, 1 << 25  # bytes; USUAL is where glibc ends by itself when large blocks come and go


def keep_memory() -> None:
    _thresholds(KEEP)


def give_memory_back() -> None:
    _thresholds(USUAL)
    trim = getattr(_library(), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _thresholds(size: int) -> None:
    mallopt = getattr(_library(), "mallopt", None)
    if mallopt is not None:
        mallopt(MMAP_THRESHOLD, size)
        mallopt(TRIM_THRESHOLD, size)


def _library() -> ctypes.CDLL | None:
    """What this process allocates with, where it is glibc."""
    if not sys.platform.startswith("linux"):
        return None
    library = ctypes.CDLL(None)
    return library if hasattr(library, "gnu_get_libc_version") else None
