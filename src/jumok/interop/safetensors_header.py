"""What a safetensors file says of itself, checked before anything of it is used.

    8 bytes: n, little-endian · n bytes: JSON {name: {dtype, shape, data_offsets}} · the numbers, end to end

The library that reads them checks most of this; it takes the last of two tensors of one name, and reads a header of up
to 100 MB however many things that holds. Here the numbers of all tensors must lie end to end and fill the file, each as
large as its shape and kind say.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from jumok.errors import BadInput
from jumok.interop.json_file import MOST_BYTES, parse_object

LENGTH = 8  # bytes that say how long the header is
LFS = b"version https://git-lfs"
METADATA = "__metadata__"
MOST_SIDES = 32
BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "U16": 16, "I16": 16, "U32": 32, "I32": 32, "U64": 64, "I64": 64, "F16": 16,
    "BF16": 16, "F32": 32, "F64": 64, "C64": 64, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8,
    "F8_E5M2FNUZ": 8, "F6_E2M3": 6, "F6_E3M2": 6, "F4": 4,
}  # fmt: skip


def check_header(file: Path) -> None:
    """`BadInput` where the file is not what it says."""
    try:
        header, behind = _read(file)
        _check(header, behind)
    except OSError as error:
        raise BadInput(f"{file}: cannot be read ({error.strerror or error})") from None
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{file}: damaged ({error}); fetch the file again") from None


def _read(file: Path) -> tuple[dict[str, Any], int]:
    """The header, and how many bytes come behind it."""
    with file.open("rb") as stream:
        size, first = file.stat().st_size, stream.read(LENGTH)
        length = int.from_bytes(first, "little")
        if not first:
            raise ValueError("it is empty")
        if len(first) < LENGTH or length > size - LENGTH:
            if first == LFS[:LENGTH]:
                raise ValueError("it is the pointer of Git LFS, not the file: git lfs pull brings it")
            if first.lstrip()[:1] in (b"<", b"{"):
                raise ValueError("it is a page or JSON, not a safetensors file")
            raise ValueError(f"its header says it has {length:,} bytes, and the file has {size:,}")
        if length > MOST_BYTES:
            raise ValueError(f"its header has {length:,} bytes, more than any model needs ({MOST_BYTES:,})")
        return parse_object(stream.read(length)), size - LENGTH - length


def _check(header: dict[str, Any], behind: int) -> None:
    metadata = header.get(METADATA, {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise ValueError(f"{METADATA} is not a table of texts")
    places = sorted(_place(name, entry) for name, entry in header.items() if name != METADATA)
    end = 0
    for begin, until, name in places:
        if begin != end:
            how = "overlap with" if begin < end else "leave a gap to"
            raise ValueError(f"the numbers of {name[:80]!r} {how} those before them")
        end = until
    if end != behind:
        raise ValueError(f"the tensors have {end:,} bytes, and {behind:,} are there")


def _place(name: str, entry: Any) -> tuple[int, int, str]:
    """Where a tensor's numbers begin and end."""
    shown = repr(name[:80])
    if not name.isprintable():  # it will be shown on terminals, which obey some characters
        raise ValueError(f"{shown} is not a name that can be printed")
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"{shown} has not just dtype, shape and data_offsets")
    kind, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(kind, str) or kind not in BITS:
        raise ValueError(f"{shown} is of dtype {str(kind)[:40]!r}, which does not exist")
    if not _counts(shape) or len(shape) > MOST_SIDES:
        raise ValueError(f"{shown} has the shape {str(shape)[:80]}, which cannot be")
    if not _counts(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise ValueError(f"{shown} has data_offsets {str(offsets)[:80]}, which cannot be")
    if math.prod(shape) * BITS[kind] != 8 * (offsets[1] - offsets[0]):
        raise ValueError(
            f"{shown} of shape {str(shape)[:80]} and dtype {kind} cannot lie in {offsets[1] - offsets[0]:,} bytes"
        )
    return offsets[0], offsets[1], name


def _counts(value: Any) -> bool:
    return isinstance(value, list) and all(type(one) is int and one >= 0 for one in value)
