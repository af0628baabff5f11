"""Ground and ink: colours that differ enough to be read, gradients, textures, edges.

    picture = ground · (1 − coverage) + ink · coverage

Everything is drawn per picture, (B, …), on the device; values go from 0 to 255.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

LEAST_CONTRAST = 40.0  # levels between ink and ground
CLEAR = 0.6  # share of the words that were painted to be read from afar: dark on light, or light on dark
REACHED = 105.0  # how far from black and white the two of these are at most
GREY, HUES = 0.25, 110.0  # share without any tint; how far from grey the others are at most
GRAINS = (2, 4, 8)  # rows of the noises that a texture is the sum of; columns: four times as many


def uniform(count: int, low: float, high: float, device: torch.device) -> Tensor:
    return low + (high - low) * torch.rand(count, device=device)


def colours(count: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Of ink and ground, (B, 3) each: first how light they are, far enough apart, then how far they are from grey."""
    ink_B, ground_B = _any_two(count, device)
    dark_B, light_B = (REACHED * torch.rand(2, count, device=device) ** 1.5).unbind()
    light_B = 255 - light_B
    swapped_B = torch.rand(count, device=device) < 0.5
    clear_B = torch.rand(count, device=device) < CLEAR
    ink_B = torch.where(clear_B, torch.where(swapped_B, light_B, dark_B), ink_B)
    ground_B = torch.where(clear_B, torch.where(swapped_B, dark_B, light_B), ground_B)

    def tinted(light_B: Tensor) -> Tensor:
        tint_B3 = torch.randn(count, 3, device=device)
        tint_B3 = tint_B3 - tint_B3.mean(dim=1, keepdim=True)  # the lightness stays
        drawn_B = torch.rand(count, device=device)
        strength_B = HUES * ((drawn_B - GREY) / (1 - GREY)).clamp(min=0) ** 2
        return (light_B[:, None] + strength_B[:, None] * tint_B3).clamp(0, 255)

    ink_B3, ground_B3 = tinted(ink_B), tinted(ground_B)
    # a strong tint is cut off at black and white, and may bring one as far as the other: then both stay grey
    alike_B1 = (ink_B3 - ground_B3).abs().amax(dim=1, keepdim=True) < LEAST_CONTRAST
    return torch.where(alike_B1, ink_B[:, None], ink_B3), torch.where(alike_B1, ground_B[:, None], ground_B3)


def _any_two(count: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """How light ink and ground are, anything that differs by `LEAST_CONTRAST`: (B,) each."""
    ground_B = uniform(count, 0, 255, device)
    gap_B = LEAST_CONTRAST + (255 - LEAST_CONTRAST) * torch.rand(count, device=device)
    # lighter or darker than the ground: at random where both are possible, else as there is room
    sign_B = torch.where(torch.rand(count, device=device) < ground_B / 255, -1.0, 1.0)
    ink_B = ground_B + sign_B * gap_B
    ink_B = torch.where((ink_B < 0) | (ink_B > 255), (ground_B - sign_B * gap_B), ink_B).clamp(0, 255)
    short_B = (ink_B - ground_B).abs() < LEAST_CONTRAST  # clamped: go to the farther end instead
    return torch.where(short_B, torch.where(ground_B > 127.5, 0.0, 255.0), ink_B), ground_B


def shown(colour_B3: Tensor, channels: int) -> Tensor:
    """What a picture of 3 channels, or of 1, has of a colour: (B, C). Everything that is mixed of colours is a weighted
    sum, so a grey picture can be mixed of greys, in a third of the time."""
    if channels == 3:
        return colour_B3
    red, green, blue = colour_B3[:, :1], colour_B3[:, 1:2], colour_B3[:, 2:]
    return 0.299 * red + 0.587 * green + 0.114 * blue


def gradient(colour_B3: Tensor, strength_B: Tensor, size: tuple[int, int], channels: int = 3) -> Tensor:
    """From one colour to another near it, in any direction: (B, C, H, W)."""
    count, device = len(colour_B3), colour_B3.device
    angle_B = uniform(count, 0, 2 * torch.pi, device)
    y_H = torch.linspace(-1, 1, size[0], device=device)
    x_W = torch.linspace(-1, 1, size[1], device=device)
    ramp_BHW = torch.cos(angle_B)[:, None, None] * x_W + torch.sin(angle_B)[:, None, None] * y_H[:, None]
    step_B3 = 25 * torch.randn(count, 3, device=device) * (strength_B * torch.rand(count, device=device))[:, None]
    colour_BC, step_BC = shown(colour_B3, channels), shown(step_B3, channels)
    return colour_BC[:, :, None, None] + step_BC[:, :, None, None] * ramp_BHW[:, None]


def texture(count: int, size: tuple[int, int], device: torch.device) -> Tensor:
    """Noise of several grains, each picture with its own share of each: (B, 1, H, W), about 1 large."""
    total = torch.zeros(count, 1, *size, device=device)
    for grain in GRAINS:
        noise = torch.randn(count, 1, grain, 4 * grain, device=device)
        share_B = torch.rand(count, device=device) ** 2
        total = total + share_B[:, None, None, None] * F.interpolate(noise, size, mode="bilinear", align_corners=False)
    return total


def edges(picture_BCHW: Tensor) -> Tensor:
    """A part of each ground beyond a straight edge in another colour: (B, C, H, W)."""
    count, (high, wide), device = len(picture_BCHW), picture_BCHW.shape[2:], picture_BCHW.device
    angle_B = uniform(count, 0, 2 * torch.pi, device)[:, None, None]
    away_B = uniform(count, 0.1, 1.1, device)[:, None, None]
    y_H = torch.linspace(-1, 1, high, device=device)
    x_W = torch.linspace(-1, 1, wide, device=device)
    beyond_BHW = torch.cos(angle_B) * x_W + torch.sin(angle_B) * y_H[:, None] - away_B
    share_B1HW = torch.sigmoid(beyond_BHW * 40)[:, None]
    change_BC = shown(45 * torch.randn(count, 3, device=device), picture_BCHW.size(1))
    return picture_BCHW + share_B1HW * change_BC[:, :, None, None]


def strokes(size: tuple[int, int], count: int, device: torch.device) -> Tensor:
    """A thin line across each picture, near an edge more often than not: coverage (B, 1, H, W)."""
    high, wide = size
    tilt_B = uniform(count, -0.15, 0.15, device)[:, None, None]
    near_B = torch.rand(count, device=device)
    place_B = torch.where(near_B < 0.4, near_B / 4, torch.where(near_B < 0.8, 1 - (near_B - 0.4) / 4, near_B * 5 - 4))
    thick_B = uniform(count, 0.01, 0.06, device)[:, None, None]
    y_H = torch.linspace(0, 1, high, device=device)
    x_W = torch.linspace(-0.5, 0.5, wide, device=device)
    upright_B = (torch.rand(count, device=device) < 0.3)[:, None, None]
    along = y_H[:, None] - place_B[:, None, None] - tilt_B * x_W
    across = (x_W + 0.5) - place_B[:, None, None] - tilt_B * (y_H[:, None] - 0.5) / 4
    distance_BHW = torch.where(upright_B, across * 4, along).abs()
    return ((thick_B - distance_BHW) * high + 0.5).clamp(0, 1)[:, None]
