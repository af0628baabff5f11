"""Answers of a batch are those of each job alone, and what is wrong with one is told in its place."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from io import BytesIO
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from looping import looping
from PIL import Image
from seeded import seed as seed
from word_runs import words_recipe

from jumok.data.images.picture import BadPicture
from jumok.errors import BadInput, Failure
from jumok.models.bert import Bert, HiddenWords
from jumok.models.reader import TextLabeller, WordLabeller
from jumok.models.recognizer import build_recognizer
from jumok.models.vit import ImageLabeller
from jumok.recipe import BertSection, RecognizerSection, VitSection
from jumok.serve.batching import Batcher
from jumok.serve.computing import (
    Ask,
    Classify,
    ClassifyImage,
    Embed,
    Fill,
    ReadImage,
    Tag,
    Told,
    Work,
    computing,
    cost,
    kinds_of,
)
from jumok.serve.waiting import Room
from jumok.tasks.answerer import AnswerLimits
from jumok.tasks.labelling import Classes, Numbers
from jumok.tasks.text_reader import Way
from jumok.text.charset import Charset
from jumok.text.tokenizer import Tokenizer, train_tokenizer
from jumok.trained import (
    TrainedAnswerer,
    TrainedClassifier,
    TrainedFiller,
    TrainedImageClassifier,
    TrainedTagger,
    TrainedTextReader,
)

CPU = torch.device("cpu")
TEXT = "the cat dog bread rain sleeps eats in of and house river 나는 학생 이다 blue seven"
WORDS = TEXT.split()
SECTION = BertSection(width=16, heads=2, layers=2, feed_forward=24, dropout=0.0)


def lively(model: Any) -> Any:
    """Weights with which answers differ."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model.eval()


def tokenizer() -> Tokenizer:
    return train_tokenizer([TEXT] * 3, "wordpiece", 120)


def known(model: Any, task: str) -> Any:
    model.recipe = SimpleNamespace(task=task, data=SimpleNamespace(max_length=24, window=24))
    return model


def classifier(pairs: bool | None = False) -> TrainedClassifier:
    words = tokenizer()
    model = lively(TextLabeller(SECTION, words.size, 3))
    labelling = Classes(("a", "b", "c"))
    return known(TrainedClassifier(model, words, labelling, 24, CPU, pairs), "classification")


def sentence(chance: random.Random, longest: int = 30) -> str:
    return " ".join(chance.choice(WORDS) for _ in range(chance.randint(0, longest)))


def answers(model: Any, jobs: list[Any], room: Room = Room(waiting=1000)) -> list[Any]:
    """Through a real queue."""
    worker: Batcher[Work, Told] = Batcher("test", computing(model), cost, room)

    async def main() -> list[Any]:
        worker.start(asyncio.get_running_loop())
        found = await asyncio.gather(*worker.accept(jobs), return_exceptions=True)
        worker.close()
        return list(found)

    return looping(main())


def test_labels_and_vectors(seed: int) -> None:
    chance = random.Random(seed)
    model = classifier()
    jobs: list[Any] = []
    for _ in range(60):
        text = sentence(chance)
        vector = Embed(text, None, chance.choice(["mean", "first", "max"]), chance.random() < 0.5)  # type: ignore[arg-type]
        jobs.append(chance.choice([Classify(text), vector]))
    for job, answer in zip(jobs, answers(model, jobs), strict=True):
        if isinstance(job, Classify):
            (said,) = model.predict([job.text])
            assert answer.label == said.label
            assert answer.probabilities == pytest.approx(said.probabilities, abs=1e-5)
        else:
            assert answer.dtype == np.float32
            np.testing.assert_allclose(answer, model.embed([job.text], job.pooling, job.normalise)[0], atol=1e-5)


@pytest.mark.parametrize("pairs", [True, False, None])
def test_pairs_and_single_texts(pairs: bool | None) -> None:
    model = classifier(pairs)
    single, pair = answers(model, [Classify("the cat"), Classify("the cat", "a dog")])
    assert isinstance(single, BadInput) == (pairs is True)
    assert isinstance(pair, BadInput) == (pairs is False)
    if pairs is not False:
        assert pair.probabilities == pytest.approx(model.predict([("the cat", "a dog")])[0].probabilities, abs=1e-5)


def test_numbers() -> None:
    words = tokenizer()
    model = lively(TextLabeller(SECTION, words.size, 1))
    measuring = known(TrainedClassifier(model, words, Numbers(2.0, 0.5, 0.0, 5.0), 24, CPU, False), "regression")
    (said,) = answers(measuring, [Classify("the cat")])
    assert float(said.label) == pytest.approx(float(measuring.predict(["the cat"])[0].label), abs=1e-4)
    assert said.probabilities == {}


def test_tags(seed: int) -> None:
    chance = random.Random(seed)
    words = tokenizer()
    model = lively(WordLabeller(SECTION, words.size, 4))
    tagger = known(TrainedTagger(model, words, Classes(("O", "B", "I", "X")), 24, 4, CPU), "tagging")
    jobs = [Tag.of(sentence(chance, 40)) for _ in range(30)]
    for job, tags in zip(jobs, answers(tagger, jobs), strict=True):
        assert tags == tagger.predict([list(job.words)])[0]
        assert len(tags) == len(job.words)


