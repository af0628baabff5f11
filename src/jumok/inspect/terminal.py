"""Attention in the terminal: one row for each word of the output, one column for each word of the source.

Coloured backgrounds where the terminal has colours, shaded blocks where it has not, ASCII where it has only that. Wide
characters (Hangul, Han) take two cells. A sentence that is wider than the terminal is folded into several blocks.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console

from jumok.inspect.attention import Attention, visible

LONGEST_WORD = 14  # cells; longer words end in …
NARROWEST = 3
MOST_ROWS = 80
# cividis in the 256 colours of terminals
_COLOURS = (17, 18, 24, 59, 60, 242, 245, 101, 143, 179, 221, 227)
_DARK_BELOW = 6
_BLOCKS = " ░▒▓█"
_ASCII = " .:*#"


def show(attention: Attention, console: Console | None = None) -> None:
    """Print to the terminal, in the best way it can."""
    console = console or Console()
    colour = console.color_system in ("256", "truecolor") and not os.environ.get("NO_COLOR")
    console.file.write(draw(attention, width=console.width, colour=colour, encoding=console.encoding))
    console.file.flush()


def draw(attention: Attention, *, width: int = 80, colour: bool = False, encoding: str = "utf-8") -> str:
    """The picture as lines of text, none wider than `width` cells (but wide enough for one column)."""
    if not attention.source or not attention.target:
        return "(no attention: the sentence is empty)\n"
    rich = _can_encode(_BLOCKS + "↓→…–", encoding)
    mark = "…" if rich else "~"
    words = [_fit(token, encoding, mark) for token in attention.source]
    labels = [_fit(token, encoding, mark) for token in attention.target[:MOST_ROWS]]
    margin = max(map(cell_len, labels))
    widths = [max(cell_len(word), NARROWEST) for word in words]
    lines: list[str] = []
    blocks = _fold(widths, max(width - margin, 0))
    for first, last in blocks:
        if len(blocks) > 1:
            lines.append(f"{mark} source words {first + 1}-{last} of {len(words)}")
        header = [_pad(word, size) for word, size in zip(words[first:last], widths[first:last], strict=True)]
        lines.append(" " * margin + " " + " ".join(header))
        for label, row in zip(labels, attention.weights, strict=False):
            cells = [
                _cell(float(weight), size, colour, rich)
                for weight, size in zip(row[first:last], widths[first:last], strict=True)
            ]
            lines.append(" " * (margin - cell_len(label)) + label + " " + " ".join(cells))
        lines.append("")
    if len(attention.target) > MOST_ROWS:
        lines.append(f"{mark} {len(attention.target) - MOST_ROWS} more rows; write .html or .json to see all of them")
    if attention.name:
        lines.append(attention.name)
    legend = _legend(colour, rich)
    lines += ["   ".join(legend)] if sum(map(_seen_width, legend)) + 6 <= width else legend
    return "".join(line.rstrip() + "\n" for line in lines)


def _cell(weight: float, width: int, colour: bool, rich: bool) -> str:
    if not math.isfinite(weight):
        return "?".center(width)
    share = min(max(weight, 0.0), 1.0)
    if colour:
        level = min(int(share * len(_COLOURS)), len(_COLOURS) - 1)
        ink = 255 if level < _DARK_BELOW else 16
        number = f"{round(share * 100)}" if share >= 0.05 else ""
        return f"\x1b[48;5;{_COLOURS[level]};38;5;{ink}m{number.center(width)}\x1b[0m"
    shades = _BLOCKS if rich else _ASCII
    return shades[_level(share, len(shades))] * width


def _level(share: float, levels: int) -> int:
    """0 only for next to nothing, so that a faint look is still seen."""
    return 0 if share < 0.02 else min(1 + int(share * (levels - 1)), levels - 1)


def _legend(colour: bool, rich: bool) -> list[str]:
    axes = "query ↓ looks at key →" if rich else "each row looks at the columns:"
    if colour:
        scale = "".join(f"\x1b[48;5;{code}m  \x1b[0m" for code in _COLOURS)
        return [axes, f"0 {scale} 1", "numbers are percent"]
    shades = _BLOCKS if rich else _ASCII
    least = ("0.02+", "0.25+", "0.50+", "0.75+")
    return [axes, "  ".join(f"{shade * 2} {start}" for shade, start in zip(shades[1:], least, strict=True))]


def _seen_width(line: str) -> int:
    return cell_len(re.sub(r"\x1b\[[0-9;]*m", "", line))


def _fold(widths: Sequence[int], room: int) -> list[tuple[int, int]]:
    """As many columns in each block as fit beside each other, at least one."""
    blocks: list[tuple[int, int]] = []
    first, used = 0, 0
    for index, size in enumerate(widths):
        if index > first and used + size + 1 > room:
            blocks.append((first, index))
            first, used = index, 0
        used += size + 1
    return [*blocks, (first, len(widths))]


def _fit(token: str, encoding: str, mark: str) -> str:
    """A word that can be printed here, at most LONGEST_WORD cells wide."""
    text = visible(token).encode(encoding, "backslashreplace").decode(encoding)
    text = text[: 8 * LONGEST_WORD] if text.strip() else "_" * max(1, len(text))
    if cell_len(text) <= LONGEST_WORD:
        return text
    while cell_len(text + mark) > LONGEST_WORD:
        text = text[:-1]
    return text + mark


def _pad(text: str, width: int) -> str:
    return text + " " * (width - cell_len(text))


def _can_encode(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True
