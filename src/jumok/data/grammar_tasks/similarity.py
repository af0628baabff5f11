"""Pairs of sentences and how much they have in common: a data set for regression, from 0 to 5 as in STS-B.

The score is five times the share of their content words that the two have in common (Dice 1945), whatever their tense,
number and articles are, with one decimal:

    score = 5 * 2 |A and B| / (|A| + |B|)        A, B the concepts said, each as often as it is said

The second sentence is the first with k of its n content words exchanged, k drawn evenly from 0 to n, in another tense
or with other articles. So it has the same build, and the score has to be read off the words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from jumok.data.examples import Example
from jumok.data.grammar import tree
from jumok.data.grammar.choices import DEGREES, FREQUENCIES, MANNERS, PLACE_NOUNS, PLACES, VEHICLES, fits
from jumok.data.grammar.corpus import text_of
from jumok.data.grammar.lexicon import HAVE, Noun, Verb, adjectives, adjectives_for, names, nouns_with, verbs
from jumok.data.grammar.phrases import pronoun_of
from jumok.data.grammar.tree import Clause, Phrase, Sentence
from jumok.data.grammar_tasks.drawing import Drawer, Seen, belongs, changed, checked
from jumok.data.grammar_tasks.rewriting import subject_tags
from jumok.data.grammar_tasks.walk import copied

ADJECTIVES = tuple(adjective for adjective in adjectives if adjective.predicative)
HIGHEST = 5.0
SIZE = 20
FEWEST = 4  # content words of a sentence: with less there are but a few scores
TRIES = 12  # to exchange words so that the new sentence is of the split
Change = Callable[[], bool]


def score(first: list[str], second: list[str]) -> float:
    """What two lists of concepts have in common, from 0 to `HIGHEST`."""
    common = (Counter(first) & Counter(second)).total()
    return HIGHEST * 2 * common / max(1, len(first) + len(second))


class Exchange:
    """A copy of a simple clause, and the ways to put another word in the place of each of its content words."""

    def __init__(self, drawer: Drawer, clause: Clause) -> None:
        self.drawer = drawer
        self.clause = twin = copied(clause)
        self.changes: list[Change] = []
        twin.subject = self.own(clause.subject, subject_tags(clause))
        for part, tags in (
            ("object", clause.verb.objects if clause.kind == tree.ACTION else ()),
            ("recipient", ("person",)),
            ("beneficiary", ("person",)),
            ("companion", ("person",)),
            ("place", ("place",)),
            ("standard", subject_tags(clause)),
        ):
            phrase = getattr(clause, part)
            if phrase is not None:
                setattr(twin, part, self.own(phrase, tags))
        for part, choices in (
            ("manner", MANNERS), ("frequency", FREQUENCIES), ("degree", DEGREES), ("place_adverb", PLACES),
            ("vehicle", VEHICLES),
        ):  # fmt: skip
            if getattr(clause, part) is not None:
                self.changes.append(lambda part=part, choices=choices: self.other(twin, part, choices))  # type: ignore[misc]
        if clause.kind == tree.ACTION and clause.verb is not HAVE:
            self.changes.append(self.verb)
        elif clause.adjective is not None:
            self.changes.append(self.adjective)
        elif clause.predicate is not None:
            professions = tuple(noun for noun in nouns_with(("profession",)))
            self.changes.append(lambda: self.other(twin, "predicate", professions))

    def own(self, phrase: Phrase, tags: tuple[str, ...]) -> Phrase:
        twin = copied(phrase)
        if phrase.kind == tree.NAME:
            self.changes.append(lambda: self.name(twin))
        elif phrase.kind == tree.NOUN:
            self.changes.append(lambda: self.noun(twin, tags))
            for part in ("before", "behind"):
                if getattr(twin, part) is not None:
                    self.changes.append(lambda part=part: self.describe(twin, part))  # type: ignore[misc]
        return twin

    def other(self, node: Clause | Phrase, part: str, choices: tuple[object, ...]) -> bool:
        """Another of `choices` for a part; whether there was one."""
        old = getattr(node, part)
        left = [choice for choice in choices if choice is not old]
        if left:
            setattr(node, part, self.drawer.pick(left))
        return bool(left)

    def name(self, phrase: Phrase) -> bool:
        alike = tuple(name for name in names if name.feminine == phrase.feminine)
        return self.other(phrase, "name", alike)

    def noun(self, phrase: Phrase, tags: tuple[str, ...]) -> bool:
        old = phrase.noun
        pool: tuple[Noun, ...] = PLACE_NOUNS if tags == ("place",) else nouns_with(tags)
        wanted = [adjective for adjective in (phrase.before, phrase.behind) if adjective is not None]
        choices = tuple(
            noun
            for noun in pool
            if noun.mass == old.mass
            and noun.tags[0] == old.tags[0]
            and all(fits(noun.tags, adjective.tags) for adjective in wanted)
        )
        done = self.other(phrase, "noun", choices)
        phrase.tags, phrase.feminine, phrase.animate = phrase.noun.tags, phrase.noun.feminine, phrase.noun.animate
        return done

    def describe(self, phrase: Phrase, part: str) -> bool:
        return self.other(phrase, part, adjectives_for(phrase.noun, part == "before", False))

    def adjective(self) -> bool:
        clause = self.clause
        old = clause.adjective
        assert old is not None
        shared = [phrase for phrase in (clause.subject, clause.standard) if phrase is not None]
        return self.other(
            clause,
            "adjective",
            tuple(
                adjective
                for adjective in ADJECTIVES
                if (not adjective.idiom or (clause.kind == tree.DESCRIPTION and clause.degree is None))
                and all(fits(phrase.tags, adjective.tags) for phrase in shared)
            ),
        )

    def verb(self) -> bool:
        """Another verb that everything else of the clause goes with."""
        clause, old = self.clause, self.clause.verb

        def suits(verb: Verb) -> bool:
            thing = clause.object
            return (
                bool(verb.objects) == bool(old.objects)
                and verb.flags == old.flags
                and fits(clause.subject.tags, verb.subjects)
                and (thing is None or fits(thing.tags, verb.objects))
            )

        return self.other(clause, "verb", tuple(verb for verb in verbs if suits(verb)))


def another_look(drawer: Drawer, clause: Clause) -> None:
    """Other words of no content: the tense, the articles."""
    if not clause.modal and clause.time is None and drawer.random() < 0.6:
        clause.tense = (clause.tense + 1 + int(drawer.random() * 2)) % 3
    for phrase in (clause.subject, clause.object, clause.place):
        if phrase is None or phrase.kind != tree.NOUN or phrase.noun.mass:
            continue
        if phrase.reflexive:
            phrase.owner = pronoun_of(clause.subject)  # who may be another by now
        elif phrase.determiner in (tree.THE, tree.THIS, tree.A) and drawer.random() < 0.4:
            phrase.determiner = tree.THE if phrase.determiner == tree.THIS else tree.THIS


def is_plain(sentence: Sentence) -> bool:
    """One clause, no question, and nothing inside its phrases: every content word can be exchanged."""
    clause = sentence.units[0].clause
    if clause.complement is not None or clause.then is not None or clause.time is not None:
        return False
    phrases = (
        clause.subject, clause.object, clause.recipient, clause.place, clause.companion, clause.beneficiary,
        clause.standard,
    )  # fmt: skip
    return not any(
        phrase is not None
        and (phrase.kind == tree.JOINED or phrase.relative or phrase.of or phrase.place or phrase.genitive)
        for phrase in phrases
    )


def grammar_similarity(language: str, split: str, count: int, seed: int = 1) -> Iterator[Example]:
    """`count` distinct pairs, each with its score as the label: "0.0" to "5.0".

    The same for the same arguments on every machine. Both sentences are of the split, by their content
    (`corpus.split_of`): none of them is in another one.
    """
    say = checked(language, split, count)
    drawer, seen = Drawer(seed, SIZE), Seen()
    while count > 0:
        first = drawer.begin()
        first.units[0].clause = drawer.clause()
        if len(first.concepts) < FEWEST or not is_plain(first) or not belongs(first, split):
            continue
        share = drawer.random()
        for _ in range(TRIES):
            second = exchanged(drawer, first, share)
            if belongs(second, split):
                break
        else:
            continue
        text, other = text_of(say(first)), text_of(say(second))
        if text != other and not seen.before(text, other):
            yield Example(text=text, second=other, label=f"{score(first.concepts, second.concepts):.1f}")
            count -= 1


def exchanged(drawer: Drawer, first: Sentence, share: float) -> Sentence:
    """The sentence with about `share` of its content words exchanged."""
    exchange = Exchange(drawer, first.units[0].clause)
    left = int(share * (len(exchange.changes) + 1))
    for change in drawer.shuffled(exchange.changes):
        if left == 0:
            break
        left -= change()
    another_look(drawer, exchange.clause)
    return changed(first, exchange.clause)
