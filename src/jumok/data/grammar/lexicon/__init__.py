"""The shared lexicon: the tables of nouns, verbs and modifiers, read once into concepts with all their forms."""

from dataclasses import dataclass
from functools import cache

from jumok.data.grammar import english_morphology as english
from jumok.data.grammar import french_morphology as french
from jumok.data.grammar import hangul
from jumok.data.grammar.lexicon.modifiers import ADJECTIVES, ADVERBS
from jumok.data.grammar.lexicon.nouns import NAMES, NOUNS
from jumok.data.grammar.lexicon.verbs import THAT_VERBS, VERBS

COUNTERS = {"person": "명", "animal": "마리", "vehicle": "대", "clothing": "벌", "place": "곳"}
NUMBERS = (
    ("two", "deux", "두"),
    ("three", "trois", "세"),
    ("four", "quatre", "네"),
    ("five", "cinq", "다섯"),
    ("six", "six", "여섯"),
    ("seven", "sept", "일곱"),
    ("eight", "huit", "여덟"),
    ("nine", "neuf", "아홉"),
    ("ten", "dix", "열"),
)


@dataclass(frozen=True, slots=True, eq=False)
class Noun:
    name: str
    tags: tuple[str, ...]
    english: tuple[str, str]  # singular, plural
    french: tuple[str, str]
    french_forms: tuple[str, str, str, str]  # at feminine + 2 * plural
    feminine: bool
    aspirated: bool
    korean: str
    counter: str
    animate: bool
    person: bool
    mass: bool
    profession: bool
    english_place: str
    french_place: str


@dataclass(frozen=True, slots=True, eq=False)
class Name:
    name: str
    feminine: bool
    korean: str


@dataclass(frozen=True, slots=True, eq=False)
class Verb:
    name: str
    english: tuple[str, str, str]  # base, third person, past
    particle: str
    french: french.FrenchVerb
    participle: tuple[str, str, str, str]
    preposition: str
    korean: hangul.KoreanPredicate
    korean_lead: str  # a word of its own before the predicate: 미소 짓다
    korean_voice: str  # what one hears of a person: 목소리를
    object_particle: str
    subjects: tuple[str, ...]
    objects: tuple[str, ...]
    flags: tuple[str, ...]
    state: bool


@dataclass(frozen=True, slots=True, eq=False)
class Adjective:
    name: str
    comparative: str  # "" when it takes "more"
    french: tuple[str, str, str, str]
    before: bool  # stands before the French noun
    idiom: bool  # "avoir faim"
    liaison: str  # the masculine before a vowel: bel, vieil, nouvel
    french_comparative: tuple[str, str, str, str] | None  # meilleur, pire
    korean: hangul.KoreanPredicate
    tags: tuple[str, ...]
    attributive: bool
    predicative: bool


@dataclass(frozen=True, slots=True, eq=False)
class Adverb:
    name: str
    french: str
    short: bool
    korean: str
    place: str


def _rows(table: str, width: int) -> list[list[str]]:
    rows = [[cell.strip() for cell in line.split("|")] for line in table.strip().splitlines()]
    return [row + [""] * (width - len(row)) for row in rows]


def _noun(row: list[str]) -> Noun:
    name, _, irregular = row[0].partition(",")
    words, gender = row[1].rsplit(" ", 1)
    masculine, _, feminine = words.lstrip("*").partition("/")
    forms = french.agree(masculine, feminine or masculine)
    is_feminine = gender == "f"
    tags = row[3].split()
    prepositions = next((tag.split(":") for tag in tags if ":" in tag), ["in", "dans"])
    tags = [tag for tag in tags if ":" not in tag]
    return Noun(
        name=name,
        tags=(*tags, name),
        english=(name, irregular or english.add_s(name)),
        french=(forms[is_feminine], forms[2 + is_feminine]),
        french_forms=forms,
        feminine=is_feminine,
        aspirated=words.startswith("*"),
        korean=row[2],
        counter=row[4] or COUNTERS.get(tags[0], "개"),
        animate=tags[0] in ("person", "animal"),
        person=tags[0] == "person",
        mass="mass" in tags,
        profession="profession" in tags,
        english_place=prepositions[0],
        french_place=prepositions[1],
    )


