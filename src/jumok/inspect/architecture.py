"""What a model is made of: parts with their shapes and parameters, in the order in which the data goes through them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from rich.cells import cell_len

from jumok.inspect.attention import visible


@dataclass(frozen=True, eq=False)
class Part:
    """A layer, or several of them. `shape` is what comes out; `parameters` are one's own, where there are `times`."""

    name: str
    kind: str  # what it does, which is also its colour: embedding, recurrent, attention, feed, norm, add, output, plain
    about: str = ""
    shape: str = ""
    parameters: int = 0
    parts: tuple[Part, ...] = ()
    times: int = 1
    residual: bool = False  # what goes in also goes around, to the part of kind "add"

    def total(self) -> int:
        return self.parameters * self.times

    def numbers(self, often: int) -> str:
        """As in "6 × 3,152,384"; empty without parameters. `often`: how many of it the model has (`counted`)."""
        if not self.parameters:
            return ""
        return f"{often} × {self.parameters:,}" if often > 1 else f"{self.parameters:,}"


@dataclass(frozen=True, eq=False)
class Column:
    """One way through the model, from its input upwards."""

    name: str
    input: str
    shape: str  # of the input
    parts: tuple[Part, ...]
    output: str = ""  # what is at the upper end; nothing where only links go on


@dataclass(frozen=True, eq=False)
class Link:
    """What goes from a part to another that does not follow it; `back`: to the next step."""

    start: Part
    end: Part
    name: str
    back: bool = False


@dataclass(frozen=True, eq=False)
class Architecture:
    title: str
    columns: tuple[Column, ...]
    links: tuple[Link, ...]
    parameters: int
    symbols: tuple[str, ...] = ()  # what the letters in the shapes mean
    notes: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        """The tree that `jumok describe` prints."""
        return "\n".join(tree(self)) + "\n"

    def _repr_html_(self) -> str:
        from jumok.inspect.architecture_page import page
        from jumok.inspect.html import framed

        return framed(page(self), 820)


def tree(described: Architecture) -> list[str]:
    """Lines with a column for shapes and one for parameters."""
    rows: list[tuple[str, str, str]] = []
    for column in described.columns:
        rows.append((column.name, "", ""))
        rows.append((f"├─ {column.input}", column.shape, ""))
        rows += _branch(column.parts, "")
    width = max(cell_len(name) for name, _, _ in rows) + 3  # s̃ is one letter wide
    shape_width = max(len(shape) for _, shape, _ in rows) + 3
    number_width = max(len(number) for _, _, number in rows)
    lines = [visible(described.title), f"{described.parameters:,} parameters", ""]
    lines += [
        f"{name}{' ' * (width - cell_len(name))}{shape:{shape_width}}{number:>{number_width}}".rstrip()
        for name, shape, number in rows
    ]
    arrows = [
        f"{_full_name(described, link.start)} → {_full_name(described, link.end)}: {link.name}"
        for link in described.links
    ]
    return [*lines, "", *arrows, *([""] * bool(arrows)), *described.symbols, *described.notes]


def _full_name(described: Architecture, part: Part) -> str:
    """With its column's name, where there are several."""
    column = next(column for column in described.columns if any(one is part for one in every_part(column.parts)))
    owner = f"{column.name}'{'s' * (not column.name.endswith('s'))}"
    return f"{owner} {part.name}" if len(described.columns) > 1 else part.name


def every_part(parts: tuple[Part, ...]) -> Iterator[Part]:
    for part in parts:
        yield part
        yield from every_part(part.parts)


def counted(parts: tuple[Part, ...], times: int = 1) -> Iterator[tuple[Part, int]]:
    """As `every_part`, with how often the model has each: what is in a block is there as often as the block."""
    for part in parts:
        yield part, times * part.times
        yield from counted(part.parts, times * part.times)


def _branch(parts: tuple[Part, ...], before: str) -> Iterator[tuple[str, str, str]]:
    for index, part in enumerate(parts):
        last = index == len(parts) - 1
        about = f": {part.about}" if part.about else ""
        times = f" × {part.times}, {part.parameters:,} parameters each" if part.times > 1 else ""
        number = f"{part.total():,}" if part.parameters else ""
        yield f"{before}{'└─' if last else '├─'} {part.name}{times}{about}", part.shape, number
        yield from _branch(part.parts, before + ("   " if last else "│  "))
