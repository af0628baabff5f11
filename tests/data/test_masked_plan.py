"""Batches of hidden words from real text: framed, each stretch once an epoch, and anything about update n at once."""

from __future__ import annotations

import random
import secrets
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from jumok.data.masked_batch import MaskedBatch
from jumok.data.masked_plan import MaskedPlan, MaskedTexts
from jumok.data.packing import PackedSide
from jumok.data.text_store import TextStore
from jumok.errors import BadInput
from jumok.recipe import Corpus, Masking
from jumok.text.tokenizer import Tokenizer, train_tokenizer

ALPHABET = "abcdefghijklmnopqrstuvwxyz"


class Library:
    """A text of documents in which no line comes twice, and its vocabulary."""

    def __init__(self, folder: Path, seed: int, documents: int = 25) -> None:
        chance = random.Random(seed)
        words = sorted({"".join(chance.choices(ALPHABET, k=chance.randint(2, 6))) for _ in range(80)})
        self.documents = [
            [" ".join(chance.choices(words, k=chance.randint(1, 12))) for _ in range(chance.randint(1, 6))]
            for _ in range(documents)
        ]
        file = folder / f"{seed}.txt"
        file.write_text("\n\n".join("\n".join(lines) for lines in self.documents) + "\n", encoding="utf-8")
        self.tokenizer: Tokenizer = train_tokenizer(
            [line for lines in self.documents for line in lines], "wordpiece", 90
        )
        corpus = Corpus.model_validate({"text": str(file)})
        self.store = TextStore.open_or_build(corpus, "train", self.tokenizer, folder / "cache", processes=1)

    def texts(self, window: int = 24, **masking: Any) -> MaskedTexts:
        return MaskedTexts(self.store, self.tokenizer, Masking(**masking), window, "auto")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    seed = secrets.randbelow(2**31)
    print(f"seed {seed}")
    return Library(tmp_path_factory.mktemp("library"), seed)


def rows_of(batch: MaskedBatch) -> list[list[int]]:
    """What was there before it was hidden, row by row."""
    ids = batch.words.ids.flatten().clone().long()
    ids[batch.places] = batch.wanted
    if isinstance(batch.words, PackedSide):
        starts = batch.words.starts.tolist()
    else:
        starts = [n * batch.words.ids.size(1) for n in range(len(batch))]
    return [ids[a : a + n].tolist() for a, n in zip(starts, batch.words.lengths.tolist(), strict=True)]


@pytest.mark.parametrize("packed", [False, True])
def test_each_stretch_once_an_epoch_within_the_budget(library: Library, packed: bool) -> None:
    texts = library.texts()
    plan = MaskedPlan([texts], [1], 100, seed=5, packed=packed)
    specials = library.tokenizer.specials
    for epoch in (0, 2):
        seen: list[int] = []
        words: list[int] = []
        for update in range(epoch * plan.batches_per_epoch, (epoch + 1) * plan.batches_per_epoch):
            (batch,) = plan.at(update)
            seen += batch.indices
            for row in rows_of(batch):
                assert (row[0], row[-1]) == (specials.start, specials.end)
                assert len(row) <= 24
                assert not {specials.start, specials.end} & set(row[1:-1])
                words += row[1:-1]
            if packed:
                assert batch.filled, "all rows are of a size that repeats"
            else:
                assert len(batch) == 1 or batch.words.ids.numel() <= 100
        assert sorted(seen) == list(range(len(texts.found)))
        lines = [line for document in library.documents for line in document]
        assert sorted(words) == sorted(id for row in library.tokenizer.encode(lines) for id in row)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("sentences", ["none", "order", "next"])
def test_an_update_is_a_pure_function_of_its_number(library: Library, packed: bool, sentences: str) -> None:
    one, other = (
        MaskedPlan([library.texts(sentences=sentences)], [1], 80, seed=3, accumulate=3, packed=packed) for _ in range(2)
    )
    for update in (40, 0, 7, 40):
        whole = one.at(update)
        assert len(whole) == 3
        for number in (2, 0, 1):
            (alone,) = other.at(update, [number])
            assert torch.equal(alone.words.ids, whole[number].words.ids)
            assert torch.equal(alone.places, whole[number].places)
            assert torch.equal(alone.wanted, whole[number].wanted)
            assert alone.indices == whole[number].indices
    first, later = one.at(0)[0], one.at(one.batches_per_epoch)[0]
    assert not torch.equal(first.words.ids, later.words.ids), "hidden anew at each reading"


