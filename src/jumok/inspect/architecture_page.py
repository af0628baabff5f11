"""The architecture as one HTML file that works offline: the drawing with numbers under the pointer, and a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from jumok.files import disk_errors_named, replace_file
from jumok.inspect.architecture import Architecture, Part, counted
from jumok.inspect.architecture_drawing import (
    LINE,
    NARROW,
    PAD,
    Box,
    Plan,
    Way,
    Word,
    about_lines,
    draw_architecture,
    laid_out,
)
from jumok.inspect.html import document, escape
from jumok.inspect.pictures import check_picture_path

KINDS = (".svg", ".png", ".html")
DOTS = 96  # an inch
POINT = DOTS / 72
Down = Callable[[float], float]  # from inches upwards to dots downwards


def check_drawing_path(path: Path) -> None:
    check_picture_path(path, KINDS)


def write_drawing(described: Architecture, path: Path, dark: bool = False) -> None:
    check_drawing_path(path)
    ending = path.suffix.lower()
    drawing: bytes | str
    if ending == ".html":
        drawing = page(described)
    else:
        drawing = draw_architecture(described, "png" if ending == ".png" else "svg", dark=dark)
    with disk_errors_named("writing the drawing", path, "Choose another --out."):
        replace_file(path, drawing)


def page(described: Architecture) -> str:
    notes = "".join(f"<p class='quiet'>{escape(note)}</p>" for note in (*described.symbols, *described.notes))
    body = f"""<main>
<h1>{escape(described.title)}</h1>
<p class="total">{described.parameters:,} parameters</p>
<p class="readout" aria-live="polite">Point at a part for its numbers; click or press Enter to pin it.</p>
<div class="drawing">{_svg(laid_out(described), described)}</div>
{notes}
<h2>All parts</h2>
<table class="parts"><thead><tr><th scope="col">part</th><th scope="col">comes out</th>
<th scope="col" class="number">parameters</th><th scope="col" class="number">share</th></tr></thead>
<tbody>{"".join(_rows(described))}</tbody></table>
</main>"""
    return document(described.title, body, ["page.css", "architecture.css"], ["architecture.js"])


# ---------------------------------------------------------------- the table


def _rows(described: Architecture) -> Iterator[str]:
    for column in described.columns:
        yield f'<tr class="column"><th scope="rowgroup" colspan="4">{escape(column.name)}</th></tr>'
        yield from _part_rows(column.parts, 0, dict(counted(column.parts)), described.parameters)


def _part_rows(parts: tuple[Part, ...], depth: int, often_of: dict[Part, int], whole: int) -> Iterator[str]:
    for part in parts:
        often = f" × {part.times}" if part.times > 1 else ""
        about = f' <span class="quiet">{escape(part.about)}</span>' if part.about else ""
        yield (
            f'<tr class="depth-{min(depth, 3)}"><th scope="row">{escape(part.name)}{often}{about}</th>'
            f'<td>{escape(part.shape)}</td><td class="number">{part.numbers(often_of[part])}</td>'
            f'<td class="number">{_share(part, often_of[part], whole)}</td></tr>'
        )
        yield from _part_rows(part.parts, depth + 1, often_of, whole)


def _share(part: Part, often: int, whole: int) -> str:
    """Of all parameters, those of every one of it."""
    return f"{part.parameters * often / whole:.1%}" if part.parameters else ""


# ---------------------------------------------------------------- the drawing


def _svg(plan: Plan, described: Architecture) -> str:
    words = plan.words[: -2 - len(described.symbols) - len(described.notes)]  # title and notes are the page's own
    height = plan.height - 0.6
    bottom = -0.1

    def down(y: float) -> float:
        return round((height - y) * DOTS, 1)

    inner = [
        *(_frame(frame, down) for frame in plan.frames),
        *(_way(way, down) for way in plan.ways),
        *(_box(box, described, down) for box in plan.boxes),
        *(_word(word, down) for word in words),
    ]
    heads = "".join(
        f'<marker id="head-{kind}" class="{kind}" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="8" '
        f'markerHeight="8" orient="auto" markerUnits="userSpaceOnUse"><path d="M0 0.8 L8 4 L0 7.2 z"/></marker>'
        for kind in ("flow", "residual", "link", "back")
    )
    size = f"0 0 {plan.width * DOTS:.0f} {(height - bottom) * DOTS:.0f}"
    width = f"{plan.width * DOTS:.0f}"
    return f'<svg viewBox="{size}" width="{width}" role="group"><defs>{heads}</defs>{"".join(inner)}</svg>'


def _place(box: Box, down: Down) -> str:
    return (
        f'x="{box.x * DOTS:.1f}" y="{down(box.y + box.height)}" width="{box.width * DOTS:.1f}" '
        f'height="{box.height * DOTS:.1f}" rx="8"'
    )


def _frame(frame: Box, down: Down) -> str:
    return f'<rect class="frame" {_place(frame, down)}/>'


def _way(way: Way, down: Down) -> str:
    points = " ".join(f"{x * DOTS:.1f},{down(y)}" for x, y in way.points)
    arrow = f' marker-end="url(#head-{way.kind})"' if way.arrow else ""
    return f'<polyline class="way {way.kind}" points="{points}"{arrow}/>'


def _word(word: Word, down: Down) -> str:
    anchor = {"left": "start", "center": "middle", "right": "end"}[word.place]
    return _text(word.x, word.y, word.text, word.size, down, "quiet" if word.quiet else "", anchor)


def _text(x: float, y: float, text: str, size: float, down: Down, name: str = "", anchor: str = "start") -> str:
    return (
        f'<text x="{x * DOTS:.1f}" y="{down(y)}" font-size="{size * POINT:.1f}" text-anchor="{anchor}" '
        f'class="{name}" dominant-baseline="central">{escape(text)}</text>'
    )


def _box(box: Box, described: Architecture, down: Down) -> str:
    part, middle = box.part, box.x + box.width / 2
    if part.kind == "add":
        circle = f'<circle class="box add" cx="{middle * DOTS:.1f}" cy="{down(box.middle)}" r="11.5"/>'
        return circle + _text(middle, box.middle, "+", 11, down, anchor="middle")
    said = ": ".join(filter(None, (part.name, part.about)))
    numbers = "no parameters"
    if part.parameters:
        often = next(often for column in described.columns for one, often in counted(column.parts) if one is part)
        numbers = f"{part.numbers(often)} parameters ({_share(part, often, described.parameters)} of all)"
    label = " · ".join(filter(None, (said, part.shape, numbers)))
    top = box.middle if part.kind in NARROW else box.y + box.height - PAD - 0.1
    texts = [_text(box.x + 0.12, top, part.name, 10, down)]
    if part.parameters:
        texts.append(_text(box.x + box.width - 0.12, top, f"{part.parameters:,}", 8.5, down, "number", "end"))
    for number, line in enumerate(about_lines(part)):
        texts.append(_text(box.x + 0.12, top - 0.12 - LINE * (number + 0.5), line, 8, down, "quiet"))
    return (
        f'<g class="part" tabindex="0" role="button" aria-pressed="false" aria-label="{escape(label)}">'
        f'<rect class="box {part.kind}" {_place(box, down)}/>{"".join(texts)}</g>'
    )
