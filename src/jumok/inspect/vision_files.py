"""What `jumok look` writes: maps over images, or what is known of the model beyond them; the ending of the file decides
how: .png, .svg, .html (of maps: about one image) or .json."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from jumok.errors import BadInput, did_you_mean
from jumok.files import disk_errors_named, replace_file
from jumok.inspect.attention import Weights
from jumok.inspect.pictures import check_picture_path
from jumok.inspect.vision import (
    Map,
    attention_maps,
    check_place,
    check_view,
    from_name,
    last_layer,
    predictions,
    read_place,
    rollout_maps,
)
from jumok.models.vit import ImageLabeller, Looker

if TYPE_CHECKING:
    from jumok.inspect.drawing import Format
    from jumok.inspect.vision_distance import Distances
    from jumok.inspect.vision_weights import Filters

KINDS = ("attention", "rollout", "gradient")
WHATS = ("filters", "positions", "distance")
FILES = (".png", ".svg", ".html", ".json")
MOST_IMAGES = 40  # of one file, as many as `draw_maps` takes (not imported from there: numbers need no matplotlib)


@dataclass(frozen=True)
class Asked:
    """Which maps; what is None is chosen: attention of the last layer, of all heads, from what stands for the image."""

    kind: str | None = None
    layer: int | None = None
    head: int | None = None
    start: str | None = None  # a patch as it is typed, or "class"
    label: str | None = None

    def check(self, path: Path) -> None:
        """Refuse what cannot be drawn, before any work is done for it."""
        check_picture_path(path, FILES)
        if self.kind is not None and self.kind not in KINDS:
            raise BadInput(f"--kind {self.kind}: there is no such kind of map.{did_you_mean(self.kind, KINDS)}")
        kind, is_page = self.kind or "attention", path.suffix.lower() == ".html"
        if is_page and self.kind is not None:
            raise BadInput(f"--kind {kind}: a page ({path}) shows all kinds. Leave it out, or draw a .png or .svg")
        for option, value in (("--layer", self.layer), ("--head", self.head)):
            if value is not None and kind != "attention":
                raise BadInput(
                    f"{option} {value}: --kind {kind} goes through all layers and heads. Leave one of them out"
                )
        if self.start is not None and kind == "gradient":
            raise BadInput("--from: --kind gradient asks what a label's score hangs on, which is of the whole image")
        if self.label is not None and kind != "gradient" and not is_page:
            raise BadInput(f"--label {self.label}: only --kind gradient asks about a label, and so does a page (.html)")


def write_maps(
    model: ImageLabeller,
    images_BCHW: Tensor,
    names: Sequence[str],
    labels: Sequence[str],
    asked: Asked,
    path: Path,
    dark: bool = False,
) -> str:
    """Draw maps over images into a file; what was drawn, in words."""
    asked.check(path)
    check_count(len(names), path)
    grid = check_place(model, images_BCHW, None)
    place = None if asked.start is None else read_place(asked.start, grid)
    label = None if asked.label is None else label_number(asked.label, labels)
    check_view(model, last_layer(model) if asked.layer is None else asked.layer, asked.head)
    chances = predictions(model, images_BCHW)
    said = [_told(row, labels, label) for row in chances]
    content: str | bytes
    if path.suffix.lower() == ".html":
        from jumok.inspect.vision_page import page

        content = page(
            model,
            images_BCHW[0],
            Path(names[0]).name,
            labels,
            layer=asked.layer,
            head=asked.head,
            place=place,
            label=label,
        )
        heading = "all kinds of maps"
    else:
        maps, heading = _maps(model, images_BCHW, labels, asked, place, label, grid)
        if path.suffix.lower() == ".json":
            facts = [
                {"name": name, "label": labels[int(row.argmax())], "probability": round(float(row.max()), 6)}
                for name, row in zip(names, chances, strict=True)
            ]
            content = maps_as_json(facts, maps, heading)
        else:
            legend = "attention"
            if asked.kind == "gradient":
                legend = "relevance"
                shares = [float(row.max() if label is None else row[label]) for row in chances]
                maps = [
                    [replace(one, name=f"{one.name} ({100 * share:.0f} %)") for one in found]
                    for found, share in zip(maps, shares, strict=True)
                ]
            drawn = [_told(row, labels) for row in chances]
            content = drawn_maps(images_BCHW, names, drawn, maps, heading, path, legend, dark)
    return write_told(path, content, names, said, heading)


def drawn_maps(
    images_BCHW: Tensor,
    names: Sequence[str],
    said: Sequence[str],
    maps: Sequence[Sequence[Map]],
    heading: str,
    path: Path,
    legend: str = "attention",
    dark: bool = False,
) -> bytes:
    from jumok.inspect.vision_picture import Shown, draw_maps

    rows = zip(images_BCHW.cpu().numpy(), names, maps, said, strict=True)
    shown = [Shown(image, Path(name).name, found, told) for image, name, found, told in rows]
    return draw_maps(shown, heading, _format(path), legend=legend, dark=dark)


def maps_as_json(facts: Sequence[dict[str, Any]], maps: Sequence[Sequence[Map]], heading: str) -> str:
    """`facts`: what is told of each image, beside its maps."""
    images = [{**about, "maps": [each.to_json() for each in found]} for about, found in zip(facts, maps, strict=True)]
    return _written({"about": heading, "images": images})


def write_told(path: Path, content: str | bytes, names: Sequence[str], said: Sequence[str], heading: str) -> str:
    _write(path, content)
    return "\n".join([*(f"{name}: {told}" for name, told in zip(names, said, strict=True)), f"{heading}: {path}"])


def check_count(images: int, path: Path) -> None:
    """Before any map is made: most of the time goes into them. Nobody reads more than one image too many, so how many
    there are is not known beyond that."""
    if path.suffix.lower() == ".html":
        if images != 1:
            count = str(images) if images <= MOST_IMAGES else f"more than {MOST_IMAGES}"
            raise BadInput(f"--out {path}: a page is about one image, and {count} are given. Give one, or draw a .png")
    elif images > MOST_IMAGES:
        raise BadInput(
            f"more than {MOST_IMAGES} images are too many for one picture. Name fewer, or have some of them chosen, "
            f"evenly: --most {MOST_IMAGES}"
        )


def _maps(
    model: ImageLabeller,
    images_BCHW: Tensor,
    labels: Sequence[str],
    asked: Asked,
    place: int | None,
    label: int | None,
    grid: tuple[int, int],
) -> tuple[list[list[Map]], str]:
    """For each image its maps; and what they are."""
    if asked.kind != "gradient":
        return looking_maps(model, images_BCHW, asked, place, grid)
    from jumok.inspect.vision_gradient import gradient_maps

    found = gradient_maps(model, images_BCHW, [label] * len(images_BCHW), labels)
    return [[one] for one in found], "gradient-weighted attention of all layers"


def looking_maps(
    model: Looker, images_BCHW: Tensor, asked: Asked, place: int | None, grid: tuple[int, int]
) -> tuple[list[list[Map]], str]:
    """The same of what needs no label: attention of a layer, or followed through all."""
    start = f"from {'the ' * (place is None)}{from_name(model, place, grid)}"
    if asked.kind == "rollout":
        return [[one] for one in rollout_maps(model, images_BCHW, place)], f"rollout of all layers, {start}"
    layer = last_layer(model) if asked.layer is None else asked.layer
    heads = None if asked.head is None else [asked.head]
    return attention_maps(model, images_BCHW, layer, heads, place), f"attention of layer {layer}, {start}"


def label_number(label: str, labels: Sequence[str]) -> int:
    if label not in labels:
        raise BadInput(f"--label {label}: the model knows no such label.{did_you_mean(label, labels)}")
    return list(labels).index(label)


def _told(chances: Weights, labels: Sequence[str], asked: int | None = None) -> str:
    """What the model says; and of a label that was asked for and is another one, its share."""
    best = int(chances.argmax())
    numbers = [best] if asked in (None, best) else [best, asked]
    return ", ".join(f"{labels[number]} {100 * chances[number]:.0f} %" for number in numbers)


# ---------------------------------------------------------------- beyond one image


def check_what(what: str, path: Path | None) -> None:
    if what not in WHATS:
        raise BadInput(f"--what {what}: there is nothing of that name to show.{did_you_mean(what, WHATS)}")
    if path is not None:
        check_picture_path(path, FILES)
    elif what != "distance":
        raise BadInput(f"--what {what} is drawn into a file: --out {what}.png (or .svg, .html, .json)")


def write_filters(model: Looker, path: Path, network: Filters | None = None, dark: bool = False, name: str = "") -> str:
    """The first layer's filters, beside those of a CNN where there is one (`network_filters`). `name`: the run's, which
    a page has in its title."""
    from jumok.inspect.vision_plots import draw_filters
    from jumok.inspect.vision_weights import principal_filters

    groups = [principal_filters(model), *([network] if network is not None else [])]
    if path.suffix.lower() == ".json":
        _write(path, _written({"groups": [one.to_json() for one in groups]}))
    elif path.suffix.lower() == ".html":
        from jumok.inspect.vision_model_page import filters_page

        _write(path, filters_page(groups, name))
    else:
        _write(path, draw_filters(groups, _format(path), dark=dark))
    share = 100 * min(1.0, sum(groups[0].shares))
    return f"{len(groups[0].shares)} components of the {groups[0].name}, {share:.0f} % of its variance: {path}"


def write_positions(model: Looker, path: Path, dark: bool = False, name: str = "") -> str:
    from jumok.inspect.vision_plots import draw_positions
    from jumok.inspect.vision_weights import position_kind, position_similarity

    alike, kind = position_similarity(model), position_kind(model)
    if path.suffix.lower() == ".json":
        rows, columns = alike.shape[:2]
        pairs = np.round(alike.astype(np.float64).reshape(rows * columns, -1), 6).tolist()
        _write(path, _written({"kind": kind, "grid": [rows, columns], "cosine": pairs}))
    elif path.suffix.lower() == ".html":
        from jumok.inspect.vision_model_page import positions_page

        _write(path, positions_page(alike, kind, name))
    else:
        _write(path, draw_positions(alike, kind, _format(path), dark=dark))
    return f"{kind} positions of {alike.shape[0]}×{alike.shape[1]} patches: {path}"


def measure_distances(
    model: Looker, batches: Iterable[Tensor], path: Path | None, dark: bool = False, name: str = ""
) -> Distances:
    """Measured, and drawn where a file is named."""
    from jumok.inspect.vision_distance import attention_distances
    from jumok.inspect.vision_plots import draw_distances

    found = attention_distances(model, batches)
    if path is not None and path.suffix.lower() == ".json":
        _write(path, json.dumps(found.to_json(), ensure_ascii=False, indent=1) + "\n")
    elif path is not None and path.suffix.lower() == ".html":
        from jumok.inspect.vision_model_page import distances_page

        _write(path, distances_page(found, name))
    elif path is not None:
        _write(path, draw_distances(found, _format(path), dark=dark))
    return found


def _write(path: Path, content: str | bytes) -> None:
    with disk_errors_named("writing the picture", path, "Choose another --out."):
        replace_file(path, content)


def _written(content: dict[str, Any]) -> str:
    return json.dumps({"format": 1, **content}, ensure_ascii=False, allow_nan=False) + "\n"


def _format(path: Path) -> Format:
    return "png" if path.suffix.lower() == ".png" else "svg"
