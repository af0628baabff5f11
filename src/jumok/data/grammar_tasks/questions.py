"""Questions about short texts, answered by a stretch of the text: a data set for extractive question answering.

A context is three to six facts (`facts.py`) in any order. The question is one of the grammar's own (who, what, where,
when, why) about one of them; the others share its verb, its subject or its object, or deny just what is asked for, so
that the words of the question stand in several places and only who reads finds the right one. No other sentence of the
context answers the question: each differs in a part that the question names, or is a denial. Answers are whole phrases
("in the garden", "because he was hungry") without the closing mark; in Korean without the particle of a noun (정원).
"""

from __future__ import annotations

from collections.abc import Iterator

from jumok.data.examples import Answer, Question
from jumok.data.grammar import tree
from jumok.data.grammar.alignment import Word
from jumok.data.grammar.corpus import text_of
from jumok.data.grammar.korean import Korean
from jumok.data.grammar.tree import Phrase, Sentence
from jumok.data.grammar_tasks.drawing import Seen, belongs, changed, checked, rounds
from jumok.data.grammar_tasks.facts import Event, Fact, Teller, same
from jumok.data.grammar_tasks.walk import bits_of, copied, stretch_of
from jumok.errors import BadInput

KINDS = (tree.WHO_DOES, tree.DOES_WHAT, tree.WHERE, tree.WHEN, tree.WHY)
ASKED = {tree.WHO_DOES: "subject", tree.DOES_WHAT: "object", tree.WHERE: "place"}  # and which part a denial changes
TRIES = 400  # for one distractor, before another question is drawn


def can_answer(fact: Fact, kind: int) -> bool:
    """Whether the fact holds what a question of this kind asks for."""
    clause = fact.clause
    if kind == tree.WHO_DOES:
        return clause.subject.animate
    if kind == tree.DOES_WHAT:
        thing = clause.object
        plain = not clause.verb.preposition and clause.verb.object_particle == "을"
        return thing is not None and plain and "person" not in thing.tags
    if kind == tree.WHERE:
        return clause.place is not None
    if kind == tree.WHEN:
        return clause.time is not None or fact.sentence.units[0].relation == "when"
    return fact.sentence.units[0].relation == "because"


def mention(teller: Teller, phrase: Phrase, known: bool) -> Phrase:
    """The phrase as a question has it, perhaps barer; "his" only where the question says who that is (`known`)."""
    said = copied(phrase)
    if said.determiner == tree.POSSESSIVE and said.reflexive and not known:
        said.determiner = tree.THE
    if teller.random() < 0.5:
        said.before = said.behind = said.degree = None
    return said


def ask(teller: Teller, fact: Fact, kind: int) -> tuple[Sentence, Event]:
    """The question about the fact, and the parts it names."""
    clause = copied(fact.clause)
    clause.question = kind
    clause.time = clause.manner = clause.vehicle = None
    known = kind != tree.WHO_DOES
    named = dict(fact.events[0])
    if known:
        clause.subject = mention(teller, clause.subject, True)
        if clause.subject.determiner == tree.A:  # we know by now who that was
            clause.subject.determiner = tree.THE
    else:
        who = Phrase()
        who.bit, who.kind = clause.subject.bit, tree.WHO
        clause.subject = who
        del named["subject"]
    if kind == tree.DOES_WHAT:
        clause.object = None
        del named["object"]
    elif clause.object is not None:
        clause.object = mention(teller, clause.object, known)
    if clause.recipient is not None:
        clause.recipient = mention(teller, clause.recipient, known)
    if kind == tree.WHERE or (clause.place is not None and not clause.goal and teller.random() < 0.5):
        clause.place = None
    elif clause.place is not None:
        clause.place = mention(teller, clause.place, known)
    if clause.place is None:
        named.pop("place", None)
    return changed(fact.sentence, clause), named


def distractor(teller: Teller, fact: Fact, kind: int) -> Fact:
    """A fact that shares something with the one asked about."""
    clause = fact.clause
    draw = teller.random()
    if kind in ASKED and draw < 0.12:  # a denial: the same, but for what is asked
        subject = None if kind == tree.WHO_DOES else clause.subject
        thing = None if kind == tree.DOES_WHAT else clause.object
        return teller.fact(kind, clause.verb, subject, thing, negative=True)
    if draw < 0.2 and clause.object is not None and clause.object.animate:  # the other way round
        return teller.fact(kind, clause.verb, clause.object, clause.subject)
    if draw < 0.5:
        return teller.fact(kind, clause.verb, None, clause.object if teller.random() < 0.3 else None)
    if draw < 0.75:
        return teller.fact(kind, None, clause.subject)
    if draw < 0.9:
        return teller.fact(kind, None, None, clause.object)
    return teller.fact(kind)


