"""What is drawn for the pictures of a batch, where the number of draws must not depend on what was drawn.

A training update is recorded once and replayed (CUDA graphs) or traced (torch.compile): no shape may depend on a random
number, and nothing may wait for one. Two means to that end:

Dealing. Where only some pictures get a treatment, the batch is put into a random order and dealt out: place p of B gets
treatment ⌊(K·p + r) / B⌋ of K, with one r out of 0 … K−1. Places are uniform, so K·p + r is uniform over 0 … K·B−1, and
each picture gets each treatment with probability exactly 1/K; but how many get it is known beforehand, give or take
one, and nobody computes what is not needed.

Tries. Where a draw may have to be thrown away, all tries are drawn at once, and the first good one is taken.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

TRIES = 10
LARGEST_PART = 2**24  # values of pictures that are numbers with a point at one time


def shuffled(count: int, device: torch.device) -> Tensor:
    """A random order. (`torch.randperm` takes another way on each device.)"""
    return torch.rand(count, device=device).argsort()


def dealt(count: int, kinds: int, device: torch.device) -> Tensor:
    """Which of the kinds each place gets: (count,), not falling."""
    return _dealt(torch.rand(1, device=device), count, kinds)


@torch.library.custom_op("jumok::dealt", mutates_args=())
def _dealt(drawn: Tensor, count: int, kinds: int) -> Tensor:
    """A word of its own for torch.compile, which otherwise reckons with all that the division could give, and fails."""
    offset = (drawn * kinds).long().clamp(max=kinds - 1)
    return (torch.arange(count, device=drawn.device) * kinds + offset) // count


@_dealt.register_fake
def _(drawn: Tensor, count: int, kinds: int) -> Tensor:
    return drawn.new_empty(count, dtype=torch.int64)


def places(count: int, kinds: int, first: int, end: int) -> slice:
    """The places that can be dealt one of the kinds first … end − 1, whatever was drawn."""
    return slice(max(0, -((kinds - 1 - first * count) // kinds)), -(-end * count // kinds))


def some(count: int, probability: float, device: torch.device) -> tuple[Tensor, Tensor]:
    """Rows of which each is chosen with this probability, and whether it was: all that can be, in a random order."""
    wanted = probability * count
    sure = int(wanted)
    most = min(count, sure + 1)
    one_more = torch.rand(1, device=device) < wanted - sure
    chosen = torch.arange(most, device=device) < sure + one_more
    return shuffled(count, device)[:most], chosen


def rectangles(
    count: int,
    size: tuple[int, int],
    share: tuple[float, float],
    stretch: float,
    device: torch.device,
) -> tuple[Tensor, Tensor]:
    """Heights and widths, in pixels, of rectangles that fit into a picture: (count,) each.

    Their share of the area is uniform, the logarithm of their width over their height too, from −log to log of
    `stretch`; of those that do not fit another is tried. If none fits, the first is made to.
    """
    height, width = size
    drawn = torch.rand(2, count, TRIES, device=device)
    area = (share[0] + (share[1] - share[0]) * drawn[0]) * (height * width)
    ratio = stretch ** (2 * drawn[1] - 1)
    high, wide = (area / ratio).sqrt(), (area * ratio).sqrt()
    fits = (high <= height) & (wide <= width)
    first = fits.to(torch.uint8).argmax(1, keepdim=True)
    return high.gather(1, first)[:, 0].clamp(max=height), wide.gather(1, first)[:, 0].clamp(max=width)


def inside(top: Tensor, bottom: Tensor, left: Tensor, right: Tensor, size: tuple[int, int]) -> Tensor:
    """Where a picture's pixels are in its box: (B, 1, H, W)."""
    rows = torch.arange(size[0], device=top.device)
    columns = torch.arange(size[1], device=top.device)
    within_BH = (rows >= top[:, None]) & (rows < bottom[:, None])
    within_BW = (columns >= left[:, None]) & (columns < right[:, None])
    return within_BH[:, None, :, None] & within_BW[:, None, None, :]


def in_parts(change: Callable[..., Tensor], images: Tensor, *drawn: Tensor) -> Tensor:
    """`change(images, *drawn)`, a part of the batch after another where pictures are large: less memory."""
    count = max(1, LARGEST_PART // max(1, images[0].numel()))
    if len(images) <= count:
        return change(images, *drawn)
    split = [torch.split(tensor, count) for tensor in (images, *drawn)]
    return torch.cat([change(*part) for part in zip(*split, strict=True)])
