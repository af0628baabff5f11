"""What a Transformer reads: words, and patches of images, as vectors."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jumok.layers.linear import for_products, linear

TOGETHER = 16  # channels that a stem's norms take together


class Embedding(nn.Embedding):
    """E[y] · √d, with E ~ N(0, 1/d) (Vaswani et al. 2017, 3.4).

    What comes out has unit variance, while E itself has the size an output layer wants that shares it. The factor also
    lets the vectors of rare words learn at the pace of the rest under Adam. Padding is the zero vector.
    """

    def __init__(self, vocabulary: int, width: int, padding: int) -> None:
        super().__init__(vocabulary, width, padding_idx=padding)

    def reset_parameters(self) -> None:
        nn.init.normal_(self.weight, std=self.embedding_dim**-0.5)
        assert self.padding_idx is not None
        with torch.no_grad():
            self.weight[self.padding_idx].zero_()

    def forward(self, ids: Tensor) -> Tensor:
        return super().forward(ids) * self.embedding_dim**0.5


class Patches(nn.Module):
    """x_p E + b (Dosovitskiy et al. 2021, equation 1): an image cut into patches that do not overlap, each read as one
    long row of numbers: (B, C, H, W) → (B, h, w, D).

    The same as a convolution whose step is its size. Written as one matrix product, which is what it is: the rows of E
    are in the order channel, row, column, so a convolution's weights are E as they stand, flattened.
    """

    def __init__(self, channels: int, patch: tuple[int, int], width: int) -> None:
        super().__init__()
        self.patch = patch
        self.map = linear(channels * patch[0] * patch[1], width)

    def forward(self, images_BCHW: Tensor) -> Tensor:
        batch, channels, height, width = images_BCHW.shape
        rows, columns = height // self.patch[0], width // self.patch[1]
        cut = images_BCHW.reshape(batch, channels, rows, self.patch[0], columns, self.patch[1])
        return self.map(cut.permute(0, 2, 4, 1, 3, 5).reshape(batch, rows, columns, -1))


def groups_of(channels: int) -> int:
    """As many equal groups as there can be of no fewer than `TOGETHER` channels."""
    most = max(1, channels // TOGETHER)
    return next(groups for groups in range(most, 0, -1) if channels % groups == 0)


class Convolutions(nn.Module):
    """The compact convolutional tokenizer (Hassani et al. 2021): maxpool(relu(conv(x))) as many times as `layers` says,
    (B, C, H, W) → (B, h, w, D). Each halves the image; neighbours overlap, so edges are not cut in two.

    With a `depth` of more than 1 so many times relu(conv(x)) come before each maxpool: what is small in the image is
    seen where it is still small, and the Transformer, whose cost grows with the square of the patches, gets as few.
    `normalised`: relu(norm(conv(x))), a norm over the image and about `TOGETHER` channels (Wu and He 2018). Without it
    nothing keeps many layers at one size, and what they give is mostly its mean.
    """

    def __init__(
        self, channels: int, layers: int, width: int, depth: int = 1, inner: int = 64, normalised: bool = False
    ) -> None:
        super().__init__()
        self.depth = depth
        sizes = [channels, *[inner] * (layers * depth - 1), width]
        self.layers = nn.ModuleList(
            nn.Conv2d(before, after, 3, padding=1, bias=False) for before, after in pairwise(sizes)
        )
        for layer in self.layers:
            assert isinstance(layer, nn.Conv2d)
            nn.init.kaiming_normal_(layer.weight)
        self.norms = nn.ModuleList(
            nn.GroupNorm(groups_of(size), size) if normalised else nn.Identity() for size in sizes[1:]
        )

    def forward(self, images_BCHW: Tensor) -> Tensor:
        for number, (layer, norm) in enumerate(zip(self.layers, self.norms, strict=True), 1):
            images_BCHW = torch.relu(for_products(norm(layer(images_BCHW))))
            if number % self.depth == 0:
                images_BCHW = F.max_pool2d(images_BCHW, 3, stride=2, padding=1)
        return images_BCHW.permute(0, 2, 3, 1)
