"""`jumok data`: look at a corpus, fetch a public one, write the embedded ones to files."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jumok.errors import BadInput, Failure

if TYPE_CHECKING:
    from jumok.recipe import Corpus

app = typer.Typer(
    name="data", help="Check a corpus, fetch a public one, or write out the embedded one.", no_args_is_help=True
)


@app.command()
def check(
    files: Annotated[
        list[str], typer.Argument(help="Two parallel text files, or one TSV or JSONL (.gz, .xz, .zst too).")
    ],
    columns: Annotated[
        str, typer.Option(help="TSV or JSONL: where the two sides are, numbers from 0 or names, for example de,en.")
    ] = "0,1",
    limit: Annotated[int, typer.Option(min=0, help="Examples shown of each kind of trouble.")] = 3,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Count lines and words, draw the lengths, and list the pairs to look at, with line numbers."""
    from jumok.data.check import check_pairs
    from jumok.data.readers import first_line, read_pairs

    corpus = _corpus(files, columns)
    report = check_pairs(read_pairs(corpus), limit, first_line(corpus))
    if as_json:
        sys.stdout.write(json.dumps({"files": files, **report.to_json()}, ensure_ascii=True, indent=2) + "\n")
        return
    from jumok.cli.check_view import show

    show(report, files)


def _corpus(files: list[str], columns: str) -> Corpus:
    from jumok.recipe import Corpus

    names = [int(part) if part.strip().isdecimal() else part.strip() for part in columns.split(",")]
    if len(names) != 2:
        raise BadInput(f'--columns {columns}: two are needed, for example "0,1" or "translation.de,translation.en"')
    if len(files) == 1:
        return Corpus.model_validate({"file": files, "columns": names})
    if len(files) == 2:
        return Corpus.model_validate({"source": files[0], "target": files[1]})
    raise BadInput(f"{len(files)} files: give two parallel text files, or one TSV or JSONL file with both sides")


@app.command("list")
def list_datasets(as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False) -> None:
    """The public corpora that `jumok data get` knows, with their licences."""
    from rich.table import Table

    from jumok.cli.check_view import console
    from jumok.data.catalogue import datasets

    known = datasets()
    if as_json:
        rows = [
            {
                "name": dataset.name,
                "title": dataset.title,
                "licence": dataset.licence,
                "homepage": dataset.homepage,
                "lines": dataset.lines,
                "files": [vars(file) for file in dataset.remote_files()],
            }
            for dataset in known
        ]
        sys.stdout.write(json.dumps(rows, indent=2) + "\n")
        return
    table = Table("name", "pairs", "size", "licence", "what", box=None, pad_edge=False)
    for dataset in known:
        pairs = " + ".join(f"{count:,}" for count in dataset.lines.values())
        table.add_row(dataset.name, pairs, f"{dataset.size / 1e6:.1f} MB", dataset.licence, dataset.title)
    out = console()
    out.print(table)
    out.print("\nEither direction may be named (multi30k-de-en). Next: jumok data get " + known[0].name)


@app.command()
def get(
    name: Annotated[str, typer.Argument(help="A name from `jumok data list`; either direction of the languages.")],
    to: Annotated[Path | None, typer.Option(help="Folder to put the files in. (default: data/<set>)")] = None,
) -> None:
    """Fetch a public corpus, verified by SHA-256; what is there already is used again."""
    from jumok.data import catalogue

    dataset = catalogue.find(name)
    folder = to or Path("data") / dataset.folder
    typer.echo(f"{dataset.title}\nlicence: {dataset.licence}. {dataset.licence_note}\n")

    def report(file: str, size: int, reused: bool) -> None:
        typer.echo(f"{folder / file}  {size:,} bytes, {'was there' if reused else 'fetched'}, verified")

    paths = catalogue.get(dataset, folder, report)
    options = [
        f"--{side}{kind} {shlex.quote(str(path))}"
        for split, side in (("train", ""), ("valid", "valid-"))
        for kind, path in zip(("source", "target"), paths[split], strict=True)
    ]
    typer.echo("\nTrain on it:\n  jumok train lstm-luong " + " ".join(options) + f" --run runs/{dataset.name}")


