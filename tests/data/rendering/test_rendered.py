"""Words in fonts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from built_fonts import build, random_shape
from small_fonts import FONTS, section, words_of

from jumok.data.rendering import rendered
from jumok.data.rendering.rendered import RenderedWords, Split
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
    said: list[str] = []
    splits: tuple[Split, ...] = ("train", "valid", "test")
    words = [RenderedWords(fonts, charset, 6, split, said.append) for split in splits]
    learned, valid, test = ({face.family for face in each.faces} for each in words)
    assert not learned & (valid | test)
    assert not valid & test
    assert valid
    assert test
    assert not [note for note in said if "held_out_fonts" in note]
    assert len({each.key for each in words}) == 3
    before = fonts.model_copy(update={"relatives": "names"})
    valid, test = ({face.family for face in RenderedWords(before, charset, 6, split).faces} for split in splits[1:])
    assert valid == test


def test_a_single_family_kept_back_is_told_to_be_shared() -> None:
    said: list[str] = []
    faces = []
    splits: tuple[Split, ...] = ("train", "valid", "test")
    for split in splits:
        words = RenderedWords(
            section(held_out_fonts=0.5), Charset.of(CharsetSection(sets=("latin",))), 6, split, said.append
        )
        faces.append([face.family for face in words.faces])
    assert faces[1] == faces[2] != faces[0]
    notes = [note for note in said if note.startswith("render.held_out_fonts: too few families")]
    assert len(notes) == 2  # training has nothing to do with it
    assert f"Both are written in {faces[1][0]};" in notes[0]


def test_which_relatives_are_kept_together_changes_no_text() -> None:
    """So that a run from before the key, which has its fonts, goes on."""
    one, other = (words_of(section(held_out_fonts=0, relatives=name)) for name in ("letters", "names"))
    assert one.key == other.key


def test_named_fonts_that_have_nothing_to_write_with_are_told(tmp_path: Path) -> None:
    said: list[str] = []
    sans, odd = str(FONTS / "DejaVuSans.ttf"), str(tmp_path / "odd.ttf")
    build(Path(odd), {"x": random_shape(np.random.default_rng(9))}, "Odd")
    charset = Charset.of(CharsetSection(sets=("digits",)))
    made = Rendering(fonts=(sans, odd), held_out_fonts=0, size=16)
    words = RenderedWords(made, charset, 4, "train", said.append)
    assert [face.family for face in words.faces] == ["DejaVu Sans"]
    told = [note for note in said if note.startswith("render.fonts")]
    assert told == [f"render.fonts: {odd} has none of the charset's characters and will not be used"]
    # of a folder, how many and some of their names
    said.clear()
    folder = tmp_path / "folder"
    folder.mkdir()
    for number in range(7):
        build(folder / f"few-{number}.ttf", {"x": random_shape(np.random.default_rng(number))}, f"Few {number}")
    (folder / "sans.ttf").write_bytes(Path(sans).read_bytes())
    RenderedWords(made.model_copy(update={"fonts": (str(folder),)}), charset, 4, "train", said.append)
    assert [note for note in said if note.startswith("render.fonts")] == [
        f"render.fonts: 7 of 8 font files in {folder} have none of the charset's characters and will not be used: "
        "few-0.ttf, few-1.ttf, few-2.ttf, few-3.ttf, few-4.ttf and 2 more"
    ]
    said.clear()
    RenderedWords(made.model_copy(update={"fonts": (sans,)}), charset, 4, "train", said.append)
    assert not [note for note in said if note.startswith("render.fonts")]


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
