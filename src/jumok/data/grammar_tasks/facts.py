"""Facts to ask about: single sentences that name everybody they speak of, and what they have in common.

A fact says who does what to whom, where, when and why. It holds no pronoun whose antecedent is another sentence, so
that its meaning does not hang on what stands around it. `Event` is what of a fact a question can get hold of: the
heads of its parts. Two events are the same for a question where no part that it names tells them apart.
"""

from __future__ import annotations

from dataclasses import dataclass

from jumok.data.grammar import tree
from jumok.data.grammar.choices import MANNERS, PEOPLE, PLACE_NOUNS, TIMES, VEHICLES, fits
from jumok.data.grammar.lexicon import Noun, Verb, adjective_named, nouns_with, verb_named, verbs
from jumok.data.grammar.phrases import pronoun_of
from jumok.data.grammar.tree import Clause, Phrase, Sentence
from jumok.data.grammar_tasks.drawing import Drawer
from jumok.data.grammar_tasks.walk import concepts_of, copied

MOODS = tuple(
    adjective_named[name]
    for name in ("tired", "hungry", "thirsty", "sleepy", "happy", "sad", "sick", "busy", "anxious", "lonely", "poor")
)
FEELINGS = tuple(verb_named[name] for name in ("love", "like", "hate", "fear", "respect"))
BRIEF = tuple(verb for verb in verbs if not verb.objects and not verb.flags and "person" in verb.subjects)
DESTINATIONS = ("visit", "enter", "leave")  # their object is a place
ALIKE = (  # who does the one may be said to do the other: a question about the one would be answered by the other
    ("eat", "devour", "taste", "drink"), ("see", "watch", "observe", "recognize", "examine", "photograph", "imagine"),
    ("hear", "listen to"), ("love", "like", "respect"), ("study", "learn"), ("talk to", "answer", "phone", "greet"),
    ("go", "come", "return", "arrive", "travel", "visit", "enter", "stay", "live"), ("give", "offer", "lend", "send"),
    ("buy", "order", "choose"), ("carry", "bring", "lift"), ("cry", "shout"), ("laugh", "smile"),
    ("fight", "attack", "chase", "bite"), ("protect", "save", "help"), ("cook", "prepare"), ("draw", "paint"),
    ("break", "destroy"), ("explain", "describe", "teach", "show"), ("wash", "clean"), ("run", "walk", "jump"),
    ("look for", "find"), ("steal", "hide"), ("pull", "push"), ("hate", "fear"), ("meet", "invite", "call"),
    ("catch", "pick", "receive", "accept"), ("tremble", "hesitate"), ("cough", "sneeze"), ("play", "win"),
)  # fmt: skip
GROUP = {name: group[0] for group in ALIKE for name in group}

Event = dict[str, str]  # the head of each part: "subject", "verb", "object", "recipient", "place"


@dataclass(slots=True)
class Fact:
    """A sentence of one unit and what happens in it, the main event first."""

    sentence: Sentence
    clause: Clause
    side: Clause | None
    events: tuple[Event, ...]


def head_of(phrase: Phrase) -> str:
    return phrase.name.name if phrase.kind == tree.NAME else phrase.noun.name


def event_of(clause: Clause, subject: Phrase) -> Event:
    """The heads of a clause; `subject` is named even where the clause has a pronoun for it."""
    event = {"subject": head_of(subject), "verb": GROUP.get(clause.verb.name, clause.verb.name)}
    for part, phrase in (("object", clause.object), ("recipient", clause.recipient), ("place", clause.place)):
        if phrase is not None:
            event[part] = head_of(phrase)
    if clause.verb.name in DESTINATIONS:
        event["place"] = event["object"]
    return event


def same(named: Event, other: Event) -> bool:
    """Whether no part that `named` names tells `other` apart: what is not said may be so."""
    return all(other.get(part, head) == head for part, head in named.items())


