"""Walks over the trees of the grammar: what they say, which bits their parts own, and copies to change.

The concepts of a tree are what `Sampler` writes down while it draws; a tree that was changed afterwards has to be read
again. A part (a phrase or a clause with all that hangs on it) owns the ten bits of each of its nodes, so the words of a
sentence that carry one of them are those that say the part, in any language.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from jumok.data.grammar import tree
from jumok.data.grammar.alignment import Word
from jumok.data.grammar.lexicon import HAVE
from jumok.data.grammar.tree import Clause, Phrase, Sentence

OWN = (1 << tree.WIDTH) - 1  # the bits of one node, as a multiple of its first
Node = TypeVar("Node", Phrase, Clause)


def copied(node: Node) -> Node:
    """The same node again, to be changed; what hangs on it is shared."""
    twin = type(node)()
    twin.__dict__.update(node.__dict__)
    return twin


def phrases_in(phrase: Phrase) -> Iterator[Phrase | Clause]:
    """The phrase, and the phrases and clauses inside it."""
    yield phrase
    if phrase.kind == tree.JOINED:
        for part in phrase.parts:
            yield from phrases_in(part)
    for inner in (phrase.genitive, phrase.of, phrase.place):
        if inner is not None:
            yield from phrases_in(inner)
    if phrase.relative is not None:
        yield from nodes_in(phrase.relative)


def nodes_in(clause: Clause, shared: bool = False) -> Iterator[Phrase | Clause]:
    """The clause, and the phrases and clauses inside it; what is said once comes once. `shared`: not the subject."""
    yield clause
    if not shared and clause.gap != "subject" and clause.kind != tree.EXISTENCE:  # there it is the head, or the object
        yield from phrases_in(clause.subject)
    for phrase in (
        clause.object, clause.recipient, clause.place, clause.companion, clause.beneficiary, clause.standard,
    ):  # fmt: skip
        if phrase is not None:
            yield from phrases_in(phrase)
    if clause.complement is not None:
        yield from nodes_in(clause.complement)
    if clause.then is not None:
        yield from nodes_in(clause.then, shared=True)


def clauses_of(sentence: Sentence) -> Iterator[Clause]:
    """The main clauses and the adverbial ones, as they stand in the tree."""
    for unit in sentence.units:
        yield unit.clause
        if unit.side is not None:
            yield unit.side


def phrase_concepts(phrase: Phrase, found: list[str]) -> None:
    """What the phrase's own words mean: its noun or name, its adjectives."""
    if phrase.kind == tree.NOUN:
        found.append(phrase.noun.name)
    elif phrase.kind == tree.NAME:
        found.append(phrase.name.name)
    for word in (phrase.before, phrase.behind, phrase.degree):
        if word is not None:
            found.append(word.name)


def clause_concepts(clause: Clause, found: list[str]) -> None:
    """What the clause's own words mean: its verb, its predicate, its adverbs."""
    if clause.kind in (tree.ACTION, tree.ORDER) and clause.verb is not HAVE:
        found.append(clause.verb.name)
    for word in (
        clause.adjective, clause.degree, clause.predicate, clause.manner, clause.frequency, clause.time,
        clause.place_adverb, clause.vehicle,
    ):  # fmt: skip
        if word is not None:
            found.append(word.name)


def concepts_of(sentence: Sentence) -> list[str]:
    """The content words that the sentence says, in no language and no order: what decides its split."""
    found: list[str] = []
    for clause in clauses_of(sentence):
        for node in nodes_in(clause):
            if isinstance(node, Phrase):
                phrase_concepts(node, found)
            else:
                clause_concepts(node, found)
    return found


def bits_of(part: Phrase | Clause) -> int:
    """All the bits that the part and what hangs on it own."""
    bits = 0
    for node in phrases_in(part) if isinstance(part, Phrase) else nodes_in(part):
        bits |= node.bit * OWN
    return bits


def stretch_of(words: list[Word], bits: int) -> tuple[int, int]:
    """The words [first, last) that carry some of `bits`; (0, 0) where none does."""
    found = [place for place, word in enumerate(words) if (word[1] | word[2]) & bits]
    return (found[0], found[-1] + 1) if found else (0, 0)
