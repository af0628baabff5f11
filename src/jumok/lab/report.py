"""The lab's page: what each experiment claims, its verdicts, its figure and its numbers, in one offline file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jumok.files import replace_file
from jumok.inspect.drawing import saved, sheet, style
from jumok.inspect.html import document, escape, picture
from jumok.lab.catalogue import load, modules, name_of
from jumok.lab.experiment import Experiment, Numbers, Verdict
from jumok.lab.results import Result, code_of, read_result


@dataclass(frozen=True)
class Shown:
    """An experiment on the page."""

    experiment: Experiment
    result: Result
    light: bytes  # its figure, as PNG
    dark: bytes
    other_code: bool = False  # what it was measured with is not what is here now


def drawn(experiment: Experiment, numbers: Sequence[Numbers]) -> tuple[bytes, bytes]:
    """Its figure for light and for dark paper."""
    light, dark = (_drawn(experiment, numbers, dark) for dark in (False, True))
    return light, dark


def _drawn(experiment: Experiment, numbers: Sequence[Numbers], dark: bool) -> bytes:
    with style("", dark):
        figure = sheet(*experiment.size)
        experiment.draw(figure, numbers)
        return saved(figure, "png")


def shown(folder: Path) -> list[Shown]:
    """What is in the folder and complete. What cannot be drawn any more, since its code is another now, is left out."""
    found = []
    for module in modules():
        result = read_result(folder, name_of(module))
        if result is None or not result.verdicts:
            continue
        try:
            experiment = load(module)
            pictures = drawn(experiment, result.numbers)
            found.append(Shown(experiment, result, *pictures, other_code=result.code != code_of(module)))
        except Exception:
            continue
    return found


def write_lab_page(path: Path, experiments: Sequence[Shown]) -> None:
    replace_file(path, lab_page(experiments))


def lab_page(experiments: Sequence[Shown]) -> str:
    verdicts = [verdict for each in experiments for verdict in each.result.verdicts]
    held = sum(verdict.holds for verdict in verdicts)
    links = "\n".join(map(_link, experiments))
    head = (
        "<header><h1>The lab</h1>\n<p>Claims of the literature, measured here. "
        f"{counted(len(verdicts), 'claim')} in {counted(len(experiments), 'experiment')}: {held} "
        f"{'holds' if held == 1 else 'hold'}, {len(verdicts) - held} {'does' if len(verdicts) - held == 1 else 'do'} "
        f"not.</p>\n<nav>{links}</nav></header>"
    )
    sections = "\n".join(map(_section, experiments))
    return document("The lab", f"<main>\n{head}\n{sections}\n</main>", ["page.css", "report.css", "lab.css"], [])


def _link(each: Shown) -> str:
    held = sum(verdict.holds for verdict in each.result.verdicts)
    notes = "".join(f", {note}" for note in _notes(each))
    return (
        f'<span><a href="#{escape(each.result.name)}">{each.experiment.number} · {escape(each.experiment.title)}</a> '
        f'<span class="quiet">{held} of {len(each.result.verdicts)} hold{escape(notes)}</span></span>'
    )


def counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _section(each: Shown) -> str:
    experiment, result = each.experiment, each.result
    verdicts = "\n".join(map(_verdict, result.verdicts))
    about = f"Figure of “{experiment.title}”: {experiment.about}"
    notes = "; ".join(_notes(each))
    notes = f" <b>{escape(notes.capitalize())}.</b>" if notes else ""
    return f"""<section id="{escape(result.name)}" class="experiment">
<h2>{experiment.number} · {escape(experiment.title)}</h2>
<p>{escape(experiment.about)}{notes} <span class="quiet">From: {escape(experiment.source)}</span></p>
<ul class="verdicts">
{verdicts}
</ul>
{_picture(about, each.light, each.dark)}
<details><summary>The numbers of {counted(len(result.judged), "seed")}</summary>
{_numbers(result)}
</details>
</section>"""


def _notes(each: Shown) -> list[str]:
    """What a reader of its verdicts has to know."""
    return [*filter(None, [each.result.first_look, "measured with other code" if each.other_code else ""])]


def _verdict(verdict: Verdict) -> str:
    kind, word = ("holds", "holds") if verdict.holds else ("fails", "does not hold")
    alone = f" ({verdict.agreement})" if verdict.alone else ""
    return (
        f'<li><span class="badge {kind}">{word}</span><div><b>{escape(verdict.claim)}</b>'
        f'<br><span class="because">{escape(verdict.because + alone)}</span></div></li>'
    )


def _picture(told: str, light: bytes, dark: bytes) -> str:
    return f'<figure class="picture">{picture(light, dark, told)}</figure>'


def _numbers(result: Result) -> str:
    columns = [dict(flat(seed.numbers)) for seed in result.judged_seeds]
    head = "".join(f'<th scope="col">seed {seed.seed}</th>' for seed in result.judged_seeds)
    names = list(dict.fromkeys(name for column in columns for name in column))
    rows = []
    for name in names:
        cells = "".join(f"<td>{escape(column.get(name, ''))}</td>" for column in columns)
        rows.append(f'<tr><th scope="row">{escape(name)}</th>{cells}</tr>')
    seconds = "".join(f"<td>{seed.seconds:.1f}</td>" for seed in result.judged_seeds)
    rows.append(f'<tr><th scope="row">seconds of one thread</th>{seconds}</tr>')
    body = "\n".join(rows)
    return (
        f'<div class="wide"><table class="numbers"><thead><tr><th></th>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>'
        "</table></div>"
    )


def flat(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Nested numbers as rows: ("lstm, 40, accuracy", "0.93"). A list of plain values is one row."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from flat(inner, f"{name}, {key}" if name else str(key))
    elif isinstance(value, list) and any(isinstance(inner, list | Mapping) for inner in value):
        for number, inner in enumerate(value):
            yield from flat(inner, f"{name}, {number}" if name else str(number))
    else:
        yield name, " ".join(map(_cell, value)) if isinstance(value, list) else _cell(value)


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