class Teller(Drawer):
    """Draws facts, some with parts of others."""

    def again(self, phrase: Phrase) -> Phrase:
        """The same phrase in another sentence, with bits and an entity of its own."""
        twin = copied(phrase)
        twin.bit, twin.entity = self.bits(), self.new_entity()
        if twin.determiner == tree.POSSESSIVE and twin.reflexive:
            twin.determiner, twin.owner_entity, twin.reflexive = tree.THE, 0, False
        return twin

    def something(self, noun: Noun, subject: Phrase | None = None) -> Phrase:
        """A noun with a determiner that points to nobody outside the sentence, and perhaps an adjective."""
        phrase = self.noun_phrase(noun, subject, None, simple=True, front=subject is None)
        if phrase.determiner in (tree.EVERY, tree.MANY):
            phrase.determiner = tree.THE
        elif phrase.determiner == tree.POSSESSIVE and not (phrase.reflexive or phrase.owner in (tree.SPEAKER, tree.WE)):
            phrase.determiner, phrase.owner = tree.THE, tree.HE
        phrase.count %= 3  # "nine trains" are many for a short text
        return phrase

    def somebody(self, tags: tuple[str, ...], subject: Phrase | None = None) -> Phrase:
        """A name or a noun with one of `tags`, other than the subject."""
        while True:
            phrase = (
                self.named()
                if "person" in tags and self.random() < 0.4
                else self.something(self.noun_of(nouns_with(tags)), subject)
            )
            if subject is None or head_of(phrase) != head_of(subject):
                return phrase

    def fact(
        self,
        asked: int,
        verb: Verb | None = None,
        subject: Phrase | None = None,
        thing: Phrase | None = None,
        negative: bool = False,
    ) -> Fact:
        """A fact that can answer a question of the kind `asked`; the parts that are given are used where they fit."""
        sentence = self.begin()
        self.left = 6
        unit, clause = sentence.units[0], Clause()
        clause.bit = self.bits()
        clause.verb = verb = verb or self.pick(verbs)
        draw = self.random()
        clause.tense = tree.PAST if draw < 0.6 else tree.PRESENT if draw < 0.8 else tree.FUTURE
        clause.negative = negative
        if subject is not None and fits(subject.tags, verb.subjects):
            clause.subject = self.again(subject)
        else:
            clause.subject = self.somebody(verb.subjects)
        self.add_object(clause, thing)
        self.add_place(clause, asked == tree.WHERE)
        if negative:  # what is denied "slowly" or "in the garden" may be so otherwise and elsewhere
            clause.manner = clause.vehicle = clause.recipient = None
            clause.place = clause.place if clause.goal or asked == tree.WHERE else None
        else:
            self.add_circumstance(sentence, clause, asked)
        unit.clause = clause
        sentence.concepts = concepts_of(sentence)
        events = [event_of(clause, clause.subject)]
        if unit.side is not None and unit.side.kind == tree.ACTION:
            events.append(event_of(unit.side, clause.subject if unit.side.coreferent else unit.side.subject))
        return Fact(sentence, clause, unit.side, tuple(events))

    def add_object(self, clause: Clause, thing: Phrase | None) -> None:
        verb = clause.verb
        if not verb.objects:
            return
        if thing is not None and fits(thing.tags, verb.objects) and head_of(thing) != head_of(clause.subject):
            clause.object = self.again(thing)
        else:
            clause.object = self.somebody(verb.objects, clause.subject)
        if "recipient" in verb.flags and self.random() < 0.7:
            clause.recipient = self.somebody(("person",), clause.subject)

    def add_place(self, clause: Clause, wanted: bool) -> None:
        verb = clause.verb
        flags = verb.flags
        clause.goal = "goal" in flags or "home" in flags
        if clause.goal or (not verb.state and "nowhere" not in flags and (wanted or self.random() < 0.4)):
            place = self.noun_of(PLACE_NOUNS)
            while clause.object is not None and head_of(clause.object) == place.name:
                place = self.noun_of(PLACE_NOUNS)
            clause.place = self.something(place, clause.subject)
            clause.place.plural = False  # one is in one place
            if clause.place.determiner == tree.NUMBER:
                clause.place.determiner = tree.THE
        moves = "motion" in flags and clause.subject.animate
        if moves and clause.goal and self.random() < 0.2:
            clause.vehicle = self.noun_of(VEHICLES)
        elif clause.subject.animate and not verb.state and not clause.goal and self.random() < 0.1:
            clause.manner = self.adverb_of(MANNERS)

    def add_circumstance(self, sentence: Sentence, clause: Clause, asked: int) -> None:
        """A time, a reason, or what else happened then."""
        unit = sentence.units[0]
        draw = self.random()
        if asked == tree.WHY or (asked != tree.WHEN and draw < 0.12):
            if "person" in clause.subject.tags or "animal" in clause.subject.tags:
                unit.relation, unit.side = "because", self.reason(clause)
        elif (asked == tree.WHEN or draw < 0.4) and not clause.verb.state:
            if clause.tense == tree.PAST and self.random() < 0.4:
                unit.relation, unit.side = "when", self.meanwhile(clause)
            elif clause.vehicle is None:
                clause.time = self.adverb_of(TIMES[clause.tense])

    def reason(self, clause: Clause) -> Clause:
        """ "... because he was hungry", "... because she loved the king"."""
        side = Clause()
        side.bit = self.bits()
        side.tense = tree.PAST if clause.tense == tree.PAST else tree.PRESENT
        side.subject, side.coreferent = self.pronoun(pronoun_of(clause.subject), clause.subject), True
        if self.random() < 0.6:
            side.kind = tree.DESCRIPTION
            side.adjective = self.pick([mood for mood in MOODS if fits(clause.subject.tags, mood.tags)])
            return side
        side.verb = self.pick([verb for verb in FEELINGS if fits(clause.subject.tags, verb.subjects)])
        while True:
            side.object = self.somebody(side.verb.objects, clause.subject)
            if side.object.determiner == tree.POSSESSIVE and side.object.reflexive:
                side.object.owner_entity = side.subject.entity
            if clause.object is None or head_of(side.object) != head_of(clause.object):
                return side

    def meanwhile(self, clause: Clause) -> Clause:
        """ "When the king laughed, ..."."""
        side = Clause()
        side.bit = self.bits()
        side.tense, side.verb = tree.PAST, self.pick([verb for verb in BRIEF if verb is not clause.verb])
        side.subject = self.somebody(tuple(PEOPLE[0].tags[:1]), clause.subject)
        return side
