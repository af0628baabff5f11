"""The report after learning to read: what went wrong comes first, its characters marked, pictures inside the file."""

from __future__ import annotations

import base64
import html
import io
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from striped_words import CHARSET, SECTION, StripeReader, a_word, write_striped

from jumok.data.rendering.batch import PicturedWords
from jumok.inspect import reading_report
from jumok.inspect.reading_report import validation_words, write_reading_report
from jumok.recipe import Recipe
from jumok.tasks.recognition import Pictured, RecognitionTask
from jumok.tasks.text_reader import TextReader
from jumok.training.run import RunFolder

COUNT = 60


@pytest.fixture
def task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RecognitionTask:
    """Files of words in stripes, three of which are labelled with another word."""
    monkeypatch.setenv("JUMOK_CACHE", str(tmp_path / "cache"))
    words = [a_word(2) for _ in range(COUNT)]
    files = write_striped(tmp_path / "words", words)
    labels = [
        f"{word[:-1]}{'0' if word[-1] != '0' else '1'}" if n in (7, 30, 52) else word for n, word in enumerate(words)
    ]
    lines = "".join(f"{file.name}\t{label}\n" for file, label in zip(files, labels, strict=True))
    (tmp_path / "words" / "labels.txt").write_text(lines, encoding="utf-8")
    corpus = {"images": [str(tmp_path / "words")]}
    raw: dict[str, Any] = {
        "task": "recognition",
        "data": {"train": [corpus], "valid": [corpus], "resize": "squash"},
        "charset": {"sets": ["digits"], "extra": "abXYé가나힣"},
        "model": SECTION.model_dump(),
        "training": {"updates": 4, "batch_images": 8},
    }
    return RecognitionTask(Recipe.model_validate(raw), torch.device("cpu"), lambda _: None)


def reader() -> TextReader:
    return TextReader(StripeReader().eval(), CHARSET, "squash", torch.device("cpu"))


def shown(content: str) -> list[tuple[np.ndarray, str]]:
    found = re.findall(r'<li><img src="data:image/\w+;base64,([^"]+)" alt="([^"]*)">', content)
    images = [np.asarray(Image.open(io.BytesIO(base64.b64decode(data)))) for data, _ in found]
    return [(image, html.unescape(alt)) for image, (_, alt) in zip(images, found, strict=True)]


def test_what_went_wrong_comes_first(task: RecognitionTask) -> None:
    scores, words = validation_words(reader(), task)
    assert "3 of 60 validation words went wrong; these come first" in words.content
    found = shown(words.content)
    assert len(found) == 24
    held = task.held[0]
    assert isinstance(held, Pictured)
    truth = [CHARSET.decode(held.ids[text]) for text in held.store.labels]
    read = [one.text for one in reader().look(held.store.images)]
    wrong = sorted((7, 30, 52), key=lambda place: -reader().look(held.store.images[[place]])[0].confidence)
    for (pixels, alt), place in zip(found, wrong, strict=False):
        np.testing.assert_array_equal(pixels.transpose(2, 0, 1), held.store.images[place])
        assert alt == f"{truth[place]}, read as {read[place]}"
    assert all(", read as " not in alt for _, alt in found[3:])
    assert words.content.count('<mark class="extra">') == words.content.count('<mark class="missing">') == 3
    assert "95.0 %" in scores.content
    assert " → " in scores.content


def test_rendered_words_and_files_are_looked_at_evenly(task: RecognitionTask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading_report, "LOOKED_AT", 7)
    held = task.held[0]
    assert isinstance(held, Pictured)
    part = held.batch(held.numbers[30:])
    rendered = PicturedWords(part.ids, part.lengths, part.images)
    task.held = [held, rendered]
    images, truth = reading_report._looked_at(task)
    places = np.concatenate([np.arange(60), np.arange(30, 60)])[np.linspace(0, 89, 7).round().astype(int)]
    np.testing.assert_array_equal(images, held.store.images[places])
    assert truth == [CHARSET.decode(held.ids[held.store.labels[place]]) for place in places]
    for _ in range(3):
        start = random.randrange(60)
        task.held = [Pictured(held.store, held.ids, held.lengths, held.numbers[start : start + 1])]
        assert reading_report._looked_at(task)[1] == [CHARSET.decode(held.ids[held.store.labels[start]])]


def test_text_is_escaped() -> None:
    pixels = np.zeros((8, 8, 3), np.uint8)
    made = reading_report._figure(pixels, "<b>&", reading_report.Read('"<i>', 0.5, ()))
    assert "<b>" not in made
    assert "<i>" not in made
    assert "&lt;" in made
    assert "(nothing)" in reading_report._figure(pixels, "", reading_report.Read("", 0.5, ()))


@pytest.mark.browser
def test_the_whole_report(task: RecognitionTask, tmp_path: Path, visit: Any) -> None:
    run = RunFolder.create(tmp_path / "run", task.recipe)
    assert write_reading_report(reader(), task.recipe, run, task) == run.report
    view = visit(run.report)
    images = view.locator("ul.images img")
    assert images.count() == 24
    assert images.first.evaluate("one => one.decode().then(() => one.naturalWidth)") == 64
    assert view.locator("h2").all_inner_texts() == ["Validation scores", "Validation words", "Recipe"]
