"""Changes to a clause whose effect on its truth is known: weaker, stronger, denied, exchanged.

Each gives new clauses and leaves the old one as it is. `weaker` clauses follow from an affirmed one, an affirmed one
follows from those that are `stronger`; for denied ones it is the other way round.
"""

from __future__ import annotations

from jumok.data.grammar import tree
from jumok.data.grammar.choices import MANNERS, PEOPLE, PLACE_NOUNS, fits
from jumok.data.grammar.lexicon import Noun, adjective_named, adjectives_for, adverbs, nouns_with
from jumok.data.grammar.tree import Clause, Phrase, Sentence
from jumok.data.grammar_tasks.drawing import Drawer
from jumok.data.grammar_tasks.walk import clauses_of, copied, nodes_in

SETTLED = (tree.THE, tree.THIS, tree.POSSESSIVE, tree.GENITIVE)
MAY_GO = frozenset(("always", "often", "sometimes", "really", "already", "finally", "suddenly"))  # not "rarely"
ADJUNCTS = ("manner", "place", "place_adverb", "companion", "vehicle", "beneficiary", "recipient")
OPPOSITES = (
    ("big", "small"), ("good", "bad"), ("long", "short"), ("rich", "poor"), ("happy", "sad"), ("strong", "weak"),
    ("fast", "slow"), ("intelligent", "stupid"), ("hot", "cold"), ("heavy", "light"), ("clean", "dirty"),
    ("soft", "hard"), ("wide", "narrow"), ("high", "low"), ("thick", "thin"), ("quiet", "noisy"),
    ("difficult", "easy"), ("kind", "cruel"), ("calm", "anxious"),
)  # fmt: skip
OPPOSITE = {one: adjective_named[other] for pair in OPPOSITES for one, other in (pair, pair[::-1])}
_adverb = {adverb.name: adverb for adverb in adverbs}
OTHERWISE = {
    one: _adverb[other]
    for pair in (("slowly", "quickly"), ("quietly", "noisily"), ("joyfully", "sadly"), ("calmly", "nervously"))
    for one, other in (pair, pair[::-1])
} | {"carefully": _adverb["clumsily"], "elegantly": _adverb["clumsily"], "gladly": _adverb["sadly"]}


def is_settled(phrase: Phrase) -> bool:
    """Whether the phrase means somebody or something in particular, the same one wherever it is said."""
    if phrase.kind == tree.JOINED:
        return is_settled(phrase.parts[0]) and is_settled(phrase.parts[1])
    return phrase.kind in (tree.PRONOUN, tree.NAME) or (phrase.kind == tree.NOUN and phrase.determiner in SETTLED)


def with_part(clause: Clause, part: str, value: object) -> Clause:
    twin = copied(clause)
    setattr(twin, part, value)
    if part == "object" and clause.kind == tree.EXISTENCE and isinstance(value, Phrase):
        twin.subject = value
    return twin


# -- weaker -----------------------------------------------------------------------------------------------------------


def barer_phrases(phrase: Phrase) -> list[Phrase]:
    """The phrase with less said about it."""
    if phrase.kind == tree.JOINED:
        return list(phrase.parts)
    found: list[Phrase] = []
    if phrase.kind != tree.NOUN or phrase.determiner == tree.EVERY:
        return found
    if phrase.before is not None or phrase.behind is not None:
        twin = copied(phrase)
        twin.before = twin.behind = twin.degree = None
        found.append(twin)
    if phrase.relative is not None or phrase.place is not None:
        twin = copied(phrase)
        twin.relative = twin.place = None
        found.append(twin)
    return found


def without_adjunct(clause: Clause) -> list[Clause]:
    """The action with one circumstance less."""
    if clause.kind != tree.ACTION:
        return []
    found = [
        with_part(clause, part, None)
        for part in ADJUNCTS
        if getattr(clause, part) is not None and not (part == "place" and clause.goal)
    ]
    if clause.frequency is not None and clause.frequency.name in MAY_GO:
        found.append(with_part(clause, "frequency", None))
    return found


def barer_subject(clause: Clause) -> list[Clause]:
    owned = clause.complement is not None or any(
        isinstance(node, Phrase) and node.reflexive for node in nodes_in(clause)
    )
    both = clause.subject.kind == tree.JOINED  # "both did not" may mean that one did; "their" may mean both
    if clause.kind == tree.EXISTENCE or (both and (clause.negative or owned)):
        return []
    return [with_part(clause, "subject", phrase) for phrase in barer_phrases(clause.subject)]


