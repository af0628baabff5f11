"""Inference pairs: a label is a function of the texts, and the logic holds, checked on the words alone."""

import random
import re

import pytest

from jumok.data.grammar import LANGUAGES
from jumok.data.grammar.lexicon import adjectives, adverbs, names, nouns, that_verbs, verbs
from jumok.data.grammar_tasks import grammar_pairs

BASE = (
    {form: noun.name for noun in nouns for form in noun.english}
    | {name.name.lower(): name.name for name in names}
    | {form: verb.english[0] for verb in (*verbs, *that_verbs) for form in verb.english}
    | {form: adjective.name for adjective in adjectives for form in (adjective.name, adjective.comparative) if form}
    | {adverb.name: adverb.name for adverb in adverbs}
)


def fresh() -> int:
    return random.SystemRandom().randrange(1_000_000)


def words(text: str) -> list[str]:
    return re.sub(r"'s?(?= )|[.,]", "", text.lower()).split()


def content(text: str) -> set[str]:
    return {BASE[word] for word in words(text) if word in BASE}


def denied(text: str) -> bool:
    return bool({"not", "no", "cannot"} & set(words(text)))


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_pair_has_two_labels(language: str) -> None:
    seed = fresh()
    label_of: dict[tuple[str, str | None], str | None] = {}
    for place in range(2):
        for pair in grammar_pairs(language, "train", 900, seed + place):
            assert pair.text != pair.second
            assert label_of.setdefault((pair.text, pair.second), pair.label) == pair.label, (pair, seed)
    for (text, second), label in label_of.items():  # a contradiction is one both ways
        back = label_of.get((second or "", text))
        assert back is None or (back == "contradiction") == (label == "contradiction"), (text, second, seed)


def test_what_is_entailed_by_an_affirmed_premise_says_nothing_new() -> None:
    seed = fresh()
    seen = 0
    for pair in grammar_pairs("en", "train", 2000, seed):
        assert pair.second is not None
        if pair.label == "entailment" and not denied(pair.text) and not denied(pair.second):
            assert content(pair.second) <= content(pair.text), (pair, seed)
            seen += 1
    assert seen > 100, seed


def test_what_is_entailed_by_a_plain_denial_stays_denied() -> None:
    seed = fresh()
    for pair in grammar_pairs("en", "train", 1500, seed):
        assert pair.second is not None
        plain = not re.search(r",|\b(that|who)\b", pair.text)
        if pair.label == "entailment" and plain and denied(pair.text):
            assert denied(pair.second), (pair, seed)


def test_a_plain_contradiction_changes_the_polarity_or_an_order_or_a_word() -> None:
    seed = fresh()
    for pair in grammar_pairs("en", "train", 1500, seed):
        assert pair.second is not None
        if pair.label != "contradiction" or re.search(r",|\b(that|who)\b", pair.text):
            continue
        if denied(pair.text) != denied(pair.second):
            smaller, larger = (pair.second, pair.text) if denied(pair.second) else (pair.text, pair.second)
            assert content(smaller) <= content(larger), (pair, seed)  # no more is denied than is said
        elif "than" in words(pair.text):
            assert content(pair.text) == content(pair.second), (pair, seed)
        else:
            assert len(content(pair.second) - content(pair.text)) == 1, (pair, seed)  # hot, cold; slowly, quickly


def test_a_neutral_hypothesis_is_not_there_word_by_word() -> None:
    seed = fresh()
    for pair in grammar_pairs("en", "train", 1500, seed):
        assert pair.second is not None
        asserted = not re.search(r"\b(if|thinks?|says?|believes?|declares?|announces?|claims?)\b", pair.text.lower())
        if pair.label == "neutral" and asserted:
            there = f" {pair.second.lower()}" in f" {pair.text.lower()}".replace(",", ".")
            assert not there or denied(pair.text), (pair, seed)


def test_no_word_gives_the_label_away() -> None:
    """A denied hypothesis, or a shorter one, is of every label often enough."""
    seed = fresh()
    made = list(grammar_pairs("en", "train", 1800, seed))
    for label in ("entailment", "neutral", "contradiction"):
        own = [pair for pair in made if pair.label == label]
        share_denied = sum(denied(pair.second or "") for pair in own) / len(own)
        share_shorter = sum(len(pair.second or "") < len(pair.text) for pair in own) / len(own)
        assert 0.2 < share_denied < 0.75, (label, share_denied, seed)
        assert 0.2 < share_shorter < 0.8, (label, share_shorter, seed)
