"""What `jumok look` shows of a reader of words: where its encoder looks in a picture, patch by patch, before anything
is written. (Where the decoder looked for each character: inspect/reading_attention.py.)

Encoder and decoder meet at the patches, and none stands for all of them. So without a patch to look from, it is the
mean over all of them that is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from torch import Tensor

from jumok.errors import BadInput
from jumok.inspect.attention import visible
from jumok.inspect.vision import check_place, check_view, last_layer, read_place
from jumok.inspect.vision_files import Asked, check_count, drawn_maps, looking_maps, maps_as_json, write_told
from jumok.models.recognizer import Recognizer
from jumok.models.recognizer_encoders import VitEncoder
from jumok.models.vit import Looker
from jumok.tasks.text_reader import TextReader


class WordLooker(Looker):
    """The encoder of a reader of words, by itself."""

    def __init__(self, encoder: VitEncoder) -> None:
        super().__init__()
        self.section, self.reader, self.weigh = encoder.vit.section, encoder.vit, None

    def forward(self, images_BCHW: Tensor) -> Tensor:
        hidden: Tensor = self.reader(images_BCHW)
        return hidden


def word_looker(model: Recognizer) -> WordLooker:
    if not isinstance(model.encoder, VitEncoder):
        raise BadInput(
            "what looks at pictures here are convolutions and LSTMs (model.encoder: recurrent), which have no "
            "attention. Where the characters come from in a picture is shown by: jumok attend"
        )
    return WordLooker(model.encoder)


def write_word_maps(
    reader: TextReader, images_BCHW: Tensor, names: Sequence[str], asked: Asked, path: Path, dark: bool = False
) -> str:
    """Draw maps over pictures of words into a file; what was drawn, in words."""
    asked.check(path)
    if path.suffix.lower() == ".html":
        raise BadInput(
            f"--out {path}: a page is about labels of images. Of a reader of words draw a .png, .svg or .json"
        )
    if asked.kind == "gradient":
        raise BadInput("--kind gradient asks what a label's score hangs on, and a reader of words has no labels")
    check_count(len(names), path)
    model = word_looker(reader.model)
    grid = check_place(model, images_BCHW, None)
    place = None if asked.start is None else read_place(asked.start, grid)
    check_view(model, last_layer(model) if asked.layer is None else asked.layer, asked.head)
    read = reader.look(images_BCHW.numpy())
    maps, heading = looking_maps(model, images_BCHW, asked, place, grid)
    said = [f"{visible(one.text) or 'nothing'} {100 * one.confidence:.0f} %" for one in read]
    content: str | bytes
    if path.suffix.lower() == ".json":
        facts = [
            {"name": name, "text": one.text, "confidence": round(one.confidence, 6)}
            for name, one in zip(names, read, strict=True)
        ]
        content = maps_as_json(facts, maps, heading)
    else:
        content = drawn_maps(images_BCHW, names, said, maps, heading, path, dark=dark)
    return write_told(path, content, names, said, heading)
