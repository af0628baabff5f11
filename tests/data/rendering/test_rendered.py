"""Words in fonts."""

from __future__ import annotations

import numpy as np
import pytest
from small_fonts import FONTS, section, words_of

from jumok.data.rendering.rendered import RenderedWords
from jumok.errors import BadInput
from jumok.recipe.recognition import CharsetSection, Rendering, Written
from jumok.text.charset import Charset


def test_a_word_is_the_same_whatever_the_batch(seed: int) -> None:
    words = words_of(section(held_out_fonts=0))
    whole = words.batch(np.arange(100), seed)
    numbers = np.random.default_rng(seed).permutation(100)[:20]
    part = words.batch(numbers, seed)
    for name in ("ids", "lengths", "glyphs"):
        assert (getattr(whole, name)[numbers] == getattr(part, name)).all()
    other = words.batch(np.arange(100), seed + 1)
    assert (other.ids != whole.ids).any()


def test_a_glyph_for_each_character_and_none_after_the_end(seed: int) -> None:
    words = words_of(section(held_out_fonts=0))
    batch = words.batch(np.arange(300), seed)
    there = np.arange(batch.glyphs.size(1)) < batch.lengths.numpy()[:, None]
    assert ((batch.glyphs.numpy() > 0) == there).all()
    texts = words.texts.at(np.arange(300), seed)
    assert [words.charset.decode(row) for row in batch.ids.tolist()] == texts
    # all letters of a word come from one face
    faces = {int(glyph): face for face, row in enumerate(words.atlas.index) for glyph in row}
    for row, length in zip(batch.glyphs.tolist(), batch.lengths.tolist(), strict=True):
        assert len({faces[glyph] for glyph in row[:length]}) <= 1


def test_fonts_of_validation_are_none_of_training() -> None:
    fonts = Rendering(fonts=(str(FONTS),), held_out_fonts=0.3, size=16)
    charset = Charset.of(CharsetSection(sets=("digits",)))
    learned, kept = (RenderedWords(fonts, charset, 6, split) for split in ("train", "valid"))
    assert not {face.family for face in learned.faces} & {face.family for face in kept.faces}
    assert learned.key != kept.key


def test_characters_that_no_font_has_are_named() -> None:
    made = Rendering(fonts=(str(FONTS / "DejaVuSans.ttf"),), held_out_fonts=0, texts=Written(syllables=1.0))
    with pytest.raises(BadInput, match="fonts-nanum"):
        RenderedWords(made, Charset.of(CharsetSection(sets=("hangul",))), 4, "train")
