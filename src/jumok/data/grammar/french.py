"""The French side: a tree said as French words, contracted; elision comes last."""

from jumok.data.grammar import tree
from jumok.data.grammar.alignment import Word
from jumok.data.grammar.french_elision import elide, vowel_sound
from jumok.data.grammar.french_morphology import FrenchVerb
from jumok.data.grammar.lexicon import BE_FRENCH, HAVE_FRENCH, MODALS_FRENCH, NUMBERS
from jumok.data.grammar.tree import Clause, Phrase, Sentence

SUBJECTS = ("je", "tu", "il", "elle", "il", "nous", "ils")
DIRECT = ("me", "te", "le", "la", "le", "nous", "les")
INDIRECT = ("me", "te", "lui", "lui", "y", "nous", "leur")
OWNERS = (
    ("mon", "ma", "mes"),
    ("ton", "ta", "tes"),
    ("son", "sa", "ses"),
    ("son", "sa", "ses"),
    ("son", "sa", "ses"),
    ("notre", "notre", "nos"),
    ("leur", "leur", "leurs"),
)
YOUR_FORMAL = ("votre", "votre", "vos")
HABITS = frozenset(("always", "often", "sometimes", "rarely", "usually"))  # a past with them is an imparfait
QUESTIONS = {tree.DOES_WHAT: "", tree.WHERE: "où", tree.WHY: "pourquoi", tree.WHEN: "quand"}
NOT_QUITE = ("tout", "à", "fait")
SETTLED = (tree.THE, tree.POSSESSIVE, tree.GENITIVE)  # the determiners that "à" takes before a place
CONTRACTED = {("de", "le"): "du", ("de", "les"): "des", ("à", "le"): "au", ("à", "les"): "aux"}


