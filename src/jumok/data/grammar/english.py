"""The English side: a tree said as English words."""

from jumok.data.grammar import tree
from jumok.data.grammar.alignment import Word
from jumok.data.grammar.english_morphology import article
from jumok.data.grammar.lexicon import NUMBERS
from jumok.data.grammar.tree import Clause, Phrase, Sentence

SUBJECTS = ("I", "you", "he", "she", "it", "we", "they")
OBJECTS = ("me", "you", "him", "her", "it", "us", "them")
POSSESSIVES = ("my", "your", "his", "her", "its", "our", "their")
QUESTIONS = {tree.DOES_WHAT: "what", tree.WHERE: "where", tree.WHY: "why", tree.WHEN: "when"}
LOCATED = ("stay", "live", "arrive", "work")  # in or at a place; other verbs of motion go "to" it


def be(subject: Phrase, past: bool) -> str:
    if subject.plural or subject.person == 2:
        return "were" if past else "are"
    if past:
        return "was"
    return "am" if subject.person == 1 else "is"


def third(subject: Phrase) -> bool:
    return subject.person == 3 and not subject.plural


def say_phrase(out: list[Word], phrase: Phrase, as_object: bool = False) -> None:
    bit = phrase.bit
    kind = phrase.kind
    if kind == tree.PRONOUN:
        text = (OBJECTS if as_object else SUBJECTS)[phrase.pronoun]
        out.append((text, bit, 0, -phrase.entity))
        return
    if kind == tree.NAME:
        out.append((phrase.name.name, bit, 0, phrase.entity))
        return
    if kind == tree.JOINED:
        say_phrase(out, phrase.parts[0], as_object)
        out.append(("and", bit, 0, 0))
        say_phrase(out, phrase.parts[1], as_object)
        return
    if kind == tree.WHO:
        out.append(("who", bit, 0, 0))
        return
    noun = phrase.noun
    determiner = phrase.determiner
    start = len(out)
    if determiner == tree.THE:
        out.append(("the", bit << tree.DETERMINER, 0, 0))
    elif determiner == tree.THIS:
        out.append(("these" if phrase.plural else "this", bit << tree.DETERMINER, 0, 0))
    elif determiner == tree.POSSESSIVE:
        out.append((POSSESSIVES[phrase.owner], bit << tree.DETERMINER, 0, -phrase.owner_entity))
    elif determiner == tree.GENITIVE:
        owner = phrase.genitive
        assert owner is not None
        say_phrase(out, owner)
        text, sure, possible, reference = out[-1]
        mark = "'" if owner.plural and text.endswith("s") else "'s"
        out[-1] = (text + mark, sure, possible | bit << tree.OWNER, reference)
    elif determiner == tree.NUMBER:
        out.append((NUMBERS[phrase.count][0], bit << tree.COUNT, 0, 0))
    elif determiner == tree.EVERY:
        out.append(("every", bit << tree.DETERMINER, 0, 0))
    elif determiner == tree.MANY:
        out.append(("many", bit << tree.DETERMINER, 0, 0))
    if phrase.before is not None:
        out.append((phrase.before.name, bit << tree.BEFORE, 0, 0))
    if phrase.degree is not None:
        out.append((phrase.degree.name, bit << tree.DEGREE, 0, 0))
    if phrase.behind is not None:
        out.append((phrase.behind.name, bit << tree.BEHIND, 0, 0))
    out.append((noun.english[phrase.plural], bit, 0, phrase.entity))
    if determiner == tree.A and not phrase.plural and not noun.mass:
        out.insert(start, (article(out[start][0]), bit << tree.DETERMINER, 0, 0))
    if phrase.of is not None:
        out.append(("of", phrase.of.bit << tree.LINK, 0, 0))
        say_phrase(out, phrase.of)
    elif phrase.place is not None:
        out.append((phrase.place.noun.english_place, phrase.place.bit << tree.LINK, 0, 0))
        say_phrase(out, phrase.place)
    elif phrase.relative is not None:
        relative = phrase.relative
        out.append(
            ("who" if noun.person and relative.gap == "subject" else "that", relative.bit << tree.CONNECTOR, 0, 0)
        )
        if relative.gap == "object":
            say_phrase(out, relative.subject)
        say_predicate(out, relative)


