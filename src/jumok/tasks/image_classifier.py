"""What was learned about images, used: classes with their probabilities."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from PIL.Image import Image as Picture

from jumok.data.images.picture import BadPicture, Fit, fit, pixels_of
from jumok.data.images.raw import Pixels, RawImage
from jumok.data.images.sources import open_images
from jumok.data.images.store import decoded
from jumok.errors import BadInput
from jumok.models.vit import ImageLabeller
from jumok.tasks.classifier import Said
from jumok.tasks.labelling import Classes

ROWS = 256  # images looked at together
Image = str | Path | Pixels


class ImageClassifier:
    """Says of which class images are."""

    def __init__(self, model: ImageLabeller, classes: Classes, resize: Fit, device: torch.device) -> None:
        self.model, self.classes, self.resize, self.device = model, classes, resize, device

    @property
    def labels(self) -> tuple[str, ...]:
        return self.classes.names

    def prepared(self, source: Iterable[RawImage]) -> Iterator[tuple[RawImage, Pixels | BadPicture]]:
        """Images as the model looks at them, (H, W, C), or why one cannot be."""
        section = self.model.section
        return decoded(source, section.image, section.channels, self.resize)

    def pixels(self, images: Sequence[Image]) -> Pixels:
        """(N, C, H, W) of files, or of what is decoded already, (H, W) or (H, W, C)."""
        found = []
        for number, image in enumerate(images):
            if isinstance(image, str | Path):
                made = [pixels for _, pixels in self.prepared(islice(open_images([image]), 2))]
                if len(made) != 1:
                    raise BadInput(f"{image}: name images one by one, this is a folder or holds several")
                if isinstance(made[0], BadPicture):
                    raise made[0]
                found.append(made[0])
                continue
            if isinstance(image, Picture):
                raise BadInput(f"image {number + 1}: give the file, or numpy.asarray(image.convert('RGB'))")
            array = np.asarray(image)
            if (
                array.dtype != np.uint8
                or array.ndim not in (2, 3)
                or (array.ndim == 3 and array.shape[2] not in (1, 3))
            ):
                raise BadInput(f"image {number + 1}: give bytes (uint8) of the shape (H, W), (H, W, 1) or (H, W, 3)")
            raw = RawImage(f"image {number + 1}", None, array if array.ndim == 3 else array[:, :, None])
            found.append(fit(pixels_of(raw, self.model.section.channels), self.model.section.image, self.resize))
        return np.ascontiguousarray(np.stack(found).transpose(0, 3, 1, 2)) if found else self._none()

    def _none(self) -> Pixels:
        return np.zeros((0, self.model.section.channels, *self.model.section.image), np.uint8)

    @torch.inference_mode()
    def scores(self, images: Pixels) -> npt.NDArray[np.float32]:
        """(N, L) of (N, C, H, W), before the softmax."""
        self.model.eval()
        found = [np.zeros((0, self.classes.size), np.float32)]
        for start in range(0, len(images), ROWS):
            part = torch.from_numpy(np.array(images[start : start + ROWS])).to(self.device)
            found.append(self.model(part).float().cpu().numpy())
        return np.concatenate(found)

    def probabilities(self, images: Pixels) -> npt.NDArray[np.float64]:
        """(N, L) for the classes in their order."""
        return torch.softmax(torch.from_numpy(self.scores(images)).double(), dim=-1).numpy()

    def predict(self, images: Sequence[Image]) -> list[Said]:
        """The likeliest class of each image: files, or arrays (H, W, C) of bytes."""
        names = self.labels
        return [
            Said(names[int(row.argmax())], float(row.max()), dict(zip(names, row.tolist(), strict=True)))
            for row in self.probabilities(self.pixels(images))
        ]
