"""`jumok look`: where an image model looks, and what its weights show."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from jumok.cli.typed import require_text
from jumok.errors import BadInput

if TYPE_CHECKING:
    from torch import Tensor

    from jumok.data.images.raw import RawImage
    from jumok.inspect.vision_weights import Filters
    from jumok.models.vit import Looker
    from jumok.trained import TrainedImageClassifier, TrainedTextReader

MOST = 256  # images that distances are measured on, by itself: enough for the means if all classes are among them
LEARNED_FROM = 5000  # images that a small CNN learns its filters from, by itself
TOGETHER = 64


def look(
    images: list[Path] = typer.Argument(None, metavar="IMAGE…", help="Image files to look at."),
    run: Path = typer.Option(
        ..., "--run", help="A run folder of a model that was trained on images, or on pictures of words."
    ),
    out: Path | None = typer.Option(
        None, "--out", help="Draw here: .png, .svg, .json, or .html (a page of one image, or of --what)."
    ),
    layer: int | None = typer.Option(None, "--layer", help="Attention: counted from 0. (default: the last)"),
    head: int | None = typer.Option(None, "--head", help="Attention: counted from 0. (default: all, and their mean)"),
    start: str | None = typer.Option(
        None,
        "--from",
        metavar="PATCH|class",
        help="From a patch, by its number or as row,column, or from the class token; where there is none, from what "
        "the model pools. (default: class)",
    ),
    kind: str | None = typer.Option(
        None,
        "--kind",
        help="attention (default): of one layer; rollout: followed through all layers; gradient: what a label's score "
        "hangs on.",
    ),
    label: str | None = typer.Option(None, "--label", help="Gradient: of which label. (default: what the model says)"),
    what: str | None = typer.Option(
        None,
        "--what",
        help="Instead of maps: filters (of the first layer), positions (how alike), distance (how far heads look).",
    ),
    folder: Path | None = typer.Option(
        None,
        "--images",
        help="Distance: a folder of images to measure it on. Filters: images by class, from which a small CNN learns "
        "filters to stand beside the model's.",
    ),
    most: int | None = typer.Option(
        None,
        min=1,
        help=f"Look at so many images at most, evenly of all. (default: distance {MOST:,}, filters {LEARNED_FROM:,}, "
        "maps all)",
    ),
    dark: bool = typer.Option(False, "--dark", help="A dark picture (.png, .svg)."),
    as_json: bool = typer.Option(False, "--json", help="Distance: print JSON."),
    device: str = typer.Option("auto", help="auto, cpu, cuda or mps."),
) -> None:
    """Draw where an image model looks, or the encoder of a reader of words, laid over your images; or what its filters,
    positions and heads are like."""
    from itertools import islice

    from jumok.data.images.sources import open_images
    from jumok.inspect.vision_files import MOST_IMAGES, Asked, check_what, write_maps
    from jumok.inspect.vision_words import write_word_maps
    from jumok.tasks.text_reader import TextReader

    require_text(label=label, kind=kind, what=what, start=start)
    asked = Asked(kind, layer, head, start, label)
    if dark and out is not None and out.suffix.lower() in (".html", ".json"):
        raise BadInput(f"--dark is for pictures: a page ({out}) is dark where its reader's screen is")
    if what is not None:
        if asked != Asked():
            raise BadInput("--layer, --head, --from, --kind and --label are about maps over images, and --what is not")
        check_what(what, out)
        _show(what, images or [], folder, _load(run, device), out, most, dark, as_json)
        return
    if as_json or folder is not None:
        told = "--json goes with --what distance" if as_json else "--images goes with --what distance or filters"
        raise BadInput(f"{told}; maps are written to --out")
    if not images:
        raise BadInput("name an image to look at, or --what filters, positions or distance")
    if out is None:
        raise BadInput("maps are drawn into a file: --out look.png (or .svg, .html, .json)")
    asked.check(out)
    model = _load(run, device)
    found = open_images(images) if most is None else _spread(images, most)
    names, pixels, _ = next(_batches(model, islice(found, MOST_IMAGES + 1), whole=True))
    if isinstance(model, TextReader):
        typer.echo(write_word_maps(model, pixels, names, asked, out, dark))
    else:
        typer.echo(write_maps(model.model, pixels, names, model.classes.names, asked, out, dark))


def _show(
    what: str,
    images: Sequence[Path],
    folder: Path | None,
    model: TrainedImageClassifier | TrainedTextReader,
    out: Path | None,
    most: int | None,
    dark: bool,
    as_json: bool,
) -> None:
    from jumok.inspect.vision_files import measure_distances, write_filters, write_positions

    name = model.run.path.name
    if what == "distance":
        if not images and folder is None:
            raise BadInput("--what distance is measured on images: name some, or a folder of them with --images")
        paths = [*images, *([folder] if folder is not None else [])]
        batches = (batch for _, batch, _ in _batches(model, _spread(paths, most or MOST)))
        found = measure_distances(_looker(model), batches, out, dark, name)
        typer.echo(json.dumps(found.to_json(), indent=1) if as_json else found.summary(), nl=as_json)
        if out is not None and not as_json:
            typer.echo(f"written: {out}")
        return
    if images or as_json or (folder is not None and what != "filters"):
        raise BadInput(f"--what {what} is about the model alone: leave out the images, --images and --json")
    assert out is not None
    if what == "positions":
        typer.echo(write_positions(_looker(model), out, dark, name))
    else:
        network = None if folder is None else _network(model, folder, most or LEARNED_FROM)
        typer.echo(write_filters(_looker(model), out, network, dark, name))


def _network(model: TrainedImageClassifier | TrainedTextReader, folder: Path, most: int) -> Filters:
    """Filters of a small CNN that learns the images of a folder now."""
    import torch

    from jumok.data.images.sources import open_images
    from jumok.inspect.vision_network import Labelled, learned_filters
    from jumok.tasks.text_reader import TextReader

    if isinstance(model, TextReader):
        raise BadInput("--images: a CNN learns classes of images here, and this model reads words. Leave it out")
    made = list(_batches(model, _picked(open_images([folder]), most)))
    labels = [label for _, _, part in made for label in part]
    if not labels:
        raise BadInput(f"--images {folder}: there is no image in it that can be read")
    if None in labels:
        raise BadInput(f"--images {folder}: it is not told what these images show. Give a folder of folders, by class")
    numbers = {label: number for number, label in enumerate(sorted({str(label) for label in labels}))}
    images = torch.cat([pixels for _, pixels, _ in made])
    typer.echo(f"a small CNN learns {len(images):,} images of {len(numbers)} classes …", err=True)
    return learned_filters(_looker(model), Labelled(images, torch.tensor([numbers[str(label)] for label in labels])))


def _load(run: Path, device: str) -> TrainedImageClassifier | TrainedTextReader:
    from jumok import api
    from jumok.inspect.vision_words import word_looker
    from jumok.trained import TrainedImageClassifier, TrainedTextReader

    model = api.load(run, device)
    if isinstance(model, TrainedTextReader):
        word_looker(model.model)  # what has no attention is refused before any image is read
    elif not isinstance(model, TrainedImageClassifier):
        told = api.other_task(model.recipe.task, run)
        raise BadInput(f"to look at images, name a run of task: vision or recognition. {run} has learned {told}")
    return model


def _looker(model: TrainedImageClassifier | TrainedTextReader) -> Looker:
    from jumok.inspect.vision_words import word_looker
    from jumok.tasks.text_reader import TextReader

    return word_looker(model.model) if isinstance(model, TextReader) else model.model


def _spread(paths: Sequence[Path], most: int) -> Iterator[RawImage]:
    """So many images at most, from the first to the last: most folders and archives have one class after the other.
    Files of folders are counted before any is read. All else is read twice: once to be counted."""
    from jumok.cli.predict_images import pictures_in
    from jumok.data.images.raw import is_image_name
    from jumok.data.images.sources import open_images

    files: list[Path] = []
    for path in paths:
        first = next(iter(open_images([path])), None) if path.is_dir() else None
        is_of_files = first is not None and isinstance(first.data, bytes)  # and no set of MNIST's or CIFAR's kind
        files += pictures_in(path) if is_of_files else [path]
    if all(is_image_name(file.name) for file in files):
        yield from open_images([files[number] for number in _evenly(len(files), most)])
    else:
        yield from _picked(open_images(files), most)


def _picked(images: Iterable[RawImage], most: int) -> Iterator[RawImage]:
    """So many of them at most, evenly."""
    wanted = set(_evenly(sum(1 for _ in images), most))
    last = max(wanted, default=-1)
    for number, image in enumerate(images):
        if number in wanted:
            yield image
        if number == last:
            return


def _evenly(count: int, most: int) -> list[int]:
    """Numbers below `count`, one of each of `most` equal parts, always the same ones. Which one of a part is drawn:
    every tenth of images whose classes take turns could be of one class."""
    chance = random.Random(0)
    most = min(most, count)
    return [chance.randrange(part * count // most, (part + 1) * count // most) for part in range(most)]


def _batches(
    model: TrainedImageClassifier | TrainedTextReader, images: Iterable[RawImage], whole: bool = False
) -> Iterator[tuple[list[str], Tensor, list[str | None]]]:
    """Names, bytes (B, C, H, W) as the model sees them, and labels of images. What cannot be read is refused where the
    `whole` is asked for, else left out with a word."""
    import numpy as np
    import torch

    from jumok.data.images.picture import BadPicture
    from jumok.data.images.store import decoded
    from jumok.tasks.text_reader import TextReader

    def together(kept: Sequence[tuple[str, Any, str | None]]) -> tuple[list[str], Tensor, list[str | None]]:
        names, pixels, labels = zip(*kept, strict=True)
        return list(names), torch.from_numpy(np.stack(pixels)).permute(0, 3, 1, 2).contiguous(), list(labels)

    kept: list[tuple[str, Any, str | None]] = []
    if isinstance(model, TextReader):
        section = model.model.section
        prepared = decoded(images, section.image, section.channels, model.resize)
    else:
        prepared = model.prepared(images)
    for image, made in prepared:
        if isinstance(made, BadPicture):
            if whole:
                raise made
            typer.echo(f"left out: {made}", err=True)
            continue
        kept.append((image.name, made, image.label))
        if len(kept) == TOGETHER:
            yield together(kept)
            kept = []
    if kept:
        yield together(kept)
