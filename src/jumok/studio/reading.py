"""What a reader of words saw in a picture: one that was dropped into the page, or a word that its own renderer draws.

A dropped picture is kept in memory, the last few of them, under a name made of its bytes; so an address can name it as
long as the studio runs. All of this is used by the one worker alone (answers.computed).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image

from jumok.data.images.picture import decode
from jumok.data.images.raw import Pixels, RawImage, shown
from jumok.data.rendering.asked import AskedWords
from jumok.errors import BadInput
from jumok.inspect.reading_attention import Frames, frames_of
from jumok.inspect.reading_drift import drift_of
from jumok.inspect.view import every_view
from jumok.layers.ctc import BLANK
from jumok.models.permuted import PermutedRecognizer
from jumok.models.recognizer import CtcRecognizer
from jumok.studio.shelf import Shelf
from jumok.tasks.text_reader import TextReader
from jumok.text.special import END, START, UNKNOWN
from jumok.trained import TrainedTextReader

PICTURES, LOOKS, RENDERERS = 8, 32, 3  # that are kept
EXAMPLES = 6
SHORT = 3  # characters: shorter words make no film
MOST_MAPS = 48  # heads of all layers, side by side
Floats = npt.NDArray[np.float32]


class Source(NamedTuple):
    """A picture that was dropped, by its name; or a word, and which of its pictures."""

    picture: str | None
    text: str | None
    number: int = 0


@dataclass(frozen=True, eq=False)
class Looked:
    reader: TextReader
    image: RawImage
    frames: Frames
    drawn: str | None  # what was asked to be drawn


class Desk:
    """Pictures, renderers and looks that are kept. A run that was loaded anew is looked at anew."""

    def __init__(self) -> None:
        self.pictures: OrderedDict[str, RawImage] = OrderedDict()
        self.looks: OrderedDict[Any, Looked] = OrderedDict()
        self.renderers: OrderedDict[str, tuple[TextReader, AskedWords]] = OrderedDict()

    def keep(self, encoded: str, name: str) -> str:
        """The picture's own name. What is no picture is refused here, in words."""
        try:
            data = base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            raise BadInput("this is no base64: choose the picture again") from None
        name = shown(name)[:80] or "picture"
        decode(data, name, 3)
        key = hashlib.sha256(data).hexdigest()[:16]
        _put(self.pictures, key, RawImage(name, None, data), PICTURES)
        return key

    def words(self, shelf: Shelf, run: str) -> AskedWords:
        reader = reader_of(shelf, run)
        known = self.renderers.get(run)
        if known is None or known[0] is not reader:
            known = reader, AskedWords(reader.recipe, reader.charset)
        _put(self.renderers, run, known, RENDERERS)
        return known[1]

    def look(self, shelf: Shelf, run: str, source: Source, layer: int | None, head: int | None) -> Looked:
        reader = reader_of(shelf, run)
        key = (run, source, layer, head)
        found = self.looks.get(key)
        if found is None or found.reader is not reader:
            found = self._look(shelf, run, reader, source, layer, head)
        _put(self.looks, key, found, LOOKS)
        return found

    def _look(
        self, shelf: Shelf, run: str, reader: TextReader, source: Source, layer: int | None, head: int | None
    ) -> Looked:
        if source.picture is not None:
            if source.picture not in self.pictures:
                raise BadInput("that picture is no longer here: the studio keeps the last few. Choose it again")
            image = self.pictures[source.picture]
            return Looked(reader, image, frames_of(reader, [image], layer, head)[0], None)
        words = self.words(shelf, run)
        text = source.text if source.text is not None else words_of(words)[0]
        pixels, centres = words.draw(text, source.number)
        image = RawImage(text, None, pixels)
        frames = frames_of(reader, [image], layer, head)[0]
        if len(frames.characters) == len(centres):  # where each is, is known; also where it was misread
            frames = replace(frames, places=centres[:, 0])
        return Looked(reader, image, frames, reader.charset.decode(words.ids(text)))

    def heads(self, shelf: Shelf, run: str, source: Source) -> tuple[list[tuple[int, int]], Floats]:
        """Layer and head of each map, and (heads, n, h, w)."""
        reader = reader_of(shelf, run)
        views = [one for one in every_view(reader.model, "cross") if one.head is not None][:MOST_MAPS]
        places = [(one.layer or 0, one.head or 0) for one in views]
        maps = [self.look(shelf, run, source, *place).frames.maps for place in places]
        whole = self.look(shelf, run, source, None, None).frames.maps
        return places, np.stack(maps) if maps else np.zeros((0, *whole.shape), np.float32)