def weaker(clause: Clause) -> list[Clause]:
    """What follows from the clause, affirmed: something is left out."""
    found = barer_subject(clause) + without_adjunct(clause)
    for part in ("object", "place", "recipient", "companion"):
        phrase = getattr(clause, part)
        if phrase is not None:
            found += [with_part(clause, part, barer) for barer in barer_phrases(phrase)]
    if clause.degree is not None and clause.kind == tree.DESCRIPTION:
        found.append(with_part(clause, "degree", None))
    if clause.time is not None:
        found.append(with_part(clause, "time", None))
    return found


# -- stronger ---------------------------------------------------------------------------------------------------------


def described(drawer: Drawer, phrase: Phrase) -> Phrase | None:
    """The phrase with an adjective, where it had none and there is one."""
    if phrase.kind != tree.NOUN or phrase.before is not None or phrase.behind is not None:
        return None
    choices = adjectives_for(phrase.noun, False, False)
    if not choices:
        return None
    twin = copied(phrase)
    twin.behind = drawer.pick(choices)
    return twin


def with_adjunct(drawer: Drawer, clause: Clause) -> list[Clause]:
    """The action with one circumstance more, where it is clear that it belongs to the verb."""
    last = clause.object
    closed = clause.complement is not None or clause.then is not None or clause.frequency is not None
    if clause.kind != tree.ACTION or closed or clause.verb.state or not clause.subject.animate:
        return []
    if last is not None and (last.relative is not None or last.of is not None or last.kind == tree.JOINED):
        return []
    found = []
    free = clause.place is None and clause.place_adverb is None and not clause.goal
    if free and clause.manner is None and clause.companion is None and clause.vehicle is None:
        found.append(with_part(clause, "manner", drawer.pick(MANNERS)))
    if free and clause.companion is None and "nowhere" not in clause.verb.flags:
        place = drawer.noun_phrase(drawer.noun_of(PLACE_NOUNS), None, None, simple=True)
        place.determiner, place.plural = tree.THE, False
        found.append(with_part(clause, "place", place))
    if clause.companion is None and clause.vehicle is None and not clause.verb.objects and not clause.goal:
        person = drawer.noun_phrase(drawer.noun_of(PEOPLE), None, None, simple=True)
        person.determiner, person.plural = tree.THE, False
        found.append(with_part(clause, "companion", person))
    return found


def stronger(drawer: Drawer, clause: Clause) -> list[Clause]:
    """What the affirmed clause leaves open: something is added."""
    found = with_adjunct(drawer, clause)
    for part in ("object", "place"):
        phrase = getattr(clause, part)
        more = described(drawer, phrase) if phrase is not None else None
        if more is not None and more.relative is None and more.of is None:
            found.append(with_part(clause, part, more))
    if clause.kind == tree.ACTION:  # "the red car is blue" would be no addition
        more = described(drawer, clause.subject)
        if more is not None:
            found.append(with_part(clause, "subject", more))
    return found


# -- denied, exchanged ------------------------------------------------------------------------------------------------


def denied(clause: Clause) -> Clause | None:
    """The contrary of the clause, or None where "not" would not deny the whole of it."""
    rare = clause.frequency is not None and clause.frequency.name not in MAY_GO
    if clause.complement is not None or rare or (clause.kind != tree.EXISTENCE and not is_settled(clause.subject)):
        return None
    twin = copied(clause)
    twin.negative = not clause.negative
    twin.frequency = twin.then = None
    if clause.kind == tree.EXISTENCE and clause.object is not None and not clause.negative:
        thing = copied(clause.object)
        thing.determiner = tree.A
        twin.object = twin.subject = thing
    return twin


def another(drawer: Drawer, phrase: Phrase, tags: tuple[str, ...]) -> Phrase | None:
    """The same phrase about another noun of its class that has one of `tags`, with nothing else said about it."""
    if phrase.kind != tree.NOUN:
        return None
    old = phrase.noun
    choices: list[Noun] = [
        noun for noun in nouns_with(tags) if noun is not old and noun.mass == old.mass and noun.tags[0] == old.tags[0]
    ]
    if not choices:
        return None
    twin = copied(phrase)
    twin.noun = noun = drawer.pick(choices)
    twin.tags, twin.feminine, twin.animate = noun.tags, noun.feminine, noun.animate
    twin.entity = drawer.new_entity()
    twin.before = twin.behind = twin.degree = twin.relative = twin.of = twin.place = None
    return twin


