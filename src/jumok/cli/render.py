"""`jumok render`: pictures of words as a model learns from them, on a sheet or as a data set."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

import typer

if TYPE_CHECKING:
    from jumok.data.images.raw import Pixels
    from jumok.data.rendering.rendered import Split
    from jumok.recipe import Recipe


def render(
    recipe: str = typer.Argument("permuted", help="A recipe of task recognition: its name or a file."),
    overrides: list[str] = typer.Argument(
        None, metavar="[KEY=VALUE]...", help="Keys of the recipe, e.g. render.blur=0."
    ),
    out: Path = typer.Option(
        ..., "--out", help="sheet.png: a sheet to look at; a new folder: a data set; NAME.lmdb: the same as LMDB."
    ),
    count: int = typer.Option(60, "--count", min=1, max=100_000_000, help="How many words."),
    split: str = typer.Option(
        "train", "--split", help="train, valid or test: words and fonts of training are in no other."
    ),
    seed: int = typer.Option(1, "--seed", min=0, help="Other words, in other shapes."),
    dark: bool = typer.Option(False, "--dark", help="A dark sheet."),
) -> None:
    """Render words as a recipe does it: a sheet to look at, or a data set with its labels file."""
    from jumok import recipe as recipes
    from jumok.data.images.raw import SUFFIXES
    from jumok.errors import BadInput
    from jumok.files import check_file_place, check_folder_place

    if split not in ("train", "valid", "test"):
        raise BadInput(f"--split {split}: train, valid or test")
    part = cast("Split", split)
    described = recipes.read(recipe, overrides or [])
    if described.task != "recognition":
        raise BadInput(
            f"{recipe} has the task {described.task}: give a recipe of task recognition, for example permuted"
        )
    if out.suffix.lower() in {*SUFFIXES, ".svg", ".pdf", ".html", ".zip", ".tar"} - {".png"}:
        raise BadInput(f"--out {out}: a sheet is a .png file; a data set a folder, or NAME.lmdb")
    if out.suffix.lower() == ".png":
        from jumok.inspect.rendered_sheet import write_rendered_sheet

        if count > 600:
            raise BadInput(f"--count {count}: a sheet shows up to 600; give a folder to write them all")
        check_file_place(out)
        write_rendered_sheet(out, list(_pictures(described, part, count, seed)), dark)
    else:
        from jumok.data.text_images.writing import write_lmdb, write_text_images

        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise BadInput(f"{out} is there already: name a new folder")
        check_folder_place(out)  # before fonts are looked for
        write = write_lmdb if out.suffix.lower() == ".lmdb" else write_text_images
        write(out, _pictures(described, part, count, seed))
    typer.echo(f"{count:,} word{'s' * (count > 1)}: {out}")


def _pictures(recipe: Recipe, split: Split, count: int, seed: int) -> Iterator[tuple[Pixels, str]]:
    from jumok.data.rendering.pictures import rendered, with_texts
    from jumok.text.charset import Charset

    charset = Charset.of(recipe.charset)
    return with_texts(rendered(recipe, charset, split, count, seed, lambda text: typer.echo(text, err=True)), charset)
