"""Pictures that each have a file with their text beside them, as for Tesseract: `line_7.png` and `line_7.gt.txt`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from jumok.data.text_images.label_files import picture_text
from jumok.errors import BadInput

OWN = ".gt.txt"


def own_texts(pictures: Iterable[str], files: Iterable[str]) -> dict[str, str]:
    """Which of the files is the text of which picture: from the picture's name to the file's."""
    found = {name[: -len(OWN)]: name for name in files if name.lower().endswith(OWN)}
    stems = ((name, os.path.splitext(name)[0]) for name in pictures)
    return {name: found[stem] for name, stem in stems if stem in found}


def read_own_text(file: str, lines: Iterator[str]) -> str:
    """The one line of such a file; without any it is a picture without text."""
    told = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if len(told) > 1:
        raise BadInput(
            f"{file}, line {told[1][0]}: a second line of text. A picture has one; if this file has the labels of "
            "several pictures, give it a name that no picture has"
        )
    return picture_text(told[0][1] if told else "", f"{file}, line {told[0][0] if told else 1}")
