"""Pairs of sentences and whether the second follows from the first: a data set for natural language inference.

The premise is drawn, and the hypothesis is made from its tree by a rule whose logic is known:

    entailment     something is left out, or weakened: "The old man ate slowly." - "The man ate."
    contradiction  it is denied, or turned round: "The dog is bigger than the cat." - "The cat is bigger than the dog."
    neutral        something is added or exchanged: "The man ate." - "The man ate in the garden."

A denial turns the direction: "He did not eat." entails "He did not eat slowly." and not the other way. All
labels have denied premises and denied hypotheses, longer and shorter ones, so that no word gives the label away. As in
SNLI (Bowman et al. 2015), both sentences are about the same people and things: "the man" and "he" are the same in both.
"""

from __future__ import annotations

from collections.abc import Iterator

from jumok.data.examples import Example
from jumok.data.grammar import tree
from jumok.data.grammar.corpus import text_of
from jumok.data.grammar.lexicon import that_verbs
from jumok.data.grammar.tree import Clause, Sentence
from jumok.data.grammar_tasks.drawing import Drawer, Seen, belongs, checked, rounds
from jumok.data.grammar_tasks.inference_rules import AFFIRMED, COMPARED, DENIED, RULES, SEVERAL
from jumok.data.grammar_tasks.rewriting import is_settled
from jumok.data.grammar_tasks.walk import concepts_of

LABELS = ("entailment", "neutral", "contradiction")
SIZE = 12
TRIES = 4  # of a rule on one premise: what it adds is drawn
KNOWS = next(place for place, verb in enumerate(that_verbs) if "fact" in verb.flags)


def premise(drawer: Drawer, wanted: int) -> Sentence | None:
    """A statement of one unit about somebody settled, of the kind that a rule wants; None where it was not drawn."""
    sentence = drawer.begin()
    unit = sentence.units[0]
    if wanted == COMPARED:
        unit.clause = drawer.compared()
    elif wanted == SEVERAL:
        several(drawer, sentence)
    elif drawer.random() < 0.06:
        unit.clause = drawer.existence()
    else:
        drawer.unit(unit, None)
    clause: Clause = unit.clause
    if clause.kind != tree.EXISTENCE and not is_settled(clause.subject):
        return None
    if clause.kind == tree.COMPARISON or clause.complement is not None:
        return sentence
    clause.negative = wanted == DENIED or (wanted != AFFIRMED and drawer.random() < 0.4)
    if clause.negative and clause.kind == tree.ACTION:
        clause.frequency = clause.then = None
        clause.modal = "" if clause.modal == "must" else clause.modal  # "must not" forbids, it does not deny
    if clause.negative and clause.kind == tree.EXISTENCE and clause.object is not None:
        clause.object.determiner = tree.A
    sentence.concepts = concepts_of(sentence)
    return sentence


def several(drawer: Drawer, sentence: Sentence) -> None:
    """Two clauses: a reason, a condition, a time, or what somebody says or knows."""
    unit = sentence.units[0]
    draw = drawer.random()
    if draw < 0.4:
        unit.relation, unit.clause = "because", drawer.clause()
        unit.side = drawer.clause(drawer.said_last(unit.clause), embedded=True)
    elif draw < 0.65:
        unit.relation, tense = ("if", tree.PRESENT) if draw < 0.5 else ("when", tree.PAST)
        unit.side = drawer.clause(tense=tense, embedded=True)
        unit.clause = drawer.clause(drawer.said_last(unit.side), tense=tense)
    else:
        unit.clause = clause = Clause()
        clause.bit = drawer.bits()
        clause.verb = that_verbs[KNOWS] if draw < 0.8 else drawer.pick(that_verbs)
        drawer.concepts.append(clause.verb.name)
        clause.subject, clause.coreferent = drawer.subject_phrase(("person",), None)
        clause.complement = drawer.clause(clause, embedded=True)


def grammar_pairs(language: str, split: str, count: int, seed: int = 1) -> Iterator[Example]:
    """`count` distinct pairs, `text` the premise and `second` the hypothesis, labelled with `LABELS` equally often.

    The same for the same arguments on every machine. Both sentences are of the split, by their content
    (`corpus.split_of`): none of them is in another one.
    """
    say = checked(language, split, count)
    drawer, seen = Drawer(seed, SIZE), Seen()
    labels = rounds(drawer, LABELS)
    for _ in range(count):
        label = next(labels)
        rule, wanted = drawer.pick(RULES[label])
        while True:
            first = premise(drawer, wanted)
            if first is None or not belongs(first, split):
                continue
            tries = (made for _ in range(TRIES) for made in rule(drawer, first))
            second = next((made for made in tries if belongs(made, split)), None)
            if second is None:
                continue
            text, other = text_of(say(first)), text_of(say(second))
            if text != other and not seen.before(text, other):
                break
        yield Example(text=text, second=other, label=label)
