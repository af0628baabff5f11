"""Linear maps laid out for this processor, for inference only: y = x W + b with W packed once.

The matrices of a decoding step are thin (one row for each hypothesis), and the usual product reads W as it lies. Packed
for oneDNN it is 1.3 to 4 times as fast on an AVX-512 processor; in bfloat16 half as many bytes are read, in int8 a
quarter. int8 (dynamic): W is rounded to 8 bits with a scale for each output, x with one for each product.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Literal, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jumok.errors import BadInput, Failure

Precision = Literal["float32", "bfloat16", "int8"]
PRECISIONS: tuple[Precision, ...] = ("float32", "bfloat16", "int8")

TYPICAL_ROWS = 8  # what oneDNN lays W out for; this layout is the fastest, or near it, for 1 to 160 rows


class Packed(Protocol):
    """x is (N, inputs) in float32, and so is what comes out."""

    def __call__(self, x: Tensor) -> Tensor: ...
    def relu(self, x: Tensor) -> Tensor:
        """max(0, x W + b)"""
        ...

    def plus(self, x: Tensor, residual: Tensor) -> Tensor:
        """residual + x W + b"""
        ...


def pack(weight: Tensor, bias: Tensor | None, precision: Precision = "float32") -> Packed:
    """`weight` (outputs, inputs) as in `nn.Linear`. The result holds a copy: later changes of `weight` do not show."""
    weight = weight.detach().float().contiguous()
    bias = None if bias is None else bias.detach().float().contiguous()
    check_finite(weight, bias)
    if precision == "int8":
        return Int8(weight, bias)
    if precision == "bfloat16":
        return BFloat16(weight, bias)
    return Float32(weight, bias) if has_onednn() else Plain(weight, bias)


def check_finite(*tensors: Tensor | None) -> None:
    """Rounding to integers, and a ReLU inside a product, would hide what is not a number: it is told before."""
    if not all(tensor is None or bool(tensor.isfinite().all()) for tensor in tensors):
        raise Failure(
            "a weight of this model is not a number (or infinite). The weights may be damaged or have diverged: "
            "try an earlier checkpoint."
        )


def side_by_side(linears: Sequence[nn.Linear], first_scale: float = 1.0) -> tuple[Tensor, Tensor]:
    """Weight and bias of several maps of one input as one; what comes out of the first is scaled."""
    weights, biases = [part.weight.detach() for part in linears], [part.bias.detach() for part in linears]
    weights[0], biases[0] = weights[0] * first_scale, biases[0] * first_scale
    return torch.cat(weights), torch.cat(biases)


def known_precision(precision: str) -> Precision:
    """Whether there is such a thing, in words."""
    if precision not in PRECISIONS:
        raise BadInput(f"--precision {precision}: give {', '.join(PRECISIONS[:-1])} or {PRECISIONS[-1]}")
    return precision


def check_precision(given: str) -> Precision:
    """Whether this processor can do it, in words."""
    precision = known_precision(given)
    if precision == "bfloat16" and not has_bfloat16():
        raise BadInput(
            "--precision bfloat16: this processor (or this PyTorch) has no fast bfloat16. Use float32 or int8"
        )
    if precision == "int8" and not has_int8():
        raise BadInput("--precision int8: this PyTorch has no 8-bit linear layers for this processor. Use float32")
    return precision


class Plain:
    """PyTorch's own product, where there is no oneDNN."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self.weight, self.bias = weight, bias

    def __call__(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, self.bias)

    def relu(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, self.bias).relu_()

    def plus(self, x: Tensor, residual: Tensor) -> Tensor:
        return F.linear(x, self.weight, self.bias).add_(residual)


