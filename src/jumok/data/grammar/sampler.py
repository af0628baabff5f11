"""Trees from a seed.

The sampler keeps a budget of English words and spends it: on adjectives, places, relative clauses, further clauses.
What English leaves open is decided by rules that a reader of the English sentence can apply, so that a translation is a
function of the sentence:
- a subject pronoun that agrees with the subject of the clause before it refers to that subject;
- an object pronoun refers to the object of the clause before it, else to its subject, where it agrees;
- a possessive that agrees with the subject of its own clause refers to that, else to the subject of the clause before;
- a place behind the verb belongs to the verb, one behind a subject to the subject;
- a phrase followed by something else holds no relative clause.
"""

from jumok.data.grammar import tree
from jumok.data.grammar.choices import (
    ABSOLUTE,
    DEGREES,
    FOR_SOMEBODY,
    FREQUENCIES,
    MANNERS,
    ORDERED,
    PEOPLE,
    PLACE_NOUNS,
    PLACES,
    PROFESSIONS,
    TIMES,
    VEHICLES,
    fits,
    verbs_for,
    verbs_on,
)
from jumok.data.grammar.lexicon import HAVE, adjectives, nouns_with, that_verbs, verbs
from jumok.data.grammar.phrases import FIRST_ENTITY, PhraseSampler, pronoun_of
from jumok.data.grammar.tree import Clause, Phrase, Sentence, Unit

LONG = 15  # from this size on, every sentence is near the size asked for


