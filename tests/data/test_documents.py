"""Running text cut into stretches: within documents, every word once and in order, however documents are told."""

from __future__ import annotations

import random
import secrets
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from jumok.data import documents
from jumok.data.documents import Stretches, stretches, words_of
from jumok.data.text_store import TextStore
from jumok.recipe import Corpus
from jumok.text.tokenizer import train_tokenizer

END = 3


class Text(TextStore):
    """A text out of thin air: words are numbers from 10 on, lines end in END."""

    def __init__(self, lines: list[list[int]], folder: Path) -> None:
        flat = [id for line in lines for id in (*line, END)]
        self.starts = np.concatenate([[0], np.cumsum([len(line) + 1 for line in lines])])
        self.ids = np.array(flat, np.uint32)
        self.meta, self.folder, self.key = {}, folder, ""


def random_lines(chance: random.Random, blank: float) -> list[list[int]]:
    """No word comes twice, so that each can be found again."""
    lines, word = [], 10
    for _ in range(chance.randint(1, 40)):
        count = 0 if chance.random() < blank else chance.choice([1, 2, 5, 9, 30])
        lines.append(list(range(word, word + count)))
        word += count
    return lines


def documents_of(lines: list[list[int]], how: str) -> list[list[int]]:
    """The words of each document, written out."""
    if how == "auto":
        how = "blank" if any(not line for line in lines[:-1]) else "lines"
    if how == "lines":
        return [line for line in lines if line]
    found: list[list[int]] = [[]]
    for line in lines:
        if line:
            found[-1] += line
        else:
            found.append([])
    return [document for document in found if document]


def read(store: TextStore, found: Stretches) -> list[list[int]]:
    flat, lengths = words_of(store, found, np.arange(len(found)), END)
    return [part.tolist() for part in np.split(flat, np.cumsum(lengths)[:-1])] if len(found) else []


@pytest.mark.parametrize("how", ["lines", "blank", "auto"])
@pytest.mark.parametrize("blank", [0.0, 0.3])
def test_every_word_once_in_order_and_never_across_documents(tmp_path: Path, how: str, blank: float) -> None:
    for turn in range(60):
        seed = secrets.randbelow(2**31)
        chance = random.Random(seed)
        lines, room = random_lines(chance, blank), chance.randint(1, 20)
        store = Text(lines, tmp_path / str(turn))
        store.folder.mkdir()
        found = stretches(store, room, how)
        parts, expected = read(store, found), documents_of(lines, how)
        where = f"seed {seed}"
        assert [word for part in parts for word in part] == [word for line in lines for word in line], where
        assert found.lengths.tolist() == [len(part) for part in parts], where
        assert all(0 < len(part) <= room for part in parts), where
        number_of = {word: number for number, document in enumerate(expected) for word in document}
        numbers = [{number_of[word] for word in part} for part in parts]
        assert all(len(one) == 1 for one in numbers), where
        # two stretches say they are of one document if and only if they are
        mine = [one.pop() for one in numbers]
        same = found.document[1:] == found.document[:-1]
        assert same.tolist() == [a == b for a, b in pairwise(mine)], where


def test_whole_lines_as_many_as_fit(tmp_path: Path) -> None:
    """A line is cut only where it is longer than a stretch may be; no line that would fit begins a new stretch."""
    for turn in range(60):
        seed = secrets.randbelow(2**31)
        chance = random.Random(seed)
        lines, room = random_lines(chance, 0.2), chance.randint(3, 20)
        store = Text(lines, tmp_path / str(turn))
        store.folder.mkdir()
        expected: list[list[int]] = []
        for document in documents_of_lines(lines):
            held: list[int] = []
            for line in document:
                if held and len(held) + len(line) > room:
                    expected.append(held)
                    held = []
                for word in line:
                    if len(held) == room:
                        expected.append(held)
                        held = []
                    held = [*held, word]
            expected += [held] if held else []
        assert read(store, stretches(store, room, "blank")) == expected, f"seed {seed}"


def documents_of_lines(lines: list[list[int]]) -> list[list[list[int]]]:
    found: list[list[list[int]]] = [[]]
    for line in lines:
        if line:
            found[-1].append(line)
        else:
            found.append([])
    return found


@pytest.mark.parametrize("how", ["lines", "blank", "auto"])
def test_a_range_of_lines_is_a_text_of_its_own(tmp_path: Path, how: str) -> None:
    for turn in range(40):
        seed = secrets.randbelow(2**31)
        chance = random.Random(seed)
        lines, room = random_lines(chance, 0.3), chance.randint(1, 15)
        low = chance.randint(0, len(lines))
        high = chance.randint(low, len(lines))
        store = Text(lines, tmp_path / str(turn))
        store.folder.mkdir()
        found = stretches(store, room, how, (low, high))
        # how documents are told is a property of the text, not of a part of it
        told = how if how != "auto" else "blank" if any(not line for line in lines[:-1]) else "lines"
        whole = tmp_path / f"{turn}-alone"
        whole.mkdir()
        alone = Text(lines[low:high], whole)
        expected = read(alone, stretches(alone, room, told)) if high > low else []
        assert read(store, found) == expected, f"seed {seed}: {low} … {high}"


def test_what_was_found_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = random_lines(random.Random(1), 0.2)
    store = Text(lines, tmp_path)
    first = read(store, stretches(store, 5, "auto"))
    files = sorted(file.name for file in tmp_path.iterdir())
    assert len(files) == 1
    monkeypatch.setattr(documents, "_cut", lambda *_: pytest.fail("it was there already"))
    assert read(store, stretches(store, 5, "auto")) == first
    monkeypatch.undo()
    others = [stretches(store, 6, "auto"), stretches(store, 5, "lines"), stretches(store, 5, "auto", (0, 1))]
    assert len(list(tmp_path.iterdir())) == 1 + len(others), "another question, another file"


@pytest.mark.parametrize("kind", ["wordpiece", "bpe"])
def test_the_words_are_the_tokens_of_the_text(tmp_path: Path, kind: str) -> None:
    texts = ["the cat sat on a mat.", "", "it was 고양이!", "a dog, a cat; no café", "", "", "end of it"]
    file = tmp_path / "text.txt"
    file.write_text("\n".join(texts) + "\n", encoding="utf-8")
    tokenizer = train_tokenizer(texts, kind, 120)
    corpus = Corpus.model_validate({"text": str(file)})
    store = TextStore.open_or_build(corpus, "train", tokenizer, tmp_path / "cache", processes=1)
    for room in (1, 4, 100):
        found = stretches(store, room, "auto")
        flat, _ = words_of(store, found, np.arange(len(found)), tokenizer.specials.end)
        assert flat.tolist() == [id for row in tokenizer.encode(texts) for id in row]
    assert len(stretches(store, 100, "auto")) == 3
    some = words_of(store, stretches(store, 100, "lines"), np.array([3, 0, 3]), tokenizer.specials.end)
    assert some[0].tolist() == [id for line in (6, 0, 6) for id in tokenizer.encode([texts[line]])[0]]
