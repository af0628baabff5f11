"""The part of a page that shows examples one by one: filters, search, order, and pages of fifty (evaluation.js).

The rows are data inside the page, the worst first; only those on show become elements, so that many thousands stay
quick. More than a browser opens gladly are left out, from the best end, and the page says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from jumok.inspect.attention import visible
from jumok.inspect.html import embed, escape

MOST_ROWS = 20_000
MOST_CHARACTERS = 10_000_000
PAGE = 50
SCRIPT = "evaluation.js"
STYLE = "evaluation.css"

Row = TypeVar("Row")
Choices = Sequence[tuple[str, str]]  # value, and what is said


@dataclass(frozen=True)
class Browser:
    """What one kind of examples is filtered and sorted by."""

    kind: str  # which of the script's kinds draws the rows
    shown: Choices
    orders: Choices
    names: Sequence[str] = ()  # of labels or tags, which rows hold by number
    noun: str = "label"
    searched: str = "text"


def worst_first(
    rows: Sequence[Row], badness: Callable[[Row], Any], size: Callable[[Row], int]
) -> list[tuple[int, Row]]:
    """Rows with their number, counted from 1; as many of the worst as a page can hold."""
    order = sorted(range(len(rows)), key=lambda place: badness(rows[place]), reverse=True)
    kept: list[tuple[int, Row]] = []
    characters = 0
    for place in order[:MOST_ROWS]:
        characters += size(rows[place])
        if kept and characters > MOST_CHARACTERS:
            break
        kept.append((place + 1, rows[place]))
    return kept


def left_out(kept: int, wrong_kept: int, wrong: int, count: int, noun: str = "examples") -> str:
    """How much of it the page holds, in words; nothing where it holds all."""
    if kept == count:
        return ""
    which = f"all {wrong:,} wrong ones" if wrong_kept == wrong else f"the worst {wrong_kept:,} of {wrong:,} wrong ones"
    return (
        f'<p class="left-out">To stay quick, this page lists {kept:,} of the {count:,} {noun}: {which} and '
        f"{kept - wrong_kept:,} of the right ones. The scores above are of all.</p>"
    )


def browser_block(browser: Browser, rows: Sequence[Any], note: str = "", extra: dict[str, Any] | None = None) -> str:
    """The filters, an empty list, and the rows as data. The page needs evaluation.css and evaluation.js."""
    places = [(str(place), shown(name) or "(empty)") for place, name in enumerate(browser.names)]
    any_name: Choices = [("", "any")]
    fields = [_select("shown", "show", browser.shown)]
    if browser.names:
        fields.append(_select("gold", f"gold {browser.noun}", [*any_name, *places]))
        fields.append(_select("predicted", f"predicted {browser.noun}", [*any_name, *places]))
    fields.append(_select("order", "order", browser.orders))
    data = {"kind": browser.kind, "page": PAGE, "names": [shown(name) for name in browser.names], "rows": rows}
    return f"""{note}
<noscript><p>The list is drawn by a script inside this file; please allow it.</p></noscript>
<form class="filters" autocomplete="off">
<label class="search">search
<input type="search" name="search" placeholder="in the {browser.searched}" spellcheck="false"></label>
{"".join(fields)}
<button type="reset">show all</button>
</form>
<p class="found" aria-live="polite"></p>
<div class="examples {browser.kind}"></div>
<nav class="pages" aria-label="Pages of the list"></nav>
{embed("evaluation-data", data | (extra or {}))}"""


def _select(name: str, said: str, choices: Choices) -> str:
    options = "".join(f'<option value="{escape(value)}">{escape(text)}</option>' for value, text in choices)
    return f'<label>{escape(said)} <select name="{name}">{options}</select></label>'


def shown(text: str) -> str:
    """Text from data for the script, which writes it as text and nothing else: hidden characters become visible."""
    if text.isprintable():
        return text
    return visible(text, keep="\u200c\u200d\n\t")


def units(text: str, place: int) -> int:
    """Where a place of the text is in the text as shown, in JavaScript's units (of UTF-16)."""
    return len(shown(text[:place]).encode("utf-16-le")) // 2
