"""Word alignments as links between tokens: all tokens of one word with all of the other, for every pair of a store."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path

import numpy as np
import pytest

from jumok.data.links import TokenLinks
from jumok.data.pharaoh import format_pharaoh
from jumok.data.store import TokenStore
from jumok.errors import BadInput
from jumok.recipe import Corpus
from jumok.text.tokenizer import Tokenizer, train_tokenizer

WORDS = ["a", "dog", "devoured", "his", "treat", "because", "he", "was", "hungry", "under", "apple", "trees", "old"]


def random_pairs(count: int, seed: int) -> tuple[list[str], list[str], list[set[tuple[int, int]]]]:
    draw = random.Random(seed)
    sides = [[" ".join(draw.choices(WORDS, k=draw.randint(1, 7))) for _ in range(count)] for _ in range(2)]
    links = []
    for source, target in zip(*sides, strict=True):
        cells = [(i, j) for i in range(len(source.split())) for j in range(len(target.split()))]
        links.append(set(draw.sample(cells, draw.randint(0, len(cells)))))
    return sides[0], sides[1], links


def write(folder: Path, sources: list[str], targets: list[str], lines: list[str]) -> Corpus:
    files = {"source": sources, "target": targets, "alignments": lines}
    for name, texts in files.items():
        (folder / name).write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return Corpus(
        source=[str(folder / "source")], target=[str(folder / "target")], alignments=str(folder / "alignments")
    )


def opened(folder: Path, corpus: Corpus, tokenizer: Tokenizer, longest: int = 100) -> tuple[TokenStore, TokenLinks]:
    store = TokenStore.open_or_build(corpus, "train", tokenizer, tokenizer, folder / "cache", longest)
    content = hashlib.sha256(Path(str(corpus.alignments)).read_bytes()).hexdigest()
    return store, TokenLinks.open_or_build(corpus, "train", store, (tokenizer, tokenizer), content, lambda text: None)


@pytest.mark.parametrize("kind", ["word", "bpe", "character"])
def test_links_between_words_are_links_between_all_their_tokens(kind: str, tmp_path: Path) -> None:
    seed = random.randrange(10**9)
    print("seed", seed)
    sources, targets, links = random_pairs(40, seed)
    tokenizer = train_tokenizer([*sources, *targets], kind, 60)
    longest = 18 if kind == "character" else 6  # some pairs are left out of the store
    links[:3], sources[:3], targets[:3] = [{(0, 0)}] * 3, ["a dog"] * 3, ["dog"] * 3
    corpus = write(tmp_path, sources, targets, [format_pharaoh(one) for one in links])
    store, found = opened(tmp_path, corpus, tokenizer, longest)
    assert 3 <= len(store) < 40 or kind == "word"
    rows = random.Random(seed).sample(range(len(store)), len(store))
    places = found.of(rows)
    for place, index in enumerate(rows):
        line = store.line(index)
        read, written = tokenizer.encode_with_offsets(sources[line]), tokenizer.encode_with_offsets(targets[line])
        expected = {
            (s, t)
            for s, one in enumerate(read.words)
            for t, two in enumerate(written.words)
            if (one, two) in links[line]
        }
        own = places.row == place
        pairs = list(zip(places.source[own].tolist(), places.target[own].tolist(), strict=True))
        assert len(pairs) == len(set(pairs))
        assert set(pairs) == expected


def test_nobody_has_links_where_nobody_asks(tmp_path: Path) -> None:
    corpus = write(tmp_path, ["a dog", "old trees"], ["dog", "trees old"], ["1-0", ""])
    _, found = opened(tmp_path, corpus, train_tokenizer(WORDS, "word", 60))
    assert [len(column) for column in found.of([])] == [0, 0, 0]
    assert [len(column) for column in found.of([1])] == [0, 0, 0]
    assert found.of([1, 0]).row.tolist() == [1]


def test_they_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = write(tmp_path, ["a dog"], ["dog"], ["1-0"])
    tokenizer = train_tokenizer(WORDS, "word", 60)
    _, first = opened(tmp_path, corpus, tokenizer)
    monkeypatch.setattr("jumok.data.links.parse_pharaoh", None)
    _, again = opened(tmp_path, corpus, tokenizer)
    assert np.array_equal(first.links, again.links)
    assert np.array_equal(first.offsets, again.offsets)


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (["1-0"], "has 1 lines, but the corpus has more pairs"),
        (["1-0", "", "0-0"], "has more than 2 lines, but the corpus has 2 pairs"),
        (["1-0", "2-0"], "line 2: the link 2-0 names source word 2"),
        (["1-0", "0:0"], 'line 2: "0:0" is not a link'),
        (["", ""], "has no link"),
    ],
)
def test_what_does_not_fit_is_named(lines: list[str], told: str, tmp_path: Path) -> None:
    corpus = write(tmp_path, ["a dog", "old trees"], ["dog", "trees old"], lines)
    with pytest.raises(BadInput) as caught:
        opened(tmp_path, corpus, train_tokenizer(WORDS, "word", 60))
    assert told in str(caught.value)