def halves(row: list[int], end: int) -> tuple[list[int], list[int]]:
    middle = row.index(end)
    return row[1:middle], row[middle + 1 : -1]


def holds(words: list[int], part: list[int]) -> bool:
    return any(words[at : at + len(part)] == part for at in range(len(words) - len(part) + 1))


def stretches_of(library: Library, texts: MaskedTexts) -> list[tuple[list[int], set[int]]]:
    """The words of each stretch, and after how many of them a line ends inside of it."""
    rows = library.tokenizer.encode([line for document in library.documents for line in document])
    flat = [id for row in rows for id in row]
    ends = set(np.cumsum([len(row) for row in rows]).tolist())
    found, at = [], 0
    for length in texts.found.lengths.tolist():
        found.append((flat[at : at + length], {place - at for place in ends if at < place < at + length}))
        at += length
    assert at == len(flat)
    return found


@pytest.mark.parametrize("sentences", ["order", "next"])
def test_halves_their_segments_and_how_they_stand(library: Library, sentences: str) -> None:
    texts, plain = library.texts(sentences=sentences), library.texts(23)
    end = library.tokenizer.specials.end
    assert texts.found.lengths.tolist() == plain.found.lengths.tolist(), (
        "a window of one token more, for one [SEP] more"
    )
    draw = secrets.randbelow(2**31)
    generator = np.random.default_rng(draw)
    chosen, true, number_of = np.arange(len(texts.found)), stretches_of(library, texts), texts.found.document
    told: list[int] = []
    for _ in range(6):
        batch = texts.batch(chosen, generator, None, packed=False)
        assert batch.order is not None
        assert batch.segments is not None
        for number, (row, label) in enumerate(zip(rows_of(batch), batch.order.tolist(), strict=True)):
            first, second = halves(row, end)
            words, cuts = true[number]
            where = f"seed {draw}, stretch {number}"
            width = batch.segments.size(1)
            parts = [0] * (len(first) + 2) + [1] * (len(second) + 1)
            assert batch.segments[number].tolist() == parts + [0] * (width - len(parts)), where
            assert len(row) == len(words) + 3 <= 24, f"{where}: the length does not tell how halves stand"
            told.append(label)
            if label < 0:
                assert (first, second, len(words)) == (words, [], 1), f"{where}: of one word there are no halves"
                continue
            own = second + first if label and sentences == "order" else first + second
            cut = len(second) if label and sentences == "order" else len(first)
            assert cut in (cuts or set(range(1, len(words)))), f"{where}: cut where a line ends"
            if not label or sentences == "order":
                assert own == words, where
            else:
                assert first == words[:cut], where
                foreign = [other for other, (others, _) in enumerate(true) if holds(others, second)]
                assert any(number_of[other] != number_of[number] for other in foreign), f"{where}: another document"
    asked = [label for label in told if label >= 0]
    near = 6 * 0.5 / np.sqrt(len(asked))
    assert np.mean(asked) < 0.5 + near, f"seed {draw}"
    assert np.mean(asked) > (0.5 if sentences == "order" else 0.4) - near, f"seed {draw}: others may be too short"


def test_corpora_take_turns_and_are_told_apart(library: Library, tmp_path: Path) -> None:
    other = Library(tmp_path, secrets.randbelow(2**31), documents=6)
    second = MaskedTexts(other.store, library.tokenizer, Masking(), 24, "auto")
    plan = MaskedPlan([library.texts(), second], [1, 3], 60, seed=1)
    corpora = [batch.corpus for update in range(40) for batch in plan.at(update)]
    assert corpora.count(1) == 30
    assert all(max(batch.indices) < len(second.found) for n in range(40) for batch in plan.at(n) if batch.corpus)


def test_what_cannot_be_hidden_is_refused(library: Library, tmp_path: Path) -> None:
    plain = train_tokenizer(["a b c d"], "word", 20)
    with pytest.raises(BadInput, match=r"kind word has no \[MASK\].*wordpiece"):
        MaskedTexts(library.store, plain, Masking(), 24, "auto")
    with pytest.raises(BadInput, match=r"data.window 3 leaves no room"):
        library.texts(3)
    with pytest.raises(BadInput, match=r"data.window 4 leaves no room"):
        library.texts(4, sentences="next")
