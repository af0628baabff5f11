"""A picture file of any kind, chosen by its name: .png, .svg, .html, .gif or .json."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jumok.errors import BadInput
from jumok.files import check_file_place, disk_errors_named, replace_file
from jumok.inspect.attention import Attention

if TYPE_CHECKING:
    from jumok.inspect.drawing import Format
    from jumok.tasks.translator import Translator

KINDS = (".png", ".svg", ".html", ".gif", ".json")
LONGEST_TABLE = 100  # words: a page with a cell for each weight grows slow beyond; a canvas does not
ALL_HEADS_KINDS = (".html", ".png", ".svg")


def is_long(attention: Attention) -> bool:
    """Whether it has more words than a table can show."""
    return max(len(attention.source), len(attention.target)) > LONGEST_TABLE


def page_of(attention: Attention) -> str:
    """The page of one sentence: a cell for each weight, or a canvas where those would be too many."""
    from jumok.inspect.all_heads import of_attention
    from jumok.inspect.canvas import page as canvas
    from jumok.inspect.html import page

    if is_long(attention):
        return canvas(of_attention(attention), attention.name or "Attention")[0]
    return page([attention])


def check_picture_path(path: Path, kinds: Sequence[str] = KINDS, option: str = "--out") -> None:
    """Refuse a name that cannot be drawn before any work is done for it."""
    if path.suffix.lower() not in kinds:
        known = f"none of {', '.join(kinds)}" if len(kinds) > 1 else f"not {kinds[0]}"
        raise BadInput(f'{option} {path}: the ending says what to draw, and "{path.suffix}" is {known}')
    check_file_place(path, option)


def write_picture(attention: Attention, path: Path, dark: bool = False) -> None:
    """Draw the attention of one sentence into a file."""
    from jumok.inspect.figures import write_figure
    from jumok.inspect.film import write_film

    check_picture_path(path)
    kind = path.suffix.lower()
    with disk_errors_named("writing the picture", path, "Choose another --out."):
        if kind == ".html":
            replace_file(path, page_of(attention))
        elif kind == ".json":
            replace_file(path, attention.to_json())
        elif kind == ".gif":
            write_film(path, attention, title=attention.name, dark=dark)
        else:
            write_figure(path, attention, title=attention.name, dark=dark)


def write_all_heads(
    translator: Translator,
    sentence: str,
    target: str | None,
    path: Path | None,
    view: tuple[str, int | None, int | None] = ("cross", None, None),
    dark: bool = False,
) -> str:
    """All layers and heads in one file; what was written, and a word where a page had to leave heads out.

    A page holds every kind of attention and opens at `view` (kind, layer, head); a sheet (.png, .svg) shows its kind.
    """
    from jumok.inspect.all_heads import KINDS as ATTENTIONS
    from jumok.inspect.all_heads import all_heads
    from jumok.inspect.canvas import write_heads
    from jumok.inspect.head_sheet import draw_heads
    from jumok.inspect.view import View

    if path is None:
        raise BadInput("--all draws into a file: --out heads.html (or .png, .svg)")
    check_picture_path(path, ALL_HEADS_KINDS)
    kind, layer, head = view
    View(layer, head, kind).tap(translator.model)  # what does not exist is refused before any work
    ending = path.suffix.lower()
    shown = all_heads(translator, sentence, target, ATTENTIONS if ending == ".html" else (kind,))
    written = next((" ".join(one.queries.texts) for one in shown.kinds if one.kind != "self"), "")
    if ending == ".html":
        kept = write_heads(path, shown, first=view)
        size = f"{kept.maps} map{'s' * (kept.maps > 1)}, {kept.size / 1e6:.2g} MB"
        return "\n".join(line for line in (written, f"written: {path} ({size})", str(kept)) if line)
    format: Format = "png" if ending == ".png" else "svg"
    picture = draw_heads(shown.kinds[0], format, title=f"{kind} attention", dark=dark)
    with disk_errors_named("writing the picture", path, "Choose another --out."):
        replace_file(path, picture)
    return "\n".join(line for line in (written, f"written: {path}") if line)