@app.command()
def grammar(
    languages: Annotated[str, typer.Argument(help="en-fr, en-ko, or the other way round.")],
    out: Annotated[Path, typer.Option(help="Written: OUT.en, OUT.fr (the languages) and OUT.align.")],
    pairs: Annotated[int, typer.Option(min=1, help="How many.")] = 20_000,
    split: Annotated[str, typer.Option(help="train, valid or test; they never share a sentence.")] = "train",
    seed: Annotated[int, typer.Option(min=0, help="Another seed, other sentences.")] = 1,
    force: Annotated[bool, typer.Option(help="Write over files that are there.")] = False,
) -> None:
    """Write the embedded corpus to parallel files, with gold word alignments (Pharaoh format: 0-0 1-2 …)."""
    from jumok.data import grammar as embedded
    from jumok.data.readers import grammar_languages

    source, target = grammar_languages(languages)
    if split not in ("train", "valid", "test"):
        raise BadInput(f"--split {split}: choose train, valid or test")
    paths = [Path(f"{out}.{suffix}") for suffix in (source, target, "align")]
    there = [str(path) for path in paths if path.exists()]
    if there and not force:
        raise BadInput(f"{', '.join(there)}: already there. Name another --out, or add --force to write over")
    sentences = islice(embedded.pairs(source, target, split, pairs, seed), pairs)
    written = _write_columns(paths, ((pair.source, pair.target, pair.pharaoh()) for pair in sentences))
    for path in paths:
        typer.echo(f"{path}  {written:,} lines")


def _write_columns(paths: list[Path], rows: Iterator[tuple[str, ...]]) -> int:
    """One file for each column. They get their names only when all of them are whole."""
    from contextlib import ExitStack

    parts = [path.with_name(path.name + ".part") for path in paths]
    count = 0
    try:
        paths[0].parent.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            files = [stack.enter_context(open(part, "w", encoding="utf-8", newline="\n")) for part in parts]
            for row in rows:
                count += 1
                for file, text in zip(files, row, strict=True):
                    file.write(text + "\n")
        for part, path in zip(parts, paths, strict=True):
            part.replace(path)
    except OSError as error:
        raise Failure(f"{paths[0].parent}: cannot be written: {error.strerror or error}") from None
    finally:
        for part in parts:
            part.unlink(missing_ok=True)
    return count


@app.command()
def draw(
    folder: Annotated[Path, typer.Argument(help="A new folder: a folder in it for each class.")],
    images: Annotated[int, typer.Option(min=1, max=1_000_000, help="How many.")] = 100,
    split: Annotated[str, typer.Option(help="train, valid or test: none is in two of them.")] = "test",
    size: Annotated[int, typer.Option(min=8, max=1024, help="Height and width in pixels.")] = 32,
) -> None:
    """Write images of the embedded set as PNG files, in a folder for each class."""
    from PIL import Image

    from jumok.data.images.drawn import CLASSES, labels_of
    from jumok.data.images.drawn import draw as drawn
    from jumok.files import disk_errors_named

    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInput(f"{folder} is there already: name a new folder")
    with disk_errors_named("writing images", folder, "Free some space, or name another folder."):
        together = max(1, 1_000_000 // size**2)  # a few megabytes at a time
        for start in range(0, images, together):
            numbers = list(range(start, min(start + together, images)))
            for number, label, pixels in zip(numbers, labels_of(numbers), drawn(numbers, split, size), strict=True):
                place = folder / CLASSES[int(label)]
                place.mkdir(parents=True, exist_ok=True)
                Image.fromarray(pixels).save(place / f"{number:06}.png")
    typer.echo(f"{images:,} images of {len(CLASSES)} classes: {folder}")
