"""Words in fonts, endlessly: word number n of a seed is always the same, in the same font.

A font writes only what it has glyphs for: of several drawn fonts the first that has all letters is taken, and where
none of these does, any that has; where none has, each letter comes from a font that has it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch

from jumok.data.images.drawn_dice import Dice
from jumok.data.images.raw import key_of
from jumok.data.rendering.atlas import Atlas, open_atlas
from jumok.data.rendering.batch import WrittenWords
from jumok.data.rendering.font_files import absolute
from jumok.data.rendering.font_likeness import families_alike
from jumok.data.rendering.font_split import split_faces, split_kept
from jumok.data.rendering.fonts import Face, find_faces, must_cover
from jumok.data.rendering.texts import Texts
from jumok.errors import BadInput
from jumok.recipe.recognition import Rendering
from jumok.text.charset import Charset
from jumok.text.special import SPECIAL_TOKENS

Say = Callable[[str], None]
Split = Literal["train", "valid", "test"]
Numbers = npt.NDArray[np.int64]
TRIES = 6  # fonts drawn for a word
SHOWN = 20  # characters named in a message
NAMED = 5  # fonts


class RenderedWords:
    """The words and fonts of a split. Those of training come in neither of the other two, and these have fonts of their
    own where enough are held out."""

    def __init__(
        self, section: Rendering, charset: Charset, max_length: int, split: Split, say: Say = lambda _: None
    ) -> None:
        self.charset, self.split = charset, split
        self.faces = faces_of(section, charset, split, say)
        self.atlas: Atlas = open_atlas(self.faces, charset.characters, section.size, say)
        drawn = (self.atlas.index > 0).any(axis=0)
        if not drawn.all():  # fonts have them, but not as anything that could be read
            lost = ", ".join(charset.characters[place] for place in np.flatnonzero(~drawn)[:SHOWN])
            raise BadInput(
                f"no font draws {lost} as a letter (nothing, a box, or far too large). Install other fonts, name some "
                "(render.fonts), or leave these characters out of the charset"
            )
        self.texts = Texts(section, charset, split, max_length)
        for note in self.texts.notes:
            say(note)
        self._families = _members([face.family for face in self.faces])
        # a column for each id: those that stand for no character have no glyph
        none = np.zeros((len(self.faces), len(SPECIAL_TOKENS)), self.atlas.index.dtype)
        self._glyphs = np.concatenate([none, self.atlas.index], axis=1)

    @property
    def key(self) -> str:
        """Equal for equal words in equal fonts."""
        return key_of("rendered", [self.atlas.key, self.texts.fingerprint])

    def batch(self, numbers: Numbers, seed: int, corpus: int = 0) -> WrittenWords:
        ids, lengths = self.texts.ids(numbers, seed)
        glyphs = self._written(ids[:, :-1], lengths, numbers, seed)
        tensors = (torch.from_numpy(each) for each in (ids, lengths, glyphs))
        return WrittenWords(*tensors, indices=tuple(numbers.tolist()), corpus=corpus)

    def text(self, number: int, seed: int) -> str:
        return self.texts.at(np.array([number]), seed)[0]

    def _written(self, ids: Numbers, lengths: Numbers, numbers: Numbers, seed: int) -> Numbers:
        """Glyphs (B, L) of a font that has them all."""
        there = np.arange(ids.shape[1]) < lengths[:, None]
        with np.errstate(over="ignore"):
            dice = Dice(numbers.astype(np.uint64) * np.uint64(2**31 - 1) + np.uint64(seed % 2**64))
        starts, sizes = self._families.starts, self._families.sizes
        family = dice.choice(len(starts), "family", TRIES)
        face = self._families.faces[starts[family] + dice.words("face", TRIES).astype(np.int64) % sizes[family]]
        chosen = face[:, 0].copy()
        glyphs = np.where(there, self._glyphs[chosen[:, None], ids], 0)
        for attempt in range(1, TRIES):
            lacking = np.flatnonzero((there & (glyphs == 0)).any(axis=1))
            if not len(lacking):
                return glyphs.astype(np.int64)
            chosen[lacking] = face[lacking, attempt]
            glyphs[lacking] = np.where(there[lacking], self._glyphs[chosen[lacking, None], ids[lacking]], 0)
        for row in np.flatnonzero((there & (glyphs == 0)).any(axis=1)):
            glyphs[row, : lengths[row]] = self._mixed(ids[row, : lengths[row]], int(face[row, 0]))
        return glyphs.astype(np.int64)

    def _mixed(self, word: Numbers, first: int) -> Numbers:
        """Glyphs of a word that none of the drawn fonts can write: of one that can, or of several, as a printer does
        who lacks a letter. That each letter is in some font was made sure of before."""
        has = self._glyphs[:, word] > 0
        able = np.flatnonzero(has.all(axis=1))
        if len(able):
            return self._glyphs[able[first % len(able)], word]
        faces = [int(np.flatnonzero(column)[first % column.sum()]) for column in has.T]
        return self._glyphs[faces, word]


@dataclass(frozen=True)
class _Members:
    faces: Numbers  # of all families, one after the other
    starts: Numbers
    sizes: Numbers


def _members(families: Sequence[str]) -> _Members:
    names = {name: number for number, name in enumerate(dict.fromkeys(families))}
    family = np.array([names[name] for name in families], np.int64)
    order, sizes = np.argsort(family, kind="stable"), np.bincount(family, minlength=len(names))
    return _Members(order, np.cumsum(sizes) - sizes, sizes)


def faces_of(section: Rendering, charset: Charset, split: Split, say: Say) -> list[Face]:
    """The fonts of a split that can write something of the charset; all its characters must be had from some font."""
    found = find_faces(section.fonts, say)
    wanted = np.sort(np.array([ord(character) for character in charset.characters if not character.isspace()]))
    faces = [face for face in found if np.isin(wanted, face.covered).any()]
    must_cover(faces, charset.characters)
    for note in _without_use(section.fonts, found, faces):
        say(note)
    if not section.held_out_fonts:
        return faces
    alike = families_alike(faces) if section.relatives == "letters" else None
    learned, kept = split_faces(faces, section.held_out_fonts, alike)
    chosen = learned if split == "train" else kept
    try:
        must_cover(chosen, charset.characters)
    except BadInput as error:
        raise BadInput(
            f"too few font families to keep some of them back for validation (render.held_out_fonts="
            f"{section.held_out_fonts:g}): {error}; or validate with the fonts of training: render.held_out_fonts=0"
        ) from None
    if split == "train" or alike is None:
        return chosen
    back = split_kept(kept, alike, charset.characters)
    if back.shared:
        say(
            "render.held_out_fonts: too few families are kept back for validation and the test to have their own. Both "
            f"are written in {_named(back.shared)}; more fonts, or a larger share, would keep them apart"
        )
    return back.valid if split == "valid" else back.test


def _without_use(named: Sequence[str], found: Sequence[Face], used: Sequence[Face]) -> list[str]:
    """Of the fonts that somebody has named, those which have nothing to write the charset with."""
    files = dict.fromkeys(face.path for face in found)
    useless = [path for path in files if path not in {face.path for face in used}]
    asked_for = {absolute(name): name for name in named}
    notes = []
    if alone := [asked_for[path] for path in useless if path in asked_for]:
        notes.append(
            f"render.fonts: {_named(alone)} ha{'s' if len(alone) == 1 else 've'} none of the charset's characters and "
            "will not be used"
        )
    for folder, name in asked_for.items():
        if inside := [path.name for path in useless if folder in path.parents]:
            whole = sum(folder in path.parents for path in files)
            notes.append(
                f"render.fonts: {len(inside):,} of {whole:,} font files in {name} have none of the charset's "
                f"characters and will not be used: {_named(inside)}"
            )
    return notes


def _named(names: Sequence[str]) -> str:
    return ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED:,} more" if len(names) > NAMED else "")
