"""`jumok predict` for images: files, folders, patterns, or paths from a pipe; a broken one is told and passed over."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from jumok.errors import BadInput

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from jumok.data.images.sources import RawImage

AT_ONCE = 256  # images


def predict_images(run: Path, paths: Sequence[str], best: int, as_json: bool, as_csv: bool, device: str) -> None:
    """A line for each image: its path, and its likeliest classes with their probabilities."""
    import numpy as np

    from jumok import api
    from jumok.data.images.picture import BadPicture
    from jumok.inspect.healthy import require_numbers
    from jumok.streaming import open_output

    if as_json and as_csv:
        raise BadInput("give --json or --csv, not both")
    model = api.load(run, device)
    require_numbers(model.model)
    best = min(best, len(model.labels))
    broken: list[str] = []
    with open_output(None) as output:
        if as_csv:
            ranks = range(1, best + 1)
            output.write([_row(["image", *(name for n in ranks for name in (f"label_{n}", f"probability_{n}"))])])
        names: list[str] = []
        pictures: list[npt.NDArray[np.uint8]] = []

        def tell() -> None:
            if pictures:
                images = np.ascontiguousarray(np.stack(pictures).transpose(0, 3, 1, 2))
                output.write(_told(names, model.probabilities(images), model.labels, best, as_json, as_csv))
                names.clear()
                pictures.clear()

        for image, made in model.prepared(_images(paths, broken)):
            if isinstance(made, BadPicture):
                broken.append(str(made))
                typer.echo(f"error: {made}", err=True)
                continue
            names.append(image.name)
            pictures.append(made)
            if len(pictures) == AT_ONCE:
                tell()
        tell()
    if broken:
        raise BadInput(f"{len(broken)} image{'s' * (len(broken) > 1)} could not be read (named above)")


def _images(paths: Sequence[str], broken: list[str]) -> Iterator[RawImage]:
    """What is named on the command line, or by the lines of a pipe. A path from a pipe that leads nowhere is told, and
    the rest goes on."""
    from jumok.data.images.sources import open_images
    from jumok.recipe.reading import matching

    if paths:
        for path in paths:
            yield from open_images(matching(path, folders=True))
        return
    if sys.stdin.isatty():
        raise BadInput("name images, a folder or a pattern; or pipe paths in, one a line")
    for line in sys.stdin:
        if path := line.rstrip("\r\n"):
            try:
                yield from open_images([path])
            except BadInput as error:
                broken.append(str(error))
                typer.echo(f"error: {error}", err=True)


def _told(
    names: Sequence[str],
    probabilities: npt.NDArray[np.float64],
    labels: Sequence[str],
    best: int,
    as_json: bool,
    as_csv: bool,
) -> list[str]:
    told = []
    for name, row in zip(names, probabilities, strict=True):
        ranked = [(labels[index], float(row[index])) for index in (-row).argsort(kind="stable")[:best]]
        if as_json:
            about = {"image": name, "label": ranked[0][0], "probabilities": dict(ranked)}
            told.append(json.dumps(about, ensure_ascii=False))
        else:
            cells = [name, *(cell for label, share in ranked for cell in (label, f"{share:.4f}"))]
            told.append(_row(cells) if as_csv else "\t".join(cells))
    return told


def _row(cells: Sequence[str]) -> str:
    file = io.StringIO()
    csv.writer(file, lineterminator="").writerow(cells)
    return file.getvalue()
