"""What the sampler draws from: the lexicon sorted by what fits together."""

from functools import cache

from jumok.data.grammar.lexicon import Noun, Verb, adverbs, nouns, nouns_with, verbs

MANNERS, FREQUENCIES, PLACES, DEGREES = (
    tuple(adverb for adverb in adverbs if adverb.place == place) for place in ("manner", "frequency", "place", "degree")
)
ATTRIBUTIVE_DEGREES = tuple(adverb for adverb in DEGREES if adverb.name != "too")  # not "a too polite aunt"
TIMES = tuple(tuple(adverb for adverb in adverbs if adverb.place == place) for place in ("present", "past", "future"))
PROFESSIONS = tuple(noun for noun in nouns if noun.profession)
PLACE_NOUNS = nouns_with(("place",))
PEOPLE = nouns_with(("person",))
OWNERS_OF_PARTS = nouns_with(("building",))
ABSOLUTE = frozenset(("magnificent", "delicious", "perfect"))  # these have no degrees
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


def fits(tags: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    return any(tag in wanted for tag in tags)


@cache
def partners(noun: Noun, choices: tuple[Noun, ...]) -> tuple[Noun, ...]:
    """What of `choices` is said together with `noun`: others of its main class, or any where it is alone."""
    others = tuple(other for other in choices if other is not noun)
    return tuple(other for other in others if other.tags[0] == noun.tags[0]) or others or choices


@cache
def verbs_for(tags: tuple[str, ...]) -> tuple[Verb, ...]:
    """The verbs that something with `tags` can do."""
    return tuple(verb for verb in verbs if fits(tags, verb.subjects))


@cache
def verbs_on(tags: tuple[str, ...]) -> tuple[Verb, ...]:
    """The verbs that can be done to something with `tags`, with a direct object in all languages."""
    return tuple(
        verb
        for verb in verbs
        if fits(tags, verb.objects) and not verb.preposition and verb.object_particle == "을" and not verb.particle
    )
