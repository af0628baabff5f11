"""Sentences like "A dog devoured his treat, because he was hungry.", made and said by the embedded grammar.

The subject does something to the object, maybe somewhere, "because" a pronoun was so and so. The adjective fits only
one of the nouns, so who is meant follows from number, gender and meaning together, as in the example: dogs are hungry,
treats are not. Every English word is labelled with the French word that the grammar aligns it with.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

from jumok.data.grammar import english, tree
from jumok.data.grammar.alignment import align, antecedents
from jumok.data.grammar.choices import PLACE_NOUNS, fits
from jumok.data.grammar.corpus import split_of
from jumok.data.grammar.french import French
from jumok.data.grammar.lexicon import Adjective, Noun, Verb, adjectives, adjectives_for, nouns_with, verbs
from jumok.data.grammar.phrases import pronoun_of
from jumok.data.grammar.tree import Clause, Phrase, Sentence, Unit

NO_LABEL = "–"  # of words without a French counterpart
ACTIONS = tuple(
    verb
    for verb in verbs
    if verb.objects and not (verb.preposition or verb.particle or verb.state or "recipient" in verb.flags)
)


@dataclass(frozen=True)
class Example:
    words: tuple[str, ...]  # lower-cased, without punctuation
    labels: tuple[str, ...]  # the French word of each
    nouns: tuple[int, ...]  # places of the nouns before the pronoun
    pronoun: int
    antecedent: int  # one of `nouns`
    ambiguous: bool  # all of them agree with the pronoun: only the meaning tells who is meant

    @property
    def nearest(self) -> int:
        return max(self.nouns)


def examples(split: str, count: int, seed: int) -> list[Example]:
    """Sentences of a split of the grammar ("train", "valid", "test": no two share all their content words)."""
    random, found = Random(seed), []
    for sentence in _sentences(random):
        if split_of(sentence) == split:
            found.append(example_of(sentence))
            if len(found) == count:
                break
    return found


def example_of(sentence: Sentence) -> Example:
    """The sentence said in English, its words labelled with their French ones."""
    said, french = english.say(sentence), French().say(sentence)
    sure, _ = align(said, french)
    label: dict[int, str] = {}
    for place, other in sure:
        label.setdefault(place, bare(french[other][0]))
    pronoun, antecedent = antecedents(said)[-1]  # the last one: "his" stands before "he"
    nouns = tuple(place for place, word in enumerate(said[:pronoun]) if word[3] > 0)
    words = tuple(bare(word[0]) for word in said)
    labels = tuple(label.get(place, NO_LABEL) for place in range(len(words)))
    clause = sentence.units[0].clause
    phrases = [phrase for phrase in (clause.subject, clause.object, clause.place) if phrase is not None]
    side = sentence.units[0].side
    assert side is not None
    ambiguous = {pronoun_of(phrase) for phrase in phrases} == {side.subject.pronoun}
    return Example(words, labels, nouns, pronoun, antecedent, ambiguous)


def bare(word: str) -> str:
    return word.lower().strip(".,?!")


# ---------------------------------------------------------------- trees


def _sentences(random: Random) -> Iterator[Sentence]:
    while True:
        verb = random.choice(ACTIONS)
        nouns = [random.choice(nouns_with(verb.subjects)), random.choice(nouns_with(verb.objects))]
        if random.random() < 0.5 and "nowhere" not in verb.flags:
            nouns.append(random.choice(PLACE_NOUNS))
        meant = random.randrange(len(nouns))
        fitting = _only_for(nouns[meant], tuple(noun for place, noun in enumerate(nouns) if place != meant))
        if fitting and len(set(nouns)) == len(nouns):
            yield _sentence(random, verb, nouns, meant, random.choice(fitting))


@cache
def _only_for(noun: Noun, others: tuple[Noun, ...]) -> tuple[Adjective, ...]:
    """What can be said of this noun and of none of the others."""
    return tuple(
        adjective
        for adjective in adjectives
        if adjective.predicative
        and fits(noun.tags, adjective.tags)
        and not any(fits(o.tags, adjective.tags) for o in others)
    )


def _sentence(random: Random, verb: Verb, nouns: list[Noun], meant: int, adjective: Adjective) -> Sentence:
    sentence, unit, clause, side = Sentence(), Unit(), Clause(), Clause()
    many = random.random() < 0.6  # all are plural: "they" leaves number and gender open
    phrases = [_phrase(random, noun, 5 + place, many) for place, noun in enumerate(nouns)]
    if phrases[0].animate and random.random() < 0.3:
        _owned(phrases[1], phrases[0])
    pronoun, antecedent = Phrase(), phrases[meant]
    pronoun.kind, pronoun.pronoun, pronoun.entity = tree.PRONOUN, pronoun_of(antecedent), antecedent.entity
    pronoun.plural, pronoun.feminine, pronoun.tags = antecedent.plural, antecedent.feminine, antecedent.tags
    nodes: list[Any] = [sentence, unit, clause, side, pronoun, *phrases]
    for place, node in enumerate(nodes):
        node.bit = 1 << place * tree.WIDTH
    clause.verb, clause.tense, clause.subject, clause.object = verb, tree.PAST, phrases[0], phrases[1]
    clause.place = phrases[2] if len(phrases) > 2 else None
    side.kind, side.tense, side.subject, side.coreferent = tree.DESCRIPTION, tree.PAST, pronoun, True
    side.adjective = adjective
    unit.clause, unit.side, unit.relation = clause, side, "because"
    described = [each.name for phrase in phrases for each in (phrase.before, phrase.behind) if each is not None]
    sentence.units, sentence.concepts = [unit], [verb.name, adjective.name, *(noun.name for noun in nouns), *described]
    return sentence


def _phrase(random: Random, noun: Noun, entity: int, many: bool) -> Phrase:
    phrase = Phrase()
    phrase.noun, phrase.tags, phrase.feminine, phrase.animate = noun, noun.tags, noun.feminine, noun.animate
    phrase.entity, phrase.plural = entity, not noun.mass and (many or random.random() < 0.5)
    phrase.determiner = tree.THE if phrase.plural or noun.mass or random.random() < 0.6 else tree.A
    before = adjectives_for(noun, True, False)
    if before and random.random() < 0.25:  # so that nouns do not always stand at the same places
        phrase.before = random.choice(before)
    return phrase


def _owned(phrase: Phrase, owner: Phrase) -> None:
    """ "his treat" """
    phrase.determiner, phrase.reflexive = tree.POSSESSIVE, True
    phrase.owner, phrase.owner_entity = pronoun_of(owner), owner.entity
