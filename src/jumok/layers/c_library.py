"""Sources in C as libraries: each compiled once on this machine, for its processor, and kept in the user's cache.

A C compiler is a help, never a need: without one (or with JUMOK_NATIVE=0) the same is computed through PyTorch. lanes.h
has the arithmetic of the processor, for all of them.
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
from pathlib import Path

import torch

from jumok.data.folders import default_cache
from jumok.files import flush_file, sha256

SHARED = Path(__file__).parent  # what a source may include besides the *.h beside it
FLAGS = ("-O3", "-std=gnu11", "-fPIC", "-shared", "-fno-math-errno", "-fno-trapping-math", "-fopenmp")
NATIVE = {"x86_64": ("-march=native",), "AMD64": ("-march=native",)}  # elsewhere it is called -mcpu


def c_library(source: Path) -> ctypes.CDLL | None:
    """None where there is no compiler, or it does not manage."""
    if os.environ.get("JUMOK_NATIVE") == "0":
        return None
    compiler = next((found for name in ("cc", "gcc", "clang") if (found := shutil.which(name))), None)
    if compiler is None:
        return None
    flags = [*FLAGS, *NATIVE.get(platform.machine(), ("-mcpu=native",))]
    try:
        return ctypes.CDLL(str(_compiled(source, compiler, flags)))
    except (OSError, subprocess.SubprocessError):
        return None


def _compiled(source: Path, compiler: str, flags: list[str]) -> Path:
    """The path of the library. Its name says what it was made from, for which processor, and the hash of its bytes:
    one that a full disk or a power cut damaged is not loaded but made again."""
    headers = {path for folder in (source.parent, SHARED) for path in folder.glob("*.h")}
    texts = [path.read_text(encoding="utf-8") for path in (source, *sorted(headers))]
    key = hashlib.sha256("\0".join([*texts, *flags, _processor(), torch.__version__]).encode()).hexdigest()[:20]
    ending = "dll" if sys.platform == "win32" else "so"
    folder = default_cache() / "native"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not _is_private(folder):
        raise OSError(f"{folder} can be written to by others: nothing is loaded from there")
    for known in folder.glob(f"{source.stem}-{key}-*.{ending}"):
        if known.stem.endswith(sha256(known)[:20]):
            return known
    with tempfile.TemporaryDirectory(dir=folder) as place:
        made = Path(place) / f"library.{ending}"
        command = [compiler, *flags, "-I", str(SHARED), "-o", str(made), str(source), "-lm"]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
        flush_file(made)
        library = folder / f"{source.stem}-{key}-{sha256(made)[:20]}.{ending}"
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
