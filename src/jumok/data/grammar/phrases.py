"""Noun phrases drawn by a random generator, and the budget of words they spend."""

from random import Random

from jumok.data.grammar import tree
from jumok.data.grammar.choices import (
    ABSOLUTE,
    ATTRIBUTIVE_DEGREES,
    OWNERS_OF_PARTS,
    PEOPLE,
    PLACE_NOUNS,
    fits,
    partners,
)
from jumok.data.grammar.lexicon import Adverb, Noun, adjectives_for, names, nouns_with
from jumok.data.grammar.tree import Clause, Phrase

FIRST_ENTITY = 4  # 1 to 3 are I, you and we
SPEAKERS = {tree.SPEAKER: 1, tree.YOU: 2, tree.WE: 3}


def pronoun_of(phrase: Phrase) -> int:
    """The pronoun that stands for a phrase."""
    if phrase.kind == tree.PRONOUN:
        return phrase.pronoun
    if phrase.plural:
        return tree.THEY
    if not phrase.animate:
        return tree.IT
    return tree.SHE if phrase.feminine else tree.HE


class PhraseSampler:
    """Draws noun phrases; the clauses inside them come from `relative`, which the whole sampler has."""

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
        phrase.person = 1 if which in (tree.SPEAKER, tree.WE) else 2 if which == tree.YOU else 3
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
            else (tree.SPEAKER, tree.YOU, tree.HE, tree.SHE, tree.WE, tree.THEY)[int(self.random() * 6)]
        )
        lifeless = linked is not None and not linked.animate and owner == tree.THEY  # bottles own nothing
        if owner == tree.IT or lifeless or (linked is not None and linked.kind == tree.WHO):
            owner = tree.SPEAKER
        phrase.owner = owner
        if subject is not None and subject.kind != tree.WHO and pronoun_of(subject) == owner:
            phrase.owner_entity = subject.entity
            phrase.reflexive = True
        elif (
            previous is not None
            and previous.subject.kind != tree.WHO
            and previous.subject.animate
            and pronoun_of(previous.subject) == owner
        ):
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
            if phrase.before is None and phrase.behind.name not in ABSOLUTE and self.chance(0.12, 1):
                phrase.degree = self.adverb_of(ATTRIBUTIVE_DEGREES)

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
        known = previous.subject if previous is not None and previous.subject.kind != tree.WHO else None
        if known is not None and fits(known.tags, verb_subjects) and random() < 0.5:
            return self.pronoun(pronoun_of(known), known), True
        draw = random()
        if personal and draw < 0.34:
            which = (tree.SPEAKER, tree.YOU, tree.HE, tree.SHE, tree.WE, tree.THEY)[int(random() * 6)]
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
        second = self.noun_phrase(
            self.noun_of(partners(first.noun, choices)), subject, previous, simple=True, front=subject is None
        )
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
            and which in (tree.SPEAKER, tree.WE, tree.YOU)
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

    def relative(self, head: Phrase, previous: Clause | None, open_end: bool) -> Clause | None:
        """A clause about `head`, with a gap for it."""
        raise NotImplementedError
