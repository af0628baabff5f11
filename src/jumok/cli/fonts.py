"""`jumok fonts`: what texts can be rendered with on this machine, and which characters each font really draws."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from jumok.data.rendering.fonts import Face


def fonts(
    paths: list[Path] = typer.Argument(
        None, metavar="PATH…", help="Font files and folders. (default: the system's, yours, those of Python packages)"
    ),
    covers: str | None = typer.Option(
        None, "--covers", metavar="TEXT", help="Only fonts that can write all of this text."
    ),
    show_paths: bool = typer.Option(False, "--paths", help="Also show which files they come from."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON: every face with its file."),
) -> None:
    """List the fonts that texts can be rendered with, and what each really draws: empty glyphs and boxes do not
    count."""
    import unicodedata

    from jumok.cli.typed import require_text
    from jumok.data.rendering.fonts import faces_for, find_faces, must_cover, what_to_install
    from jumok.errors import BadInput
    from jumok.text.charset import SETS

    require_text(covers=covers)
    faces = find_faces(paths or [], lambda text: typer.echo(text, err=True))
    if not faces:
        where = f"in {', '.join(map(str, paths))}" if paths else "on this machine"
        raise BadInput(f"there are no fonts to write with {where}. {what_to_install('A가')}")
    if covers is not None:
        wanted = unicodedata.normalize("NFC", covers)
        must_cover(faces, wanted)
        faces = faces_for(faces, wanted)
        if not faces:
            raise BadInput(f'no font has all of the characters of "{covers}", but each is in one of them')
    if as_json:
        typer.echo(json.dumps([_as_json(face) for face in faces], indent=1, ensure_ascii=False))
        return
    from jumok.cli.check_view import console

    families: dict[str, list[Face]] = {}
    for face in faces:
        families.setdefault(face.family, []).append(face)
    screen = console()
    screen.print(_table(families, show_paths))
    hangul = sum(any(face.count(SETS["hangul"]) for face in own) for own in families.values())
    many = "family" if len(families) == 1 else "families"
    screen.print(f"\n{len(families)} {many}, {len(faces)} face{'s' * (len(faces) != 1)}; {hangul} with Hangul")


def _as_json(face: Face) -> dict[str, object]:
    from jumok.text.charset import SETS

    covers = {name: face.count(characters) for name, characters in SETS.items()}
    about = {"family": face.family, "style": face.style, "path": str(face.path), "number": face.number}
    return {**about, "characters": len(face.covered), "covers": covers}


def _table(families: dict[str, list[Face]], show_paths: bool) -> Table:
    from rich.table import Table
    from rich.text import Text

    from jumok.data.suspicion import visible
    from jumok.text.charset import SETS

    table = Table("family", box=None, pad_edge=False)
    for heading in ("faces", *SETS):
        table.add_column(heading, justify="right")
    if show_paths:
        table.add_column("files", overflow="fold")
    for family, own in families.items():
        counts = [_share([face.count(every) for face in own], len(every)) for every in SETS.values()]
        files = "\n".join(dict.fromkeys(visible(str(face.path), 300) for face in own))
        table.add_row(Text(visible(family)), str(len(own)), *counts, *([Text(files)] if show_paths else []))
    return table


def _share(counts: Sequence[int], every: int) -> str:
    """Of the face that has the most."""
    most = max(counts)
    return "–" if not most else "all" if most == every and every < 1000 else f"{most:,} of {every:,}"
