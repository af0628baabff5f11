"""What the pixels are: brighter, with more contrast, fewer colours; each picture of a batch its own way.

As Pillow's ImageOps and ImageEnhance do it, to the grey level: Pillow's blends are

    old picture → less + f · (picture − less), cut at 0 and 255, rounded down

where `less` is black (brightness), the mean grey (contrast), the picture in grey (colour) or smoothed (sharpness), and
f is 1 where nothing shall change. Pictures are (B, C, H, W) of uint8 with 1 or 3 channels, before and after; `levels`
are the same in float32, still whole numbers.
"""

from __future__ import annotations

import torch
from torch import Tensor

from jumok.data.images.augment_draws import in_parts


def grey(levels: Tensor) -> Tensor:
    """How bright pixels are: (B, 1, H, W). Pillow's weights have 16 bits, and all the sums are exact in float32."""
    if levels.shape[1] == 1:
        return levels
    red, green, blue = torch.split(levels, 1, 1)
    return (red * 19595 + green * 38470 + blue * 7471 + 2**15).mul_(2**-16).floor_()


def mean(levels: Tensor) -> Tensor:
    """Of all that a picture has, rounded: (B, 1, 1, 1). In whole numbers, or that of a large one would be off."""
    count = levels[0].numel()
    total = levels.sum(3, keepdim=True).long().sum((1, 2), keepdim=True)
    return ((2 * total + count) // (2 * count)).float()


def blend(less: Tensor, levels: Tensor, factor: Tensor) -> Tensor:
    """less + factor · (levels − less), cut at 0 and 255, rounded down; the factors are (B,)."""
    return (levels - less).mul_(factor[:, None, None, None]).add_(less).clamp_(0, 255).floor_()


def brightness(images: Tensor, factor: Tensor) -> Tensor:
    return as_bytes((images * factor[:, None, None, None]).clamp_(0, 255))


def contrast(images: Tensor, factor: Tensor) -> Tensor:
    levels = images.float()
    return as_bytes(blend(mean(grey(levels)), levels, factor))


def saturation(images: Tensor, factor: Tensor) -> Tensor:
    """How much colour there is: Pillow's ImageEnhance.Color."""
    levels = images.float()
    return as_bytes(blend(grey(levels), levels, factor))


def sharpness(images: Tensor, factor: Tensor) -> Tensor:
    levels = images.float()
    return as_bytes(blend(smooth(levels), levels, factor))


def smooth(levels: Tensor) -> Tensor:
    """Each pixel five times, its eight neighbours once, over 13, rounded; the outermost pixels stay."""
    if min(levels.shape[2:]) < 3:
        return levels
    three = levels[:, :, :-2] + levels[:, :, 1:-1] + levels[:, :, 2:]
    nine = three[..., :-2] + three[..., 1:-1] + three[..., 2:]
    total = nine + 4 * levels[:, :, 1:-1, 1:-1]
    smoothed = levels.clone()
    # never half-way between two levels, since 13 is odd: a product with 1/13 rounds the same way as a division
    smoothed[:, :, 1:-1, 1:-1] = (total * (1 / 13) + 0.5).floor_()
    return smoothed


def as_bytes(levels: Tensor) -> Tensor:
    """Rounded down. By way of int16: PyTorch converts a float to a byte one by one, the two others many at a time."""
    return levels.short().to(torch.uint8)


def solarize(images: Tensor, threshold: Tensor) -> Tensor:
    """Levels from the threshold on are inverted; thresholds are (B,), and 256 inverts none."""
    return torch.where(images >= threshold[:, None, None, None].short(), 255 - images, images)


def posterize(images: Tensor, bits: Tensor) -> Tensor:
    """Only the highest bits of a level stay: (B,) of 0 to 8."""
    kept = (256 - 2 ** (8 - bits)).to(torch.uint8)
    return images & kept[:, None, None, None]


def autocontrast(images: Tensor, wanted: Tensor) -> Tensor:
    """Each channel's darkest level becomes 0 and its lightest 255; one of a single level stays. `wanted` is (B,)."""
    low = images.amin((2, 3))[:, :, None].int()
    high = images.amax((2, 3))[:, :, None].int()
    levels = torch.arange(256, device=images.device, dtype=torch.int32)
    spread = ((levels - low) * 255 // (high - low).clamp(min=1)).clamp(0, 255)
    return look_up(images, torch.where((high > low) & wanted[:, None, None], spread, levels))


def equalize(images: Tensor, wanted: Tensor) -> Tensor:
    """Each channel's levels so that about as many pixels are below each as it says. `wanted` is (B,)."""
    pixels = images.flatten(2).long()
    one = torch.ones((), dtype=torch.int32, device=images.device)
    counts = torch.zeros(*images.shape[:2], 256, dtype=torch.int32, device=images.device)
    counts.scatter_add_(2, pixels, one.expand(pixels.shape))
    highest = pixels.amax(2, keepdim=True)
    step = (pixels.shape[2] - counts.gather(2, highest)) // 255
    below = counts.cumsum(2, dtype=torch.int32) - counts
    levels = torch.arange(256, device=images.device, dtype=torch.int32)
    equal = ((below + step // 2) // step.clamp(min=1)).clamp(max=255)
    return look_up(images, torch.where((step > 0) & wanted[:, None, None], equal, levels))


def look_up(images: Tensor, table: Tensor) -> Tensor:
    """Each level replaced by what its picture's and channel's table says: (B, C, 256)."""
    return table.to(torch.uint8).gather(2, images.flatten(2).long()).view(images.shape)


def random_colours(images: Tensor, strength: float) -> Tensor:
    """Brightness, contrast and saturation, each times 1 − strength … 1 + strength, in an order of the picture's own."""
    count, device = len(images), images.device
    factors_B3 = 1 + strength * (2 * torch.rand(count, 3, device=device) - 1)
    order_B3 = torch.rand(count, 3, device=device).argsort(1)
    return in_parts(jitter, images, factors_B3, order_B3)


def jitter(images: Tensor, factors_B3: Tensor, order_B3: Tensor) -> Tensor:
    """Three blends one after another; which is what: 0 brightness, 1 contrast, 2 saturation."""
    levels = images.float()
    for factor, which in zip(factors_B3.unbind(1), order_B3[:, :, None, None, None].unbind(1), strict=True):
        bright = grey(levels)
        levels = blend(bright * (which == 2).float() + mean(bright) * (which == 1).float(), levels, factor)
    return as_bytes(levels)
