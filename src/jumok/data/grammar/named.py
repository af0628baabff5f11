"""Sentences the corpus is asked for by name, as trees."""

from jumok.data.grammar import tree
from jumok.data.grammar.lexicon import adjective_named, noun_named, verb_named
from jumok.data.grammar.tree import Clause, Phrase, Sentence, Unit


def _sentence(concepts: list[str]) -> tuple[Sentence, Unit]:
    sentence, unit = Sentence(), Unit()
    sentence.bit, unit.bit = 1, 1 << tree.WIDTH
    sentence.units, sentence.concepts = [unit], concepts
    return sentence, unit


def i_am_a_student() -> Sentence:
    """ "I am a student." -> "Je suis étudiant." """
    sentence, unit = _sentence(["student"])
    clause, subject = Clause(), Phrase()
    clause.bit, subject.bit = 1 << 2 * tree.WIDTH, 1 << 3 * tree.WIDTH
    clause.kind, clause.predicate = tree.IDENTITY, noun_named["student"]
    subject.kind, subject.pronoun, subject.person, subject.entity = tree.PRONOUN, tree.SPEAKER, 1, 1
    unit.clause, clause.subject = clause, subject
    return sentence


def the_hungry_dog() -> Sentence:
    """ "A dog devoured his treat, because he was hungry." """
    sentence, unit = _sentence(["devour", "dog", "treat", "hungry"])
    clause, side, dog, treat, pronoun = Clause(), Clause(), Phrase(), Phrase(), Phrase()
    nodes: tuple[Clause | Phrase, ...] = (clause, side, dog, treat, pronoun)
    for place, node in enumerate(nodes, start=2):
        node.bit = 1 << place * tree.WIDTH
    dog.noun, dog.determiner, dog.entity, dog.tags = noun_named["dog"], tree.A, 5, noun_named["dog"].tags
    treat.noun, treat.determiner, treat.entity, treat.animate = noun_named["treat"], tree.POSSESSIVE, 6, False
    treat.feminine, treat.owner, treat.owner_entity, treat.reflexive = True, tree.HE, 5, True
    pronoun.kind, pronoun.pronoun, pronoun.entity, pronoun.tags = tree.PRONOUN, tree.HE, 5, dog.tags
    clause.verb, clause.tense, clause.subject, clause.object = verb_named["devour"], tree.PAST, dog, treat
    side.kind, side.tense, side.subject, side.coreferent = tree.DESCRIPTION, tree.PAST, pronoun, True
    side.adjective = adjective_named["hungry"]
    unit.clause, unit.side, unit.relation = clause, side, "because"
    return sentence
