"""The rules that make a hypothesis from a premise, by what they make of it. See `inference.py`.

A rule takes the premise and gives hypotheses in a random order, none where it does not apply.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from jumok.data.grammar import tree
from jumok.data.grammar.choices import fits
from jumok.data.grammar.tree import Clause, Sentence
from jumok.data.grammar_tasks.drawing import Drawer, changed
from jumok.data.grammar_tasks.rewriting import (
    OPPOSITE,
    OTHERWISE,
    asserted,
    barer_subject,
    denied,
    described,
    exchanged,
    is_settled,
    left_open,
    stronger,
    turned_round,
    weaker,
    with_adjunct,
    with_part,
    without_adjunct,
)
from jumok.data.grammar_tasks.walk import copied

Rule = Callable[[Drawer, Sentence], Iterable[Sentence]]


def said(drawer: Drawer, sentence: Sentence, clauses: list[Clause]) -> Iterator[Sentence]:
    """The clauses as sentences, in a random order, made as they are asked for."""
    for clause in drawer.shuffled(clauses):
        yield changed(sentence, clause)


def main_of(sentence: Sentence) -> Clause | None:
    """The main clause, where it is asserted and stands on its own."""
    found = asserted(sentence)
    same = found and found[0].bit == sentence.units[0].clause.bit
    return found[0] if same else None


def follows(clause: Clause) -> list[Clause]:
    """What follows from a clause that is so by leaving something out."""
    return barer_subject(clause) if clause.negative else weaker(clause)


def widened(drawer: Drawer, clause: Clause) -> list[Clause]:
    """What a denied clause denies as well, with a circumstance added."""
    return with_adjunct(drawer, clause) if not clause.modal else []


def narrower(drawer: Drawer, clause: Clause) -> list[Clause]:
    """What follows from a denial: what is not so at all is not so in one place."""
    found = widened(drawer, clause)
    thing = clause.object
    if thing is not None and thing.determiner == tree.A and thing.relative is None:
        more = described(drawer, thing)
        found += [with_part(clause, "object", more)] if more is not None else []
    return found


def opposite(clause: Clause) -> Clause | None:
    """ "The soup is cold" for "The soup is hot"."""
    if clause.kind != tree.DESCRIPTION or clause.adjective is None:
        return None
    other = OPPOSITE.get(clause.adjective.name)
    if other is None or not other.predicative or not fits(clause.subject.tags, other.tags):
        return None
    return with_part(with_part(clause, "adjective", other), "degree", None)


def reversed_comparison(clause: Clause) -> Clause | None:
    if clause.kind != tree.COMPARISON or clause.standard is None:
        return None
    if not is_settled(clause.standard) or not is_settled(clause.subject):
        return None
    twin = copied(clause)
    twin.subject, twin.standard = clause.standard, clause.subject
    return twin


# -- entailment -------------------------------------------------------------------------------------------------------


def a_part(drawer: Drawer, sentence: Sentence) -> Iterable[Sentence]:
    """One of several clauses, perhaps with less in it."""
    clauses = asserted(sentence)
    if len(clauses) < 2:
        return []
    chosen = drawer.pick(clauses)
    whole = [chosen] if chosen.bit != sentence.units[0].clause.bit or sentence.units[0].side is not None else []
    less = follows(chosen)
    return said(drawer, sentence, less if less and drawer.random() < 0.4 else whole)


def something_less(drawer: Drawer, sentence: Sentence) -> Iterable[Sentence]:
    clause = main_of(sentence)
    return said(drawer, sentence, follows(clause)) if clause is not None else []


def denied_more_narrowly(drawer: Drawer, sentence: Sentence) -> Iterable[Sentence]:
    """ "He did not eat slowly" from "He did not eat"."""
    clause = main_of(sentence)
    return said(drawer, sentence, narrower(drawer, clause)) if clause is not None and clause.negative else []


def not_the_opposite(drawer: Drawer, sentence: Sentence) -> Iterable[Sentence]:
    """ "The soup is not cold" from "The soup is hot"; "B is not bigger than A" from "A is bigger than B"."""
    found = []
    for clause in asserted(sentence):
        if not clause.negative and is_settled(clause.subject):
            for other in (opposite(clause), reversed_comparison(clause)):
                found += [with_part(other, "negative", True)] if other is not None else []
    return said(drawer, sentence, found)


# -- contradiction ----------------------------------------------------------------------------------------------------


def the_denial(drawer: Drawer, sentence: Sentence) -> Iterable[Sentence]:
    """A clause denied; less than was said is denied as well, and more than was denied is said."""
    found = []
    for clause in asserted(sentence):
        plain = with_part(clause, "time", clause.time)
        if drawer.random() < 0.4:
            more = widened(drawer, clause) if clause.negative else without_adjunct(clause)
            plain = drawer.pick(more) if more else plain
        contrary = denied(plain)
        found += [contrary] if contrary is not None else []
    return said(drawer, sentence, found)


def the_opposite(drawer: Drawer, sentence: Sentence) -> Iterable[Sentence]:
    found = []
    for clause in asserted(sentence):
        if clause.negative or not is_settled(clause.subject):
            continue
        found += [other for other in (opposite(clause), reversed_comparison(clause)) if other is not None]
        if clause.manner is not None and clause.manner.name in OTHERWISE and not clause.modal:
            found.append(with_part(clause, "manner", OTHERWISE[clause.manner.name]))
    return said(drawer, sentence, found)


# -- neutral ----------------------------------------------------------------------------------------------------------


def something_more(drawer: Drawer, sentence: Sentence) -> Iterable[Sentence]:
    clause = main_of(sentence)
    return said(drawer, sentence, stronger(drawer, clause)) if clause is not None and not clause.negative else []


def denied_more_widely(drawer: Drawer, sentence: Sentence) -> Iterable[Sentence]:
    """ "He did not eat" says more than "He did not eat slowly"."""
    clause = main_of(sentence)
    return said(drawer, sentence, without_adjunct(clause)) if clause is not None and clause.negative else []


def somebody_else(drawer: Drawer, sentence: Sentence) -> Iterable[Sentence]:
    """About another, or the other way round; denied or not, it is as open."""
    clause = main_of(sentence)
    if clause is None or clause.complement is not None:
        return []
    found = exchanged(drawer, clause) + turned_round(clause) * 2
    if drawer.random() < 0.3:
        found = [contrary for other in found if (contrary := denied(other)) is not None]
    return said(drawer, sentence, found)


def another_time(drawer: Drawer, sentence: Sentence) -> Iterable[Sentence]:
    """What was so yesterday need not be so tomorrow."""
    clause = main_of(sentence)
    if clause is None or clause.modal or clause.tense == tree.PRESENT or clause.complement or clause.then:
        return []
    twin = with_part(clause, "tense", tree.FUTURE if clause.tense == tree.PAST else tree.PAST)
    twin.time = None
    return said(drawer, sentence, [twin])


def not_asserted(drawer: Drawer, sentence: Sentence) -> Iterable[Sentence]:
    """What is thought or is a condition, and its denial."""
    found = left_open(sentence)
    contrary = [other for clause in found if (other := denied(clause)) is not None]
    return said(drawer, sentence, contrary if contrary and drawer.random() < 0.5 else found)


def a_degree(drawer: Drawer, sentence: Sentence) -> Iterable[Sentence]:
    """The taller of two need not be tall; what is not hot need not be cold."""
    found = []
    for clause in asserted(sentence):
        if not is_settled(clause.subject):
            continue
        if clause.kind == tree.COMPARISON:
            plain = with_part(with_part(clause, "kind", tree.DESCRIPTION), "standard", None)
            plain.negative = drawer.random() < 0.5
            found.append(plain)
        elif clause.negative and clause.degree is None:
            other = opposite(clause)
            found += [with_part(other, "negative", False)] if other is not None else []
    return said(drawer, sentence, found)


# The rules of each label, as often as they stand here, with the premise they need: an affirmed or a denied clause,
# a comparison, a sentence of several clauses, or any.
ANY, AFFIRMED, DENIED, COMPARED, SEVERAL = range(5)
RULES: dict[str, tuple[tuple[Rule, int], ...]] = {
    "entailment": (
        (a_part, SEVERAL), (a_part, SEVERAL), (something_less, AFFIRMED), (something_less, AFFIRMED),
        (something_less, DENIED), (denied_more_narrowly, DENIED), (denied_more_narrowly, DENIED),
        (not_the_opposite, COMPARED), (not_the_opposite, AFFIRMED),
    ),
    "neutral": (
        (something_more, AFFIRMED), (something_more, AFFIRMED), (denied_more_widely, DENIED),
        (somebody_else, ANY), (somebody_else, ANY), (somebody_else, DENIED), (another_time, ANY),
        (not_asserted, SEVERAL), (a_degree, COMPARED), (a_degree, DENIED),
    ),
    "contradiction": (
        (the_denial, AFFIRMED), (the_denial, AFFIRMED), (the_denial, DENIED), (the_denial, DENIED),
        (the_denial, SEVERAL), (the_denial, DENIED), (the_opposite, COMPARED), (the_opposite, AFFIRMED),
    ),
}  # fmt: skip
