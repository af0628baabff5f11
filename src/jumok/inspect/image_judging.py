"""A test set of images, judged: what the model says of each, and which of its mistakes are worth a look.

Images pass by in batches; of most of them only the probabilities stay, so that a test set may be of any size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jumok.data.images.picture import BadPicture
from jumok.data.images.raw import Pixels, RawImage
from jumok.data.images.sources import ImageSource
from jumok.errors import BadInput
from jumok.inspect.image_mistakes import Mistake, Mistakes, kept_pixels
from jumok.tasks.image_classifier import ROWS, ImageClassifier
from jumok.tasks.label_scores import LabelScores, label_scores, losses

SHOWN = 5  # images that cannot be read, named


@dataclass(frozen=True)
class JudgedImages:
    scores: LabelScores
    names: tuple[str, ...]  # of the images that were judged, in their order
    gold: tuple[str, ...]
    probabilities: npt.NDArray[np.float64]  # (N, L)
    mistakes: Mistakes
    broken: tuple[str, ...]  # why images could not be read

    def notes(self) -> tuple[str, ...]:
        """What was left out, in a sentence."""
        count = len(self.broken)
        if not count:
            return ()
        more = f"; and {count - SHOWN} more" if count > SHOWN else ""
        are = f"image{'s' * (count > 1)} cannot be read and {'are' if count > 1 else 'is'} left out"
        return (f"{count} {are}: {'; '.join(self.broken[:SHOWN])}{more}",)


def judge_images(model: ImageClassifier, source: ImageSource, sheet: int = 0, page: int = 0) -> JudgedImages:
    """All images of a source against what the model says; of the mistakes `sheet` and `page` are kept to be shown."""
    check_classes(model, source)
    names: list[str] = []
    gold: list[str] = []
    broken: list[str] = []
    parts = [np.zeros((0, model.classes.size))]
    mistakes = Mistakes(sheet, page)
    for images, pixels in _batches(model, source, broken):
        found = model.probabilities(np.ascontiguousarray(np.stack(pixels).transpose(0, 3, 1, 2)))
        for mistake in _mistakes(model, images, pixels, found, len(names)):
            mistakes.add(mistake)
        names += [image.name for image in images]
        gold += [str(image.label) for image in images]
        parts.append(found)
    if not names:
        said = f", and the first of {len(broken)} that cannot be read is: {broken[0]}" if broken else ""
        raise BadInput(f"there are no images to judge{said}")
    probabilities = np.concatenate(parts)
    scores = label_scores(gold, probabilities, model.labels)
    return JudgedImages(scores, tuple(names), tuple(gold), probabilities, mistakes, tuple(broken))


def check_classes(model: ImageClassifier, source: ImageSource) -> None:
    """Refuse an image whose class is not told, or was never learned. Files are only read for it, which is soon done;
    decoding and looking at them is the long work."""
    known: set[str] = set()
    for image in source:
        if image.label is None:
            raise BadInput(
                f"{image.name}: it is not said of which class it is, so what the model says cannot be judged. Put the "
                "images of each class into a folder of its name, or name a CSV file with paths and labels"
            )
        if image.label not in known:
            model.classes.index(image.label, image.name)
            known.add(image.label)


def _batches(
    model: ImageClassifier, source: ImageSource, broken: list[str]
) -> Iterator[tuple[list[RawImage], list[Pixels]]]:
    """As many images as the model looks at together; those that cannot be read are told to `broken`."""
    images: list[RawImage] = []
    pixels: list[Pixels] = []
    for image, made in model.prepared(source):
        if isinstance(made, BadPicture):
            broken.append(str(made))
            continue
        images.append(RawImage(image.name, image.label, b""))  # the file's bytes are done with
        pixels.append(made)
        if len(images) == ROWS:
            yield images, pixels
            images, pixels = [], []
    if images:
        yield images, pixels


def _mistakes(
    model: ImageClassifier,
    images: list[RawImage],
    pixels: list[Pixels],
    probabilities_NL: npt.NDArray[np.float64],
    before: int,
) -> Iterator[Mistake]:
    places = {label: number for number, label in enumerate(model.labels)}
    gold = np.array([places[str(image.label)] for image in images])
    said, loss = probabilities_NL.argmax(axis=1), losses(gold, probabilities_NL)
    for row in np.flatnonzero(said != gold):
        yield Mistake(
            before + int(row) + 1,
            images[row].name,
            model.labels[gold[row]],
            model.labels[said[row]],
            float(probabilities_NL[row, said[row]]),
            float(loss[row]),
            kept_pixels(pixels[row]),
        )
