"""transformer.c and its parts (*.h) as a library: compiled once on this machine, for its processor, and kept in the
user's cache.

A C compiler is a help, never a need: without one (or with JUMOK_NATIVE=0) the same steps go through PyTorch
(models/fast_cpu.py).
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from functools import lru_cache
from pathlib import Path

import torch
from torch import Tensor

from jumok.data.folders import default_cache
from jumok.files import flush_file, sha256

FOLDER = Path(__file__).parent  # of transformer.c and what it includes
FLAGS = ("-O3", "-std=gnu11", "-fPIC", "-shared", "-fno-math-errno", "-fno-trapping-math", "-fopenmp")
NATIVE = {"x86_64": ("-march=native",), "AMD64": ("-march=native",)}  # elsewhere it is called -mcpu


@lru_cache
def library() -> ctypes.CDLL | None:
    """None where there is no compiler, or it does not manage."""
    if os.environ.get("JUMOK_NATIVE") == "0":
        return None
    compiler = next((found for name in ("cc", "gcc", "clang") if (found := shutil.which(name))), None)
    if compiler is None:
        return None
    flags = [*FLAGS, *NATIVE.get(platform.machine(), ("-mcpu=native",))]
    try:
        return _load(_compiled(compiler, flags))
    except (OSError, subprocess.SubprocessError, AttributeError):
        return None


def _compiled(compiler: str, flags: list[str]) -> Path:
    """The path of the library. Its name says what it was made from, for which processor, and the hash of its bytes:
    one that a full disk or a power cut damaged is not loaded but made again."""
    sources = [path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.[ch]"))]
    made_from = [*sources, *flags, _processor(), torch.__version__]
    key = hashlib.sha256("\0".join(made_from).encode()).hexdigest()[:20]
    ending = "dll" if sys.platform == "win32" else "so"
    folder = default_cache() / "native"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not _is_private(folder):
        raise OSError(f"{folder} can be written to by others: nothing is loaded from there")
    for known in folder.glob(f"transformer-{key}-*.{ending}"):
        if known.stem.endswith(sha256(known)[:20]):
            return known
    with tempfile.TemporaryDirectory(dir=folder) as place:
        made = Path(place) / f"library.{ending}"
        command = [compiler, *flags, "-o", str(made), str(FOLDER / "transformer.c"), "-lm"]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
        flush_file(made)
        library = folder / f"transformer-{key}-{sha256(made)[:20]}.{ending}"
        os.replace(made, library)
    return library


def _is_private(folder: Path) -> bool:
    """Whether only this user can put files there (where the system tells)."""
    if not hasattr(os, "getuid"):
        return True
    found = folder.stat()
    return found.st_uid == os.getuid() and not found.st_mode & 0o022


def _processor() -> str:
    """Which instructions there are: a home may be shared by machines that differ."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()} {platform.node()}"
    return next((line for line in lines if line.startswith(("flags", "Features"))), platform.machine())


def _load(path: Path) -> ctypes.CDLL:
    loaded = ctypes.CDLL(str(path))
    for name in ("jumok_panel", "jumok_has_int8", "jumok_has_bfloat16", "jumok_has_threads"):
        function = getattr(loaded, name)
        function.restype, function.argtypes = ctypes.c_longlong, []
    for name in ("jumok_read", "jumok_step", "jumok_best"):
        getattr(loaded, name).restype = None
    return loaded


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
