"""What looks at the picture of a word: a sequence of vectors, one for each place of a grid.

recurrent   convolutions until one row of columns is left, then LSTMs over the columns, both ways (Shi et al. 2015)
vit         patches as a sequence, each seeing all others (Dosovitskiy et al. 2021), here with 3×3 convolutions to make
            them of (Xiao et al. 2021): a stroke is then never cut in two

Nothing here knows the batch: convolutions are followed by a norm over the one picture (GroupNorm with one group, Wu
and He 2018), which also takes its contrast away, instead of the papers' batch norm.
"""

from __future__ import annotations

from itertools import pairwise, zip_longest

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jumok.errors import BadInput
from jumok.layers.gelu import gelu
from jumok.layers.linear import for_products
from jumok.layers.normed_native import normed
from jumok.layers.recurrent import Recurrent
from jumok.models.native_encoder import asked_of
from jumok.models.vit import Vit
from jumok.recipe.recognition import RecognizerSection


class Encoder(nn.Module):
    """`forward(images (B, C, H, W), 0 … 255) -> (B, S, D)`, S the places of `grid`, row by row."""

    def __init__(self, section: RecognizerSection, grid: tuple[int, int]) -> None:
        super().__init__()
        self.section, self.grid = section, grid

    def columns(self, hidden_BSD: Tensor) -> Tensor:
        """(B, C, D), what CTC reads: the mean over the rows of each column."""
        return hidden_BSD.reshape(len(hidden_BSD), *self.grid, -1).mean(dim=1) if self.grid[0] > 1 else hidden_BSD

    def check(self, images_BCHW: Tensor) -> None:
        """Pictures must have the size that the model was made for."""
        given, asked = tuple(images_BCHW.shape[1:]), (self.section.channels, *self.section.image)
        if given != asked:
            given_size, asked_size = ("×".join(map(str, size)) for size in (given, asked))
            raise BadInput(
                f"pictures of {given_size} (channels, height, width), and this model reads {asked_size}: resize them"
            )


def build_encoder(section: RecognizerSection) -> Encoder:
    return VitEncoder(section) if section.encoder == "vit" else RecurrentEncoder(section)


# ---------------------------------------------------------------- patches


class VitEncoder(Encoder):
    """A Vision Transformer without a class token: a vector for each patch."""

    def __init__(self, section: RecognizerSection) -> None:
        height, width = section.image[0] // section.patch[0], section.image[1] // section.patch[1]
        super().__init__(section, (height, width))
        self.vit = Vit(section.vit)
        if section.stem == "convolution":
            about = section.patch, section.width, section.stem_depth, section.stem_width
            self.vit.add_module("stem", Stem(section.channels, *about))

    def forward(self, images_BCHW: Tensor) -> Tensor:
        self.check(images_BCHW)
        return self.vit(images_BCHW)


class Stem(nn.Module):
    """Patches by 3×3 convolutions whose steps multiply to the patch, (B, C, H, W) → (B, h, w, D); the channels double
    with each, up to D, from `first` on, or so that D is the last double. An 8×4 patch is steps of 2×2, 2×2 and 2×1.

    With a `depth` of more than 1 so many convolutions are at each size: the one that steps there, and others that add
    to what it found, x + gelu(norm(conv(x))). What is small in a letter is then looked at where it is still small.
    """

    def __init__(self, channels: int, patch: tuple[int, int], width: int, depth: int = 1, first: int = 0) -> None:
        super().__init__()
        self.depth, steps = depth, steps_of(patch)
        before_last = range(len(steps) - 1)
        halved = (max(8, width >> (len(steps) - 1 - number)) for number in before_last)
        doubled = (min(width, first << number) for number in before_last)
        sizes = [channels, *(doubled if first else halved), width]
        self.layers = nn.ModuleList()
        for (before, after), step in zip(pairwise(sizes), steps, strict=True):
            self.layers.append(_convolution(before, after, step))
            self.layers.extend(_convolution(after, after, (1, 1)) for _ in range(depth - 1))
        # the last comes as it is: every block of the Transformer begins with a norm of its own
        found = [layer.out_channels for layer in self.layers if isinstance(layer, nn.Conv2d)]
        self.norms = nn.ModuleList(nn.GroupNorm(1, size) for size in found[:-1])

    def forward(self, images_BCHW: Tensor) -> Tensor:
        x_BCHW = images_BCHW.contiguous(memory_format=torch.channels_last)
        reads = asked_of(self, x_BCHW) is not None
        for number, (layer, norm) in enumerate(zip_longest(self.layers, self.norms)):
            before_BCHW = x_BCHW if number % self.depth else None
            found_BCHW = layer(x_BCHW)
            together_BCHW = normed(norm, found_BCHW, before_BCHW) if reads and norm is not None else None
            if together_BCHW is not None:
                x_BCHW = together_BCHW
                continue
            if norm is not None:
                found_BCHW = gelu(for_products(norm(found_BCHW)))
            x_BCHW = found_BCHW if before_BCHW is None else before_BCHW + found_BCHW
        return x_BCHW.permute(0, 2, 3, 1)


