"""Wishes that no translation can fulfil together are told, in words, before anything is searched."""

from __future__ import annotations

import pytest
import torch
from translators import sentences, translator

from jumok.errors import BadInput
from jumok.tasks.wishes import BadSentence, Sentence, Wishes


@pytest.mark.parametrize("name", ["beam", "nbest", "min_length", "max_length"])
def test_monstrous_numbers_are_refused(name: str) -> None:
    with pytest.raises(BadInput, match=f"{name} 1000000000: give at most 10+$"):
        Wishes(**{name: 10**9, "sample": name == "nbest"})  # type: ignore[arg-type]


def test_required_phrases_that_would_have_to_repeat_themselves() -> None:
    translating = translator(kind="word", no_repeat_ngram=1)
    texts = sentences(2)
    with pytest.raises(BadSentence, match=r"sentence 1: .* without the same 1 tokens twice.*no_repeat_ngram"):
        translating.translate(texts, require=["chat rouge", "livre rouge"])
    with pytest.raises(BadSentence, match=r"sentence 2: .* twice"):
        translating.translate([texts[0], Sentence(texts[1], "le livre", ("le chat",))])
    for text in translating.translate(texts, require=["rouge livre", "chat rouge"]):
        assert "chat rouge livre" in text
    for text in translating.translate(texts, require=["chat rouge", "livre rouge"], no_repeat_ngram=2):
        assert "chat rouge" in text
        assert "livre rouge" in text


def test_a_translation_without_what_is_required_is_not_given() -> None:
    """A model that cannot write a word at all."""
    translating = translator(kind="word")
    (word,) = translating.target.encode(["rouge"])[0]
    with torch.no_grad():
        translating.model.bias[word] = -torch.inf
    with pytest.raises(BadSentence, match=r"sentence 2: no translation was found that holds all that is required"):
        translating.translate([sentences(1)[0], Sentence(sentences(2)[1], require=("chat rouge",))])
