"""The one way this house starts a linear map."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from jumok.layers.products import linear_map


class Linear(nn.Linear):
    """y = W x + b"""

    def forward(self, x: Tensor) -> Tensor:
        return linear_map(x, self.weight, self.bias)


def linear(inputs: int, outputs: int, bias: bool = True) -> nn.Linear:
    """y = W x + b with Glorot's uniform start (2010) and b = 0."""
    layer = Linear(inputs, outputs, bias=bias)
    nn.init.xavier_uniform_(layer.weight)
    if bias:
        nn.init.zeros_(layer.bias)
    return layer


def map_of(layer: nn.Linear, x: Tensor, leaves_bias: bool) -> Tensor:
    """W x + b; where the gradient of b is left to another, who has its sum at hand, without that."""
    return linear_map(x, layer.weight, layer.bias.detach()) if leaves_bias else layer(x)


def for_products(x: Tensor) -> Tensor:
    """x in the numbers that autocast multiplies in, if it is on: what several maps read is then converted once."""
    device = x.device.type
    return x.to(torch.get_autocast_dtype(device)) if torch.is_autocast_enabled(device) else x
