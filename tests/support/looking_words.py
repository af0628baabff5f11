"""Readers of words whose every weight counts, and frames that are known to the last number."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jumok.data.images.raw import RawImage
from jumok.inspect.reading_attention import Frames
from jumok.models.recognizer import Recognizer, build_recognizer
from jumok.recipe.recognition import CharsetSection, RecognizerSection
from jumok.tasks.text_reader import TextReader
from jumok.text.charset import Charset
from jumok.text.special import END, PAD

DIGITS = Charset.of(CharsetSection(sets=("digits",)))
SMALL: dict[str, Any] = {
    "image": (32, 64), "channels": 1, "patch": (16, 8), "width": 24, "heads": 2, "decoder_heads": 2, "layers": 1,
    "feed_forward": 32, "decoder_layers": 2, "max_length": 5, "dropout": 0.1, "permutations": 2,
}  # fmt: skip


def reading_model(encoder: str, decoder: str, charset: Charset = DIGITS, **keys: Any) -> Recognizer:
    """Small, with weights off their start; it writes something in most pictures."""
    section = RecognizerSection.model_validate({**SMALL, "encoder": encoder, "decoder": decoder, **keys})
    model = build_recognizer(section, charset)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return model.eval()


def text_reader(encoder: str, decoder: str, resize: Any = "squash", **keys: Any) -> TextReader:
    return TextReader(reading_model(encoder, decoder, **keys), DIGITS, resize, torch.device("cpu"))


def blots(rows: int, size: tuple[int, int] = (32, 64), channels: int = 1) -> Tensor:
    """(B, C, H, W), each another one."""
    coarse = torch.rand(rows, channels, 4, 8) * 255
    return torch.nn.functional.interpolate(coarse, size).to(torch.uint8)


def blot_image(name: str, size: tuple[int, int] = (20, 50)) -> RawImage:
    return RawImage(name, None, blots(1, size, 3)[0].permute(1, 2, 0).contiguous().numpy())


def texts_as_ids(texts: list[str], places: int = 6, charset: Charset = DIGITS) -> tuple[Tensor, Tensor]:
    """`y_1 … y_n <eos> <pad> …` and n."""
    rows = [charset.encode(text) for text in texts]
    ids = [[*row, END, *[PAD] * (places - len(row) - 1)] for row in rows]
    return torch.tensor(ids), torch.tensor([len(row) for row in rows])


def digits(least: int = 1, most: int = 5) -> str:
    return "".join(random.choices(DIGITS.characters, k=random.randint(least, most)))


def frames(text: str = "", grid: tuple[int, int] = (2, 8), size: tuple[int, int] = (20, 50), **keys: Any) -> Frames:
    """Random maps over a random picture."""
    text = text or digits(3, 6)
    chance = np.random.default_rng()
    maps = chance.dirichlet(np.full(grid[0] * grid[1], 0.4), len(text)).reshape(len(text), *grid).astype(np.float32)
    known: dict[str, Any] = {
        "name": "word.png", "picture": chance.integers(0, 256, (*size, 3), np.uint8), "size": size,
        "characters": tuple(text), "confidences": tuple(chance.uniform(0.1, 1, len(text))), "confidence": 0.25,
        "maps": maps, "about": "attention of the decoder, mean of 2 heads",
    }  # fmt: skip
    return Frames(**{**known, **keys})


def pointing(columns: list[int], of: int, **keys: Any) -> Frames:
    """Each character looks at one column of one row and nowhere else."""
    maps = np.zeros((len(columns), 1, of), np.float32)
    maps[np.arange(len(columns)), 0, columns] = 1
    return frames(digits(len(columns), len(columns)), maps=maps, **keys)