def _verb(row: list[str]) -> Verb:
    words, _, irregular = row[0].partition(",")
    base, _, particle = words.partition("_")
    infinitive, *rest = row[1].split()
    korean_words = row[2].split()
    dictionary, _, irregular_class = korean_words[0].partition(":")
    lead, _, dictionary = dictionary.rpartition("_")
    subjects, _, objects = row[3].partition(">")
    conjugated = french.conjugate(infinitive, "être" in rest)
    flags = row[4].split()
    return Verb(
        name=words.replace("_", " "),
        english=(base, english.add_s(base), irregular or english.add_ending(base, "ed")),
        particle=particle,
        french=conjugated,
        participle=french.agree_participle(conjugated.participle),
        preposition=next((word for word in rest if word != "être"), ""),
        korean=hangul.conjugate(dictionary, irregular_class),
        korean_lead=lead,
        korean_voice=korean_words[2] if len(korean_words) > 2 else "",
        object_particle=korean_words[1] if len(korean_words) > 1 else "을",
        subjects=tuple(subjects.split()),
        objects=tuple(objects.split()),
        flags=tuple(flags),
        state="state" in flags,
    )


LIAISON = {"beau": "bel", "vieux": "vieil", "nouveau": "nouvel"}
COMPARATIVE = {"bon": "meilleur", "mauvais": "pire"}


def _adjective(row: list[str]) -> Adjective:
    name, _, degree = row[0].partition(",")
    words, *rest = row[1].split()
    masculine, _, feminine = words.lstrip("*").partition(",")
    dictionary, _, irregular_class = row[2].partition(":")
    better = COMPARATIVE.get(masculine)
    idiom = "avoir" in rest
    forms = (masculine,) * 4 if idiom else french.agree(masculine, feminine or french.feminine(masculine))
    return Adjective(
        name=name,
        comparative=english.add_ending(name, "er") if degree == "er" else degree,
        french=forms,
        before="pre" in rest,
        idiom=idiom,
        liaison=LIAISON.get(masculine, ""),
        french_comparative=french.agree(better, french.feminine(better)) if better else None,
        korean=hangul.conjugate(dictionary, irregular_class, is_verb=False),
        tags=tuple(row[3].split()),
        attributive=row[4] != "state",
        predicative=row[4] != "attribute",
    )


def _adverb(row: list[str]) -> Adverb:
    words = row[1].split()
    return Adverb(row[0], words[0], "short" in words, row[2], row[3])


nouns: tuple[Noun, ...] = tuple(_noun(row) for row in _rows(NOUNS, 5))
names: tuple[Name, ...] = tuple(Name(row[0], row[1] == "f", row[2]) for row in _rows(NAMES, 3))
verbs: tuple[Verb, ...] = tuple(_verb(row) for row in _rows(VERBS, 5))
that_verbs: tuple[Verb, ...] = tuple(_verb(row) for row in _rows(THAT_VERBS, 5))
adjectives: tuple[Adjective, ...] = tuple(_adjective(row) for row in _rows(ADJECTIVES, 5))
adverbs: tuple[Adverb, ...] = tuple(_adverb(row) for row in _rows(ADVERBS, 4))
noun_named: dict[str, Noun] = {noun.name: noun for noun in nouns}
verb_named: dict[str, Verb] = {verb.name: verb for verb in verbs}
adjective_named: dict[str, Adjective] = {adjective.name: adjective for adjective in adjectives}

# The few verbs with a grammar of their own.
HAVE = _verb(["have,had", "avoir", "가지고_있다 을", "person > object animal vehicle clothing", "state"])
BE_FRENCH = french.conjugate("être")
HAVE_FRENCH = french.conjugate("avoir")
MODALS_FRENCH = {
    name: french.conjugate(word) for name, word in (("can", "pouvoir"), ("must", "devoir"), ("want", "vouloir"))
}
EXIST_KOREAN = hangul.conjugate("있다", "i", is_verb=False)
ABSENT_KOREAN = hangul.conjugate("없다", "i", is_verb=False)


@cache
def nouns_with(tags: tuple[str, ...]) -> tuple[Noun, ...]:
    """The nouns that carry one of `tags`, in the order of the table."""
    return tuple(noun for noun in nouns if any(tag in noun.tags for tag in tags))


@cache
def adjectives_for(noun: Noun, before: bool, predicate: bool) -> tuple[Adjective, ...]:
    """The adjectives that can describe `noun`, before or behind it in French, or after "be"."""
    return tuple(
        adjective
        for adjective in adjectives
        if any(tag in adjective.tags for tag in noun.tags)
        and not (adjective.name == "old" and noun.name in ("baby", "child", "boy", "girl"))
        and (adjective.predicative if predicate else adjective.attributive and adjective.before == before)
    )
