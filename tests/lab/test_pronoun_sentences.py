"""Sentences with a pronoun, as the grammar says them."""

from __future__ import annotations

from collections import Counter

from jumok.data.grammar.lexicon import adjective_named, nouns
from jumok.data.grammar.named import the_hungry_dog
from jumok.lab.pronoun_sentences import example_of, examples


def test_the_dog_is_hungry() -> None:
    dog = example_of(the_hungry_dog())
    assert " ".join(dog.words) == "a dog devoured his treat because he was hungry"
    assert [dog.words[place] for place in (dog.pronoun, dog.antecedent, *dog.nouns)] == ["he", "dog", "dog", "treat"]
    assert dog.labels[dog.pronoun] == "qu'il"
    assert dog.labels[dog.antecedent] == "chien"
    assert not dog.ambiguous  # a treat is no "he"


def test_the_adjective_fits_only_the_antecedent(seed: int) -> None:
    forms = {form: noun for noun in nouns for form in noun.english}
    for one in examples("train", 200, seed):
        adjective = adjective_named[one.words[-1]]
        fits = [place for place in one.nouns if set(forms[one.words[place]].tags) & set(adjective.tags)]
        assert fits == [one.antecedent], one
        gender = "f" if forms[one.words[one.antecedent]].feminine else "m"
        assert one.labels[one.pronoun] in {"f": ("qu'elle", "qu'elles"), "m": ("qu'il", "qu'ils")}[gender], one


def test_no_place_gives_the_answer_away(seed: int) -> None:
    found = [one for one in examples("train", 1500, seed) if one.ambiguous]
    assert len(found) > 600
    meant = Counter(one.nouns.index(one.antecedent) for one in found)
    assert 0.3 < meant[0] / len(found) < 0.6  # neither the first noun
    assert 0.3 < sum(one.nearest == one.antecedent for one in found) / len(found) < 0.6  # nor the nearest


def test_parts_share_no_sentence_and_the_seed_decides(seed: int) -> None:
    parts = {split: {one.words for one in examples(split, 150, seed)} for split in ("train", "valid", "test")}
    assert not parts["train"] & parts["test"]
    assert not parts["valid"] & parts["test"]
    assert parts["test"] == {one.words for one in examples("test", 150, seed)}
    assert parts["test"] != {one.words for one in examples("test", 150, seed + 1)}
