"""A test set of labelled examples, judged: what the model says of each, the scores, a page to look at the errors.

Texts are judged here, images in image_judging.py; what is drawn of either is asked for here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jumok.data.examples import Answer, Example, Question, Tagged
from jumok.data.images.sources import ImageSource, open_images
from jumok.data.rows import about_cut
from jumok.data.text_images.sources import open_text_images
from jumok.errors import BadInput
from jumok.inspect.attention import visible
from jumok.inspect.healthy import require_numbers
from jumok.inspect.image_judging import judge_images
from jumok.inspect.image_mistakes import ON_PAGE, ON_SHEET
from jumok.inspect.image_page import write_image_page
from jumok.inspect.label_page import (
    AnswerRow,
    NumberRow,
    TagRow,
    label_rows,
    write_answer_page,
    write_label_page,
    write_number_page,
    write_tag_page,
)
from jumok.inspect.pictures import check_picture_path
from jumok.inspect.reading_judging import ON_PAGE as ON_READING_PAGE
from jumok.inspect.reading_judging import judge_reading
from jumok.inspect.reading_page import write_reading_page
from jumok.recipe import Corpus, FieldsSection
from jumok.tasks.answer_scores import AnswerScores, answer_scores
from jumok.tasks.answerer import Answerer, long_questions, question_limit
from jumok.tasks.answering import language_of
from jumok.tasks.classification import is_empty
from jumok.tasks.classifier import Classifier, cut_texts
from jumok.tasks.image_classifier import ImageClassifier
from jumok.tasks.known_words import KnownWords
from jumok.tasks.label_scores import LabelScores, label_scores
from jumok.tasks.labelling import Classes, number_of
from jumok.tasks.number_scores import NumberScores, number_scores
from jumok.tasks.reading_scores import ReadingScores
from jumok.tasks.sources import place_of, place_of_word, read_files, read_items
from jumok.tasks.tag_scores import TagScores, tag_scores
from jumok.tasks.tagger import Tagger
from jumok.tasks.text_reader import TextReader, Way
from jumok.tasks.vision import source_of

AT_ONCE = 4096  # examples
MADE = {"vision": "drawn images", "recognition": "rendered words"}  # what is judged where it is no file
BEST = 5  # answers that the page shows of each question
PAGES = (".html", ".htm")


@dataclass(frozen=True)
class Judged:
    scores: LabelScores | NumberScores | TagScores | AnswerScores | ReadingScores
    examples: int
    left_out: int = 0  # texts that are empty, images that cannot be read
    notes: tuple[str, ...] = ()  # what else should be known, in sentences


def judge(
    model: Any,
    files: Sequence[str | Path] = (),
    fields: FieldsSection | None = None,
    page: Path | None = None,
    grammar: Corpus | None = None,
    *,
    sheet: Path | None = None,
    confusion: Path | None = None,
    words: KnownWords | None = None,
) -> Judged:
    """Examples from files (or from the grammar; drawn ones) against what a loaded run says about them.

    `page`: a page to look at the errors (.html). Of classes also `confusion`: what was taken for what, as a picture
    (.png, .svg). Of images also `sheet`: the most confident mistakes (.png). Pictures of words are read with `words`.
    """
    recipe, run = model.recipe, model.run.path
    if not isinstance(model, Tagger | Answerer | Classifier | ImageClassifier | TextReader):
        raise BadInput(f"{run} has learned {recipe.task}: labelled examples do not say how well")
    check_pictures(recipe.task, sheet, confusion)
    if words is not None and not isinstance(model, TextReader):
        raise BadInput(f"words are for reading words in pictures, and {run} has learned {recipe.task}: leave them out")
    if page is not None and page.suffix.lower() not in PAGES:
        raise BadInput(f"--report {page}: the report is a page for a browser: name a .html file")
    require_numbers(model.model)
    asked = fields or (recipe.data.train[0].fields if recipe.data.train else FieldsSection())
    paths = [str(file) for file in files]
    title = f"{run.name}: {', '.join(Path(path).name for path in paths) or MADE.get(recipe.task, 'the grammar')}"
    if isinstance(model, Classifier | ImageClassifier) and (sheet is not None or confusion is not None):
        from jumok.inspect.fonts import families_for  # matplotlib: not for who reads numbers

        families_for(visible("".join((title, *model.labels))))  # what cannot be written is told now
    if isinstance(model, TextReader):
        return _judge_readings(model, open_text_images(paths, asked), title, page, Way(words=words))
    if isinstance(model, ImageClassifier):
        source = (
            source_of(grammar, "test", min(model.model.section.image))
            if grammar is not None
            else open_images(paths, asked)
        )
        judged = _judge_images(model, source, title, page, sheet)
    else:
        items = (
            read_items(recipe.task, grammar, "test") if grammar is not None else read_files(recipe.task, paths, asked)
        )
        judged = _judge_texts(model, items, page, title)
    if confusion is not None and isinstance(judged.scores, LabelScores):
        from jumok.inspect.confusion_picture import write_confusion_picture

        write_confusion_picture(confusion, judged.scores, title, "images" if recipe.task == "vision" else "examples")
    return judged


def check_pictures(task: str, sheet: Path | None, confusion: Path | None) -> None:
    """Refuse pictures that this task has none of, or that cannot be drawn under such a name, before any work."""
    if sheet is not None:
        if task != "vision":
            raise BadInput(f"--sheet {sheet}: a sheet shows images, and this run has learned {task}")
        check_picture_path(sheet, (".png",), "--sheet")
    if confusion is not None:
        if task not in ("vision", "classification"):
            raise BadInput(f"--confusion {confusion}: there are no classes to confuse in {task}")
        check_picture_path(confusion, (".png", ".svg"), "--confusion")


def _judge_images(
    model: ImageClassifier, source: ImageSource, title: str, page: Path | None, sheet: Path | None
) -> Judged:
    found = judge_images(model, source, ON_SHEET if sheet else 0, ON_PAGE if page else 0)
    if page is not None:
        write_image_page(page, title, found.scores, found.mistakes.of_each(), found.notes())
    if sheet is not None:
        from jumok.inspect.contact_sheet import write_contact_sheet

        write_contact_sheet(sheet, found.mistakes.worst(), found.scores, title)
    return Judged(found.scores, len(found.names), len(found.broken), found.notes())


def _judge_readings(model: TextReader, source: ImageSource, title: str, page: Path | None, way: Way) -> Judged:
    found = judge_reading(model, source, ON_READING_PAGE if page else 0, way)
    if page is not None:
        write_reading_page(page, title, found.scores, found.mistakes.kept(), found.notes())
    return Judged(found.scores, len(found.names), len(found.broken), found.notes())


def _judge_texts(model: Any, items: Sequence[Any], page: Path | None, title: str) -> Judged:
    if isinstance(model, Tagger):
        return _judge_tags(model, items, page, title)
    if isinstance(model, Answerer):
        return _judge_answers(model, items, page, title)
    kept = [item for item in items if not is_empty(item)]
    if not kept:
        raise BadInput("there are no examples with text in the test data")
    for item in kept:
        if model.pairs is not None and (item.second is not None) != model.pairs:
            if not model.pairs:
                raise BadInput(f"{place_of(item)}: two texts, and this run has learned from single ones")
            where = "data.train.fields.second=NAME" if item.file else "the grammar's"
            raise BadInput(f"{place_of(item)}: one text, and this run has learned from pairs: say the other ({where})")
    found = (_judge_labels if isinstance(model.labelling, Classes) else _judge_numbers)(model, kept, page, title)
    empty = len(items) - len(kept)
    notes = (f"{empty} examples without text are left out",) if empty else ()
    return Judged(found, len(kept), empty, (*notes, *_cut(model, kept)))


def _cut(model: Classifier, items: Sequence[Example]) -> tuple[str, ...]:
    limit, apart = model.max_length, model.model.apart
    cut = sum(
        cut_texts(model.tokenizer, _texts(items[start : start + AT_ONCE]), limit, apart)
        for start in range(0, len(items), AT_ONCE)
    )
    return (about_cut(cut, len(items) * (1 + apart), limit),) if cut else ()


def _texts(items: Sequence[Example]) -> list[tuple[str, str | None]]:
    return [(item.text, item.second) for item in items]


def _judge_labels(model: Classifier, items: Sequence[Example], page: Path | None, title: str) -> LabelScores:
    assert isinstance(model.labelling, Classes)
    for item in items:  # before the long work
        model.labelling.index(str(item.label), place_of(item))
    gold, texts = [str(item.label) for item in items], _texts(items)
    parts = [model.probabilities(texts[start : start + AT_ONCE]) for start in range(0, len(texts), AT_ONCE)]
    probabilities = np.concatenate(parts)
    scores = label_scores(gold, probabilities, model.labels)
    if page is not None:
        write_label_page(page, title, scores, label_rows(texts, gold, probabilities, model.labels))
    return scores


def _judge_numbers(model: Classifier, items: Sequence[Example], page: Path | None, title: str) -> NumberScores:
    gold, texts = [number_of(item, place_of(item)) for item in items], _texts(items)
    parts = [model.measure(texts[start : start + AT_ONCE]) for start in range(0, len(texts), AT_ONCE)]
    said = np.concatenate(parts)
    scores = number_scores(gold, said.tolist())
    if page is not None:
        rows = [
            NumberRow(text, true, given, second)
            for (text, second), true, given in zip(texts, gold, said.tolist(), strict=True)
        ]
        write_number_page(page, title, scores, rows)
    return scores


def _judge_tags(model: Tagger, items: Sequence[Tagged], page: Path | None, title: str) -> Judged:
    notes = _unknown_tags(model, items)
    said = model.predict([item.words for item in items])
    scores = tag_scores([item.tags for item in items], said)
    if page is not None:
        rows = [TagRow(item.words, item.tags, tags) for item, tags in zip(items, said, strict=True)]
        write_tag_page(page, title, scores, rows)
    return Judged(scores, len(items), notes=notes)


def _unknown_tags(model: Tagger, items: Sequence[Tagged]) -> tuple[str, ...]:
    """Tags that training never saw. Of thousands of words a few may have one: they count as wrong, and are named. Where
    no word has a known one, the data is another task's."""
    known, unknown, words = set(model.labels), dict[str, list[str]](), 0
    for item in items:
        for word, tag in enumerate(item.tags):
            words += 1
            if tag not in known:
                unknown.setdefault(tag, []).append(place_of_word(item, word))
    if words and sum(map(len, unknown.values())) == words:
        item = next(item for item in items if item.tags)
        model.labelling.index(item.tags[0], place_of_word(item, 0))
    return tuple(
        f'the tag "{tag}" was never seen in training: its {len(places)} word{"s" * (len(places) > 1)} count as wrong '
        f"(the first: {places[0]})"
        for tag, places in unknown.items()
    )


def _judge_answers(model: Answerer, items: Sequence[Question], page: Path | None, title: str) -> Judged:
    said = model.answers(items, BEST if page is not None else 1)
    language = language_of(items)
    scores = answer_scores([[one.text for one in item.answers] for item in items], [one.text for one in said], language)
    if page is not None:
        rows = []
        for item, found in zip(items, said, strict=True):
            best = [(each.text, each.probability) for each in (found.best, *found.others)]
            given = Answer(found.best.text, found.best.start) if found.best.text else None
            rows.append(AnswerRow(item.question, item.context, item.answers, given, best))
        write_answer_page(page, title, scores, rows)
    limit = model.limits.max_length
    cut = long_questions(model.tokenizer, items, limit)
    note = about_cut(cut, len(items), question_limit(limit), "a third of data.max_length", "questions")
    return Judged(scores, len(items), notes=(note,) if cut else ())
