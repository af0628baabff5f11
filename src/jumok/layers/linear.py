"""The one way this house starts a linear map."""

from __future__ import annotations

from torch import nn


def linear(inputs: int, outputs: int, bias: bool = True) -> nn.Linear:
    """y = W x + b with Glorot's uniform start (2010) and b = 0."""
    layer = nn.Linear(inputs, outputs, bias=bias)
    nn.init.xavier_uniform_(layer.weight)
    if bias:
        nn.init.zeros_(layer.bias)
    return layer
