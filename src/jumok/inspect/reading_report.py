"""The report that learning to read words in pictures ends with: curves, scores, and what the model reads in some."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from jumok import recipe as recipes
from jumok.data.images.raw import Pixels
from jumok.inspect.html import escape
from jumok.inspect.image_mistakes import kept_pixels
from jumok.inspect.image_page import data_uri, is_small
from jumok.inspect.reading_page import Stretch, compared
from jumok.inspect.report import ExtraSection, write_report
from jumok.recipe import Recipe
from jumok.tasks.reading_scores import ReadingScores, named, reading_scores
from jumok.tasks.recognition import Pictured, RecognitionTask
from jumok.tasks.text_reader import Read, TextReader
from jumok.training.run import RunFolder

SHOWN = 24
CONFUSIONS = 12
LOOKED_AT = 1000  # validation words, among which those that went wrong are shown first


def write_reading_report(reader: TextReader, recipe: Recipe, run: RunFolder, task: RecognitionTask) -> Path:
    title, counted = f"jumok: {run.path.name}", task.objective.counted
    sections = validation_words(reader, task)
    write_report(run.report, title, recipes.dump(recipe), run.events(), extra=sections, counted=counted)
    return run.report


def validation_words(reader: TextReader, task: RecognitionTask) -> list[ExtraSection]:
    """Scores; and words: those that went wrong first, the most confident before others, then right ones, the least
    sure before others."""
    images, truth = _looked_at(task)
    read = reader.look(images)
    scores = reading_scores(truth, [one.text for one in read])
    right = np.array([one.text == text for one, text in zip(read, truth, strict=True)])
    sure = np.array([one.confidence for one in read])
    order = np.lexsort((np.where(right, sure, -sure), right))[:SHOWN]
    wrong, count = scores.count - scores.right, scores.count
    told = f"<p>{wrong:,} of {count:,} validation words went wrong{'; these come first' if wrong else ''}.</p>\n"
    figures = "\n".join(_figure(images[place].transpose(1, 2, 0), truth[place], read[place]) for place in order)
    small = " enlarged" * is_small(images[0].transpose(1, 2, 0))
    return [
        ExtraSection("scores", "Validation scores", _scores(scores)),
        ExtraSection("examples", "Validation words", f'{told}<ul class="images{small}">\n{figures}\n</ul>'),
    ]


def _looked_at(task: RecognitionTask) -> tuple[Pixels, list[str]]:
    """Pictures (N, C, H, W) and their texts, evenly from all that there are."""
    sizes = [len(held.numbers) if isinstance(held, Pictured) else len(held) for held in task.held]
    chosen = np.unique(np.linspace(0, sum(sizes) - 1, min(LOOKED_AT, sum(sizes))).round().astype(np.int64))
    images, truth = [], []
    for held, size, end in zip(task.held, sizes, np.cumsum(sizes), strict=True):
        own = chosen[(chosen >= end - size) & (chosen < end)] - (end - size)
        batch = held.batch(held.numbers[own]) if isinstance(held, Pictured) else held
        places = np.arange(len(own)) if isinstance(held, Pictured) else own
        images.append(batch.images.cpu().numpy()[places])
        truth += [task.charset.decode(ids) for ids in batch.ids.cpu().numpy()[places]]
    return np.concatenate(images), truth


def _scores(scores: ReadingScores) -> str:
    rows = "\n".join(
        f'<tr><th scope="row">{escape(name)}</th><td class="score">{escape(score)}</td>'
        f'<td data-label="95 % interval">{escape(interval)}</td></tr>'
        for name, score, interval in scores.headline()
    )
    confused = ", ".join(
        f"{escape(named(each.truth))} → {escape(named(each.read))} ({each.count:,})"
        for each in scores.confusions[:CONFUSIONS]
    )
    told = f"<p>The most frequent confusions: {confused}.</p>" if confused else ""
    return (
        '<table class="list scores"><thead><tr><th scope="col">score</th><th scope="col"></th>'
        f'<th scope="col">95 % interval</th></tr></thead>\n<tbody>\n{rows}\n</tbody></table>\n{told}'
    )


def _figure(pixels: Pixels, truth: str, read: Read) -> str:
    name = escape(truth) or "(nothing)"
    written, given = (_marked(*both) for both in zip(compared(truth, read.text), ("missing", "extra"), strict=True))
    words = name if truth == read.text else f"{written}<br>{given}"
    alt = name if truth == read.text else f"{name}, read as {escape(read.text) or 'nothing'}"
    return f'<li><img src="{data_uri(kept_pixels(pixels))}" alt="{alt}"><p>{words} ({read.confidence:.1%})</p></li>'


def _marked(stretches: Sequence[Stretch], kind: str) -> str:
    parts = (f'<mark class="{kind}">{escape(text)}</mark>' if off else escape(text) for text, off in stretches)
    return "".join(parts) or '<i class="same">(nothing)</i>'