def may_stand(fact: Fact, named: Event, kind: int, about: Fact, others: list[Fact]) -> bool:
    """Whether the fact neither answers the question nor says again, or denies, what another fact says."""
    clause = fact.clause
    for event in fact.events[1:] if clause.negative else fact.events:
        if same(named, event):
            return False
    own = fact.events[0]
    for other in (about, *others):
        theirs = other.events[0]
        if all(own.get(part) == theirs.get(part) for part in ("subject", "verb", "object")):
            elsewhere = clause.negative and kind == tree.WHERE and {"place"} <= own.keys() & theirs.keys()
            if not elsewhere or own["place"] == theirs["place"]:
                return False
    return not (clause.negative and same(named, own) and own[ASKED[kind]] == about.events[0].get(ASKED[kind]))


def others_of(teller: Teller, fact: Fact, kind: int, named: Event, split: str, count: int) -> list[Fact]:
    """`count` facts to stand beside the one asked about; fewer where none more was found."""
    facts: list[Fact] = []
    for _ in range(TRIES * count):
        if len(facts) == count:
            break
        other = distractor(teller, fact, kind)
        if belongs(other.sentence, split) and may_stand(other, named, kind, fact, facts):
            facts.append(other)
    return facts


class Finder:
    """Says facts, and finds the answer in what was said."""

    def __init__(self, language: str, split: str, count: int) -> None:
        say = checked(language, split, count)
        self.korean = Korean() if language == "ko" else None
        self.say = self.korean.say if self.korean is not None else say

    def answer(self, fact: Fact, words: list[Word], kind: int) -> tuple[int, str]:
        """Where in the sentence the answer starts, and how it reads."""
        clause = fact.clause
        part = {tree.WHO_DOES: clause.subject, tree.DOES_WHAT: clause.object, tree.WHERE: clause.place}.get(kind)
        if part is not None:
            bits = bits_of(part)
        else:
            bits = clause.bit << tree.TIME if fact.side is None else bits_of(fact.side)
        first, last = stretch_of(words, bits)
        start = len(text_of(words[:first])) + bool(first)
        text = text_of(words[first:last]).rstrip(",.?")
        if self.korean is not None and part is not None:
            bare: list[Word] = []
            self.korean.say_phrase(bare, part, "")
            text = text[: len(text_of(bare))]
        return start, text


def grammar_questions(
    language: str, split: str, count: int, seed: int = 1, share_unanswerable: float = 0.0
) -> Iterator[Question]:
    """`count` distinct questions with their contexts, each with one answer: who, what, where, when and why in turn.

    `share_unanswerable` of them have none: the sentence asked about is left out, those like it stay. The same for the
    same arguments on every machine. All sentences of a context are of the split, by their content (`corpus.split_of`).
    """
    if not 0 <= share_unanswerable <= 1:
        raise BadInput(f"share_unanswerable is {share_unanswerable}: it is a share, from 0 to 1")
    finder = Finder(language, split, count)
    teller, seen = Teller(seed), Seen()
    kinds = rounds(teller, KINDS)
    for number in range(count):
        kind = next(kinds)
        answerable = teller.random() >= share_unanswerable
        while True:
            fact = teller.fact(kind)
            if not can_answer(fact, kind) or not belongs(fact.sentence, split):
                continue
            question, named = ask(teller, fact, kind)
            if any(same(named, event) for event in fact.events[1:]):
                continue
            beside = 2 + int(teller.random() * 4)
            facts = others_of(teller, fact, kind, named, split, beside + (not answerable))
            if len(facts) < beside + (not answerable):
                continue
            asked = text_of(finder.say(question))
            context = ""
            answers: tuple[Answer, ...] = ()
            for place in teller.shuffled(range(len(facts) + answerable)):
                one = facts[place] if place < len(facts) else fact
                words = finder.say(one.sentence)
                context += " " if context else ""
                if one is fact:
                    start, text = finder.answer(fact, words, kind)
                    answers = (Answer(text, len(context) + start),)
                context += text_of(words)
            if not seen.before(asked, context):
                break
        yield Question(asked, context, answers, identity=f"grammar-{language}-{split}-{seed}-{number + 1}")
