"""Rendered words one after the other, as pictures with their texts: for sheets, data sets and validation."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch

from jumok.data.images.raw import Pixels
from jumok.data.rendering.batch import PicturedWords
from jumok.data.rendering.rendered import RenderedWords, Split
from jumok.data.rendering.renderer import Renderer
from jumok.recipe import Recipe, RecognizerSection
from jumok.text.charset import Charset

ROWS = 128  # composed together; each such batch has draws of its own

Say = Callable[[str], None]


def rendered(
    recipe: Recipe, charset: Charset, split: Split, count: int, seed: int, say: Say = lambda _: None
) -> Iterator[PicturedWords]:
    """Words of a split as the recipe renders them, in batches."""
    section = recipe.model
    assert isinstance(section, RecognizerSection)
    words = RenderedWords(recipe.render, charset, section.max_length, split, say)
    renderer = Renderer(words.atlas, recipe.render, section.image, section.channels)
    return batches(words, renderer, count, seed)


def with_texts(found: Iterator[PicturedWords], charset: Charset) -> Iterator[tuple[Pixels, str]]:
    """Picture by picture, (H, W, C), with what it says."""
    for batch in found:
        for image, ids in zip(batch.images, batch.ids.tolist(), strict=True):
            yield image.permute(1, 2, 0).contiguous().numpy(), charset.decode(ids)


def batches(words: RenderedWords, renderer: Renderer, count: int, seed: int) -> Iterator[PicturedWords]:
    """Words 0 … count − 1 of a seed, composed on the CPU: the same pictures on every machine with these fonts."""
    for start in range(0, count, ROWS):
        batch = words.batch(np.arange(start, start + ROWS), seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed((seed * 1_000_003 + start) % 2**63)
            images = renderer(batch.glyphs).images
        rows = slice(0, min(ROWS, count - start))
        yield PicturedWords(batch.ids[rows], batch.lengths[rows], images[rows], indices=batch.indices[rows])
