"""What a camera and a file do to pictures."""

from __future__ import annotations

import io

import numpy as np
import pytest
import torch
from PIL import Image

from jumok.data.rendering.degrade import QUANTA, blur, coarsen, compress, noise

TABLE = torch.tensor(QUANTA, dtype=torch.float32)


@pytest.fixture
def images(seed: int) -> torch.Tensor:
    torch.manual_seed(seed)
    small = torch.rand(40, 3, 8, 16) * 255
    return torch.nn.functional.interpolate(small, (32, 64), mode="bilinear")


def roughness(images: torch.Tensor) -> torch.Tensor:
    return (images[..., 1:] - images[..., :-1]).abs().mean(dim=(1, 2, 3))


def test_a_blur_keeps_what_is_even_and_smooths_the_rest(images: torch.Tensor) -> None:
    even = torch.full((5, 3, 32, 64), 77.0)
    torch.testing.assert_close(blur(even, 1.0), even)
    sharp = images + 40 * torch.randn_like(images)
    blurred = blur(sharp, 1.0)
    assert (roughness(blurred) <= roughness(sharp) + 1e-3).all()
    assert roughness(blurred).mean() < 0.9 * roughness(sharp).mean()


def test_some_were_smaller_once(images: torch.Tensor) -> None:
    changed = (coarsen(images, 0.5) != images).flatten(1).any(dim=1)
    assert changed.sum() == 20
    assert not (coarsen(images, 0.0) != images).any()


def test_noise_leaves_the_mean(images: torch.Tensor) -> None:
    change = noise(images, 1.0) - images
    assert change.abs().max() > 1
    assert change.mean().abs() < 1.0
    torch.testing.assert_close(noise(images, 0.0), images)


def test_compression_works_in_blocks_of_eight(images: torch.Tensor) -> None:
    flat = torch.full((8, 3, 32, 64), 200.0)
    torch.testing.assert_close(compress(flat, 1.0, TABLE), flat, atol=9.0, rtol=0.0)  # rounded to a step of the quantum
    made = compress(images, 1.0, TABLE)
    assert (made != images).flatten(1).any(dim=1).all()
    assert (made - images).abs().mean() < 20
    # whole blocks alone: what is left over at the edges stays
    odd = images[:, :, :30, :60]
    torch.testing.assert_close(compress(odd, 1.0, TABLE)[:, :, 24:], odd[:, :, 24:])
    torch.testing.assert_close(compress(images[:, :, :7], 1.0, TABLE), images[:, :, :7])


def test_it_is_the_compression_of_jpeg(seed: int) -> None:
    """A block written by Pillow with the same table comes out the same, give or take how it rounds."""
    torch.manual_seed(seed)
    grey = torch.nn.functional.interpolate(torch.rand(1, 1, 4, 8) * 255, (32, 64), mode="bilinear").round()
    ours = compress(grey.expand(60, -1, -1, -1).contiguous(), 1.0, TABLE)

    def pillow(scale: float) -> np.ndarray:
        table = [max(1, min(255, round(quantum * scale))) for row in QUANTA for quantum in row]
        buffer = io.BytesIO()
        Image.fromarray(grey[0, 0].byte().numpy()).save(buffer, "JPEG", qtables=[table], subsampling=0)
        return np.asarray(Image.open(buffer)).astype(np.float32)

    theirs = [pillow(step / 12) for step in range(1, 41)]
    for made in ours:
        nearest = min(float(np.abs(made[0].clamp(0, 255).numpy() - other).mean()) for other in theirs)
        assert nearest < 2.5