class French:
    """Says trees in French; `formal` is whether the listener is a "vous"."""

    def __init__(self) -> None:
        self.formal = ""

    def person(self, phrase: Phrase) -> int:
        """0 to 5: je, tu, il, nous, vous, ils."""
        if phrase.person == 3:
            return 5 if phrase.plural else 2
        if phrase.person == 1:
            return 3 if phrase.plural else 0
        return 4 if self.formal else 1

    def form(self, phrase: Phrase) -> int:
        """feminine + 2 * plural, for what agrees with the phrase."""
        feminine = phrase.feminine or (phrase.person == 2 and self.formal == "madam")
        return feminine + 2 * phrase.plural

    # -- phrases --------------------------------------------------------------------------------------------------

    def say_phrase(self, out: list[Word], phrase: Phrase, negated: bool = False) -> None:
        bit = phrase.bit
        kind = phrase.kind
        if kind == tree.PRONOUN:
            out.append((self.subject_pronoun(phrase), bit, 0, -phrase.entity))
            return
        if kind == tree.NAME:
            out.append((phrase.name.name, bit, 0, phrase.entity))
            return
        if kind == tree.JOINED:
            # the whole is denied, not each part: no "de", which would deny only the part it stands before
            self.say_phrase(out, phrase.parts[0])
            out.append(("et", bit, 0, 0))
            self.say_phrase(out, phrase.parts[1])
            return
        if kind == tree.WHO:
            out.append(("qui", bit, 0, 0))
            return
        noun = phrase.noun
        plural = phrase.plural
        form = phrase.feminine + 2 * plural
        word = noun.french[plural]
        self.say_determiner(out, phrase, negated)
        if phrase.before is not None:
            adjective = phrase.before
            liaison = form == 0 and adjective.liaison and vowel_sound(word)
            out.append((adjective.liaison if liaison else adjective.french[form], bit << tree.BEFORE, 0, 0))
        out.append((word, bit, 0, phrase.entity))
        if phrase.behind is not None:
            if phrase.degree is not None:
                out.append((phrase.degree.french, bit << tree.DEGREE, 0, 0))
            out.append((phrase.behind.french[form], bit << tree.BEHIND, 0, 0))
        if phrase.genitive is not None:
            self.say_prepositional(out, "de", phrase.genitive, bit << tree.OWNER)
        if phrase.of is not None:
            self.say_prepositional(out, "de", phrase.of, phrase.of.bit << tree.LINK)
        elif phrase.place is not None:
            self.say_place(out, phrase.place)
        elif phrase.relative is not None:
            relative = phrase.relative
            if relative.gap == "subject":
                out.append(("qui", relative.bit << tree.CONNECTOR, 0, 0))
            else:
                out.append(("que", relative.bit << tree.CONNECTOR, 0, 0))
                self.say_phrase(out, relative.subject)
            self.say_predicate(out, relative, phrase)

    def say_determiner(self, out: list[Word], phrase: Phrase, negated: bool) -> None:
        bit = phrase.bit << tree.DETERMINER
        plural, feminine = phrase.plural, phrase.feminine
        determiner = phrase.determiner
        if determiner == tree.THE:
            out.append(("les" if plural else "la" if feminine else "le", bit, 0, 0))
        elif determiner == tree.GENITIVE:
            out.append(("les" if plural else "la" if feminine else "le", 0, phrase.bit, 0))
        elif determiner == tree.A:
            if phrase.noun.mass:
                out.append(("de", 0, phrase.bit, 0))
                if not negated:
                    out.append(("la" if feminine else "le", 0, phrase.bit, 0))
                    self.contract(out, len(out) - 2, phrase)
            elif plural:
                out.append(("de" if negated or phrase.before is not None else "des", 0, phrase.bit, 0))
            elif negated:
                out.append(("de", bit, 0, 0))
            else:
                out.append(("une" if feminine else "un", bit, 0, 0))
        elif determiner == tree.THIS:
            out.append(("ces" if plural else "cette" if feminine else "ce", bit, 0, 0))
        elif determiner == tree.POSSESSIVE:
            forms = YOUR_FORMAL if phrase.owner == tree.YOU and self.formal else OWNERS[phrase.owner]
            out.append((forms[2 if plural else feminine], bit, 0, -phrase.owner_entity))
        elif determiner == tree.NUMBER:
            out.append((NUMBERS[phrase.count][1], phrase.bit << tree.COUNT, 0, 0))
        elif determiner == tree.EVERY:
            out.append(("chaque", bit, 0, 0))
        else:
            out.append(("beaucoup", bit, 0, 0))
            out.append(("de", 0, bit, 0))

    def contract(self, out: list[Word], at: int, phrase: Phrase) -> None:
        """de + le -> du at `at`, unless the article will be elided."""
        first, second = out[at], out[at + 1]
        contracted = CONTRACTED.get((first[0], second[0]))
        if contracted is None:
            return
        if second[0] == "le":
            if phrase.before is not None:
                following = phrase.before.french[0]
            elif phrase.kind == tree.NOUN:
                following = phrase.noun.french[0]
            else:
                following = out[at + 2][0]
            if vowel_sound(following):
                return
        out[at : at + 2] = [(contracted, first[1], first[2] | second[1] | second[2], 0)]

    def say_prepositional(self, out: list[Word], preposition: str, phrase: Phrase, bit: int) -> None:
        if phrase.kind == tree.JOINED:  # the preposition comes again: au marin et à un dentiste
            self.say_prepositional(out, preposition, phrase.parts[0], bit)
            out.append(("et", phrase.bit, 0, 0))
            self.say_prepositional(out, preposition, phrase.parts[1], bit)
            return
        at = len(out)
        out.append((preposition, bit, 0, 0))
        self.say_phrase(out, phrase)
        if preposition == "de" and out[at + 1][0] in ("des", "de") and phrase.kind == tree.NOUN:
            if phrase.determiner == tree.A:
                del out[at + 1]
        elif preposition in ("de", "à"):
            self.contract(out, at, phrase)

    def say_place(self, out: list[Word], phrase: Phrase) -> None:
        """à l'hôpital, but dans un hôpital, dans cet hôpital, dans les hôpitaux."""
        preposition = phrase.noun.french_place
        if preposition == "à" and (phrase.plural or phrase.determiner not in SETTLED):
            preposition = "dans"
        self.say_prepositional(out, preposition, phrase, phrase.bit << tree.LINK)

    def subject_pronoun(self, phrase: Phrase) -> str:
        which = phrase.pronoun
        if which == tree.YOU and self.formal:
            return "vous"
        if which == tree.IT:
            return "elle" if phrase.feminine else "il"
        if which == tree.THEY:
            return "elles" if phrase.feminine else "ils"
        return SUBJECTS[which]

    def clitic(self, phrase: Phrase, preposition: str) -> str:
        which = phrase.pronoun
        if preposition == "dans":
            return "y"
        if which == tree.YOU and self.formal:
            return "vous"
        if preposition:
            return INDIRECT[which]
        return "la" if which == tree.IT and phrase.feminine else DIRECT[which]

    # -- clauses --------------------------------------------------------------------------------------------------

    def finite(self, verb: FrenchVerb, clause: Clause) -> str:
        """The form of a verb that keeps one word: present, imperfect for past states, future."""
        person = self.person(clause.subject)
        return (verb.present, verb.imperfect, verb.future)[clause.tense][person]

    def say_predicate(self, out: list[Word], clause: Clause, head: Phrase | None = None, habit: bool = False) -> None:
        """Everything behind the subject; `head` is the noun a relative clause describes, `habit` an imparfait."""
        bit = clause.bit
        kind = clause.kind
        negation = bit << tree.NEGATION
        auxiliary = bit << tree.AUXILIARY
        if clause.negative:
            out.append(("ne", negation, 0, 0))
        if kind in (tree.DESCRIPTION, tree.IDENTITY, tree.COMPARISON):
            idiom = clause.adjective is not None and clause.adjective.idiom
            out.append((self.finite(HAVE_FRENCH if idiom else BE_FRENCH, clause), bit, auxiliary, 0))
            if clause.negative:
                out.append(("pas", negation, 0, 0))
            self.say_attribute(out, clause)
            return
        verb = clause.verb
        habit = habit or (clause.frequency is not None and clause.frequency.name in HABITS)
        clitic: Word | None = None
        agreement = 0
        if clause.object is not None and clause.object.kind == tree.PRONOUN:
            clitic = (self.clitic(clause.object, verb.preposition), clause.object.bit, 0, -clause.object.entity)
            if not verb.preposition:
                agreement = self.form(clause.object)
        elif clause.gap == "object" and head is not None:
            agreement = head.feminine + 2 * head.plural
        if clause.modal:
            out.append((self.finite(MODALS_FRENCH[clause.modal], clause), auxiliary, 0, 0))
            if clause.negative:
                out.append(("pas", negation, 0, 0))
            if clitic:
                out.append(clitic)
            out.append((verb.french.infinitive, bit, 0, 0))
        elif clause.tense == tree.PAST and not verb.state and not habit:
            if clitic:
                out.append(clitic)
            with_etre = verb.french.with_etre
            helper = BE_FRENCH if with_etre else HAVE_FRENCH
            out.append((helper.present[self.person(clause.subject)], bit, auxiliary, 0))
            if clause.negative:
                out.append(("pas", negation, 0, 0))
            if clause.frequency is not None:
                out.append((clause.frequency.french, bit << tree.ADVERB, 0, 0))
            if clause.manner is not None and clause.manner.short:
                out.append((clause.manner.french, bit << tree.ADVERB, 0, 0))
            form = self.form(clause.subject) if with_etre else agreement
            out.append((verb.participle[form], bit, 0, 0))
        else:
            if clitic:
                out.append(clitic)
            out.append((self.finite(verb.french, clause), bit, auxiliary, 0))
            if clause.negative:
                out.append(("pas", negation, 0, 0))
            if clause.frequency is not None:
                out.append((clause.frequency.french, bit << tree.ADVERB, 0, 0))
            if clause.manner is not None and clause.manner.short:
                out.append((clause.manner.french, bit << tree.ADVERB, 0, 0))
        self.say_rest(out, clause, habit)

    def say_attribute(self, out: list[Word], clause: Clause) -> None:
        bit = clause.bit
        form = self.form(clause.subject)
        if clause.kind == tree.IDENTITY:
            assert clause.predicate is not None
            out.append((clause.predicate.french_forms[form], bit << tree.MORE, 0, 0))
            return
        adjective = clause.adjective
        assert adjective is not None
        if clause.kind == tree.COMPARISON:
            assert clause.standard is not None
            if adjective.french_comparative is not None:
                out.append((adjective.french_comparative[form], bit << tree.MORE | bit << tree.ADVERB, 0, 0))
            else:
                out.append(("plus", bit << tree.ADVERB, 0, 0))
                out.append((adjective.french[form], bit << tree.MORE, 0, 0))
            out.append(("que", clause.standard.bit << tree.LINK, 0, 0))
            self.say_phrase(out, clause.standard)
            return
        if clause.degree is not None:
            # "not quite" is not "not enough"
            words = NOT_QUITE if clause.negative and clause.degree.name == "quite" else (clause.degree.french,)
            out.extend((word, bit << tree.ADVERB, 0, 0) for word in words)
        out.append((adjective.french[form], bit << tree.MORE, 0, 0))

    def say_rest(self, out: list[Word], clause: Clause, habit: bool = False) -> None:
        """Manner, object and adjuncts behind the verb, then what is joined to it."""
        bit = clause.bit
        if clause.manner is not None and not (clause.manner.short and not clause.modal):
            out.append((clause.manner.french, bit << tree.ADVERB, 0, 0))
        thing = clause.object
        if thing is not None and thing.kind != tree.PRONOUN:
            if clause.verb.preposition:
                self.say_prepositional(out, clause.verb.preposition, thing, bit)
            else:
                self.say_phrase(out, thing, clause.negative)
        if clause.recipient is not None:
            self.say_prepositional(out, "à", clause.recipient, clause.recipient.bit << tree.LINK)
        if clause.beneficiary is not None:
            self.say_prepositional(out, "pour", clause.beneficiary, clause.beneficiary.bit << tree.LINK)
        if clause.place is not None:
            self.say_place(out, clause.place)
        if clause.place_adverb is not None:
            out.append((clause.place_adverb.french, bit << tree.PLACE, 0, 0))
        if clause.companion is not None:
            self.say_prepositional(out, "avec", clause.companion, clause.companion.bit << tree.LINK)
        if clause.vehicle is not None:
            out.append(("en", bit << tree.TIME, 0, 0))
            out.append((clause.vehicle.french[0], bit << tree.VEHICLE, 0, 0))
        if clause.complement is not None:
            out.append(("que", clause.complement.bit << tree.CONNECTOR, 0, 0))
            self.say_clause(out, clause.complement)
        if clause.then is not None:
            out.append(("mais" if clause.negative else "et", clause.then.bit << tree.CONNECTOR, 0, 0))
            self.say_predicate(out, clause.then, habit=habit)

    def say_clause(self, out: list[Word], clause: Clause) -> None:
        bit = clause.bit
        if clause.kind == tree.ORDER:
            out.append((clause.verb.french.present[4], bit, 0, 0))
            self.say_rest(out, clause)
            comma(out)
            out.extend((word, bit << tree.AUXILIARY, 0, 0) for word in ("s'il", "vous", "plaît"))
            return
        if clause.kind == tree.EXISTENCE:
            assert clause.object is not None
            assert clause.place is not None
            out.append(("il", bit, 0, 0))
            if clause.negative:
                out.append(("ne", bit << tree.NEGATION, 0, 0))
            out.append(("y", bit, 0, 0))
            form = (HAVE_FRENCH.present, HAVE_FRENCH.imperfect, HAVE_FRENCH.future)[clause.tense][2]
            out.append((form, bit, bit << tree.AUXILIARY, 0))
            if clause.negative:
                out.append(("pas", bit << tree.NEGATION, 0, 0))
            self.say_phrase(out, clause.object, clause.negative)
            self.say_place(out, clause.place)
            return
        if clause.time is not None:
            out.append((clause.time.french, bit << tree.TIME, 0, 0))
        if clause.question and clause.question != tree.WHO_DOES:
            asking = bit << tree.ASKING
            if clause.question == tree.DOES_WHAT:
                out.append(("qu'est-ce", bit << tree.TIME, asking, 0))
            else:
                if clause.question != tree.YES_NO:
                    out.append((QUESTIONS[clause.question], bit << tree.TIME, 0, 0))
                out.append(("est-ce", asking, 0, 0))
            out.append(("que", asking, 0, 0))
        self.say_phrase(out, clause.subject)
        self.say_predicate(out, clause)

    def say(self, sentence: Sentence) -> list[Word]:
        """The words of the sentence, elided, with capital and full stop."""
        clause = sentence.units[0].clause
        self.formal = sentence.address or ("sir" if clause.kind == tree.ORDER else "")
        out: list[Word] = []
        if sentence.address:
            out.append(("monsieur," if sentence.address == "sir" else "madame,", sentence.bit, 0, 0))
        for unit in sentence.units:
            if unit.joint:
                comma(out)
                out.append(("et" if unit.joint == "and" else "mais", unit.bit, 0, 0))
            side = unit.side
            if side is None:
                self.say_clause(out, unit.clause)
            elif unit.relation == "because":
                self.say_clause(out, unit.clause)
                comma(out)
                connector = side.bit << tree.CONNECTOR
                out.append(("parce", connector, 0, 0))
                out.append(("que", connector, 0, 0))
                self.say_clause(out, side)
            else:
                out.append(("quand" if unit.relation == "when" else "si", side.bit << tree.CONNECTOR, 0, 0))
                self.say_clause(out, side)
                comma(out)
                self.say_clause(out, unit.clause)
        out = elide(out)
        text, sure, possible, reference = out[0]
        out[0] = (text[0].upper() + text[1:], sure, possible, reference)
        text, sure, possible, reference = out[-1]
        out[-1] = (text + ("?" if clause.question else "."), sure, possible, reference)
        return out


def comma(out: list[Word]) -> None:
    text, sure, possible, reference = out[-1]
    out[-1] = (text + ",", sure, possible, reference)
