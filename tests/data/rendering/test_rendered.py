"""Words in fonts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from small_fonts import FONTS, section, words_of

from jumok.data.rendering import rendered
from jumok.data.rendering.rendered import RenderedWords
from jumok.data.rendering.table import GlyphTable
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


def test_a_space_is_a_gap_and_rare_signs_come_from_the_fonts_that_have_them(seed: int) -> None:
    fonts = Rendering(fonts=(str(FONTS / "DejaVuSans.ttf"), str(FONTS / "cmr10.ttf")), held_out_fonts=0, size=24)
    charset = Charset.of(CharsetSection(sets=("latin",), extra="★", space=True))
    words = RenderedWords(fonts, charset, 20, "train")
    ids = np.full((1, 20), 0)
    text = charset.encode("a b★")
    ids[0, :4] = text
    glyphs = words._written(ids, np.array([4]), np.array([seed]), seed)
    assert (glyphs[0, :4] > 0).all()
    line = GlyphTable(words.atlas, 24).lay_out(torch.from_numpy(glyphs), torch.zeros(1), torch.zeros(1, 20))
    top = min(int(words.atlas.top[glyphs[0, place]]) for place in (0, 2, 3))
    assert float(line.top) == top  # not that of the space, whose cell is empty


def test_a_character_that_no_font_really_draws_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    made = section(held_out_fonts=0)
    whole = rendered.open_atlas

    def without_eight(faces: Any, characters: Any, em: int, say: Any) -> Any:
        atlas = whole(faces, characters, em, say)
        atlas.index = atlas.index.copy()
        atlas.index[:, list(characters).index("8")] = 0
        return atlas

    monkeypatch.setattr(rendered, "open_atlas", without_eight)
    with pytest.raises(BadInput, match="no font draws 8 as a letter"):
        words_of(made)
