"""The softmax of a chunk of logits, its losses and its gradient in one pass, on a CPU: loss.c."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from pathlib import Path

import torch
from torch import Tensor

from jumok.layers.c_library import c_library

SOURCE = Path(__file__).with_name("loss.c")
LEAST = 2**16  # logits: below it nothing is gained, and nobody has to wait for a compiler
WIDEST_LANES = 16
NUMBER, POINTER = ctypes.c_longlong, ctypes.c_void_p


class Loss(ctypes.Structure):
    """As in loss.c."""

    _fields_ = (
        ("logits", POINTER), ("low", NUMBER), ("rows", NUMBER), ("vocabulary", NUMBER), ("stride", NUMBER),
        ("bias", POINTER), ("target", POINTER), ("smoothing", ctypes.c_double), ("learns", NUMBER),
        ("smoothed", POINTER), ("plain", POINTER), ("sums", POINTER),
    )  # fmt: skip


@lru_cache
def library() -> ctypes.CDLL | None:
    """None where there is no compiler, or it does not manage."""
    loaded = c_library(SOURCE)
    if loaded is not None:
        loaded.jumok_loss.restype = NUMBER
        loaded.jumok_loss.argtypes = [ctypes.POINTER(Loss), NUMBER, NUMBER, POINTER]
    return loaded


def runs(logits: Tensor) -> bool:
    """Whether it can take them."""
    known = logits.device.type == "cpu" and logits.dtype in (torch.float32, torch.bfloat16)
    return known and logits.numel() >= LEAST and logits.stride(1) == 1 and library() is not None


def smoothed_cross_entropy_(
    logits_CV: Tensor,
    bias_V: Tensor | None,
    target_C: Tensor,
    smoothing: float,
    losses_2C: Tensor,
    learns: bool,
    sums_V: Tensor | None,
) -> None:
    """Write the smoothed and the plain loss of each word, and, if the model `learns`, the gradient over the logits; its
    sums over the words are added to `sums_V`, before they are rounded to what logits are.

    The bias is added to the logits here, which are without it.
    """
    found = library()
    assert found is not None
    words, vocabulary = logits_CV.shape
    bias_V = None if bias_V is None else bias_V.to(torch.float32).contiguous()
    target_C, smoothed_C, plain_C = target_C.contiguous(), torch.empty(words), torch.empty(words)
    sums = None if sums_V is None else torch.zeros(vocabulary)
    parts = torch.get_num_threads()
    width = -(-vocabulary // WIDEST_LANES) * WIDEST_LANES
    room = torch.empty(parts, 2, width)
    loss = Loss(
        logits_CV.data_ptr(), logits_CV.dtype == torch.bfloat16, words, vocabulary, logits_CV.stride(0),
        None if bias_V is None else bias_V.data_ptr(), target_C.data_ptr(), smoothing, learns,
        smoothed_C.data_ptr(), plain_C.data_ptr(), None if sums is None else sums.data_ptr(),
    )  # fmt: skip
    if found.jumok_loss(ctypes.byref(loss), parts, width, room.data_ptr()):
        raise IndexError(f"a target is beyond the vocabulary of {vocabulary}: {int(target_C.max())}")
    losses_2C[0], losses_2C[1] = smoothed_C, plain_C
    if sums is not None and sums_V is not None:
        sums_V += sums
