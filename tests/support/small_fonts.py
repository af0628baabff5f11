"""Words in two fonts that are always there: those that matplotlib brings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

from jumok.data.rendering.rendered import RenderedWords
from jumok.recipe.recognition import CharsetSection, Rendering
from jumok.text.charset import Charset

FONTS = Path(matplotlib.__file__).parent / "mpl-data/fonts/ttf"
PLAIN = {"colour": 0, "outline": 0, "curve": 0, "perspective": 0, "blur": 0, "noise": 0, "clutter": 0}


def section(**changes: Any) -> Rendering:
    return Rendering(fonts=tuple(str(FONTS / f"DejaVuS{name}.ttf") for name in ("ans", "erif")), size=24, **changes)


def words_of(made: Rendering, split: Any = "train", longest: int = 8) -> RenderedWords:
    return RenderedWords(made, Charset.of(CharsetSection(sets=("digits", "latin"))), longest, split)