def say_predicate(out: list[Word], clause: Clause) -> None:
    """Everything behind the subject of a statement."""
    bit = clause.bit
    subject = clause.subject
    kind = clause.kind
    if clause.frequency is not None and clause.tense != tree.FUTURE:
        out.append((clause.frequency.name, bit << tree.ADVERB, 0, 0))
    if kind in (tree.DESCRIPTION, tree.IDENTITY, tree.COMPARISON):
        if clause.tense == tree.FUTURE:
            out.append(("will", bit << tree.AUXILIARY, 0, 0))
            if clause.negative:
                out.append(("not", bit << tree.NEGATION, 0, 0))
            out.append(("be", bit, 0, 0))
        else:
            out.append((be(subject, clause.tense == tree.PAST), bit, 0, 0))
            if clause.negative:
                out.append(("not", bit << tree.NEGATION, 0, 0))
        say_attribute(out, clause)
        return
    base, third_person, past = clause.verb.english
    if clause.verb.name == "have":  # not "haves"
        third_person = "has"
    if clause.modal == "can":
        if clause.negative:
            out.append(("cannot", bit << tree.AUXILIARY | bit << tree.NEGATION, 0, 0))
        else:
            out.append(("can", bit << tree.AUXILIARY, 0, 0))
        out.append((base, bit, 0, 0))
    elif clause.modal == "must":
        out.append(("must", bit << tree.AUXILIARY, 0, 0))
        if clause.negative:
            out.append(("not", bit << tree.NEGATION, 0, 0))
        out.append((base, bit, 0, 0))
    elif clause.modal == "want":
        if clause.negative:
            out.append(("does" if third(subject) else "do", 0, bit << tree.NEGATION, 0))
            out.append(("not", bit << tree.NEGATION, 0, 0))
        wants = "wants" if third(subject) and not clause.negative else "want"
        out.append((wants, bit << tree.AUXILIARY, 0, 0))
        out.append(("to", 0, bit << tree.AUXILIARY, 0))
        out.append((base, bit, 0, 0))
    elif clause.tense == tree.FUTURE:
        out.append(("will", bit << tree.AUXILIARY, 0, 0))
        if clause.negative:
            out.append(("not", bit << tree.NEGATION, 0, 0))
        if clause.frequency is not None:
            out.append((clause.frequency.name, bit << tree.ADVERB, 0, 0))
        out.append((base, bit, 0, 0))
    elif clause.negative:
        helper = "did" if clause.tense == tree.PAST else "does" if third(subject) else "do"
        out.append((helper, 0, bit << tree.AUXILIARY | bit << tree.NEGATION, 0))
        out.append(("not", bit << tree.NEGATION, 0, 0))
        out.append((base, bit, 0, 0))
    else:
        out.append((past if clause.tense == tree.PAST else third_person if third(subject) else base, bit, 0, 0))
    say_rest(out, clause)


def say_attribute(out: list[Word], clause: Clause) -> None:
    """What stands behind "be"."""
    bit = clause.bit
    if clause.kind == tree.IDENTITY:
        assert clause.predicate is not None
        noun = clause.predicate
        if not clause.subject.plural:
            out.append((article(noun.name), 0, bit << tree.MORE | bit << tree.ADVERB, 0))
        out.append((noun.english[clause.subject.plural], bit << tree.MORE, 0, 0))
        return
    adjective = clause.adjective
    assert adjective is not None
    if clause.kind == tree.COMPARISON:
        assert clause.standard is not None
        if adjective.comparative:
            out.append((adjective.comparative, bit << tree.MORE | bit << tree.ADVERB, 0, 0))
        else:
            out.append(("more", bit << tree.ADVERB, 0, 0))
            out.append((adjective.name, bit << tree.MORE, 0, 0))
        out.append(("than", clause.standard.bit << tree.LINK, 0, 0))
        say_phrase(out, clause.standard, True)
        return
    if clause.degree is not None:
        out.append((clause.degree.name, bit << tree.ADVERB, 0, 0))
    out.append((adjective.name, bit << tree.MORE, 0, 0))


def say_rest(out: list[Word], clause: Clause) -> None:
    """Particle, object and adjuncts, then what is joined to the verb."""
    bit = clause.bit
    verb = clause.verb
    if verb.particle:
        out.append((verb.particle, bit, 0, 0))
    if clause.object is not None:
        say_phrase(out, clause.object, True)
    if clause.recipient is not None:
        out.append(("to", clause.recipient.bit << tree.LINK, 0, 0))
        say_phrase(out, clause.recipient, True)
    if clause.beneficiary is not None:
        out.append(("for", clause.beneficiary.bit << tree.LINK, 0, 0))
        say_phrase(out, clause.beneficiary, True)
    if clause.manner is not None:
        out.append((clause.manner.name, bit << tree.ADVERB, 0, 0))
    if clause.place is not None:
        place = clause.place
        preposition = place.noun.english_place if not clause.goal or verb.name in LOCATED else "to"
        out.append((preposition, place.bit << tree.LINK, 0, 0))
        say_phrase(out, place, True)
    if clause.place_adverb is not None:
        out.append((clause.place_adverb.name, bit << tree.PLACE, 0, 0))
    if clause.companion is not None:
        out.append(("with", clause.companion.bit << tree.LINK, 0, 0))
        say_phrase(out, clause.companion, True)
    if clause.vehicle is not None:
        out.append(("by", bit << tree.TIME, 0, 0))
        out.append((clause.vehicle.name, bit << tree.VEHICLE, 0, 0))
    if clause.complement is not None:
        out.append(("that", clause.complement.bit << tree.CONNECTOR, 0, 0))
        say_clause(out, clause.complement)
    if clause.then is not None:
        out.append(("but" if clause.negative else "and", clause.then.bit << tree.CONNECTOR, 0, 0))
        say_predicate(out, clause.then)


