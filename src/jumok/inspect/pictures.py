"""A picture file of any kind, chosen by its name: .png, .svg, .html or .json."""

from __future__ import annotations

from pathlib import Path

from jumok.errors import BadInput
from jumok.files import disk_errors_named, replace_file
from jumok.inspect.attention import Attention

KINDS = (".png", ".svg", ".html", ".json")


def check_picture_path(path: Path) -> None:
    """Refuse a name that cannot be drawn before any work is done for it."""
    if path.suffix.lower() not in KINDS:
        raise BadInput(f'--out {path}: the ending says what to draw, and "{path.suffix}" is none of {", ".join(KINDS)}')
    if not path.parent.is_dir():
        raise BadInput(f"--out {path}: there is no folder {path.parent}")


def write_picture(attention: Attention, path: Path, dark: bool = False) -> None:
    """Draw the attention of one sentence into a file."""
    from jumok.inspect.figures import write_figure
    from jumok.inspect.html import write_page

    check_picture_path(path)
    kind = path.suffix.lower()
    with disk_errors_named("writing the picture", path, "Choose another --out."):
        if kind == ".html":
            write_page(path, [attention])
        elif kind == ".json":
            replace_file(path, attention.to_json())
        else:
            write_figure(path, attention, title=attention.name, dark=dark)
