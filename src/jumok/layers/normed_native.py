"""What follows a convolution, on a CPU in one pass over each picture: normed.c.

    gelu(norm(x)) + added,   norm over the whole picture (GroupNorm with one group, Wu and He 2018)

In PyTorch's own calls norm, GELU and sum each read and write all pictures of a batch, and take as long as the
convolutions themselves.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache
from pathlib import Path

import torch
from torch import Tensor, nn

from jumok.layers.c_library import c_library

SOURCE = Path(__file__).with_name("normed.c")
NUMBER, POINTER, REAL = ctypes.c_longlong, ctypes.c_void_p, ctypes.c_double
KINDS = (torch.float32, torch.bfloat16)


@lru_cache
def library() -> ctypes.CDLL | None:
    """None where there is no compiler, or it does not manage."""
    loaded = c_library(SOURCE)
    if loaded is not None:
        loaded.jumok_normed.restype = None
        loaded.jumok_normed.argtypes = [*[POINTER] * 3, *[NUMBER] * 4, *[POINTER] * 2, REAL, NUMBER]
    return loaded


def normed(norm: nn.Module, x_BCHW: Tensor, added_BCHW: Tensor | None = None) -> Tensor | None:
    """None where it cannot be had this way: then it is computed as it is written. Gradients do not pass."""
    given = [x_BCHW] if added_BCHW is None else [x_BCHW, added_BCHW]
    if not isinstance(norm, nn.GroupNorm) or norm.num_groups != 1 or norm.weight is None or not x_BCHW.numel():
        return None
    for each in given:
        alike = each.shape == x_BCHW.shape and each.dtype == x_BCHW.dtype and each.device.type == "cpu"
        if not alike or not each.is_contiguous(memory_format=torch.channels_last):
            return None
    if x_BCHW.dtype not in KINDS or norm.weight.dtype != torch.float32:
        return None
    found = library()
    if found is None:
        return None
    pictures, channels, height, width = x_BCHW.shape
    out_BCHW = torch.empty_like(x_BCHW, memory_format=torch.channels_last)
    found.jumok_normed(
        x_BCHW.data_ptr(), None if added_BCHW is None else added_BCHW.data_ptr(), out_BCHW.data_ptr(),
        KINDS.index(x_BCHW.dtype), pictures, height * width, channels, norm.weight.data_ptr(), norm.bias.data_ptr(),
        norm.eps, torch.get_num_threads(),
    )  # fmt: skip
    return out_BCHW
