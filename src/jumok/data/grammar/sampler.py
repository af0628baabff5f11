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

from functools import lru_cache
from random import Random

from jumok.data.grammar import tree
from jumok.data.grammar.lexicon import (
    HAVE,
    Adverb,
    Noun,
    Verb,
    adjectives,
    adjectives_for,
    adverbs,
    names,
    nouns,
    nouns_with,
    that_verbs,
    verbs,
)
from jumok.data.grammar.tree import Clause, Phrase, Sentence, Unit

MANNERS, FREQUENCIES, PLACES, DEGREES = (
    tuple(adverb for adverb in adverbs if adverb.place == place) for place in ("manner", "frequency", "place", "degree")
)
TIMES = tuple(tuple(adverb for adverb in adverbs if adverb.place == place) for place in ("present", "past", "future"))
PROFESSIONS = tuple(noun for noun in nouns if noun.profession)
PLACE_NOUNS = nouns_with(("place",))
PEOPLE = nouns_with(("person",))
OWNERS_OF_PARTS = nouns_with(("building",))
VEHICLES = nouns_with(("transit",))
FOR_SOMEBODY = frozenset(
    ("buy", "prepare", "order", "bring", "draw", "build", "repair", "translate", "choose", "cook", "sing", "dance")
)
ORDERED = tuple(
    verb
    for verb in verbs
    if verb.objects
    and not verb.state
    and not verb.preposition
    and "person" in verb.subjects
    and verb.name not in ("lose", "receive", "steal", "devour", "destroy", "hear", "find")
)
FIRST_ENTITY = 4  # 1 to 3 are I, you and we
SPEAKERS = {tree.I: 1, tree.YOU: 2, tree.WE: 3}