def steps_of(patch: tuple[int, int]) -> list[tuple[int, int]]:
    """The sides of a patch as products: (8, 4) is (2, 2), (2, 2), (2, 1)."""
    pairs = zip_longest(*map(_factors, patch), fillvalue=1)
    return [(down, across) for down, across in pairs] or [(1, 1)]


def _factors(side: int) -> list[int]:
    """The primes of a number, the largest first."""
    found, prime = [], 2
    while side > 1:
        while side % prime == 0:
            found.append(prime)
            side //= prime
        prime += 1
    return found[::-1]


def _convolution(before: int, after: int, step: tuple[int, int]) -> nn.Conv2d:
    """3×3, or as large as its step where that is larger: no pixel is left out, and sides are divided exactly."""
    kernel = (max(3, step[0]), max(3, step[1]))
    border = (int(kernel[0] == 3), int(kernel[1] == 3))
    made = nn.Conv2d(before, after, kernel, step, border)
    nn.init.kaiming_normal_(made.weight, nonlinearity="relu")
    assert made.bias is not None
    nn.init.zeros_(made.bias)
    return made


# ---------------------------------------------------------------- columns

# of the paper (its figure and table 1) at width 512: channels as a share of the width, and the pooling after each layer
LAYERS: tuple[tuple[int, tuple[int, int] | None], ...] = (
    (8, (2, 2)),
    (4, (2, 2)),
    (2, None),
    (2, (2, 1)),
    (1, None),
    (1, (2, 1)),
)


class RecurrentEncoder(Encoder):
    """The columns of the CRNN: a picture of 32×W becomes W / 4 columns, each a vector of the width of the LSTMs."""

    def __init__(self, section: RecognizerSection) -> None:
        super().__init__(section, (1, section.image[1] // 4))
        width = section.width
        sizes = [section.channels, *(max(8, width // share) for share, _ in LAYERS)]
        self.layers = nn.ModuleList(_convolution(before, after, (1, 1)) for before, after in pairwise(sizes))
        # what is left of the height goes into the last one: one row of columns
        self.layers.append(nn.Conv2d(sizes[-1], width, (section.image[0] // 16, 3), padding=(0, 1)))
        self.norms = nn.ModuleList(nn.GroupNorm(1, size) for size in (*sizes[1:], width))
        self.recurrent = Recurrent(
            "lstm", width, width, section.layers, bidirectional=True, dropout=section.dropout, forget_bias=1.0
        )

    def forward(self, images_BCHW: Tensor) -> Tensor:
        self.check(images_BCHW)
        x_BCHW = for_products(images_BCHW.float() / 127.5 - 1).contiguous(memory_format=torch.channels_last)
        pools = [pool for _, pool in LAYERS]
        for layer, norm, pool in zip_longest(self.layers, self.norms, pools):
            x_BCHW = torch.relu_(for_products(norm(layer(x_BCHW))))
            if pool is not None:
                x_BCHW = F.max_pool2d(x_BCHW, pool)
        hidden_BSD, _ = self.recurrent(x_BCHW.squeeze(2).transpose(1, 2))
        return hidden_BSD