class Float32:
    """oneDNN's product; the ReLU and the sum happen while the result is still in the registers."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self.weight, self.bias = torch.ops.mkldnn._reorder_linear_weight(weight, TYPICAL_ROWS), bias
        self.linear = torch.ops.mkldnn._linear_pointwise.default
        self.linear_plus = torch.ops.mkldnn._linear_pointwise.binary

    def __call__(self, x: Tensor) -> Tensor:
        return self.linear(x, self.weight, self.bias, "none", [], "")

    def relu(self, x: Tensor) -> Tensor:
        return self.linear(x, self.weight, self.bias, "relu", [], "")

    def plus(self, x: Tensor, residual: Tensor) -> Tensor:
        return self.linear_plus(x, residual, self.weight, self.bias, "add")


class BFloat16:
    """Products of bfloat16 numbers, summed in float32 and rounded once; the residual stays in float32."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self.weight = torch.ops.mkldnn._reorder_linear_weight(weight.bfloat16(), TYPICAL_ROWS)
        self.bias = None if bias is None else bias.bfloat16()
        self.linear = torch.ops.mkldnn._linear_pointwise.default

    def __call__(self, x: Tensor) -> Tensor:
        return self.linear(x.bfloat16(), self.weight, self.bias, "none", [], "").float()

    def relu(self, x: Tensor) -> Tensor:
        return self.linear(x.bfloat16(), self.weight, self.bias, "relu", [], "").float()

    def plus(self, x: Tensor, residual: Tensor) -> Tensor:
        return residual + self.linear(x.bfloat16(), self.weight, self.bias, "none", [], "")


class Int8:
    """W ≈ s_o · W_8 for each output o, x ≈ s (x_8 − z): products of 8-bit integers, summed in 32 bits, then scaled."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        scale = (weight.abs().amax(dim=1) / 127).clamp(min=1e-12).double()
        zero = torch.zeros(len(weight), dtype=torch.long)
        with warnings.catch_warnings():  # PyTorch means to replace its quantized tensors some day; has_int8 will tell
            warnings.simplefilter("ignore")
            rounded = torch.quantize_per_channel(weight, scale, zero, 0, torch.qint8)
        self.packed, self.outputs = torch.ops.quantized.linear_prepack(rounded, bias), len(weight)
        self.linear = torch.ops.quantized.linear_dynamic.default
        self.linear_relu = torch.ops.quantized.linear_relu_dynamic.default
        self.narrow = not torch.cpu._is_vnni_supported()  # older processors sum pairs in 16 bits: x gets 7 bits there

    def __call__(self, x: Tensor) -> Tensor:
        return self._product(self.linear, x)

    def relu(self, x: Tensor) -> Tensor:
        return self._product(self.linear_relu, x)

    def plus(self, x: Tensor, residual: Tensor) -> Tensor:
        return self._product(self.linear, x).add_(residual)

    def _product(self, linear: Callable[..., Tensor], x: Tensor) -> Tensor:
        try:
            return linear(x, self.packed, self.narrow)
        except RuntimeError:  # there is no scale for what is no number
            if bool(x.isfinite().all()):
                raise
            return x.new_full((len(x), self.outputs), float("nan"))


# ------------------------------------------------------------ what there is


@lru_cache
def has_onednn() -> bool:
    return torch.backends.mkldnn.is_available() and _right(Float32, tolerance=1e-4)  # type: ignore[no-untyped-call]


@lru_cache
def has_bfloat16() -> bool:
    there = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return there and torch.ops.mkldnn._is_mkldnn_bf16_supported() and _right(BFloat16, tolerance=0.3)


@lru_cache
def has_int8() -> bool:
    return _right(Int8, tolerance=0.3)


def _right(kind: type[Float32] | type[BFloat16] | type[Int8], tolerance: float) -> bool:
    """These kernels are no public part of PyTorch: use one only where it is there and gives the product."""
    spread = torch.linspace(-1.0, 1.0, 64 * 32).reshape(64, 32)
    weight, bias, x = spread.sin().roll(1, 0), spread[0].repeat(2), spread[:3].cos()
    try:
        found = kind(weight, bias).plus(x, torch.ones(3, 64))
    except (AttributeError, RuntimeError, NotImplementedError):
        return False
    return bool((found - F.linear(x, weight, bias) - 1.0).abs().max() < tolerance)
