"""Tags: every word gets one however long its sentence is, the loss is over words, and both readers learn it."""

from __future__ import annotations

import random
import secrets
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from seeded import seed  # noqa: F401
from torch.nn import functional as F

from jumok import api
from jumok import recipe as recipes
from jumok.data.batch import Sequences
from jumok.errors import BadInput
from jumok.models.reader import WordLabeller
from jumok.recipe import BertSection, Recipe
from jumok.tasks.build import build_task
from jumok.tasks.labelling import Classes
from jumok.tasks.tagger import Tagger, windows
from jumok.text.tokenizer import Tokenizer, train_tokenizer

CPU = torch.device("cpu")
KINDS = {"walks": "VERB", "sings": "VERB", "cat": "NOUN", "house": "NOUN", "red": "ADJ", "tall": "ADJ", "the": "DET"}
SMALL = [
    "tokenizer.vocabulary=150", "training.batch_tokens=400", "training.updates=80", "training.warmup=5",
    "training.validate_every=40", "training.checkpoint_every=40", "training.learning_rate=0.005",
    "data.max_length=16", "model.dropout=0.0", "model.width=32", "model.layers=1",
]  # fmt: skip
RECIPES = {
    "tag": [*SMALL, "model.heads=2", "model.feed_forward=64"],
    "tag-lstm": [*SMALL, "model.embedding=24"],
}


def tagged_file(path: Path, count: int = 200) -> Path:
    chance = random.Random(4)
    sentences = [chance.choices(list(KINDS), k=chance.randint(1, 20)) for _ in range(count)]
    blocks = ["\n".join(f"{word} {KINDS[word]}" for word in words) for words in sentences]
    path.write_text("\n\n".join(blocks) + "\n", encoding="utf-8")
    return path


def recipe_of(name: str, file: Path, *keys: str) -> Recipe:
    return recipes.read(name, [*RECIPES[name], f"data.train.examples={file}", *keys])


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    lines = [" ".join(random.Random(1).choices(list(KINDS), k=50)), "alphabet of characters: éàü 고양이"]
    return train_tokenizer(lines, "wordpiece", 120)


def random_words(chance: random.Random, most: int) -> list[str]:
    letters = "abcdefghilmnoprstuwé고양이"
    known = list(KINDS)
    return [
        chance.choice(known) if chance.random() < 0.5 else "".join(chance.choices(letters, k=chance.randint(1, 15)))
        for _ in range(chance.randint(0, most))
    ]


