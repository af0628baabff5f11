"""Phrases as text and as tokens: in every kind of vocabulary, opening a word and going on with one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from translators import tokenizers

from jumok.data import grammar
from jumok.errors import BadInput
from jumok.tasks.phrases import Phrases, pattern
from jumok.text.special import UNKNOWN
from jumok.text.tokenizer import train_tokenizer

KINDS = ("bpe", "unigram", "word", "character", "byte")
TARGETS = [pair.target for pair in grammar.pairs("en", "fr", "train", 400)]


@pytest.mark.parametrize("kind", KINDS)
def test_every_form_of_a_phrase_is_its_text(kind: str) -> None:
    phrases = Phrases(tokenizers(kind)[1])
    for text in ("étudiant", "l'étudiant", "est un", ".", "professeur."):
        forms = phrases.required(text)
        assert forms, text
        for form in forms:
            assert UNKNOWN not in form
            assert phrases.text(form) == text


@pytest.mark.parametrize("kind", ["bpe", "unigram", "byte"])
def test_a_word_is_known_inside_a_sentence_and_behind_an_apostrophe(kind: str) -> None:
    tokenizer = tokenizers(kind)[1]
    forms = Phrases(tokenizer).required("étudiant")
    assert len(forms) == 2
    for sentence in ("Il voit un étudiant.", "Il voit l'étudiant."):
        (ids,) = tokenizer.encode([sentence])
        assert any(tuple(ids[start : start + len(form)]) == form for form in forms for start in range(len(ids)))


@given(st.sampled_from(KINDS), st.sampled_from(TARGETS), st.data())
def test_a_phrase_is_found_in_every_sentence_that_holds_it(kind: str, sentence: str, data: st.DataObject) -> None:
    tokenizer = tokenizers(kind)[1]
    words = sentence.split()
    start = data.draw(st.integers(0, len(words) - 1))
    phrase = " ".join(words[start : data.draw(st.integers(start + 1, len(words)))])
    (ids,) = tokenizer.encode([sentence])
    found = Phrases(tokenizer).found(ids, phrase)
    assert found is not None
    assert phrase in tokenizer.decode([found])[0]
    assert Phrases(tokenizer).found(ids, "Zanzibar") is None


def test_words_are_whole_where_a_script_sets_them_apart() -> None:
    assert pattern("chat").search("Le chat dort.")
    assert not pattern("chat").search("Le château dort, un achat.")
    assert pattern("chat").search("l'chat, oui")
    assert pattern("학생").search("저는 학생입니다.")
    assert pattern("猫").search("黒猫が寝る")
    assert pattern(",").search("oui,non")


def test_the_forms_to_forbid_leave_other_words_alone() -> None:
    tokenizer = tokenizers("bpe")[1]
    forms = Phrases(tokenizer).forbidden("le")
    assert len(forms) == 1
    assert tokenizer.pieces(forms[0])[0].startswith("▁"), "not the piece that ends another word"
    assert len(Phrases(tokenizer).forbidden(".")) == 2, "a full stop follows a word, or stands alone"


def test_what_the_vocabulary_lacks_is_named() -> None:
    phrases = Phrases(tokenizers("word")[1])
    with pytest.raises(BadInput, match='"un Zanzibar": "Zanzibar" is outside the vocabulary'):
        phrases.required("un Zanzibar")
    with pytest.raises(BadInput, match="outside the vocabulary"):
        Phrases(tokenizers("bpe")[1]).known("漢字", "prefix")
    assert phrases.forbidden("Zanzibar") == [], "what cannot be written needs no forbidding"


def test_a_lower_case_vocabulary_takes_phrases_in_any_case() -> None:
    tokenizer = train_tokenizer(TARGETS, "bpe", 400, lowercase=True)
    phrases = Phrases(tokenizer)
    assert phrases.required("Étudiant") == phrases.required("étudiant")
    (ids,) = tokenizer.encode(["Un étudiant."])
    assert phrases.found(ids, "ÉTUDIANT")