def test_answers_to_questions(seed: int) -> None:
    chance = random.Random(seed)
    words = tokenizer()
    model = lively(WordLabeller(SECTION, words.size, 2))
    answerer = known(TrainedAnswerer(model, words, AnswerLimits(24, 6, 5, True), CPU), "answering")
    jobs = [Ask(sentence(chance, 5) or "who", sentence(chance, 50) or "cat", chance.randint(1, 4)) for _ in range(20)]
    jobs += [Ask("", "cat"), Ask("who", " "), Ask("who", "cat", 0)]
    found = answers(answerer, jobs)
    for job, answer in zip(jobs[:-3], found, strict=False):
        alone = answerer.answer(job.question, job.context, job.best)
        assert answer.text == alone.text
        assert answer.best.probability == pytest.approx(alone.best.probability, abs=1e-5)
        assert [one.text for one in answer.others] == [one.text for one in alone.others]
    assert all(isinstance(answer, BadInput) for answer in found[-3:])


def test_hidden_words() -> None:
    words = tokenizer()
    filler = known(TrainedFiller(lively(HiddenWords(Bert(SECTION, words.size))), words, 24, CPU), "pretraining")
    texts = ["the [MASK] sleeps", "[MASK] [MASK]", "nothing hidden", "the [MASK] " * 30]
    good, both, none, long = answers(filler, [Fill(text, 3) for text in texts])
    assert good == filler.fill(texts[0], 3)
    assert both == filler.fill(texts[1], 3)
    assert isinstance(none, BadInput)
    assert isinstance(long, BadInput)
    assert "tokens" in str(long)


def picture(chance: random.Random, size: tuple[int, int]) -> bytes:
    file = BytesIO()
    pixels = np.random.default_rng(chance.randrange(2**31)).integers(0, 256, (*size, 3), np.uint8)
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def test_pictures_and_their_classes(seed: int, tmp_path: Any) -> None:
    chance = random.Random(seed)
    section = VitSection(image=8, patch=4, width=16, heads=2, layers=2, feed_forward=24)
    model = TrainedImageClassifier(lively(ImageLabeller(section, 3)), Classes(("a", "b", "c")), "crop", CPU)
    known(model, "vision")
    files = [picture(chance, (chance.randint(1, 30), chance.randint(1, 30))) for _ in range(12)]
    found = answers(model, [*map(ClassifyImage, files), ClassifyImage(b"GIF89a", "page.gif"), ClassifyImage(b"")])
    for data, said in zip(files, found, strict=False):
        (tmp_path / "one.png").write_bytes(data)
        (alone,) = model.predict([tmp_path / "one.png"])
        assert said.label == alone.label
        assert said.probabilities == pytest.approx(alone.probabilities, abs=1e-5)
    assert all(isinstance(answer, BadPicture) for answer in found[-2:])
    assert "page.gif" in str(found[-2])


def test_words_in_pictures(seed: int, tmp_path: Any) -> None:
    chance = random.Random(seed)
    section = words_recipe().model
    assert isinstance(section, RecognizerSection)
    charset = Charset(tuple("0123456789"))
    reader = TrainedTextReader(lively(build_recognizer(section, charset)), charset, "squash", CPU)
    known(reader, "recognition")
    ways = [Way(), Way(fast=True), Way(sure=0.3), Way(turn=True), Way(beam=3)]
    files = [picture(chance, (chance.randint(4, 60), chance.randint(4, 60))) for _ in range(12)]
    jobs = [ReadImage(data, way=chance.choice(ways)) for data in files]
    found = answers(reader, [*jobs, ReadImage(b"nothing", "empty.png")])
    for job, read in zip(jobs, found, strict=False):
        if job.way.beam > 1:  # this model is not searched
            assert isinstance(read, BadInput)
            continue
        (tmp_path / "one.png").write_bytes(job.data)
        (alone,) = reader.read([tmp_path / "one.png"], fast=job.way.fast, turn=job.way.turn, sure=job.way.sure)
        assert read.text == alone.text
        assert read.confidence == pytest.approx(alone.confidence, abs=1e-5)
        assert read.turned == alone.turned
    assert isinstance(found[-1], BadPicture)


def test_what_a_run_has_not_learned_is_refused() -> None:
    model = classifier()
    labels, tags = answers(model, [Classify("cat"), Tag.of("cat")])
    assert labels.label in "abc"
    assert isinstance(tags, BadInput)
    assert kinds_of(model) == (Classify, Embed)


def test_what_is_not_a_number_is_a_failure() -> None:
    model = classifier()
    with torch.no_grad():
        next(model.model.parameters()).fill_(float("nan"))
    assert all(isinstance(one, Failure) for one in answers(model, [Classify("cat"), Embed("cat")]))


def test_costs_follow_the_texts() -> None:
    long = "word " * 100
    for job in (Classify("a"), Embed("a"), Fill("a")):
        assert 1 <= cost(job) < cost(replace(job, text=long))
    assert cost(Tag.of("a")) < cost(Tag.of(long))
    assert cost(Ask("a", "a")) < cost(Ask("a", long))
    assert cost(ReadImage(b"")) == cost(ClassifyImage(b"")) > 1
