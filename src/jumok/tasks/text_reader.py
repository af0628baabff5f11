"""What was learned about words in pictures, used: what stands there, and how sure the model is of each character.

How sure it is of a word is the probability of all of it: each character, and that nothing follows.

    p(word | picture) = Π p(y_t | …) · p(end | …)

That is exact for decoders that write from left to right. A `permuted` model that has looked again gives each character
given all others, and CTC the largest probability of each character's columns times that of all blanks: sureness, but
not a probability of the whole word.

Pictures are decoded and brought to the model's size by threads, ahead of the model, which reads many of them together.
All have one size then, so their order does not matter.

A picture that is much taller than wide may be a word that runs upwards or downwards. Whoever asks for it (`turn`) has
such pictures read three times: as they are, and turned to either side. What is taken is the reading with the highest
mean probability of a character, p(word | picture)^(1 / (length + 1)): the whole word's would favour short ones. That
there is nothing to read is believed only where no word is more likely than not: seen from the side, a word is nothing.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from PIL.Image import Image as Picture

from jumok.data.images.picture import BadPicture, Fit, fit, pixels_of
from jumok.data.images.raw import Pixels, RawImage
from jumok.data.images.sources import open_images
from jumok.errors import BadInput, Failure
from jumok.layers.packed import PRECISIONS, Precision
from jumok.models.native_encoder import encoding_in, usable
from jumok.models.recognizer import TOGETHER, Recognizer
from jumok.models.recognizer_decoders import WritingRecognizer
from jumok.models.recognizer_encoders import VitEncoder
from jumok.recipe.sections import WIDEST_BEAM
from jumok.search.pictures import search_pictures
from jumok.tasks.known_words import Corrector, KnownWords
from jumok.text.charset import Charset

ROWS, ROWS_ON_GPU = TOGETHER, 256  # pictures looked at together
ROWS_IF_SURE = 4 * ROWS  # of which a CPU writes, or judges words for, the few that it is not sure of together
TALL = 2  # times as high as wide: from here on a picture may be a word that was turned
TURNS = (0, 90, 270)  # degrees, against the clock

Image = str | Path | Pixels
Size = tuple[int, int]  # height, width
Given = TypeVar("Given")
Made = TypeVar("Made")


@dataclass(frozen=True)
class Read:
    text: str
    confidence: float  # of all of it (see above)
    characters: tuple[tuple[str, float], ...]  # each with its probability
    turned: int = 0  # degrees, against the clock, that the picture was turned by before it was read


@dataclass(frozen=True)
class Way:
    """How to read."""

    fast: bool = False  # by the CTC head of a model that has one beside its decoder
    beam: int = 1  # readings that are followed at once, of a decoder that writes one character after the other
    turn: bool = False  # try tall pictures turned, too
    precision: Precision = "float32"  # bfloat16, int8: faster, with small differences
    sure: float = 1.0  # words that the CTC head is this sure of are taken from it, only the others written in full
    words: KnownWords | None = None  # what is likelier to stand there than anything else that looks the same


class Seen(NamedTuple):
    """A picture that passed by; of its file only the name and the label are left."""

    image: RawImage
    read: Read | BadPicture
    thumbnail: Pixels | None = None


class TextReader:
    """Reads the words in pictures."""

    def __init__(self, model: Recognizer, charset: Charset, resize: Fit, device: torch.device) -> None:
        self.model, self.charset, self.resize, self.device = model, charset, resize, device

    @property
    def has_fast(self) -> bool:
        """Whether the model has a CTC head beside its decoder."""
        return self.model.section.writes_columns and self.model.section.decoder != "ctc"

    @property
    def has_int8(self) -> bool:
        encoder = self.model.encoder
        return isinstance(encoder, VitEncoder) and usable(encoder.vit.encoder, "int8")

    def rows(self, way: Way = Way()) -> int:
        """How many pictures are looked at together."""
        if self.device.type != "cpu":
            return ROWS_ON_GPU
        return ROWS_IF_SURE if way.sure < 1 or way.words is not None else ROWS

    def read(
        self,
        images: Sequence[Image],
        *,
        fast: bool = False,
        beam: int = 1,
        turn: bool = False,
        sure: float = 1.0,
        words: Iterable[str] | KnownWords | None = None,
    ) -> list[Read]:
        """The word in each picture, "" where there is none: files, or arrays (H, W) or (H, W, C) of bytes. `words` are
        likelier than other texts that look the same (tasks/known_words.py)."""
        known = words if words is None or isinstance(words, KnownWords) else KnownWords(words)
        found = []
        way = Way(fast, beam, turn, sure=sure, words=known)
        for seen in self.stream(map(_raw, images, range(1, len(images) + 1)), way):
            if isinstance(seen.read, BadPicture):
                raise seen.read
            found.append(seen.read)
        return found

    def stream(self, source: Iterable[RawImage], way: Way = Way(), thumbnail: Size | None = None) -> Iterator[Seen]:
        """Pictures of any number, in their order; `thumbnail`: with each of them not larger than that."""
        self.check(way)
        held: list[_Views] = []
        rows, most = 0, self.rows(way)
        for views in ahead(source, lambda image: self._views(image, way, thumbnail), most):
            held.append(views)
            rows += len(views.pixels)
            if rows >= most or len(held) >= most:
                yield from self._seen(held, way)
                held, rows = [], 0
        yield from self._seen(held, way)

    def check(self, way: Way) -> None:
        """Refuse what this model cannot do."""
        section = self.model.section
        if not 1 <= way.beam <= WIDEST_BEAM:
            raise BadInput(f"beam {way.beam}: readings that are followed at once are 1 to {WIDEST_BEAM}")
        if way.precision not in PRECISIONS:
            raise BadInput(f"precision {way.precision}: {', '.join(PRECISIONS[:-1])} or {PRECISIONS[-1]}")
        if way.precision == "int8" and not self.has_int8:
            raise BadInput(
                "precision int8 is for models that look with a ViT (encoder: vit), on a processor with AVX512-VNNI and "
                "with a C compiler: read in bfloat16 or float32"
            )
        if way.fast and not self.has_fast:
            raise BadInput(
                f"fast is for models with a CTC head beside their decoder; this one (decoder: {section.decoder}) has "
                "only one way to read"
            )
        if not 0 <= way.sure <= 1:  # nor what is not a number
            raise BadInput(f"sure {way.sure:g}: a probability, from 0 to 1 (1: every word is written in full)")
        if way.sure < 1 and (way.fast or not self.has_fast):
            raise BadInput(
                f"sure {way.sure:g}: fast takes every word from the CTC head already; give one of the two"
                if way.fast
                else f"sure {way.sure:g} is for models with a CTC head beside their decoder; this one (decoder: "
                f"{section.decoder}) has only one way to read"
            )
        if way.beam > 1 and (way.fast or not isinstance(self.model, WritingRecognizer)):
            what = "the CTC head" if way.fast else f"this one (decoder: {section.decoder})"
            raise BadInput(
                f"beam {way.beam} is for decoders that write one character after the other (recurrent, transformer); "
                f"{what} is not searched"
            )

    def prepared(self, images: Iterable[RawImage]) -> Pixels:
        """(N, C, H, W), as the model looks at them."""
        made: list[Pixels] = []
        for views in ahead(images, lambda image: self._views(image, Way(), None), self.rows()):
            if views.broken is not None:
                raise views.broken
            made += views.pixels
        return (
            np.stack(made) if made else np.zeros((0, self.model.section.channels, *self.model.section.image), np.uint8)
        )

    def look(self, images_NCHW: Pixels, way: Way = Way()) -> list[Read]:
        """What stands in pictures that are of the model's size already."""
        found: list[Read] = []
        most = self.rows(way)
        for start in range(0, len(images_NCHW), most):
            found += self._look(images_NCHW[start : start + most], way)
        return found

    @torch.inference_mode()
    def _look(self, images_NCHW: Pixels, way: Way) -> list[Read]:
        self.model.eval()
        images = torch.from_numpy(np.array(images_NCHW)).to(self.device)  # a store gives what cannot be written to
        # int8 is the encoder's alone: what is before and after it goes in bfloat16 then
        half = torch.autocast(self.device.type, torch.bfloat16, enabled=way.precision != "float32")
        with half, encoding_in(way.precision):
            seen = None if way.words is None else self.model.look(images)
            if way.beam > 1 and isinstance(self.model, WritingRecognizer):
                made = search_pictures(self.model, images, way.beam, seen)
            elif seen is None:
                made = self.model.read(images, way.fast, way.sure)
            else:
                made = self.model.written(seen, way.fast, way.sure)
            if seen is not None and way.words is not None:
                made = Corrector(self.model, self.charset, way.words)(seen, made)
        ending = made.ending.double().cpu().numpy()
        log_probs = made.log_probs.double().cpu().numpy()
        if not (np.isfinite(ending).all() and np.isfinite(log_probs).all()):
            raise Failure("what the model computes is not a number. Its weights may have diverged")
        rows = zip(made.ids.tolist(), made.lengths.tolist(), log_probs, ending, strict=True)
        return [self._read(ids[:length], of_each[:length], float(end)) for ids, length, of_each, end in rows]

    def _read(self, ids: Sequence[int], log_probs: Sequence[float], ending: float) -> Read:
        characters = tuple(
            (self.charset.decode([one]), float(np.exp(sure))) for one, sure in zip(ids, log_probs, strict=True)
        )
        text = "".join(character for character, _ in characters)
        return Read(text, float(np.exp(sum(log_probs) + ending)), characters)

    def _views(self, image: RawImage, way: Way, thumbnail: Size | None) -> _Views:
        """A picture as the model looks at it, and turned where it should be; called by many threads."""
        section, named = self.model.section, RawImage(image.name, image.label, b"")
        try:
            pixels = pixels_of(image, section.channels)
        except BadPicture as error:
            return _Views(named, error)
        turns = TURNS if way.turn and pixels.shape[0] > TALL * pixels.shape[1] else TURNS[:1]
        made = [
            fit(np.ascontiguousarray(np.rot90(pixels, turn // 90)), section.image, self.resize).transpose(2, 0, 1)
            for turn in turns
        ]
        return _Views(named, None, made, None if thumbnail is None else _within(pixels, thumbnail))

    def _seen(self, held: Sequence[_Views], way: Way) -> Iterator[Seen]:
        """All that is held, read together."""
        if way.words is not None and any(len(views.pixels) > 1 for views in held):
            held = list(self._turned(held, replace(way, words=None)))
        pixels = [one for views in held for one in views.pixels]
        read = iter(self.look(np.stack(pixels), way) if pixels else [])
        for views in held:
            if views.broken is not None:
                yield Seen(views.image, views.broken)
                continue
            tried = [replace(next(read), turned=turn) for turn, _ in zip(views.turns, views.pixels, strict=False)]
            yield Seen(views.image, max(tried, key=_worth), views.thumbnail)

    def _turned(self, held: Sequence[_Views], way: Way) -> Iterator[_Views]:
        """Each turned as it is read best. A word that is only known to be likely says nothing about that."""
        for views, seen in zip(held, self._seen(held, way), strict=True):
            if isinstance(seen.read, BadPicture):
                yield views
                continue
            turned = seen.read.turned
            yield replace(views, pixels=[views.pixels[views.turns.index(turned)]], turns=(turned,))


@dataclass(frozen=True)
class _Views:
    image: RawImage  # without its bytes
    broken: BadPicture | None
    pixels: Sequence[Pixels] = ()  # (C, H, W) each; one for each of the turns
    thumbnail: Pixels | None = None
    turns: Sequence[int] = TURNS


def _worth(read: Read) -> tuple[bool, float]:
    """Of several readings of one picture, the highest is taken."""
    mean = float(read.confidence ** (1 / (len(read.characters) + 1)))
    return bool(read.text) and mean > 0.5, mean


def _within(pixels: Pixels, size: Size) -> Pixels:
    """Not larger than this, and of its own shape."""
    height, width = pixels.shape[:2]
    scale = min(1.0, size[0] / height, size[1] / width)
    return fit(pixels, (max(1, round(height * scale)), max(1, round(width * scale))), "squash")


def _raw(image: Image, number: int) -> RawImage:
    if isinstance(image, str | Path):
        found = list(islice(open_images([image]), 2))
        if len(found) != 1:
            raise BadInput(f"{image}: name pictures one by one, this is a folder or holds several")
        return found[0]
    if isinstance(image, Picture):
        raise BadInput(f"image {number}: give the file, or numpy.asarray(image.convert('RGB'))")
    array = np.asarray(image)
    if array.dtype != np.uint8 or array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] not in (1, 3)):
        raise BadInput(f"image {number}: give bytes (uint8) of the shape (H, W), (H, W, 1) or (H, W, 3)")
    if not array.size:
        raise BadInput(f"image {number}: {array.shape[1]} × {array.shape[0]} pixels: there is nothing in it")
    return RawImage(f"image {number}", None, array if array.ndim == 3 else array[:, :, None])


def ahead(source: Iterable[Given], work: Callable[[Given], Made], most: int) -> Iterator[Made]:
    """What `work` makes of each, in their order, by as many threads as there are cores; `most` are begun before they
    are asked for. Nothing of `source` is held longer than its work takes."""
    threads = max(1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    waiting: deque[Future[Made]] = deque()
    pool = ThreadPoolExecutor(threads, "decode")
    try:
        for one in source:
            waiting.append(pool.submit(work, one))
            if len(waiting) > most:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
