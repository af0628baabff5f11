"""Images decoded once, all of one size, read through a memory map.

    images.u8     (N, C, H, W), bytes
    labels.i32    (N,), which of the names in meta.json
    names.json    where each image comes from: for messages

Decoding takes longer than learning from what was decoded, so it is done once, by several threads, into the cache.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import numpy as np
import numpy.typing as npt
import torch

from jumok.data.folders import META, clear_abandoned, default_cache, make_whole
from jumok.data.images.batch import ImageBatch
from jumok.data.images.csv_list import KEY
from jumok.data.images.picture import BadPicture, Fit, fit, pixels_of
from jumok.data.images.raw import Pixels, RawImage
from jumok.data.images.sources import ImageSource
from jumok.data.stored import Stored
from jumok.errors import BadInput

Say = Callable[[str], None]
FORMAT = 3
IMAGES, LABELS, NAMES, BROKEN = "images.u8", "labels.i32", "names.json", "broken.txt"
SHOWN = 5  # broken images that are named at once; all of them are in a file
AHEAD = 16  # images of each thread that are read before they are decoded


class ImageStore(Stored):
    formats: ClassVar[tuple[int, ...]] = (FORMAT,)

    def __init__(self, folder: Path, meta: dict[str, Any]) -> None:
        super().__init__(folder, meta)
        self.classes: tuple[str, ...] = tuple(meta["classes"])
        self.images: Pixels = self.map(IMAGES, np.uint8).reshape(-1, *meta["shape"])
        self.labels = self.map(LABELS, np.int32)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def content(self) -> str:
        """Equal for equal images with equal classes, wherever they come from."""
        return str(self.meta["content"])

    @cached_property
    def names(self) -> list[str]:
        found: list[str] = json.loads((self.folder / NAMES).read_text(encoding="utf-8"))
        return found

    def batch(self, indices: npt.NDArray[np.int64], labels: npt.NDArray[np.int64], corpus: int = 0) -> ImageBatch:
        """Images by their numbers; `labels` are all of the corpus, as the task counts them."""
        images = torch.from_numpy(np.ascontiguousarray(self.images[indices]))
        return ImageBatch(images, torch.from_numpy(labels[indices]), tuple(indices.tolist()), corpus)

    @property
    def lost(self) -> list[str]:
        """Classes of which no image can be read."""
        return list(self.meta["lost"])

    def notes(self) -> list[str]:
        broken, named = self.meta["broken"], self.meta["named"]
        if not broken:
            return []
        more = f"; and {broken - len(named)} more, all in {self.folder / BROKEN}" if broken > len(named) else ""
        return [f"{broken} image{'s' * (broken > 1)} cannot be read and {'are' if broken > 1 else 'is'} left out: "
                + "; ".join(named) + more]  # fmt: skip


def open_store(
    source: ImageSource, size: tuple[int, int], channels: int, how: Fit, say: Say, cache: Path | None = None
) -> ImageStore:
    """The images of a source, decoded now unless they are in the cache."""
    about = json.dumps([FORMAT, source.key, size, channels, how])
    folder = (cache or default_cache()) / f"images-{hashlib.sha256(about.encode()).hexdigest()[:32]}"

    def make() -> None:
        clear_abandoned(folder.parent)
        make_whole(folder, (IMAGES, LABELS, NAMES, BROKEN), lambda files: _write(files, source, size, channels, how))

    known = (folder / META).exists()
    store = ImageStore.open_or_make(folder, make, say)
    for note in store.notes() if known else ():  # what is left out is left out of every run
        say(note)
    return store


def _write(
    files: Mapping[str, BinaryIO], source: ImageSource, size: tuple[int, int], channels: int, how: Fit
) -> dict[str, Any]:
    classes: dict[str, int] = {}
    labels: list[int] = []
    digest = hashlib.sha256(json.dumps([channels, size]).encode())
    names: list[str] = []
    broken: list[str] = []
    labelled: set[str] = set()
    for image, pixels in decoded(source, size, channels, how):
        labelled.add(image.label or "")
        if isinstance(pixels, BadPicture):
            broken.append(str(pixels))
            continue
        if image.label is None:
            raise BadInput(
                f"{image.name}: it is not said of which class it is. Put the images of each class into a folder of its "
                f"name, or name a CSV file with paths and labels ({KEY}.label names the column)"
            )
        data = np.ascontiguousarray(pixels.transpose(2, 0, 1)).tobytes()
        files[IMAGES].write(data)
        digest.update(data + image.label.encode() + b"\0")
        labels.append(classes.setdefault(image.label, len(classes)))
        names.append(image.name)
    if not labels:
        said = f", and the first of {len(broken)} that cannot be read is: {broken[0]}" if broken else ""
        raise BadInput(f"there are no images to learn from{said}")
    files[LABELS].write(np.array(labels, np.int32).tobytes())
    files[NAMES].write(json.dumps(names, ensure_ascii=False).encode("utf-8"))
    files[BROKEN].write("".join(f"{why}\n" for why in broken).encode("utf-8", "backslashreplace"))
    shape = (channels, *size)
    about = {"classes": list(classes), "broken": len(broken), "named": broken[:SHOWN]}
    about["lost"] = sorted(labelled.difference(classes, [""]))
    return {"format": FORMAT, "content": digest.hexdigest()[:32], "shape": shape, **about}


def decoded(
    source: Iterable[RawImage], size: tuple[int, int], channels: int, how: Fit
) -> Iterator[tuple[RawImage, Pixels | BadPicture]]:
    """All images of a source in their order, decoded by as many threads as there are cores."""
    threads = max(1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)

    def one(image: RawImage) -> Pixels | BadPicture:
        try:
            return fit(pixels_of(image, channels), size, how)
        except BadPicture as error:
            return error

    waiting: deque[tuple[RawImage, Future[Pixels | BadPicture]]] = deque()
    with ThreadPoolExecutor(threads, "decode") as pool:
        for image in source:
            waiting.append((image, pool.submit(one, image)))
            if len(waiting) > AHEAD * threads:
                first, future = waiting.popleft()
                yield first, future.result()
        while waiting:
            first, future = waiting.popleft()
            yield first, future.result()
