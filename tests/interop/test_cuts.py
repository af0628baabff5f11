"""Texts that find a tokenizer which cuts otherwise: nothing of the vocabulary is left out, nothing spells a special
token, and what is told of one is fit for a terminal."""

from __future__ import annotations

import pytest
import torch
from seeded import seed  # noqa: F401

from jumok.interop.cuts import STRANGE, differing, shown, texts_to_cut
from jumok.text.tokenizer import train_tokenizer

pytestmark = pytest.mark.usefixtures("seed")
LINES = ["The old man reads a Book, slowly.", "주목은 나무다", "a naïve café; 42 cups < 50 > unk"] * 8


@pytest.mark.parametrize("kind", ["bpe", "unigram", "byte", "word", "wordpiece", "space", "character"])
def test_the_whole_vocabulary_is_in_them(kind: str) -> None:
    tokenizer = train_tokenizer(LINES, kind, 300)
    texts = texts_to_cut(tokenizer, [])
    everything = "".join(texts)
    written = [tokenizer.decode([[id]])[0].strip() for id in range(tokenizer.size) if not tokenizer.is_special(id)]
    assert not [piece for piece in written if "\ufffd" not in piece and piece not in everything]
    if kind in ("word", "space"):  # each is a word, and comes out again
        found = {id for row in tokenizer.encode(texts) for id in row}
        assert found >= {id for id in range(tokenizer.size) if not tokenizer.is_special(id)}
    assert all(strange in everything for strange in STRANGE)


def test_special_tokens_are_not_spelled_and_long_ones_are_long() -> None:
    tokenizer = train_tokenizer(LINES, "character", 300)
    texts = texts_to_cut(tokenizer, ["<", "an"], 70)
    assert texts
    assert not [text for text in texts if "<" in text or "an" in text]
    words = texts_to_cut(train_tokenizer(LINES, "word", 300), [], 70)
    assert sum(len(text.split()) == 70 for text in words) >= 20


def test_the_same_seed_gives_the_same_texts() -> None:
    tokenizer = train_tokenizer(LINES, "bpe", 300)
    state = torch.get_rng_state()
    texts = texts_to_cut(tokenizer, [])
    assert texts != texts_to_cut(tokenizer, [])
    torch.set_rng_state(state)
    assert texts == texts_to_cut(tokenizer, [])


def test_the_first_difference_is_told() -> None:
    assert differing(["a", "b"], [[1], [2]], [[1], [2]]) is None
    assert differing(["a", "b\x1b[1m", "c"], [[1], [2], [3]], [[1], [3], [4]]) == '"b\\x1b[1m"'
    assert shown("가" * 80) == '"' + "가" * 60 + '…"'
