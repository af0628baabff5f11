"""The report that the training of a language model ends with: curves, and how it goes on after a few beginnings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jumok import recipe as recipes
from jumok.inspect.html import escape
from jumok.inspect.report import ExtraSection, write_report
from jumok.recipe import Recipe
from jumok.tasks.generator import GenerateOptions, Generator
from jumok.training.run import RunFolder

SHOWN = 8
WORDS = 3  # of a line that the model is given; a tenth of a long one
SAMPLED = GenerateOptions(max_tokens=40, sample=True, temperature=0.8, top_p=0.95, seed=1)
LIKELIEST = GenerateOptions(max_tokens=40)


def write_language_report(generator: Generator, recipe: Recipe, run: RunFolder, lines: Sequence[str]) -> Path:
    """`lines` are of the validation text, in order."""
    write_report(
        run.report, f"jumok: {run.path.name}", recipes.dump(recipe), run.events(), extra=[samples(generator, lines)]
    )
    return run.report


def samples(generator: Generator, lines: Sequence[str]) -> ExtraSection:
    """Beginnings of lines, how the model goes on (the likeliest way, and a sampled one), and how the text does."""
    split = [(words, max(WORDS, len(words) // 10)) for words in map(str.split, lines) if len(words) > WORDS]
    chosen = [(" ".join(words[:given]), " ".join(words[given:][:40])) for words, given in split]
    chosen = [(prompt, true) for prompt, true in chosen if generator.fits(prompt)][:SHOWN]
    ways = [generator.continuations([prompt for prompt, _ in chosen], options) for options in (LIKELIEST, SAMPLED)]
    rows = []
    for number, (prompt, true) in enumerate(chosen):
        columns = zip(("likeliest", "sampled"), (way[number][0].text for way in ways), strict=True)
        cells = "".join(f'<td data-label="{name}">{escape(text.strip())}</td>' for name, text in columns)
        rows.append(
            f'<tr><td class="number">{number + 1}</td><td data-label="beginning">{escape(prompt)}</td>{cells}'
            f'<td data-label="the text">{escape(true)}</td></tr>'
        )
    names = ("#", "beginning", "likeliest", "sampled", "the text")
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    note = (
        "<p>Lines of the validation text, which the model has not learned from, of which it was given the beginning. "
        f"Sampled at temperature {SAMPLED.temperature:g}, from the likeliest words that together have "
        f"{SAMPLED.top_p:.0%} of the probability; at most {SAMPLED.max_tokens} tokens.</p>"
    )
    table = f'<table class="list"><thead><tr>{head}</tr></thead>\n<tbody>\n{chr(10).join(rows)}\n</tbody></table>'
    return ExtraSection("samples", "How it goes on", f"{note}\n{table}" if rows else "")
