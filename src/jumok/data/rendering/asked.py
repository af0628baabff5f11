"""A word that somebody asks for, as a run's renderer writes it: the run's fonts, colours, bends and noise.

The same word and number give the same picture on every machine with these fonts; another number another one.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch

from jumok.data.images.raw import Pixels
from jumok.data.rendering.atlas import open_atlas
from jumok.data.rendering.rendered import faces_of
from jumok.data.rendering.renderer import Renderer
from jumok.data.rendering.texts import Texts
from jumok.errors import BadInput
from jumok.recipe import Recipe, RecognizerSection
from jumok.text.charset import Charset, OutsideCharset, named_character
from jumok.text.special import SPECIAL_TOKENS

TRIES = 8  # words looked at for each that is wanted
MIXING = 1_000_003  # so that neighbouring numbers give other fonts, too
NAMED = 8  # characters told in a message


class AskedWords:
    """The fonts of testing, which are not those of training where a recipe keeps some back."""

    def __init__(self, recipe: Recipe, charset: Charset, say: Callable[[str], None] = lambda _: None) -> None:
        assert isinstance(recipe.model, RecognizerSection)
        self.recipe, self.charset, self.longest = recipe, charset, recipe.model.max_length
        self.atlas = open_atlas(
            faces_of(recipe.render, charset, "test", say), charset.characters, recipe.render.size, say
        )
        self.renderer = Renderer(self.atlas, recipe.render, recipe.model.image, recipe.model.channels)

    def draw(self, text: str, number: int = 0) -> tuple[Pixels, npt.NDArray[np.float64]]:
        """The picture (H, W, C), and where the middle of each character is: (n, 2), x and y from 0 to 1."""
        ids = self.ids(text)
        glyphs_1L = torch.from_numpy(self._glyphs(ids - len(SPECIAL_TOKENS), number))[None]
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed((number * MIXING + int(ids.sum())) % 2**63)
            made = self.renderer(glyphs_1L)
        return made.images[0].permute(1, 2, 0).contiguous().numpy(), made.centres[0].double().numpy()

    def ids(self, text: str) -> npt.NDArray[np.int64]:
        text = unicodedata.normalize("NFC", text)
        if not text:
            raise BadInput("there is nothing to draw: write a word")
        if len(text) > self.longest:
            raise BadInput(f"{len(text)} characters: this run has learned words of at most {self.longest}")
        try:
            return np.array(self.charset.encode(text), np.int64)
        except OutsideCharset as error:
            named = ", ".join(map(named_character, error.characters[:NAMED]))
            raise BadInput(f"this run does not know {named}: leave it out, or draw something else") from None

    def examples(self, count: int, seed: int = 1) -> list[str]:
        """Different words as they come in testing, none of them empty."""
        texts = Texts(self.recipe.render, self.charset, "test", self.longest)
        return [text for text in dict.fromkeys(texts.at(np.arange(TRIES * count), seed)) if text.strip()][:count]

    def _glyphs(self, places: npt.NDArray[np.int64], number: int) -> npt.NDArray[np.int64]:
        """Of a font that has all of them; where none has, each letter of one that has it, as a printer does."""
        has = self.atlas.index[:, places] > 0
        drawn = np.random.default_rng(number % 2**63)
        able = np.flatnonzero(has.all(axis=1))
        if len(able):
            return self.atlas.index[drawn.choice(able), places].astype(np.int64)
        if not has.any(axis=0).all():
            lost = self.charset.characters[int(places[np.flatnonzero(~has.any(axis=0))[0]])]
            raise BadInput(f"no font here draws {named_character(lost)} as a letter: leave it out")
        faces = [drawn.choice(np.flatnonzero(column)) for column in has.T]
        return self.atlas.index[faces, places].astype(np.int64)
