"""An evaluation of words in pictures as one HTML file that works offline: the scores, and the words that were misread.

As image_page.py has it for images of classes. A word's picture stands above what is written there and what was read,
with the characters marked that differ. What is pressed in a table (a script, a length, a confusion) is listed below.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jumok.files import disk_errors_named, replace_file
from jumok.inspect.example_browser import PAGE, STYLE, Choices, shown
from jumok.inspect.html import document, embed, escape
from jumok.inspect.image_page import MOST_CHARACTERS, common_folder, data_uri
from jumok.inspect.reading_judging import Misread
from jumok.inspect.score_tables import headline_table
from jumok.tasks.edit_distance import edits
from jumok.tasks.reading_kinds import LONGEST, MISTAKES, SCRIPTS, length_group, length_name, script_of
from jumok.tasks.reading_scores import Confusion, Part, ReadingScores, named, part_row

CONFUSIONS = 60  # listed
ORDERS: Choices = (
    ("", "most sure first"), ("unsure", "least sure first"), ("far", "most characters wrong first"),
    ("long", "longest first"), ("data", "as in the data"),
)  # fmt: skip
Stretch = tuple[str, int]  # a part of a word, and whether it differs


def write_reading_page(
    path: str | Path, title: str, scores: ReadingScores, mistakes: Sequence[Misread], notes: Sequence[str] = ()
) -> None:
    """`mistakes`: those that are shown, the most confident first; `notes`: what else should be known, in sentences."""
    path = Path(path)
    folder = common_folder([one.name for one in mistakes])
    confusions = scores.confusions[:CONFUSIONS]
    rows = _rows(mistakes, confusions, len(folder))
    sections = [
        ("scores", "Scores", headline_table(scores.headline(), [*scores.notes(), *notes])),
        ("trust", "How far it can be trusted", _trust(scores)),
        (
            "scripts",
            "Scripts",
            _parts("script", "script", scores.by_script, _scripts(scores.by_script)),
        ),
        ("lengths", "Lengths", _parts("size", "length", scores.by_length, _groups(scores.by_length))),
        ("confusions", "Confusions", _confusions(confusions, len(scores.confusions))),
        ("examples", "Misread words", _browser(scores, confusions, rows, _told(len(rows), scores, folder))),
    ]
    links = " ".join(f'<a href="#{name}">{heading}</a>' for name, heading, _ in sections)
    body = "\n".join(
        f'<section aria-labelledby="{name}">\n<h2 id="{name}">{heading}</h2>\n{content}\n</section>'
        for name, heading, content in sections
    )
    about = f"{scores.count:,} words, {scores.characters:,} characters"
    main = (
        f'<main>\n<header><h1>{escape(title)}</h1>\n<p class="quiet">{about}</p>\n'
        f'<nav aria-label="Sections">{links}</nav></header>\n{body}\n</main>'
    )
    with disk_errors_named("writing the page", path, "Choose another place."):
        replace_file(path, document(title, main, ["page.css", STYLE, "reading.css"], ["reading.js"]))


# ---------------------------------------------------------------- tables


def _trust(scores: ReadingScores) -> str:
    told = (
        "<p>How sure the model is of a word is the probability of all its characters. Whoever only takes readings that "
        "it is sure of has fewer mistakes, and more words left to read by eye.</p>"
    )
    head = ("at least so sure", "words", "of all", "accuracy", "95 % interval")
    return told + _table(head, [[escape(cell) for cell in scores.sure_row(sure)] for sure in scores.by_confidence])


def _parts(field: str, name: str, parts: Sequence[Part], values: Sequence[int]) -> str:
    head = (name, "words", "accuracy", "95 % interval", "1 − NED", "CER")
    rows = []
    for part, value in zip(parts, values, strict=True):
        which, *numbers = part_row(part)
        rows.append([_button(field, value, which, f"list the misread words: {which}"), *map(escape, numbers)])
    return "<p><b>Press a name</b> to see what was misread below.</p>" + _table(head, rows)


def _scripts(parts: Sequence[Part]) -> list[int]:
    return [list[str](SCRIPTS).index(part.name) for part in parts]


def _groups(parts: Sequence[Part]) -> list[int]:
    places = {length_name(group): group for group in range(len(LONGEST) + 1)}
    return [places[part.name] for part in parts]


def _confusions(confusions: Sequence[Confusion], count: int) -> str:
    if not confusions:
        return "<p>No character was read as another.</p>"
    which = f"The {len(confusions)} most frequent of {count:,}" if count > len(confusions) else f"All {count:,}"
    rows = [
        [
            _character(each.truth),
            _character(each.read),
            _button("confusion", number, f"{each.count:,}", f"list the words: {_arrow(each)}"),
            f"of {each.of:,}" if each.of else "",
        ]
        for number, each in enumerate(confusions)
    ]
    return (
        f"<p>{which} confusions of characters, with how often the character is written in all. <b>Press a number</b> "
        f"to see the words below.</p>{_table(('written', 'read', 'times', ''), rows, 'pairs')}"
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], kind: str = "") -> str:
    """Cells are HTML already."""
    names = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    body = "\n".join(
        f'<tr><th scope="row">{row[0]}</th>{"".join(f"<td>{cell}</td>" for cell in row[1:])}</tr>' for row in rows
    )
    return (
        f'<div class="wide{" tall" * (len(rows) > 20)}" tabindex="0" role="region" aria-label="{escape(head[0])}">'
        f'<table class="numbers {kind}"><thead><tr>{names}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>'
    )


def _button(field: str, value: int, text: str, title: str) -> str:
    return (
        f'<button type="button" data-field="{field}" data-value="{value}" aria-pressed="false" '
        f'title="{escape(title)}">{escape(text)}</button>'
    )


def _character(character: str) -> str:
    kind = "" if character.strip() else ' class="quiet"'
    return f"<span{kind}>{escape(named(character))}</span>"


def _arrow(each: Confusion) -> str:
    return f"{named(each.truth)} → {named(each.read)}"


# ---------------------------------------------------------------- the words


def _browser(scores: ReadingScores, confusions: Sequence[Confusion], rows: Sequence[Any], note: str) -> str:
    """Filters, an empty list, and the rows as data, which reading.js draws."""
    scripts, lengths = (
        [(str(value), part.name) for part, value in zip(parts, values_of(parts), strict=True)]
        for parts, values_of in ((scores.by_script, _scripts), (scores.by_length, _groups))
    )
    kinds = [(str(number), said) for number, said in enumerate(MISTAKES.values())]
    pairs = [(str(number), f"{_arrow(each)} ({each.count:,})") for number, each in enumerate(confusions)]
    fields = (
        _select("kind", "mistake", kinds), _select("script", "script", scripts), _select("size", "length", lengths),
        _select("confusion", "confusion", pairs), _select("order", "order", ORDERS[1:], ORDERS[0][1]),
    )  # fmt: skip
    data = {"page": PAGE, "kinds": list(MISTAKES.values()), "rows": rows}
    return f"""{note}