class Sampler(PhraseSampler):
    """An endless, reproducible source of sentences of about `size` English words."""

    # -- clauses --------------------------------------------------------------------------------------------------

    def tense_and_polarity(self, clause: Clause, tense: int | None) -> None:
        draw = self.random()
        clause.tense = (
            tense if tense is not None else (tree.PRESENT if draw < 0.45 else tree.PAST if draw < 0.8 else tree.FUTURE)
        )
        clause.negative = self.random() < 0.13

    def relative(self, head: Phrase, previous: Clause | None, open_end: bool) -> Clause | None:
        """A clause about `head`, with a gap for it."""
        clause = Clause()
        clause.bit = self.bits()
        by_subject, by_object = verbs_for(head.tags), verbs_on(head.tags)
        if by_subject and (not by_object or self.random() < 0.6):
            clause.gap = "subject"
            clause.subject = head
            clause.verb = by_subject[int(self.random() * len(by_subject))]
            self.concepts.append(clause.verb.name)
            self.tense_and_polarity(clause, None)
            self.complete(clause, None, open_end)
            return clause
        if not by_object:
            return None
        clause.gap = "object"
        clause.verb = by_object[int(self.random() * len(by_object))]
        self.concepts.append(clause.verb.name)
        personal = "person" in clause.verb.subjects
        draw = self.random()
        if personal and draw < 0.35:
            clause.subject = self.pronoun(
                (tree.SPEAKER, tree.YOU, tree.HE, tree.SHE, tree.WE, tree.THEY)[int(self.random() * 6)]
            )
        elif personal and draw < 0.5:
            clause.subject = self.named()
        else:
            clause.subject = self.noun_phrase(
                self.noun_of(nouns_with(clause.verb.subjects)), None, None, front=True, simple=self.left < 8
            )
        self.tense_and_polarity(clause, None)
        return clause

    def complete(self, clause: Clause, previous: Clause | None, open_end: bool) -> None:
        """The object and the adjuncts of an action."""
        verb = clause.verb
        flags = verb.flags
        random = self.random
        self.left -= 1
        event = not verb.state
        if verb.objects and clause.gap != "object" and clause.question != tree.DOES_WHAT:
            gives = "recipient" in flags and random() < 0.7
            manner = event and clause.subject.animate and self.chance(0.1, 1)
            somewhere = event and "nowhere" not in flags and clause.question != tree.WHERE and self.chance(0.1, 3)
            for_whom = not gives and verb.name in FOR_SOMEBODY and self.chance(0.25, 3)
            last = not (gives or manner or somewhere or for_whom)
            clause.object = self.object_phrase(clause, verb.objects, previous, open_end and last)
            if gives:
                clause.recipient = self.person_phrase(clause, previous)
            if for_whom:
                clause.beneficiary = self.person_phrase(clause, previous)
            if manner:
                clause.manner = self.adverb_of(MANNERS)
            if somewhere:
                self.somewhere(clause, previous)
        elif "goal" in flags or "home" in flags:
            clause.goal = True
            if clause.question != tree.WHERE:
                clause.place = self.noun_phrase(
                    self.noun_of(PLACE_NOUNS), clause.subject, previous, simple=not open_end
                )
            if (
                "motion" in flags
                and "vehicle" not in clause.subject.tags
                and self.chance(0.15, 2)
                and (clause.place is None or clause.place.relative is None)
            ):
                clause.vehicle = self.noun_of(VEHICLES)
                self.concepts.append(clause.vehicle.name)
        else:
            if event and clause.subject.animate and self.chance(0.25, 1):
                clause.manner = self.adverb_of(MANNERS)
            if clause.question != tree.WHERE and self.chance(0.35, 3):
                self.somewhere(clause, previous)
            if clause.subject.animate and self.chance(0.1, 3):
                clause.companion = self.person_phrase(clause, previous)
        if clause.negative or clause.modal or clause.question or clause.manner is not None:
            return
        if clause.subject.animate and event and self.chance(0.12, 1):
            clause.frequency = self.adverb_of(FREQUENCIES)

    def person_phrase(self, clause: Clause, previous: Clause | None) -> Phrase:
        if self.random() < 0.3:
            return self.named()
        return self.noun_phrase(self.noun_of(PEOPLE), clause.subject, previous, simple=True)

    def somewhere(self, clause: Clause, previous: Clause | None) -> None:
        if self.random() < 0.2:
            clause.place_adverb = self.adverb_of(PLACES)
        else:
            clause.place = self.noun_phrase(self.noun_of(PLACE_NOUNS), clause.subject, previous, simple=True)

    def clause(
        self,
        previous: Clause | None = None,
        *,
        tense: int | None = None,
        question: int = tree.STATEMENT,
        open_end: bool = True,
        embedded: bool = False,
    ) -> Clause:
        """A finite clause with a subject of its own."""
        random = self.random
        clause = Clause()
        clause.bit = self.bits()
        clause.question = question
        self.tense_and_polarity(clause, tense)
        draw = random()
        if question in (tree.WHO_DOES, tree.DOES_WHAT, tree.WHERE, tree.WHEN):
            draw = 1.0
            clause.negative = False
        if draw < 0.16:
            self.description(clause, previous)
        elif draw < 0.21:
            self.identity(clause, previous)
        elif draw < 0.25:
            self.comparison(clause, previous)
        elif draw < 0.28:
            clause.verb = HAVE
            clause.subject, clause.coreferent = self.subject_phrase(("person",), previous)
            clause.object = self.noun_phrase(
                self.noun_of(nouns_with(HAVE.objects)), clause.subject, previous, open_end=open_end
            )
            self.left -= 1
        elif draw < 0.34 and open_end and not question and self.left > 7 and tense != tree.PAST:
            clause.verb = that_verbs[int(random() * len(that_verbs))]
            self.concepts.append(clause.verb.name)
            clause.tense, clause.negative = tree.PRESENT, False
            clause.subject, clause.coreferent = self.subject_phrase(("person",), previous)
            self.left -= 2
            clause.complement = self.clause(clause, embedded=True)
        else:
            self.action(clause, previous, open_end)
        simple = not (embedded or question or clause.complement or clause.modal or clause.frequency) and tense is None
        if simple and clause.kind == tree.ACTION and not clause.verb.state and self.chance(0.07, 1):
            clause.time = self.adverb_of(TIMES[clause.tense])
        return clause

    def action(self, clause: Clause, previous: Clause | None, open_end: bool) -> None:
        random = self.random
        verb = verbs[int(random() * len(verbs))]
        question = clause.question
        if question in (tree.DOES_WHAT, tree.WHERE, tree.WHEN, tree.WHO_DOES):
            while (
                (
                    question == tree.DOES_WHAT
                    and (
                        not verb.objects
                        or verb.preposition
                        or verb.object_particle != "을"
                        or fits(("person", "animal"), verb.objects)
                    )
                )
                or (question != tree.DOES_WHAT and verb.state)
                or (question == tree.WHERE and "nowhere" in verb.flags)
                or (question == tree.WHO_DOES and "person" not in verb.subjects)
            ):
                verb = verbs[int(random() * len(verbs))]
        clause.verb = verb
        self.concepts.append(verb.name)
        if question == tree.WHO_DOES:
            clause.subject = Phrase()
            clause.subject.bit = self.bits()
            clause.subject.kind = tree.WHO
        else:
            clause.subject, clause.coreferent = self.subject_phrase(verb.subjects, previous)
        if (
            clause.subject.animate
            and not verb.state
            and clause.tense != tree.PAST  # "can" has no past of its own here
            and question in (tree.STATEMENT, tree.YES_NO)
            and (self.chance(0.13, 1))
        ):
            clause.modal = ("can", "must", "want")[int(random() * 3)]
            clause.tense = tree.PRESENT
        joins = (
            not question
            and open_end
            and clause.subject.animate
            and not verb.state
            and not clause.modal
            and (self.chance(0.07, 3))
        )
        self.complete(clause, previous, open_end and not joins)
        if joins:
            self.second_verb(clause)

    def second_verb(self, clause: Clause) -> None:
        """ "... and drinks water": another action of the same subject in the same tense."""
        choices = verbs_for(clause.subject.tags)
        then = Clause()
        then.bit = self.bits()
        then.subject, then.tense = clause.subject, clause.tense
        then.verb = choices[int(self.random() * len(choices))]
        if then.verb.state or then.verb is clause.verb:
            return
        self.concepts.append(then.verb.name)
        clause.then = then
        self.complete(then, clause, True)

    def description(self, clause: Clause, previous: Clause | None) -> None:
        """ "The dog is hungry." """
        clause.kind = tree.DESCRIPTION
        adjective = adjectives[int(self.random() * len(adjectives))]
        while not adjective.predicative:
            adjective = adjectives[int(self.random() * len(adjectives))]
        clause.adjective = adjective
        self.concepts.append(adjective.name)
        self.left -= 2
        self.plain = True
        clause.subject, clause.coreferent = self.subject_phrase(adjective.tags, previous)
        self.plain = False
        if not adjective.idiom and adjective.name not in ABSOLUTE and self.chance(0.18, 1):
            clause.degree = self.adverb_of(DEGREES)

    def identity(self, clause: Clause, previous: Clause | None) -> None:
        """ "She is a student." """
        clause.kind = tree.IDENTITY
        clause.predicate = self.noun_of(PROFESSIONS)
        self.concepts.append(clause.predicate.name)
        self.left -= 3
        draw = self.random()
        if (
            previous is not None
            and "person" in previous.subject.tags
            and draw < 0.5
            and (previous.subject.kind != tree.WHO)
        ):
            clause.subject = self.pronoun(pronoun_of(previous.subject), previous.subject)
            clause.coreferent = True
        elif draw < 0.8 and previous is None:
            clause.subject = self.pronoun(
                (tree.SPEAKER, tree.YOU, tree.HE, tree.SHE, tree.WE, tree.THEY)[int(self.random() * 6)]
            )
        else:
            clause.subject = self.named()

    def comparison(self, clause: Clause, previous: Clause | None) -> None:
        """ "The dog is bigger than the cat." """
        clause.kind = tree.COMPARISON
        adjective = adjectives[int(self.random() * len(adjectives))]
        while not adjective.predicative or adjective.idiom:
            adjective = adjectives[int(self.random() * len(adjectives))]
        clause.adjective = adjective
        self.concepts.append(adjective.name)
        self.left -= 3
        choices = nouns_with(adjective.tags)
        self.plain = True
        clause.subject = self.noun_phrase(self.noun_of(choices), None, previous, simple=True, front=True)
        clause.standard = self.noun_phrase(
            self.another(clause.subject.noun), clause.subject, previous, simple=True, front=True
        )
        self.plain = False
        clause.negative = False

    def existence(self) -> Clause:
        """ "There is a dog in the garden." """
        clause = Clause()
        clause.bit = self.bits()
        clause.kind = tree.EXISTENCE
        clause.verb = HAVE
        self.tense_and_polarity(clause, None)
        phrase = self.noun_phrase(
            self.noun_of(nouns_with(("person", "animal", "object", "furniture"))), None, None, simple=True
        )
        phrase.determiner = tree.NUMBER if phrase.determiner == tree.NUMBER and not clause.negative else tree.A
        clause.object = phrase
        clause.subject = phrase
        clause.place = self.noun_phrase(self.noun_of(PLACE_NOUNS), None, None, open_end=True)
        return clause

    def order(self) -> Clause:
        """ "Please open the door." """
        clause = Clause()
        clause.bit = self.bits()
        clause.kind = tree.ORDER
        clause.verb = ORDERED[int(self.random() * len(ORDERED))]
        self.concepts.append(clause.verb.name)
        clause.subject = self.pronoun(tree.YOU)
        clause.object = self.noun_phrase(
            self.noun_of(nouns_with(clause.verb.objects)), clause.subject, None, open_end=True
        )
        return clause

    # -- sentences ------------------------------------------------------------------------------------------------

    def sentence(self) -> Sentence:
        """The next sentence."""
        random = self.random
        self.bit = 1
        self.entity = FIRST_ENTITY
        self.concepts = []
        spread = random()
        long = self.size > LONG
        share = 0.8 + 0.4 * spread if long else 0.35 + spread * spread
        self.left = self.size * share + (self.size if random() < 0.05 else 0)
        sentence = Sentence()
        sentence.bit = self.bits()
        sentence.concepts = self.concepts
        sentence.units = []
        draw = random()
        if draw < 0.04:
            sentence.address = "sir" if random() < 0.5 else "madam"
        draw = 1.0 if long else random()  # what cannot grow is only for short sentences
        unit = Unit()
        unit.bit = self.bits()
        sentence.units.append(unit)
        if draw < 0.04:
            unit.clause = self.order()
            return sentence
        if draw < 0.08:
            unit.clause = self.existence()
            return sentence
        if draw < 0.2:
            kinds = (
                tree.YES_NO,
                tree.YES_NO,
                tree.YES_NO,
                tree.WHO_DOES,
                tree.DOES_WHAT,
                tree.WHERE,
                tree.WHY,
                tree.WHEN,
            )
            unit.clause = self.clause(question=kinds[int(random() * len(kinds))], open_end=True)
            return sentence
        last = self.unit(unit, None)
        while self.left > 4 and (self.left > 12 or random() < 0.45):
            unit = Unit()
            unit.bit = self.bits()
            unit.joint = "and" if random() < 0.6 else "but"
            sentence.units.append(unit)
            last = self.unit(unit, last)
        return sentence

    def unit(self, unit: Unit, previous: Clause | None) -> Clause:
        """Fills `unit`; returns the clause that English says last."""
        draw = self.random()
        if self.left > 6 and draw < 0.07 and not unit.joint:
            unit.relation = "when" if draw < 0.04 else "if"
            tense = tree.PAST if unit.relation == "when" and self.random() < 0.6 else tree.PRESENT
            unit.side = self.clause(previous, tense=tense, embedded=True)
            main_tense = tree.FUTURE if unit.relation == "if" and self.random() < 0.5 else tense
            unit.clause = self.clause(self.said_last(unit.side), tense=main_tense)
            return self.said_last(unit.clause)
        unit.clause = self.clause(previous)
        last = self.said_last(unit.clause)
        if self.left > 3 and self.random() < 0.2:
            unit.relation = "because"
            unit.side = self.clause(last, embedded=True)
            last = self.said_last(unit.side)
        return last

    @staticmethod
    def said_last(clause: Clause) -> Clause:
        """The clause whose subject and object a following pronoun looks for first."""
        while clause.complement is not None or clause.then is not None:
            clause = clause.complement or clause.then or clause
        return clause
