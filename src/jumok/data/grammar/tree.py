"""The abstract tree that the three languages say in their own order.

Every thing said owns bits: a phrase owns ten for its head, determiner, adjectives and so on; a clause owns ten for its
verb, auxiliary, negation and so on. A word of any language carries the bits it expresses; two words are aligned where
their bits meet. `entity` tells who is who: a pronoun carries the entity of its antecedent.
"""

from jumok.data.grammar.lexicon import Adjective, Adverb, Name, Noun, Verb

# kinds of phrase
NOUN, NAME, PRONOUN, JOINED, WHO, WHAT = range(6)
# determiners
THE, A, THIS, POSSESSIVE, GENITIVE, NUMBER, EVERY, MANY = range(8)
# pronouns
SPEAKER, YOU, HE, SHE, IT, WE, THEY = range(7)
# kinds of clause
ACTION, DESCRIPTION, IDENTITY, COMPARISON, EXISTENCE, ORDER = range(6)
# tenses
PRESENT, PAST, FUTURE = range(3)
# questions
STATEMENT, YES_NO, WHO_DOES, DOES_WHAT, WHERE, WHY, WHEN = range(7)

# bits of a phrase, as shifts from its first
HEAD, DETERMINER, BEFORE, BEHIND, COUNT, LINK, DEGREE, OWNER = range(8)
# bits of a clause
VERB, AUXILIARY, NEGATION, ASKING, ADVERB, TIME, CONNECTOR, MORE, PLACE, VEHICLE = range(10)
WIDTH = 10


class Phrase:
    """A noun phrase; attributes not given keep the defaults of the class."""

    bit: int
    kind: int = NOUN
    noun: Noun
    name: Name
    pronoun: int = HE
    entity: int = 0
    person: int = 3
    plural: bool = False
    feminine: bool = False
    animate: bool = True
    tags: tuple[str, ...] = ("person",)
    determiner: int = THE
    before: Adjective | None = None
    behind: Adjective | None = None
    degree: Adverb | None = None
    count: int = 0
    owner: int = HE  # of a possessive determiner
    owner_entity: int = 0
    reflexive: bool = False  # the owner is the subject of the clause
    genitive: "Phrase | None" = None  # the doctor's dog
    of: "Phrase | None" = None  # the door of the house
    place: "Phrase | None" = None  # the cat in the kitchen
    relative: "Clause | None" = None
    parts: "tuple[Phrase, Phrase]"


class Clause:
    """A clause; a relative one has a `gap` where its head noun would stand."""

    bit: int
    kind: int = ACTION
    subject: Phrase
    verb: Verb
    tense: int = PRESENT
    negative: bool = False
    modal: str = ""
    question: int = STATEMENT
    object: Phrase | None = None
    recipient: Phrase | None = None
    place: Phrase | None = None
    place_adverb: Adverb | None = None
    goal: bool = False  # the place is where one goes
    companion: Phrase | None = None
    beneficiary: Phrase | None = None
    vehicle: Noun | None = None
    manner: Adverb | None = None
    frequency: Adverb | None = None
    time: Adverb | None = None
    adjective: Adjective | None = None
    degree: Adverb | None = None
    predicate: Noun | None = None
    standard: Phrase | None = None  # bigger than ...
    complement: "Clause | None" = None  # thinks that ...
    then: "Clause | None" = None  # ... and drinks water
    gap: str = ""  # "subject" or "object" of a relative clause
    coreferent: bool = False  # the subject is the one of the clause said before


class Unit:
    """A main clause with at most one adverbial clause; units are chained by "and" or "but"."""

    bit: int
    joint: str = ""  # "and", "but", or "" for the first
    clause: Clause
    side: Clause | None = None
    relation: str = ""  # "because" stands behind, "when" and "if" in front


class Sentence:
    bit: int
    units: list[Unit]
    address: str = ""  # "sir" or "madam"
    concepts: list[str]  # the content words said, in no language
