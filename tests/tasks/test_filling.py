"""Guessing hidden words and turning texts into vectors: what comes out is what the model says, in any company."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from seeded import seed  # noqa: F401

from jumok.data.batch import Sequences
from jumok.errors import BadInput
from jumok.models.bert import Bert, HiddenWords
from jumok.models.reader import build_reader
from jumok.recipe import BertSection, RecurrentReaderSection
from jumok.tasks.embedder import POOLINGS, embed
from jumok.tasks.filler import Filler
from jumok.text.tokenizer import Tokenizer, train_tokenizer

CPU = torch.device("cpu")
TEXTS = [
    "the cat sat on the mat .",
    "a dog",
    "naïve Café",
    "고양이가 잔다 .",
    "the the the the the the the the the",
    "x",
]
SECTION = BertSection(width=16, heads=2, layers=2, feed_forward=24, max_positions=64)
READERS = [SECTION, RecurrentReaderSection(embedding=12, width=16, layers=1)]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(TEXTS * 3, "wordpiece", 90)


def stirred(model: Any) -> Any:
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model.eval()


def filler_of(tokenizer: Tokenizer, window: int = 32) -> Filler:
    return Filler(stirred(HiddenWords(Bert(SECTION, tokenizer.size))), tokenizer, window, CPU)


@pytest.mark.parametrize("text", ["the [MASK] sat", "[MASK]", "[MASK][MASK] on the [MASK] .", "고양이가 [MASK] ."])
def test_guesses_are_the_models_own(tokenizer: Tokenizer, text: str) -> None:
    filler, specials = filler_of(tokenizer), tokenizer.specials
    found = filler.fill(text, best=7)
    assert len(found) == text.count("[MASK]")
    row, places = [specials.start], []
    for number, ids in enumerate(tokenizer.encode(text.split("[MASK]"))):
        if number:
            places.append(len(row))
            row.append(specials.mask or 0)
        row += ids
    row.append(specials.end)
    with torch.no_grad():
        logits = filler.model.head(filler.model.reader(Sequences.pad([row]))[0, places])
    words = [id for id in range(tokenizer.size) if not tokenizer.is_special(id)]
    for place, guesses in enumerate(found):
        assert len(guesses) == 7
        shares = torch.softmax(logits[place, words], dim=-1)
        best = shares.argsort(descending=True)[:7].tolist()
        assert [guess.token for guess in guesses] == tokenizer.pieces([words[n] for n in best])
        assert [guess.probability for guess in guesses] == pytest.approx(shares[best].tolist(), abs=1e-5)
        likely = [guess.probability for guess in guesses]
        assert likely == sorted(likely, reverse=True)
        assert sum(likely) <= 1 + 1e-6
        for guess in guesses:
            assert "[MASK]" not in guess.text
            tokens = [guess if other == place else found[other][0] for other in range(len(places))]
            expected = text
            for token in tokens:
                expected = expected.replace("[MASK]", token.token.removeprefix("##"), 1)
            assert guess.text.replace(" ", "") == expected.replace(" ", "")


def test_the_text_stays_as_it_was_written(tokenizer: Tokenizer) -> None:
    """Unknown words, capitals and blanks too; tokens that go on with a word are written on to it."""
    text = "The \U0001f600  [MASK]  쀍!"
    for guess in filler_of(tokenizer).fill(text, best=tokenizer.size)[0]:
        word = guess.token.removeprefix("##")
        before = "The \U0001f600" if guess.token.startswith("##") else "The \U0001f600  "
        assert guess.text == f"{before}{word}  쀍!"


def test_no_special_token_is_ever_guessed(tokenizer: Tokenizer) -> None:
    filler = filler_of(tokenizer)
    special = {tokenizer.pieces([id])[0] for id in range(tokenizer.size) if tokenizer.is_special(id)}
    with torch.no_grad():
        filler.model.bias[[id for id in range(tokenizer.size) if tokenizer.is_special(id)]] = 50.0
    (guesses,) = filler.fill("the [MASK]", best=10_000)
    assert len(guesses) == tokenizer.size - len(special)
    assert not special & {guess.token for guess in guesses}
    assert sum(guess.probability for guess in guesses) == pytest.approx(1, abs=1e-4)


def test_what_cannot_be_filled_is_refused(tokenizer: Tokenizer) -> None:
    filler = filler_of(tokenizer, window=8)
    filler.fill("the the the the the [MASK]")
    for text, best, words in (
        ("the cat", 5, r"no \[MASK\] in the text"),
        ("the the the the the the [MASK]", 5, "9 tokens and the model reads 8"),
        ("a [MASK]", 0, "0 guesses"),
    ):
        with pytest.raises(BadInput, match=words):
            filler.fill(text, best)
    plain = train_tokenizer(TEXTS, "word", 30)
    other = Filler(HiddenWords(Bert(SECTION, plain.size)), plain, 8, CPU)
    with pytest.raises(BadInput, match=r"kind word\) has no \[MASK\]"):
        other.fill("a [MASK]")


@pytest.mark.parametrize("section", READERS, ids=lambda section: section.kind)
@pytest.mark.parametrize("pooling", POOLINGS)
def test_a_vector_is_the_texts_own(tokenizer: Tokenizer, section: Any, pooling: Any) -> None:
    reader, specials = stirred(build_reader(section, tokenizer.size)), tokenizer.specials
    texts: list[Any] = [*TEXTS, ("the cat", "a dog")]
    found = embed(reader, tokenizer, texts, 12, CPU, pooling, normalise=False)
    assert found.shape == (len(texts), 16)
    for number, text in enumerate(texts):
        pair = text if isinstance(text, tuple) else (text, None)
        first, second = (tokenizer.encode([part or ""])[0] for part in pair)
        row, segments = [specials.start, *first, specials.end], [0] * (len(first) + 2)
        if pair[1] is not None:
            row, segments = [*row, *second, specials.end], segments + [1] * (len(second) + 1)
        if len(row) > 12:
            row = [*row[:11], specials.end]
        with torch.no_grad():
            hidden = reader(Sequences.pad([row]), torch.tensor([segments[: len(row)]]))[0]
        expected = {"mean": hidden.mean(dim=0), "first": hidden[0], "max": hidden.amax(dim=0)}[pooling]
        np.testing.assert_allclose(found[number], expected.numpy(), atol=1e-5)
    unit = embed(reader, tokenizer, texts, 12, CPU, pooling)
    np.testing.assert_allclose(np.linalg.norm(unit, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(unit, found / np.linalg.norm(found, axis=1, keepdims=True), atol=1e-5)
    alone = np.concatenate([embed(reader, tokenizer, [text], 12, CPU, pooling) for text in texts])
    np.testing.assert_allclose(unit, alone, atol=1e-5)
    np.testing.assert_allclose(embed(reader, tokenizer, texts[::-1], 12, CPU, pooling)[::-1], alone, atol=1e-5)


def test_no_texts_no_vectors(tokenizer: Tokenizer) -> None:
    assert len(embed(stirred(build_reader(SECTION, tokenizer.size)), tokenizer, [], 12, CPU)) == 0
