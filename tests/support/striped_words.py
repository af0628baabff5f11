"""Words as stripes, and a model that reads them: what goes in is known, and comes out through the real preparation.

A picture has eight columns, one for each character: the upper half's grey is its id, the lower half's how sure the
reader is of it. The first column that is nearly black ends the word.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from jumok.models.recognizer import Reading, Recognizer
from jumok.recipe.recognition import CharsetSection, RecognizerSection
from jumok.tasks.text_reader import TextReader
from jumok.text.charset import Charset

CHARSET = Charset.of(CharsetSection(sets=("digits",), extra="abXYé가나힣"))
SECTION = RecognizerSection(image=(16, 64), patch=(8, 8), width=12, heads=1, layers=1, decoder_heads=1, max_length=8)
PLACES = 8
STEP = 8  # grey values from one id to the next
ENDING = 0.95


class StripeReader(Recognizer):
    """Follows the contract of `Recognizer`; `asked` is what `read` was called with."""

    def __init__(self, section: RecognizerSection = SECTION, charset: Charset = CHARSET) -> None:
        torch.nn.Module.__init__(self)
        self.section, self.charset = section, charset
        self.asked: list[dict[str, object]] = []
        self.place = torch.nn.Parameter(torch.zeros(()))

    def read(self, images_BCHW: Tensor, fast: bool = False, sure: float = 1.0) -> Reading:
        self.asked.append({"rows": len(images_BCHW), "fast": fast, "sure": sure})
        return super().read(images_BCHW, fast, sure)

    def look(self, images_BCHW: Tensor) -> Tensor:
        """(B, PLACES, 2): an id and how sure it is, in each column."""
        assert images_BCHW.dtype == torch.uint8
        assert not self.training
        grey = images_BCHW.float().mean(1)  # (B, H, W)
        height, width = grey.shape[1:]
        wide = width // PLACES
        columns = grey.unflatten(2, (PLACES, wide))[..., wide // 4 : wide - wide // 4].mean(-1)  # (B, H, PLACES)
        ids = (columns[:, 1 : height // 2 - 1].mean(1) / STEP).round().clamp(max=self.charset.size - 1)
        share = (columns[:, height // 2 + 1 : -1].mean(1) / 255).clamp(1e-3, 1)
        return torch.stack([ids, share], dim=-1)

    def written(self, seen_BSD: Tensor, fast: bool = False, sure: float = 1.0) -> Reading:
        ids, share = seen_BSD[..., 0].long(), seen_BSD[..., 1]
        there = (ids >= 4).long().cumprod(1)
        ending = torch.full((len(ids),), ENDING).log() + self.place
        return Reading(ids * there, there.sum(1), share.log() * there, ending)

    def said_as(self, seen_BSD: Tensor, rows_N: Tensor, ids_NT: Tensor, lengths_N: Tensor, fast: bool) -> Reading:
        """What is in doubt about a column, any other character may have as well; how many there are is certain."""
        ids, share = seen_BSD[rows_N, :, 0].long(), seen_BSD[rows_N, :, 1]
        length = (ids >= 4).long().cumprod(1).sum(1)
        asked = torch.nn.functional.pad(ids_NT, (0, PLACES))[:, :PLACES]
        there = torch.arange(PLACES) < lengths_N[:, None]
        each = torch.where(asked == ids, share, (1 - share).clamp(min=1e-6)).log() * there
        ending = torch.full((len(ids),), ENDING).log() + self.place
        return Reading(asked * there, lengths_N, each, ending.masked_fill(length != lengths_N, float("-inf")))


def a_reader(**keys: object) -> TextReader:
    section = SECTION.model_copy(update=keys)
    return TextReader(StripeReader(section).eval(), CHARSET, "squash", torch.device("cpu"))


def striped(
    text: str, size: tuple[int, int] = (16, 64), sure: Sequence[float] | float = 0.9, charset: Charset = CHARSET
) -> np.ndarray:
    """(H, W, 3)"""
    height, width = size
    picture = np.zeros((height, width), np.uint8)
    each = [sure] * len(text) if isinstance(sure, float) else sure
    edges = [round(place * width / PLACES) for place in range(PLACES + 1)]
    for place, (id, share) in enumerate(zip([charset.ids[one] for one in text], each, strict=True)):
        picture[: height // 2, edges[place] : edges[place + 1]] = STEP * id
        picture[height // 2 :, edges[place] : edges[place + 1]] = round(255 * share)
    return picture[:, :, None].repeat(3, axis=2)


def a_word(least: int = 1, most: int = PLACES) -> str:
    return "".join(random.choices(CHARSET.characters, k=random.randint(least, most)))


def write_striped(folder: Path, words: Sequence[str], size: tuple[int, int] = (16, 64)) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{number:03}.png" for number in range(len(words))]
    for file, word in zip(files, words, strict=True):
        Image.fromarray(striped(word, size)).save(file)
    return files
