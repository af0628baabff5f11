"""The Korean side: a tree said as Korean words, subject first, verb last.

Every predicate is reduced to words before it and one last predicate (먹다; 먹지 않다; 먹을 수 있다), which then takes
the tense and the ending its clause asks for. The polite 해요 style is the default; a sentence addressed to "sir" or
"madam" takes the formal 합니다 style and honours whom it addresses. A subject that is the one just spoken of is left
out, as Korean does.
"""

from jumok.data.grammar import tree
from jumok.data.grammar.alignment import Word
from jumok.data.grammar.hangul import NOT_BE, KoreanPredicate
from jumok.data.grammar.korean_phrases import KoreanPhrases, adjective_for, is_indefinite, mark_possible
from jumok.data.grammar.korean_words import (
    ADDRESS,
    BECOME,
    DO,
    HONORIFICS,
    KNOW,
    NOT_DO,
    NOT_KNOW,
    NOT_SUCH,
    THING,
    WISH,
    attach,
    copula_of,
    honorific,
)
from jumok.data.grammar.lexicon import ABSENT_KOREAN, EXIST_KOREAN, HAVE, Noun, Verb
from jumok.data.grammar.tree import Clause, Phrase, Sentence, Unit

FINAL, AND, BUT, THEN, BECAUSE, WHEN, IF, QUOTE, FACT, MODIFIER = range(10)