def _put(kept: OrderedDict[Any, Any], key: Any, value: Any, most: int) -> None:
    kept[key] = value
    kept.move_to_end(key)
    while len(kept) > most:
        kept.popitem(last=False)


def reader_of(shelf: Shelf, run: str) -> TrainedTextReader:
    found = shelf.load(run)
    if not isinstance(found, TrainedTextReader):
        raise BadInput(f'the run "{run}" does not read words in pictures: choose one of task recognition')
    return found


def words_of(words: AskedWords) -> list[str]:
    """A few to begin with; short ones behind."""
    return sorted(words.examples(EXAMPLES), key=lambda text: len(text) < SHORT) or [words.charset.characters[0]]


# ---------------------------------------------------------------- what is told


def told(looked: Looked) -> dict[str, Any]:
    """All but the maps, in JSON."""
    frames, drift = looked.frames, drift_of(looked.frames)
    characters = [
        {
            "character": character, "probability": frames.confidences[place], "centre": frames.centres[place].tolist(),
            "place": float(drift.places[place]), "drift": float(drift.widths[place]),
            "most": float(frames.maps[place].max()),
        }
        for place, character in enumerate(frames.characters)
    ]  # fmt: skip
    return {
        "text": frames.text, "confidence": frames.confidence, "characters": characters, "drawn": looked.drawn,
        "name": frames.name, "picture": as_address(frames.picture), "size": list(frames.size),
        "grid": list(frames.maps.shape[1:]), "box": list(frames.box), "drift": drift.to_json(),
        "known": drift.known, "how": how(looked.reader), "max_difference": frames.max_difference,
    }  # fmt: skip


def how(reader: TextReader) -> dict[str, Any]:
    """What the maps are: of columns (CTC), of the position queries of the last round, or of a decoder."""
    if isinstance(reader.model, CtcRecognizer):
        return {"kind": "ctc", "rounds": 0}
    if isinstance(reader.model, PermutedRecognizer):
        return {"kind": "queries", "rounds": reader.model.section.refinements + 1}
    return {"kind": "decoder", "rounds": 0}


def as_address(picture: Pixels) -> str:
    """The picture as an address that holds it (data:)."""
    buffer = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(picture)).save(buffer, "PNG")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


@torch.inference_mode()
def columns_of(looked: Looked) -> tuple[list[str], list[str], Floats]:
    """Of a CTC reader: the labels that it said somewhere ("" is the blank, the first), the likeliest of each column,
    and how likely each label is in each column, (labels, columns)."""
    reader = looked.reader
    if not isinstance(reader.model, CtcRecognizer):
        raise BadInput("this run is no CTC reader: it has no columns that speak for themselves")
    model = reader.model.eval()
    images = torch.from_numpy(reader.prepared([looked.image])).to(reader.device)
    columns_1CD = model.encoder.columns(model.encoder(images))
    _, ids_1C = model.ctc.head.best(columns_1CD, without=(UNKNOWN, START, END))
    path = ids_1C[0].tolist()
    labels = list(dict.fromkeys([BLANK, *path]))
    found_CS = model.ctc.head.among(columns_1CD, torch.tensor([labels], device=reader.device))[0].exp()
    names = {label: "" if label == BLANK else reader.charset.decode([label]) for label in labels}
    return [names[one] for one in labels], [names[one] for one in path], found_CS.T.float().cpu().numpy()