<noscript><p>The list is drawn by a script inside this file; please allow it.</p></noscript>
<form class="filters" autocomplete="off">
<label class="search">search
<input type="search" name="search" placeholder="written, read or file" spellcheck="false"></label>
{"".join(fields)}
<button type="reset">show all</button>
</form>
<p class="found" aria-live="polite"></p>
<div class="examples misread"></div>
<nav class="pages" aria-label="Pages of the list"></nav>
{embed("reading-data", data)}"""


def _select(name: str, said: str, choices: Choices, without: str = "any") -> str:
    options = "".join(f'<option value="{value}">{escape(text)}</option>' for value, text in (("", without), *choices))
    return f'<label>{escape(said)} <select name="{name}">{options}</select></label>'


def _told(listed: int, scores: ReadingScores, folder: str) -> str:
    """Which mistakes are listed, as HTML."""
    wrong = scores.count - scores.right
    if not wrong:
        return "<p>Every word was read as it is written.</p>"
    marks = (
        'Characters that differ are marked: <mark class="gold">only written</mark>, '
        '<mark class="said">only read</mark>.'
    )
    below = f" Names are those below <code>{escape(folder)}</code>." if folder else ""
    if listed == wrong:
        return f"<p>All words that were misread. {marks}{below}</p>"
    return (
        f'<p class="left-out">To stay small, this page holds {listed:,} of the {wrong:,} words that were misread: of '
        "each script and kind of mistake those that the model was most sure of. The scores above are of all.</p>"
        f"<p>{marks}{below}</p>"
    )


def _rows(mistakes: Sequence[Misread], confusions: Sequence[Confusion], folder: int) -> list[list[Any]]:
    """What reading.js draws, as many as a page may hold: number, file, written, read, how sure, kind, script, length,
    confusions, the share of characters that is wrong, and the picture."""
    places = {(each.truth, each.read): number for number, each in enumerate(confusions)}
    kinds = list(MISTAKES)
    rows: list[list[Any]] = []
    characters = 0
    for one in mistakes:
        picture = data_uri(one.pixels)
        characters += len(picture)
        if rows and characters > MOST_CHARACTERS:
            break
        found = edits(one.truth, one.read)
        numbers = [places[edit.truth, edit.read] for edit in found if (edit.truth, edit.read) in places]
        truth, read = compared(one.truth, one.read)
        share = round(len(found) / max(len(one.truth), len(one.read)), 3)
        sorts = [kinds.index(one.kind), SCRIPTS.index(script_of(one.truth)), length_group(len(one.truth))]
        name, sure = shown(one.name[folder:]), round(one.confidence, 5)
        rows.append([one.number, name, truth, read, sure, *sorts, sorted(set(numbers)), share, picture])
    return rows


def compared(truth: str, read: str) -> tuple[list[Stretch], list[Stretch]]:
    """Both words in stretches that differ and stretches that do not."""
    found = edits(truth, read)
    return (
        _stretches(truth, {edit.truth_place for edit in found if edit.truth}),
        _stretches(read, {edit.read_place for edit in found if edit.read}),
    )


def _stretches(word: str, off: set[int]) -> list[Stretch]:
    made: list[Stretch] = []
    for place, character in enumerate(word):
        differs = int(place in off)
        text = "␣" if differs and character == " " else shown(character)
        if made and made[-1][1] == differs:
            made[-1] = (made[-1][0] + text, differs)
        else:
            made.append((text, differs))
    return made