def say_question(out: list[Word], clause: Clause) -> None:
    """A question: the auxiliary, or a form of "do", before the subject."""
    bit = clause.bit
    subject = clause.subject
    asking = bit << tree.ASKING
    if clause.question == tree.WHO_DOES:
        say_phrase(out, subject)
        say_predicate(out, clause)
        return
    word = QUESTIONS.get(clause.question)
    if word:
        out.append((word, bit << tree.TIME, 0, 0))
    copula = clause.kind != tree.ACTION
    if clause.modal in ("can", "must"):
        out.append((clause.modal, bit << tree.AUXILIARY | asking, 0, 0))
    elif clause.tense == tree.FUTURE and not clause.modal:
        out.append(("will", bit << tree.AUXILIARY | asking, 0, 0))
    elif copula:
        out.append((be(subject, clause.tense == tree.PAST), bit | asking, 0, 0))
    else:
        helper = "did" if clause.tense == tree.PAST else "does" if third(subject) else "do"
        out.append((helper, asking, bit << tree.NEGATION, 0))
    say_phrase(out, subject)
    if clause.negative:
        out.append(("not", bit << tree.NEGATION, 0, 0))
    if copula:
        if clause.tense == tree.FUTURE:
            out.append(("be", bit, 0, 0))
        say_attribute(out, clause)
        return
    if clause.modal == "want":
        out.append(("want", bit << tree.AUXILIARY, 0, 0))
        out.append(("to", 0, bit << tree.AUXILIARY, 0))
    out.append((clause.verb.english[0], bit, 0, 0))
    say_rest(out, clause)


def say_clause(out: list[Word], clause: Clause) -> None:
    bit = clause.bit
    if clause.kind == tree.ORDER:
        out.append(("please", bit << tree.AUXILIARY, 0, 0))
        out.append((clause.verb.english[0], bit, 0, 0))
        say_rest(out, clause)
        return
    if clause.kind == tree.EXISTENCE:
        phrase, place = clause.object, clause.place
        assert phrase is not None
        assert place is not None
        out.append(("there", 0, bit, 0))
        if clause.tense == tree.FUTURE:
            out.append(("will", bit << tree.AUXILIARY, 0, 0))
            out.append(("be", bit, 0, 0))
        else:
            out.append((be(phrase, clause.tense == tree.PAST), bit, 0, 0))
        start = len(out)
        say_phrase(out, phrase)
        if clause.negative:
            if not phrase.plural:
                del out[start]  # "no" takes the place of the article
            out.insert(start, ("no", bit << tree.NEGATION, phrase.bit << tree.DETERMINER, 0))
        out.append((place.noun.english_place, place.bit << tree.LINK, 0, 0))
        say_phrase(out, place)
        return
    if clause.time is not None:
        out.append((clause.time.name, bit << tree.TIME, 0, 0))
    if clause.question:
        say_question(out, clause)
        return
    say_phrase(out, clause.subject)
    say_predicate(out, clause)


def comma(out: list[Word]) -> None:
    text, sure, possible, reference = out[-1]
    out[-1] = (text + ",", sure, possible, reference)


def say(sentence: Sentence) -> list[Word]:
    """The words of the sentence, with capital and full stop."""
    out: list[Word] = []
    if sentence.address:
        out.append((sentence.address + ",", sentence.bit, 0, 0))
    for unit in sentence.units:
        if unit.joint:
            comma(out)
            out.append((unit.joint, unit.bit, 0, 0))
        side = unit.side
        if side is None:
            say_clause(out, unit.clause)
        elif unit.relation == "because":
            say_clause(out, unit.clause)
            comma(out)
            out.append(("because", side.bit << tree.CONNECTOR, 0, 0))
            say_clause(out, side)
        else:
            out.append((unit.relation, side.bit << tree.CONNECTOR, 0, 0))
            say_clause(out, side)
            comma(out)
            say_clause(out, unit.clause)
    return finish(out, "?" if sentence.units[0].clause.question else ".")


def finish(out: list[Word], mark: str) -> list[Word]:
    """The first letter as a capital, the closing mark on the last word."""
    text, sure, possible, reference = out[0]
    out[0] = (text[0].upper() + text[1:], sure, possible, reference)
    text, sure, possible, reference = out[-1]
    out[-1] = (text + mark, sure, possible, reference)
    return out