def fits(tags: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    return any(tag in wanted for tag in tags)


@lru_cache(maxsize=None)
def verbs_for(tags: tuple[str, ...]) -> tuple[Verb, ...]:
    """The verbs that something with `tags` can do."""
    return tuple(verb for verb in verbs if fits(tags, verb.subjects))


@lru_cache(maxsize=None)
def verbs_on(tags: tuple[str, ...]) -> tuple[Verb, ...]:
    """The verbs that can be done to something with `tags`, with a direct object in all languages."""
    return tuple(
        verb
        for verb in verbs
        if fits(tags, verb.objects) and not verb.preposition and verb.object_particle == "을" and not verb.particle
    )


def pronoun_of(phrase: Phrase) -> int:
    """The pronoun that stands for a phrase."""
    if phrase.kind == tree.PRONOUN:
        return phrase.pronoun
    if phrase.plural:
        return tree.THEY
    if not phrase.animate:
        return tree.IT
    return tree.SHE if phrase.feminine else tree.HE


class Sampler:
    """An endless, reproducible source of sentences of about `size` English words."""

    def __init__(self, seed: int, size: int = 11) -> None:
        self.random = Random(seed).random
        self.size = size
        self.left = 0.0
        self.bit = 1
        self.entity = FIRST_ENTITY
        self.concepts: list[str] = []
        self.plain = False  # no adjectives in the subject of "... is red"

    # -- small tools ----------------------------------------------------------------------------------------------

    def chance(self, probability: float, cost: float = 0.0) -> bool:
        """True with `probability`, more when much budget is left, never when the budget does not reach."""
        if self.left < cost:
            return False
        if cost and self.left > 12:
            probability += (1 - probability) * 0.4
        if self.random() < probability:
            self.left -= cost
            return True
        return False

    def bits(self) -> int:
        bit = self.bit
        self.bit = bit << tree.WIDTH
        return bit

    def new_entity(self) -> int:
        self.entity += 1
        return self.entity

    def noun_of(self, choices: tuple[Noun, ...]) -> Noun:
        return choices[int(self.random() * len(choices))]

    def another(self, noun: Noun) -> Noun:
        """A different noun of the same main class."""
        alike = nouns_with(noun.tags[:1])
        place = int(self.random() * (len(alike) - 1))
        return alike[-1] if alike[place] is noun else alike[place]

    def adverb_of(self, choices: tuple[Adverb, ...]) -> Adverb:
        adverb = choices[int(self.random() * len(choices))]
        self.concepts.append(adverb.name)
        return adverb

    # -- phrases --------------------------------------------------------------------------------------------------

    def pronoun(self, which: int, antecedent: Phrase | None = None) -> Phrase:
        phrase = Phrase()
        phrase.bit = self.bits()
        phrase.kind = tree.PRONOUN
        phrase.pronoun = which
        phrase.plural = which >= tree.WE
        phrase.person = 1 if which in (tree.I, tree.WE) else 2 if which == tree.YOU else 3
        phrase.feminine = which == tree.SHE
        if antecedent is not None:
            phrase.entity = antecedent.entity
            phrase.feminine = antecedent.feminine
            phrase.animate = antecedent.animate
            phrase.tags = antecedent.tags
        else:
            phrase.entity = SPEAKERS.get(which) or self.new_entity()
            phrase.animate = which != tree.IT
            phrase.tags = ("object",) if which == tree.IT else ("person",)
        self.left -= 1
        return phrase

    def named(self) -> Phrase:
        phrase = Phrase()
        phrase.bit = self.bits()
        phrase.kind = tree.NAME
        phrase.name = names[int(self.random() * len(names))]
        phrase.feminine = phrase.name.feminine
        phrase.entity = self.new_entity()
        self.concepts.append(phrase.name.name)
        self.left -= 1
        return phrase

    def noun_phrase(
        self,
        noun: Noun,
        subject: Phrase | None,
        previous: Clause | None,
        *,
        simple: bool = False,
        open_end: bool = False,
        front: bool = False,
    ) -> Phrase:
        """A phrase about `noun`. `subject` is the one of its clause; `front` says that it is itself the subject."""
        random = self.random
        phrase = Phrase()
        phrase.bit = self.bits()
        phrase.noun = noun
        phrase.tags = noun.tags
        phrase.feminine = noun.feminine
        phrase.animate = noun.animate
        phrase.entity = self.new_entity()
        self.concepts.append(noun.name)
        self.left -= 2
        draw = random()
        if noun.mass:
            phrase.determiner = tree.THE if front or draw < 0.4 else tree.A
        else:
            phrase.plural = random() < 0.2
            if draw < 0.42:
                phrase.determiner = tree.THE
            elif draw < 0.62:
                phrase.determiner = tree.A
                phrase.plural = phrase.plural and not front
            elif draw < 0.68:
                phrase.determiner = tree.THIS
            elif draw < 0.82:
                phrase.determiner = tree.POSSESSIVE
            elif draw < 0.87 and self.left >= 2 and not simple:
                phrase.determiner = tree.GENITIVE
            elif draw < 0.94:
                phrase.determiner = tree.NUMBER
                phrase.plural = True
                phrase.count = int(random() * 9)
            elif draw < 0.97:
                phrase.determiner = tree.EVERY
                phrase.plural = False
            elif not front:
                phrase.determiner = tree.MANY
                phrase.plural = True
        if phrase.determiner == tree.POSSESSIVE:
            self.possessive(phrase, subject, previous)
        elif phrase.determiner == tree.GENITIVE:
            self.left -= 2
            phrase.genitive = (
                self.named()
                if random() < 0.35
                else self.noun_phrase(self.noun_of(PEOPLE), subject, previous, simple=self.left < 8)
            )
            if phrase.genitive.determiner in (tree.A, tree.MANY, tree.NUMBER, tree.EVERY):
                phrase.genitive.determiner = tree.THE
        if not self.plain and self.chance(0.3, 1):
            self.describe(phrase, noun)
        if not simple:
            self.extend(phrase, previous, open_end, front)
        return phrase

    def possessive(self, phrase: Phrase, subject: Phrase | None, previous: Clause | None) -> None:
        draw = self.random()
        linked = subject or (previous.subject if previous else None)
        owner = (
            pronoun_of(linked)
            if linked is not None and draw < 0.55
            else (tree.I, tree.YOU, tree.HE, tree.SHE, tree.WE, tree.THEY)[int(self.random() * 6)]
        )
        if owner == tree.IT or (linked is not None and linked.kind == tree.WHO):
            owner = tree.I
        phrase.owner = owner
        if subject is not None and subject.kind != tree.WHO and pronoun_of(subject) == owner:
            phrase.owner_entity = subject.entity
            phrase.reflexive = True
        elif previous is not None and previous.subject.kind != tree.WHO and pronoun_of(previous.subject) == owner:
            phrase.owner_entity = previous.subject.entity

    def describe(self, phrase: Phrase, noun: Noun) -> None:
        """One adjective, or one before and one behind the French noun."""
        random = self.random
        behind, before = adjectives_for(noun, False, False), adjectives_for(noun, True, False)
        if before and (not behind or random() < 0.25):
            phrase.before = before[int(random() * len(before))]
            self.concepts.append(phrase.before.name)
            if not (behind and self.chance(0.2, 1)):
                return
        if behind:
            phrase.behind = behind[int(random() * len(behind))]
            self.concepts.append(phrase.behind.name)
            if phrase.before is None and self.chance(0.12, 1):
                phrase.degree = self.adverb_of(DEGREES)

    def extend(self, phrase: Phrase, previous: Clause | None, open_end: bool, front: bool) -> None:
        """At most one of: of something, in some place, a relative clause."""
        noun = phrase.noun
        if ("part" in noun.tags or "attribute" in noun.tags) and phrase.determiner == tree.THE and self.chance(0.6, 3):
            pool = OWNERS_OF_PARTS
            phrase.of = self.noun_phrase(
                self.noun_of(pool), None, previous, simple=not (open_end or front), open_end=open_end, front=front
            )
        elif front and noun.animate and self.chance(0.1, 3):
            phrase.place = self.noun_phrase(self.noun_of(PLACE_NOUNS), None, previous, open_end=True, front=True)
        elif (front or open_end) and self.chance(0.16, 4):
            phrase.relative = self.relative(phrase, previous, open_end or front)

    def subject_phrase(self, verb_subjects: tuple[str, ...], previous: Clause | None) -> tuple[Phrase, bool]:
        """A subject with one of the tags, and whether it is the subject of the clause before."""
        random = self.random
        personal = "person" in verb_subjects
        if previous is not None and previous.subject.kind != tree.WHO and random() < 0.5:
            if fits(previous.subject.tags, verb_subjects):
                return self.pronoun(pronoun_of(previous.subject), previous.subject), True
        draw = random()
        if personal and draw < 0.34:
            which = (tree.I, tree.YOU, tree.HE, tree.SHE, tree.WE, tree.THEY)[int(random() * 6)]
            if previous is None or previous.subject.kind == tree.WHO or pronoun_of(previous.subject) != which:
                return self.pronoun(which), False
        elif personal and draw < 0.42:
            return self.named(), False
        choices = nouns_with(verb_subjects)
        if self.chance(0.06, 3):
            return self.joined(choices, None, previous), False
        return self.noun_phrase(self.noun_of(choices), None, previous, front=True), False

    def joined(self, choices: tuple[Noun, ...], subject: Phrase | None, previous: Clause | None) -> Phrase:
        """ "The doctor and his dog": two phrases without clauses of their own."""
        first = self.noun_phrase(self.noun_of(choices), subject, previous, simple=True, front=subject is None)
        second = self.noun_phrase(self.another(first.noun), subject, previous, simple=True, front=subject is None)
        phrase = Phrase()
        phrase.bit = self.bits()
        phrase.kind = tree.JOINED
        phrase.parts = (first, second)
        phrase.plural = True
        phrase.feminine = first.feminine and second.feminine
        phrase.animate = first.animate
        phrase.entity = first.entity
        phrase.tags = tuple(tag for tag in first.tags if tag in second.tags)
        return phrase

    def object_phrase(self, clause: Clause, tags: tuple[str, ...], previous: Clause | None, open_end: bool) -> Phrase:
        random = self.random
        if random() < 0.16:
            phrase = self.object_pronoun(clause, tags, previous)
            if phrase is not None:
                return phrase
        if "person" in tags and random() < 0.12:
            return self.named()
        choices = nouns_with(tags)
        if self.chance(0.05, 3):
            return self.joined(choices, clause.subject, previous)
        noun = self.noun_of(choices)
        if clause.subject.kind == tree.NOUN and noun is clause.subject.noun:
            noun = self.noun_of(choices)
        return self.noun_phrase(noun, clause.subject, previous, open_end=open_end)

    def object_pronoun(self, clause: Clause, tags: tuple[str, ...], previous: Clause | None) -> Phrase | None:
        """An object pronoun with its antecedent by the rule, or None where the one drawn would not make sense."""
        subject = clause.subject
        known = previous.object if previous is not None else None
        draw = int(self.random() * 9)
        which = draw if draw < 7 else pronoun_of(known) if known is not None else tree.THEY
        if (
            subject.person < 3
            and which in (tree.I, tree.WE, tree.YOU)
            and (subject.person == (2 if which == tree.YOU else 1))
        ):
            return None
        antecedent = None
        if which not in SPEAKERS:
            if known is not None and pronoun_of(known) == which:
                antecedent = known
            elif (
                previous is not None
                and previous.subject.kind != tree.WHO
                and (pronoun_of(previous.subject) == which and previous.subject.entity != subject.entity)
            ):
                antecedent = previous.subject
        if not fits(
            antecedent.tags if antecedent is not None else ("object",) if which == tree.IT else ("person",), tags
        ):
            return None
        if antecedent is not None and antecedent.entity == subject.entity:
            return None
        return self.pronoun(which, antecedent)

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
                (tree.I, tree.YOU, tree.HE, tree.SHE, tree.WE, tree.THEY)[int(self.random() * 6)]
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
        if not (embedded or question or clause.complement) and clause.kind == tree.ACTION and not clause.verb.state:
            if not clause.modal and clause.frequency is None and tense is None and self.chance(0.07, 1):
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
            and question in (tree.STATEMENT, tree.YES_NO)
            and (self.chance(0.1, 1))
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
        if not adjective.idiom and self.chance(0.18, 1):
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
                (tree.I, tree.YOU, tree.HE, tree.SHE, tree.WE, tree.THEY)[int(self.random() * 6)]
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
        self.left = self.size * (0.35 + 1.0 * spread * spread) + (self.size if random() < 0.05 else 0)
        sentence = Sentence()
        sentence.bit = self.bits()
        sentence.concepts = self.concepts
        sentence.units = []
        draw = random()
        if draw < 0.04:
            sentence.address = "sir" if random() < 0.5 else "madam"
        draw = random()
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
