"""`jumok attend` for runs that read words in pictures: where each character looked, and how far it drifts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from jumok.cli.typed import options_as_typed
from jumok.errors import BadInput

if TYPE_CHECKING:
    from jumok.trained import TrainedTextReader


def attend_pictures(
    run: Path,
    pictures: Sequence[str | Path],
    out: Path | None = None,
    layer: int | None = None,
    head: int | None = None,
    dark: bool = False,
    device: str = "auto",
    drift: int | None = None,
    seed: int = 1,
    as_json: bool = False,
) -> None:
    """Pictures to a film, a sheet or numbers; or with `drift` the drift over so many rendered words."""
    if drift is not None:
        _drift(run, pictures, out, layer, head, device, drift, seed, as_json)
        return
    from jumok.data.images.sources import open_images
    from jumok.inspect.attention import visible
    from jumok.inspect.pictures import check_picture_path
    from jumok.inspect.reading_attention import frames_of
    from jumok.inspect.reading_files import KINDS, show, to_json, write_frames

    if not pictures:
        raise BadInput("name a picture of a word, or --drift 500 to measure the drift over rendered words")
    if out is not None:
        check_picture_path(out, KINDS)
        if dark and out.suffix.lower() in (".html", ".json"):
            raise BadInput(f"--dark is for pictures: a page ({out}) is dark where its reader's screen is")
    reader = _load(run, device)
    with options_as_typed("layer", "head"):
        found = frames_of(reader, iter(open_images(list(pictures))), layer, head)
    if as_json:
        typer.echo(to_json(found), nl=False)
    elif out is None:
        show(found)
    if out is not None:
        write_frames(found, out, dark)
        if not as_json:
            told = [f"{one.name}: {visible(one.text) or '(nothing)'}" for one in found]
            typer.echo("\n".join([*told, f"written: {out}"]))


def _drift(
    run: Path,
    pictures: Sequence[str | Path],
    out: Path | None,
    layer: int | None,
    head: int | None,
    device: str,
    count: int,
    seed: int,
    as_json: bool,
) -> None:
    from jumok.files import disk_errors_named, replace_file
    from jumok.inspect.pictures import check_picture_path
    from jumok.inspect.rendered_drift import drift_on_rendered

    if pictures:
        raise BadInput("--drift renders its own words, whose letters' places are known: leave the pictures out")
    if count < 1:
        raise BadInput(f"--drift {count}: how many words to render, 1 at least")
    if out is not None:
        check_picture_path(out, (".json",))
    reader = _load(run, device)
    with options_as_typed("layer", "head"):
        found = drift_on_rendered(
            reader.model,
            reader.recipe,
            count,
            seed,
            layer=layer,
            head=head,
            say=lambda text: typer.echo(text, err=True),
        )
    content = json.dumps(found.to_json(), ensure_ascii=False, allow_nan=False, indent=1) + "\n"
    typer.echo(content if as_json else found.summary(), nl=False)
    if out is not None:
        with disk_errors_named("writing the numbers", out, "Choose another --out."):
            replace_file(out, content)
        if not as_json:
            typer.echo(f"written: {out}")


def _load(run: Path, device: str) -> TrainedTextReader:
    from jumok import api
    from jumok.trained import TrainedTextReader

    reader = api.load(run, device)
    if not isinstance(reader, TrainedTextReader):
        raise BadInput(f"{run} has learned {reader.recipe.task}: pictures of words are for a run of task: recognition")
    return reader
