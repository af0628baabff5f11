"""Sentences with the role of each word: a data set for tagging, in IOB2 (Ramshaw and Marcus 1995).

B- opens a span, I- goes on with it, O is outside. The spans are the parts of the clauses, whole, with everything that
hangs on them ("the cat in the kitchen" as a subject is one WHO), preposition or particle included:

    WHO    the subject                   the old doctor
    WHAT   the object, and what there is  an apple
    WHOM   to, for or with whom           to Marie; with my aunt
    WHERE  the place                      in the garden; outside
    WHEN   the time                       yesterday
    HOW    the manner and the vehicle     slowly; by train

A word is what stands between spaces, closing marks split off as words of their own ("garden" "."). French words that
were elided into one ("l'a" in "il l'a vu") take the role of whoever is in them first: the object's, here.
"""

from __future__ import annotations

from collections.abc import Iterator

from jumok.data.examples import Tagged
from jumok.data.grammar import tree
from jumok.data.grammar.alignment import Word
from jumok.data.grammar.corpus import DEFAULT_SIZE, text_of, trees
from jumok.data.grammar.korean import Korean
from jumok.data.grammar.tree import Clause, Phrase, Sentence
from jumok.data.grammar_tasks.drawing import Seen, checked
from jumok.data.grammar_tasks.walk import bits_of, clauses_of

ROLES = ("WHO", "WHAT", "WHOM", "WHERE", "WHEN", "HOW")
TAGS = ("O", *(f"{position}-{role}" for role in ROLES for position in "BI"))
MARKS = ",.?"


def parts_of(clause: Clause) -> Iterator[tuple[str, int]]:
    """The role of each part of the clause, and the bits of its words; of the clauses joined to it, too."""
    bit = clause.bit
    phrases: tuple[tuple[str, Phrase | None], ...] = (
        ("WHO", None if clause.kind in (tree.EXISTENCE, tree.ORDER) else clause.subject),
        ("WHAT", clause.object),
        ("WHOM", clause.recipient),
        ("WHOM", clause.beneficiary),
        ("WHOM", clause.companion),
        ("WHERE", clause.place),
    )
    for role, phrase in phrases:
        if phrase is not None and phrase.kind != tree.WHO:  # a question word is no answer
            yield role, bits_of(phrase)
    if clause.place_adverb is not None:
        yield "WHERE", bit << tree.PLACE
    if clause.vehicle is not None:
        yield "HOW", bit << tree.VEHICLE
    if clause.manner is not None:
        yield "HOW", bit << tree.ADVERB
    if clause.time is not None:
        yield "WHEN", bit << tree.TIME
    for joined in (clause.complement, clause.then):
        if joined is not None:
            yield from parts_of(joined)


def clauses_with_joined(clause: Clause) -> Iterator[Clause]:
    yield clause
    for joined in (clause.complement, clause.then):
        if joined is not None:
            yield from clauses_with_joined(joined)


def spans(sentence: Sentence, words: list[Word]) -> list[tuple[str, int]]:
    """For each word its role and the number of its span; ("", 0) outside."""
    parts: list[tuple[str, int]] = []
    for clause in clauses_of(sentence):
        parts += parts_of(clause)
    found = []
    for _, sure, possible, _ in words:
        place = next((place for place, part in enumerate(parts, 1) if part[1] & sure), 0)
        place = place or next((place for place, part in enumerate(parts, 1) if part[1] & possible), 0)
        found.append((parts[place - 1][0] if place else "", place))
    for main in clauses_of(sentence):
        for clause in clauses_with_joined(main):
            mend(clause, words, parts, found)
    for place in range(1, len(found) - 1):  # the second "à" in "à la sœur et à mes étudiants"
        if not found[place][1] and found[place - 1][1] and found[place - 1] == found[place + 1]:
            found[place] = found[place - 1]
    return found


def mend(clause: Clause, words: list[Word], parts: list[tuple[str, int]], found: list[tuple[str, int]]) -> None:
    """Two words that carry a bit of the clause alone, and belong to the part beside them."""
    if clause.vehicle is not None:  # "by" in "by train"
        vehicle = parts.index(("HOW", clause.bit << tree.VEHICLE)) + 1
        for place in range(len(words) - 1):
            if words[place][1] == clause.bit << tree.TIME and found[place + 1][1] == vehicle:
                found[place] = found[place + 1]
    if clause.object is not None:  # one hears the voice of Paul in Korean: 폴의 목소리를
        voice = Korean.voice(clause.verb, clause.object)
        for place in range(1, len(words)):
            if voice and words[place][0] == voice and words[place][1] == clause.bit:
                found[place] = found[place - 1]


def tagged(sentence: Sentence, words: list[Word]) -> Tagged:
    """The words of a sentence that was said, marks split off, with their tags."""
    texts: list[str] = []
    tags: list[str] = []
    before = 0
    for (text, *_), (role, span) in zip(words, spans(sentence, words), strict=True):
        bare = text.rstrip(MARKS)
        texts.append(bare)
        tags.append("O" if not role else f"I-{role}" if span == before else f"B-{role}")
        before = span
        if bare != text:
            texts.append(text[len(bare) :])
            tags.append("O")
            before = 0
    return Tagged(tuple(texts), tuple(tags))


def grammar_tagged(language: str, split: str, count: int, seed: int = 1) -> Iterator[Tagged]:
    """`count` distinct sentences, their words tagged by role with `TAGS`.

    The same for the same arguments on every machine; no content of one split is in another (`corpus.split_of`).
    """
    say = checked(language, split, count)
    seen = Seen()
    stream = trees(split, seed, DEFAULT_SIZE)
    while count > 0:
        sentence = next(stream)
        words = say(sentence)
        if not seen.before(text_of(words)):
            yield tagged(sentence, words)
            count -= 1