def subject_tags(clause: Clause) -> tuple[str, ...]:
    """What the subject of such a clause can be."""
    if clause.kind == tree.ACTION:
        return clause.verb.subjects
    return clause.adjective.tags if clause.adjective is not None else ("person",)


def exchanged(drawer: Drawer, clause: Clause) -> list[Clause]:
    """The clause about somebody or something else."""
    found = []
    thing = clause.object
    if thing is not None and clause.complement is None:
        tags = thing.noun.tags[:1] if clause.kind == tree.EXISTENCE and thing.kind == tree.NOUN else clause.verb.objects
        other = another(drawer, thing, tags)
        if other is not None:
            found.append(with_part(clause, "object", other))
    if clause.kind in (tree.ACTION, tree.DESCRIPTION):
        other = another(drawer, clause.subject, subject_tags(clause))
        owned = any(isinstance(node, Phrase) and node.reflexive for node in nodes_in(clause))
        if other is not None and not owned:
            found.append(with_part(clause, "subject", other))
    return found


def turned_round(clause: Clause) -> list[Clause]:
    """ "The cat saw the dog" for "The dog saw the cat"."""
    subject, thing = clause.subject, clause.object
    if clause.kind != tree.ACTION or thing is None or clause.complement is not None or clause.then is not None:
        return []
    named = all(phrase.kind in (tree.NOUN, tree.NAME) and is_settled(phrase) for phrase in (subject, thing))
    plain = not (subject.relative or thing.relative or subject.place or thing.of or subject.of)
    if not named or not plain or thing.reflexive or subject.entity == thing.entity:
        return []
    if any(isinstance(node, Phrase) and node.reflexive for node in nodes_in(clause)):
        return []
    if not fits(thing.tags, clause.verb.subjects) or not fits(subject.tags, clause.verb.objects):
        return []
    twin = copied(clause)
    twin.subject, twin.object = thing, subject
    return [twin]


# -- what a sentence asserts ------------------------------------------------------------------------------------------


def named_entities(clause: Clause) -> set[int]:
    return {node.entity for node in nodes_in(clause) if isinstance(node, Phrase) and node.kind != tree.PRONOUN}


def alone(clause: Clause, sentence: Sentence) -> Clause | None:
    """The clause as a sentence of its own: its subject named; None where another word would lose its antecedent."""
    subject = clause.subject
    inside = named_entities(clause)
    outside: set[int] = set()
    for other in clauses_of(sentence):
        outside |= named_entities(other)
    if subject.kind == tree.PRONOUN and subject.entity in outside - inside:
        known = next(
            node
            for other in clauses_of(sentence)
            for node in nodes_in(other)
            if isinstance(node, Phrase) and node.kind != tree.PRONOUN and node.entity == subject.entity
        )
        if not is_settled(known):
            return None
        clause = with_part(clause, "subject", known)
        inside = named_entities(clause)
    pointed = set()
    for node in nodes_in(clause):
        if isinstance(node, Phrase):
            pointed |= {node.entity} if node.kind == tree.PRONOUN else {node.owner_entity}
    return None if pointed & (outside - inside) else clause


def asserted(sentence: Sentence) -> list[Clause]:
    """What the sentence says to be so, clause by clause, the main one first; nothing where it is but a condition."""
    unit = sentence.units[0]
    clause, side = unit.clause, unit.side
    if side is not None and (unit.relation == "if" or (unit.relation == "when" and clause.tense != tree.PAST)):
        return []
    found = [clause]
    if side is not None:
        found.append(side)
    if clause.complement is not None and "fact" in clause.verb.flags:
        found.append(clause.complement)
    if clause.then is not None and not clause.negative:
        found += [with_part(clause, "then", None), clause.then]
    return [single for part in found if (single := alone(part, sentence)) is not None]


def left_open(sentence: Sentence) -> list[Clause]:
    """What the sentence speaks of and does not say to be so: conditions, what somebody thinks."""
    unit = sentence.units[0]
    clause, side = unit.clause, unit.side
    found: list[Clause] = []
    if side is not None and unit.relation == "if":
        found += [clause, side]
    if clause.complement is not None and "fact" not in clause.verb.flags:
        found.append(clause.complement)
    return [single for part in found if (single := alone(part, sentence)) is not None]
