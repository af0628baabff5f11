"""Korean noun phrases: clause, place, owner, adjectives, noun, number and counter, with the particle behind."""

from jumok.data.grammar import tree
from jumok.data.grammar.alignment import Word
from jumok.data.grammar.hangul import KoreanPredicate
from jumok.data.grammar.korean_words import ADDRESS, GROWING, LITTLE, OWNERS, PRONOUNS, YOUNG, attach
from jumok.data.grammar.lexicon import NUMBERS, Adjective
from jumok.data.grammar.tree import Clause, Phrase

INDEFINITE = (tree.A, tree.NUMBER, tree.EVERY, tree.MANY)


def is_indefinite(phrase: Phrase) -> bool:
    if phrase.kind == tree.JOINED:
        return is_indefinite(phrase.parts[0]) and is_indefinite(phrase.parts[1])
    return phrase.kind == tree.NOUN and phrase.determiner in INDEFINITE


def adjective_for(adjective: Adjective, phrase: Phrase) -> KoreanPredicate:
    return LITTLE if adjective is YOUNG and not GROWING.isdisjoint(phrase.tags) else adjective.korean


def add_particle(out: list[Word], particle: str) -> None:
    """The particle goes to the last word said."""
    text, sure, possible, reference = out[-1]
    text = "제가" if text == "저" and particle == "이" else attach(text, particle)
    out[-1] = (text, sure, possible, reference)


def mark_possible(out: list[Word], bits: int) -> None:
    """The last word said also holds, fused, what `bits` stand for."""
    text, sure, possible, reference = out[-1]
    out[-1] = (text, sure, possible | bits, reference)


class KoreanPhrases:
    """Says noun phrases; `address` is "sir", "madam" or nothing."""

    def __init__(self) -> None:
        self.address = ""
        self.animals: set[int] = set()  # entities that 그 and 그녀 cannot stand for

    def say_phrase(self, out: list[Word], phrase: Phrase, particle: str) -> None:
        bit = phrase.bit
        kind = phrase.kind
        if kind == tree.NOUN:
            self.say_noun(out, phrase)
        elif kind == tree.PRONOUN:
            out.append((self.pronoun(phrase), bit, 0, -phrase.entity))
        elif kind == tree.NAME:
            out.append((phrase.name.korean, bit, 0, phrase.entity))
        elif kind == tree.JOINED:
            self.say_phrase(out, phrase.parts[0], "와")
            mark_possible(out, bit)
            self.say_phrase(out, phrase.parts[1], "")
        else:
            out.append(("누가", bit, 0, 0))
            return
        if particle == "의" and kind == tree.PRONOUN and phrase.person == 1:
            out[-1] = (OWNERS[phrase.pronoun], bit, 0, -phrase.entity)
        elif particle:
            add_particle(out, particle)

    def pronoun(self, phrase: Phrase) -> str:
        which = phrase.pronoun
        if which == tree.YOU and self.address:
            return ADDRESS[self.address]
        if which >= tree.HE and which != tree.WE and "person" not in phrase.tags:
            return "그것들" if which == tree.THEY else "그것"
        return PRONOUNS[which]

    def say_noun(self, out: list[Word], phrase: Phrase) -> None:
        bit = phrase.bit
        determiner = phrase.determiner
        if phrase.relative is not None:
            self.say_relative(out, phrase.relative, phrase)
        if phrase.place is not None:
            link = phrase.place.bit << tree.LINK
            self.say_phrase(out, phrase.place, "에")
            mark_possible(out, link)
            out.append(("있는", link, 0, 0))
        if phrase.of is not None:
            self.say_phrase(out, phrase.of, "의")
            mark_possible(out, phrase.of.bit << tree.LINK)
        fused = 0
        if determiner == tree.POSSESSIVE:
            out.append((self.owner(phrase), bit << tree.DETERMINER, 0, -phrase.owner_entity))
        elif determiner == tree.GENITIVE:
            assert phrase.genitive is not None
            self.say_phrase(out, phrase.genitive, "의")
            mark_possible(out, bit << tree.OWNER)
        elif determiner in (tree.THIS, tree.EVERY, tree.MANY):
            word = "이" if determiner == tree.THIS else "모든" if determiner == tree.EVERY else "많은"
            out.append((word, bit << tree.DETERMINER, 0, 0))
        elif determiner != tree.NUMBER:
            fused = bit << tree.DETERMINER
        if phrase.before is not None:
            first = adjective_for(phrase.before, phrase)
            text = first.modifier if phrase.behind is None else first.stem + "고"  # 작고 예쁜 집
            out.append((text, bit << tree.BEFORE, 0, 0))
        if phrase.degree is not None:
            out.append((phrase.degree.korean, bit << tree.DEGREE, 0, 0))
        if phrase.behind is not None:
            out.append((adjective_for(phrase.behind, phrase).modifier, bit << tree.BEHIND, 0, 0))
        noun = phrase.noun
        if noun.animate and not noun.person:
            self.animals.add(phrase.entity)
        text = noun.korean
        if phrase.plural and noun.animate and determiner != tree.NUMBER:
            text += "들"
        out.append((text, bit, fused, phrase.entity))
        if determiner == tree.NUMBER:
            out.append((NUMBERS[phrase.count][2], bit << tree.COUNT, 0, 0))
            out.append((noun.counter, bit << tree.COUNT, bit, 0))

    def owner(self, phrase: Phrase) -> str:
        described = phrase.before is not None or phrase.behind is not None  # 우리 집, but 우리의 새로운 집
        if phrase.reflexive and phrase.owner in (tree.HE, tree.SHE):
            return "자신의" if described else "자기"
        if phrase.reflexive and phrase.owner == tree.THEY:
            return "자신들의"
        if phrase.owner == tree.YOU and self.address:
            return ADDRESS[self.address] + "의"
        if phrase.owner_entity in self.animals:
            return "그것들의" if phrase.owner == tree.THEY else "그것의"
        return "우리의" if described and phrase.owner == tree.WE else OWNERS[phrase.owner]

    def say_relative(self, out: list[Word], clause: Clause, head: Phrase) -> None:
        """A clause about `head`, said before it."""
        raise NotImplementedError
