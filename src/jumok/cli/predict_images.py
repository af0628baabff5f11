"""`jumok predict` for images: files, folders, patterns, or paths from a pipe; a broken one is told and passed over."""

from __future__ import annotations

import csv
import io
import json
import os
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
    from jumok.cli.predict_notes import Animated
    from jumok.data.images.picture import BadPicture
    from jumok.inspect.healthy import require_numbers
    from jumok.streaming import open_output

    if as_json and as_csv:
        raise BadInput("give --json or --csv, not both")
    model = api.load(run, device)
    require_numbers(model.model)
    best = min(best, len(model.labels))
    broken: list[str] = []
    animated = Animated()
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

        for image, made in model.prepared(animated.seen(_images(paths, broken))):
            if isinstance(made, BadPicture):
                _tell_broken(made, broken)
                continue
            names.append(image.name)
            pictures.append(made)
            if len(pictures) == AT_ONCE:
                tell()
        tell()
    animated.tell()
    if broken:
        raise BadInput(f"{len(broken)} input{'s' * (len(broken) > 1)} could not be read (named above)")


def _images(paths: Sequence[str], broken: list[str]) -> Iterator[RawImage]:
    """What is named on the command line, or by the lines of a pipe. What cannot be read is told, and the rest goes
    on: an error here would take with it the images that are being decoded."""
    from jumok.recipe.reading import matching

    if paths:
        for path in paths:
            try:
                found = matching(path, folders=True)
            except BadInput as error:
                _tell_broken(error, broken)
                continue
            for one in found:
                yield from _readable(Path(one), broken)
        return
    if sys.stdin.isatty():
        raise BadInput("name images, a folder or a pattern; or pipe paths in, one a line")
    for line in sys.stdin:
        if "\0" in line:
            raise BadInput("what comes from the pipe is no text: pipe the paths of images in, one a line")
        if path := line.rstrip("\r\n"):
            yield from _readable(Path(path), broken)


def _readable(path: Path, broken: list[str]) -> Iterator[RawImage]:
    """The images of a path up to where it cannot be read; of a folder also those after it, one by one."""
    from jumok.data.images.folders import stamp_of
    from jumok.data.images.raw import shown
    from jumok.data.images.sources import open_images

    read, before = set(), len(broken)
    try:
        if os.path.islink(path):
            stamp_of(path)  # one that leads nowhere is told as that, not as a misspelt name
        for image in open_images([path]):
            read.add(Path(image.name))
            yield image
    except BadInput as error:
        files = _below(path)
        for file in files:
            if Path(shown(file)) not in read:
                yield from _readable(file, broken)
        # else the file that it was is named; or it was for its folders (one is empty, say), which are no classes here
        if len(broken) == before and (read or not files):
            _tell_broken(error, broken)


def _below(path: Path) -> list[Path]:
    """The pictures of a folder, to be tried one by one."""
    try:
        return list(pictures_in(path)) if os.path.isdir(path) else []
    except OSError:
        return []


def pictures_in(folder: Path, above: frozenset[Path] = frozenset()) -> Iterator[Path]:
    """The pictures below a folder, by their names, as `open_images` finds them: none that is hidden, and through links
    but not back up."""
    from jumok.data.images.folders import is_hidden
    from jumok.data.images.raw import is_image_name

    itself = folder.resolve()
    if itself in above:
        return
    for entry in sorted(folder.iterdir()):
        if is_hidden(entry.name):
            continue
        if entry.is_dir():
            yield from pictures_in(entry, above | {itself})
        elif is_image_name(entry.name):
            yield entry


def _tell_broken(error: BadInput, broken: list[str]) -> None:
    from jumok.data.images.raw import shown

    broken.append(str(error))
    typer.echo(f"error: {shown(str(error))}", err=True)  # a name may hold what steers a terminal


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
