"""Sentences that were recorded bear the numbers and the words they were given with, whatever was searched for them."""

from __future__ import annotations

import math

import pytest
import torch
from translators import sentences, translator

from jumok.errors import BadInput
from jumok.inspect.path import largest
from jumok.inspect.record import record


def test_sentences_without_a_search_keep_their_numbers() -> None:
    model, texts = translator("transformer"), sentences(2)
    with record(model) as seen:
        first = model.translate(["", texts[0], " ", texts[1]])
        second = model.translate([texts[1]])
    assert [len(outputs) for outputs in seen.paths] == [0, 1, 0, 1, 1]
    written = [seen.path(number).records["decoder.0.cross"].queries().text.split() for number in (1, 3, 4)]
    assert written == [first[1].split(), first[3].split(), second[0].split()]
    assert seen.path(texts[1]).sentence == 4  # the newest
    with pytest.raises(BadInput, match="nothing was searched"):
        seen.path(0)
    model.max_length = 3
    with record(model) as seen:
        model.translate([texts[0], "I."], too_long="skip")
    assert [len(outputs) for outputs in seen.paths] == [0, 1]


def test_several_searches_for_one_sentence_are_one_sentence() -> None:
    model, texts = translator("transformer"), sentences(2)
    with record(model) as seen:
        found = model.nbest(texts, nbest=3, sample=True, seed=5)
    assert len(seen.paths) == 2
    for outputs, translations in zip(seen.paths, found, strict=True):
        distinct = dict.fromkeys(one.ids for one in translations)
        assert list(dict.fromkeys(path.tokens for path in outputs)) == list(distinct)


def test_what_was_forbidden_is_no_path() -> None:
    model, (text,) = translator("lstm", "word", wordy=True), sentences(1)
    (first,) = model.translate([text], beam=3)
    word = first.split()[0]
    with record(model) as seen:
        (second,) = model.translate([text], beam=3, forbid=[word])
    assert word not in second.split()
    assert len(seen.paths) == 1
    assert seen.path(0).records["decoder"].queries().text.split() == second.split()


def test_two_sentences_that_look_alike_to_the_model_keep_their_own_words() -> None:
    model = translator("transformer", "word")
    texts = ["The zzz sleeps", "The qqq sleeps"]
    assert len({tuple(row) for row in model.source.encode(texts)}) == 1
    with record(model) as seen:
        model.translate(texts)
    assert [seen.path(number).records["decoder.0.cross"].keys().text for number in (0, 1)] == texts
    assert seen.path("The zzz sleeps").sentence == 0
    with record(model) as seen:
        model.score(texts, ["Le chat.", "Le chien."])
    keys = seen.records[-1].keys(0)
    assert "qqq" not in keys.text  # nobody knows which of the two it was
    assert "zzz" not in keys.text


def test_a_difference_that_is_no_number_is_told() -> None:
    assert math.isnan(largest([0.1, math.nan, 0.2]))
    assert largest([]) == 0.0
    model = translator("transformer")
    with torch.no_grad():
        model.model.decoder.blocks[0].cross.value.weight.fill_(math.nan)
    with record(model) as seen:
        model.score(sentences(1), ["Le chat."])
    assert math.isnan(seen.max_difference)
    assert "nan" in repr(seen)