class Korean(KoreanPhrases):
    """Says trees in Korean."""

    def __init__(self) -> None:
        super().__init__()
        self.asks = False

    # -- predicates -----------------------------------------------------------------------------------------------

    def honors(self, clause: Clause) -> bool:
        """Whether the subject is the person addressed as sir or madam."""
        subject = clause.subject
        return bool(self.address) and subject.kind == tree.PRONOUN and subject.pronoun == tree.YOU

    def conclude(
        self, out: list[Word], last: KoreanPredicate, tense: int, ending: int, sure: int, possible: int, clause: Clause
    ) -> None:
        """The last predicate with its tense and ending."""
        connector = clause.bit << tree.CONNECTOR
        auxiliary = clause.bit << tree.AUXILIARY
        possible |= auxiliary
        if tense == tree.FUTURE and ending not in (THEN, MODIFIER):
            out.append((last.future, sure, possible, 0))
            last, tense, sure, possible = THING, tree.PRESENT, auxiliary, sure
        if ending == THEN:
            out.append((last.stem + "고", sure, possible, 0))
        elif ending == MODIFIER:
            form = (last.modifier, last.past_modifier, last.future)[tense]
            if tense == tree.PAST and clause.verb.state:
                form = last.past + "던"  # 알았던: 안 would be what one has come to know
            out.append((form, sure, possible | connector, 0))
        elif ending == FINAL:
            self.close(out, last, tense, sure, possible | clause.bit << tree.ASKING)
        elif ending in (QUOTE, FACT):
            plain = last.plain if tense == tree.PRESENT else last.past + "다"
            out.append((plain + ("고" if ending == QUOTE else "는"), sure, possible | connector, 0))
            if ending == FACT:
                out.append(("것을", connector, 0, 0))
        elif ending == IF:
            out.append((last.condition, sure, possible | connector, 0))
        elif ending == WHEN:
            form = last.future if tense == tree.PRESENT else last.past + "을"
            out.append((form, sure, possible, 0))
            out.append(("때", connector, 0, 0))
        else:
            stem = last.stem if tense == tree.PRESENT else last.past
            if ending == BECAUSE:
                out.append((stem + "기", sure, possible, 0))
                out.append(("때문에", connector, 0, 0))
            else:
                out.append((stem + ("고," if ending == AND else "지만,"), sure, possible, 0))

    def close(self, out: list[Word], last: KoreanPredicate, tense: int, sure: int, possible: int) -> None:
        """The end of a sentence: 먹어요, 먹습니다, 먹습니까, 먹을 거예요, 먹을 것입니다."""
        if self.address:
            text = last.formal if tense == tree.PRESENT else last.past + "습니다"
            if self.asks:
                text = text[:-1] + "까"
        elif last is THING:
            text = "거예요"
        else:
            text = (last.present if tense == tree.PRESENT else last.past + "어") + "요"
        out.append((text, sure, possible, 0))

    def say_predicate(self, out: list[Word], clause: Clause, ending: int) -> None:
        """Everything but the subject, the verb last; actions joined by "and" follow each other."""
        bit = clause.bit
        kind = clause.kind
        tense = clause.tense
        negation = bit << tree.NEGATION
        if kind == tree.IDENTITY:
            assert clause.predicate is not None
            self.say_identity(out, clause, clause.predicate, ending)
            return
        if kind in (tree.DESCRIPTION, tree.COMPARISON):
            adjective = clause.adjective
            assert adjective is not None
            if clause.standard is not None:
                self.say_phrase(out, clause.standard, "보다")
                mark_possible(out, clause.standard.bit << tree.LINK)
                out.append(("더", bit << tree.ADVERB, 0, 0))
            if clause.degree is not None:
                out.append((clause.degree.korean, bit << tree.ADVERB, 0, 0))
            last = adjective_for(adjective, clause.subject)
            if self.honors(clause):
                last = honorific(last)
            sure, possible = bit << tree.MORE, bit
            if clause.negative:  # "not very big" is 아주 크지는 않다: 크지 않다 would be very much not big
                out.append((last.stem + ("지는" if clause.degree else "지"), sure, 0, 0))
                last, sure, possible = NOT_SUCH, negation, bit
            self.conclude(out, last, tense, ending, sure, possible, clause)
            return
        if clause.then is not None:
            self.say_action(out, clause, THEN)
            mark_possible(out, clause.then.bit << tree.CONNECTOR)
            self.say_predicate(out, clause.then, ending)
            return
        self.say_action(out, clause, ending)

    def say_identity(self, out: list[Word], clause: Clause, noun: Noun, ending: int) -> None:
        bit = clause.bit
        last = NOT_BE if clause.negative else copula_of(noun.korean)
        if self.honors(clause):
            last = honorific(last)
        if clause.negative:
            out.append((attach(noun.korean, "이"), bit << tree.MORE, 0, 0))
            self.conclude(out, last, clause.tense, ending, bit << tree.NEGATION | bit, 0, clause)
        else:
            self.conclude(out, last, clause.tense, ending, bit << tree.MORE, bit, clause)

    def say_action(self, out: list[Word], clause: Clause, ending: int) -> None:
        bit = clause.bit
        verb = clause.verb
        self.say_adjuncts(out, clause)
        if clause.complement is not None:
            complement = clause.complement
            known = complement.subject.kind == tree.PRONOUN and complement.subject.entity == clause.subject.entity
            self.say_clause(out, complement, FACT if "fact" in verb.flags else QUOTE, "" if known else "이")
        if clause.manner is not None:
            out.append((clause.manner.korean, bit << tree.ADVERB, 0, 0))
        negation, auxiliary = bit << tree.NEGATION, bit << tree.AUXILIARY
        last, sure, possible = EXIST_KOREAN if verb is HAVE else verb.korean, bit, 0
        negative = clause.negative
        if clause.kind == tree.EXISTENCE:
            if negative:
                last, possible = ABSENT_KOREAN, negation
            self.conclude(out, last, clause.tense, ending, sure, possible, clause)
            return
        if verb.korean_lead:  # 미소 짓다, 가지고 있다
            out.append((verb.korean_lead, bit, 0, 0))
        if negative and last is KNOW:
            last, possible, negative = NOT_KNOW, negation, False
        honors = self.honors(clause)
        if honors and (clause.modal != "want" or last.stem in HONORIFICS):
            last = honorific(last)
        if clause.modal == "can":
            out.append((last.future, bit, 0, 0))
            out.append(("수", auxiliary, 0, 0))
            last, sure = (ABSENT_KOREAN, auxiliary | negation) if negative else (EXIST_KOREAN, auxiliary)
        elif clause.modal == "must":
            if negative:
                out.append((last.condition, bit, auxiliary, 0))
                out.append(("안", negation, 0, 0))
                last, sure = BECOME, auxiliary
            else:
                out.append((last.present + "야", bit, auxiliary, 0))
                last, sure = DO, auxiliary
        else:
            if clause.modal == "want":
                out.append((last.stem + "고", bit, 0, 0))
                last, sure = honorific(WISH) if honors else WISH, auxiliary
                if clause.subject.person == 3:
                    out.append(("싶어", auxiliary, 0, 0))
                    last = DO
            if negative:
                out.append((last.stem + "지", sure, 0, 0))
                last, sure, possible = (NOT_DO if last.is_verb else NOT_SUCH), negation, sure
        self.conclude(out, last, clause.tense, ending, sure, possible, clause)

    def say_adjuncts(self, out: list[Word], clause: Clause) -> None:
        """What stands between the subject and the manner of an action."""
        bit = clause.bit
        question = clause.question
        if question == tree.WHERE:
            out.append(("어디에" if clause.goal else "어디에서", bit << tree.TIME, 0, 0))
        elif question == tree.WHY:
            out.append(("왜", bit << tree.TIME, 0, 0))
        elif question == tree.WHEN:
            out.append(("언제", bit << tree.TIME, 0, 0))
        if clause.frequency is not None:
            out.append((clause.frequency.korean, bit << tree.ADVERB, 0, 0))
        if clause.companion is not None:
            link = clause.companion.bit << tree.LINK
            self.say_phrase(out, clause.companion, "와")
            mark_possible(out, link)
            out.append(("함께", link, 0, 0))
        if clause.vehicle is not None:
            out.append((attach(clause.vehicle.korean, "로"), bit << tree.VEHICLE, bit << tree.TIME, 0))
        if clause.place_adverb is not None:
            out.append((clause.place_adverb.korean, bit << tree.PLACE, 0, 0))
        if clause.place is not None:
            self.say_phrase(out, clause.place, "에" if clause.goal or clause.kind == tree.EXISTENCE else "에서")
            mark_possible(out, clause.place.bit << tree.LINK)
        if clause.recipient is not None:
            self.say_phrase(out, clause.recipient, "에게")
            mark_possible(out, clause.recipient.bit << tree.LINK)
        if clause.beneficiary is not None:
            self.say_phrase(out, clause.beneficiary, "을")
            out.append(("위해", clause.beneficiary.bit << tree.LINK, 0, 0))
        if question == tree.DOES_WHAT:
            out.append(("무엇을", bit << tree.TIME, 0, 0))
        elif clause.object is not None:
            voice = self.voice(clause.verb, clause.object)
            if voice:
                self.say_phrase(out, clause.object, "의")
                out.append((voice, bit, 0, 0))
                return
            self.say_phrase(out, clause.object, "이" if clause.kind == tree.EXISTENCE else clause.verb.object_particle)

    @staticmethod
    def voice(verb: Verb, heard: Phrase) -> str:
        """One hears the voice of a person or the sound of an animal, not the person: 폴의 목소리를 듣다."""
        if not verb.korean_voice or not heard.animate:
            return ""
        return verb.korean_voice if "person" in heard.tags else "소리를"

    # -- clauses --------------------------------------------------------------------------------------------------

    def say_relative(self, out: list[Word], clause: Clause, head: Phrase) -> None:
        if clause.gap == "object":
            self.say_phrase(out, clause.subject, "이")
            voice = self.voice(clause.verb, head)
            if voice:
                out.append((voice, clause.bit, 0, 0))
        self.say_predicate(out, clause, MODIFIER)

    def say_subject(self, out: list[Word], clause: Clause, particle: str) -> None:
        """The subject with its particle: 은 for what is known, 이 for what is new; none where it is left out."""
        if clause.time is not None:
            out.append((clause.time.korean, clause.bit << tree.TIME, 0, 0))
        if not particle:
            return
        subject = clause.subject
        if particle == "은" and is_indefinite(subject) and clause.kind != tree.COMPARISON:
            particle = "이"
        self.say_phrase(out, subject, particle)

    def say_clause(self, out: list[Word], clause: Clause, ending: int, particle: str) -> None:
        if clause.kind == tree.ORDER:
            self.say_order(out, clause)
            return
        if clause.kind == tree.EXISTENCE:
            self.say_action(out, clause, ending)
            return
        self.say_subject(out, clause, particle)
        if clause.kind != tree.ACTION and clause.question == tree.WHY:
            out.append(("왜", clause.bit << tree.TIME, 0, 0))
        self.say_predicate(out, clause, ending)

    def say_order(self, out: list[Word], clause: Clause) -> None:
        """ "Please open the door." -> 문을 열어 주세요."""
        bit = clause.bit
        please = "십시오" if self.address else "세요"
        self.say_adjuncts(out, clause)
        korean = clause.verb.korean
        if clause.verb.korean_lead:
            out.append((clause.verb.korean_lead, bit, 0, 0))
        polite = HONORIFICS.get(korean.stem)
        if polite is not None:  # 드세요: 먹어 주세요 would ask a favour
            out.append((polite.stem[:-1] + please, bit | bit << tree.AUXILIARY, 0, 0))
        elif korean.stem.endswith("주"):
            out.append((korean.stem + please, bit | bit << tree.AUXILIARY, 0, 0))
        else:
            out.append((korean.present, bit, 0, 0))
            out.append(("주" + please, bit << tree.AUXILIARY, 0, 0))

    def say_unit(self, out: list[Word], unit: Unit, ending: int, topic: int) -> None:
        """A main clause behind its adverbial clause; `topic` is the subject spoken of before."""
        clause, side = unit.clause, unit.side
        subject = clause.subject
        particle = "" if subject.kind == tree.PRONOUN and subject.entity == topic else "은"
        if side is None:
            self.say_clause(out, clause, ending, particle)
            return
        shared = side.subject.entity == subject.entity
        if unit.relation == "because":
            if shared:  # the subject stands before both
                self.say_subject(out, clause, particle)
                self.say_clause(out, side, BECAUSE, "")
                self.say_predicate(out, clause, ending)
                return
            reason: list[Word] = []
            if "person" not in subject.tags:
                self.animals.add(subject.entity)
            self.say_clause(reason, side, BECAUSE, "이")
            if any(word[3] == -subject.entity for word in reason):  # a pronoun stands behind what it means
                self.say_subject(out, clause, "은")
                out.extend(reason)
                self.say_predicate(out, clause, ending)
                return
            out.extend(reason)
            particle = "은"  # the subject of the reason stands between
        else:
            side_particle = "" if side.subject.kind == tree.PRONOUN and side.subject.entity == topic else "이"
            if unit.relation == "if":
                out.append(("만약", side.bit << tree.CONNECTOR, 0, 0))
            self.say_clause(out, side, IF if unit.relation == "if" else WHEN, side_particle)
            if shared:
                particle = ""
        self.say_clause(out, clause, ending, particle)

    def say(self, sentence: Sentence) -> list[Word]:
        """The words of the sentence, with its closing mark."""
        units = sentence.units
        self.address = sentence.address
        self.asks = bool(units[0].clause.question)
        self.animals.clear()
        out: list[Word] = []
        if sentence.address:
            out.append((ADDRESS[sentence.address] + ",", sentence.bit, 0, 0))
        topic = 0
        for place, unit in enumerate(units):
            following = units[place + 1] if place + 1 < len(units) else None
            ending = FINAL if following is None else AND if following.joint == "and" else BUT
            self.say_unit(out, unit, ending, topic)
            if following is not None:
                mark_possible(out, following.bit)
            topic = unit.clause.subject.entity
        text, sure, possible, reference = out[-1]
        out[-1] = (text + ("?" if self.asks else "."), sure, possible, reference)
        return out