def test_windows_cover_every_word(tokenizer: Tokenizer) -> None:
    for _ in range(150):
        draw = secrets.randbelow(2**31)
        chance = random.Random(draw)
        sentences = [random_words(chance, 25) for _ in range(3)]
        room, stride = chance.randint(1, 20), chance.randint(0, 25)
        for words, found in zip(sentences, windows(tokenizer, sentences, room, stride), strict=True):
            where = f"seed {draw}, room {room}, stride {stride}"
            pieces = [(row or [tokenizer.specials.unknown])[:room] for row in tokenizer.encode(words)]
            assert {word for window in found for word in window.words} == set(range(len(words))), where
            for window in found:
                assert 0 < len(window.ids) <= room, where
                assert window.words == list(range(window.words[0], window.words[-1] + 1)), where
                assert window.ids == [id for word in window.words for id in pieces[word]], where
                for word, place in zip(window.words, window.places, strict=True):
                    assert window.ids[place : place + len(pieces[word])] == pieces[word], where
            for before, after in pairwise(found):
                shared = sum(len(pieces[word]) for word in set(before.words) & set(after.words))
                assert before.words[0] < after.words[0], where
                assert shared <= min(stride, room // 2), where
            if not stride:
                assert sum(len(window.words) for window in found) == len(words), f"{where}: each word once"


def tagger_of(tokenizer: Tokenizer, max_length: int, stride: int) -> Tagger:
    section = BertSection(width=16, heads=2, layers=1, feed_forward=24)
    model = WordLabeller(section, tokenizer.size, 3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return Tagger(model.eval(), tokenizer, Classes(("A", "B", "C")), max_length, stride, CPU)


@pytest.mark.parametrize("stride", [1, 4, 64])
def test_every_word_gets_the_tag_of_the_window_that_sees_most_around_it(tokenizer: Tokenizer, stride: int) -> None:
    for _ in range(10):
        draw = secrets.randbelow(2**31)
        chance = random.Random(draw)
        tagger = tagger_of(tokenizer, chance.randint(3, 20), stride)
        sentences = [random_words(chance, 30) for _ in range(4)]
        found = tagger.predict(sentences)
        assert [len(tags) for tags in found] == [len(words) for words in sentences]
        assert found == [tagger.predict([words])[0] for words in sentences], f"seed {draw}: in any company"
        for words, tags in zip(sentences, found, strict=True):
            (cut,) = windows(tokenizer, [words], tagger.max_length - 2, stride)
            candidates: dict[int, list[tuple[int, str]]] = {word: [] for word in range(len(words))}
            for window in cut:
                ids = torch.tensor([[tokenizer.specials.start, *window.ids, tokenizer.specials.end]])
                with torch.no_grad():
                    scores = tagger.model(Sequences(ids, torch.tensor([ids.size(1)])))[0]
                for word, place in zip(window.words, window.places, strict=True):
                    size = len(window.ids)
                    left = place if window.words[0] else size
                    right = size if window.words[-1] == len(words) - 1 else size - 1 - place
                    candidates[word].append((min(left, right), "ABC"[int(scores[place + 1].argmax())]))
            for word, tag in enumerate(tags):
                widest = max(margin for margin, _ in candidates[word])
                assert tag in {one for margin, one in candidates[word] if margin == widest}, f"seed {draw}, word {word}"


def test_words_of_nothing_and_texts(tokenizer: Tokenizer) -> None:
    tagger = tagger_of(tokenizer, 10, 2)
    assert tagger.predict([]) == []
    assert tagger.predict([[], ["\u200b", " ", "∮∮"]])[0] == []
    assert len(tagger.predict([["\u200b", " ", "∮∮"]])[0]) == 3
    assert tagger.predict(["the cat  walks"]) == tagger.predict([["the", "cat", "walks"]])
    with pytest.raises(BadInput, match="max_length 2 leaves no room"):
        tagger_of(tokenizer, 2, 1).predict([["a"]])


@pytest.mark.parametrize("name", ["tag", "tag-lstm"])
def test_it_learns_tags(name: str, tmp_path: Path) -> None:
    file = tagged_file(tmp_path / "train.conll")
    model = api.train(recipe_of(name, file), tmp_path / "run", quiet=True, report=False)
    assert model.labels == ("ADJ", "DET", "NOUN", "VERB")
    chance = random.Random(9)
    sentences = [chance.choices(list(KINDS), k=k) for k in (1, 5, 60)]
    found = model.predict(sentences)
    pairs = [
        (KINDS[word], tag)
        for words, tags in zip(sentences, found, strict=True)
        for word, tag in zip(words, tags, strict=True)
    ]
    assert sum(a == b for a, b in pairs) > 0.8 * len(pairs)


def test_the_loss_is_over_first_tokens_of_words(tmp_path: Path) -> None:
    file = tagged_file(tmp_path / "train.conll", 40)
    task: Any = build_task(recipe_of("tag", file, "training.class_weights=balanced"), CPU, lambda _: None)
    batch = task.batches(0)[0]
    objective = task.objective.eval()
    weights = task.labelling.weights(task.recipe.training)
    with torch.no_grad():
        log_p = F.log_softmax(objective.model(batch.words), dim=-1)
        found = objective(batch)
    expected, count = 0.0, 0
    for row, index in enumerate(batch.indices):
        ids = batch.words.ids[row, : int(batch.words.lengths[row])].tolist()
        assert (ids[0], ids[-1]) == (task.tokenizer.specials.start, task.tokenizer.specials.end)
        item = task.item_of(0, index)
        labelled = [(place, int(label)) for place, label in enumerate(batch.labels[row]) if label >= 0]
        pieces = task.tokenizer.encode(list(item.words))
        first = next(
            n for n in range(len(item.words)) if pieces[n] == ids[1 : 1 + len(pieces[n])] and _fits(pieces[n:], ids)
        )
        place = 1
        for word, (at, label) in enumerate(labelled, first):
            assert at == place
            assert task.labelling.names[label] == item.tags[word]
            place += len(pieces[word])
            expected -= weights[label] * log_p[row, at, label].item()
            count += 1
        assert place == len(ids) - 1
    assert (float(found.sum), found.count, batch.tokens) == (pytest.approx(expected, rel=1e-4), count, count)


def _fits(pieces: list[list[int]], ids: list[int]) -> bool:
    flat = [id for piece in pieces for id in piece]
    return flat[: len(ids) - 2] == ids[1:-1]


def test_all_words_are_learned_from_once_an_epoch(tmp_path: Path) -> None:
    file = tagged_file(tmp_path / "train.conll", 60)
    task: Any = build_task(recipe_of("tag", file, "data.hold_out=1"), CPU, lambda _: None)
    count = sum(batch.tokens for update in range(task.plan.batches_per_epoch) for batch in task.batches(update))
    assert count == sum(len(item.words) for item in task.items[0])
    values = task.validate()
    items = task.kept[0]
    tags, loss = task.tagger.predict_with_loss([item.words for item in items], [item.tags for item in items])
    right = [a == b for item, said in zip(items, tags, strict=True) for a, b in zip(item.tags, said, strict=True)]
    assert values["accuracy"] == pytest.approx(np.mean(right))
    assert values["loss"] == pytest.approx(loss)


def test_a_tag_that_training_has_not_seen_is_named(tmp_path: Path) -> None:
    file, valid = tagged_file(tmp_path / "train.conll"), tmp_path / "valid.conll"
    valid.write_text("the DET\ncat NUON\n", encoding="utf-8")
    with pytest.raises(BadInput, match=r'valid\.conll, line 2: the label "NUON".*Did you mean "NOUN"'):
        build_task(recipe_of("tag", file, f"data.valid={{examples: {valid}}}"), CPU, lambda _: None)


def test_one_tag_alone_is_told_with_its_column(tmp_path: Path) -> None:
    file = tmp_path / "train.conll"
    file.write_text("the DET _\ncat NOUN _\n\na DET _\n", encoding="utf-8")
    with pytest.raises(BadInput, match=r'only one label \("_"\) in column 2 of 3.*data\.train\.fields\.label'):
        build_task(recipe_of("tag", file), CPU, lambda _: None)
    task: Any = build_task(recipe_of("tag", file, "data.train.fields.label=1"), CPU, lambda _: None)
    assert task.labelling.names == ("DET", "NOUN")
    with pytest.raises(BadInput, match='"tag" is no number; columns of tagged words are told by their numbers'):
        build_task(recipe_of("tag", file, "data.train.fields.label=tag"), CPU, lambda _: None)


def test_a_sentence_alone_cannot_be_kept_back(tmp_path: Path) -> None:
    file = tmp_path / "train.conll"
    file.write_text("the DET\ncat NOUN\n", encoding="utf-8")
    with pytest.raises(BadInput, match=r"a single sentence of 2 words.*a blank line behind each sentence.*--valid"):
        build_task(recipe_of("tag", file), CPU, lambda _: None)


def test_the_only_sentence_with_a_tag_is_learned_from(tmp_path: Path) -> None:
    chance, file = random.Random(secrets.randbelow(2**31)), tmp_path / "train.conll"
    sentences = ["the DET\ncat NOUN"] * 5 + [f"w{n} RARE{n}" for n in range(5)]
    chance.shuffle(sentences)
    file.write_text("\n\n".join(sentences) + "\n", encoding="utf-8")
    for number in range(8):
        task: Any = build_task(recipe_of("tag", file, f"seed={number}"), CPU, lambda _: None)
        assert {tag for item in task.kept[0] for tag in item.tags} == {"DET", "NOUN"}
        assert sum(task.labelling.counts) == 13
