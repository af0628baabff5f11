"""Questions about contexts: spans, and that one sentence alone answers, found out from the text without the trees."""

import random
import re
from functools import cache

import pytest

from jumok.data.examples import Question
from jumok.data.grammar import LANGUAGES
from jumok.data.grammar.korean_words import attach
from jumok.data.grammar.lexicon import names, nouns, verbs
from jumok.data.grammar_tasks import grammar_questions

NAMED = {form: noun.name for noun in nouns for form in noun.english} | {name.name: name.name for name in names}
DONE = {form: verb.english[0] for verb in verbs for form in verb.english}
PREPOSITIONS = ("in", "at", "on", "to", "for", "by")
Reading = tuple[frozenset[str], str, frozenset[str], bool]  # who, does, the rest; whether it is denied


def fresh() -> int:
    return random.SystemRandom().randrange(1_000_000)


def sentences(context: str) -> list[tuple[int, str]]:
    """Where each sentence starts, and the sentence."""
    return [(match.start(), match.group()) for match in re.finditer(r"[^. ][^.]*\.", context)]


# -- English ----------------------------------------------------------------------------------------------------------


def read(clause: str, subject: frozenset[str] = frozenset()) -> Reading:
    """A clause of English as its nouns before the verb, the verb, and the nouns behind it with their prepositions."""
    words = re.sub(r"'s?\b|[.,?]", "", clause).split()
    words = [words[0][0].lower() + words[0][1:] if words[0] not in NAMED else words[0], *words[1:]]
    # "clean" is an adjective as well
    places = [place for place, word in enumerate(words) if word in DONE and word != "clean"]
    places = places or [place for place, word in enumerate(words) if word == "clean"][-1:]
    at = places[0]
    before = frozenset(NAMED[word] for word in words[:at] if word in NAMED)
    behind, preposition = set(), ""
    particle = any(verb.particle and words[at] in verb.english for verb in verbs)  # "listen to"
    for word in words[at + 1 + particle :]:
        if word in PREPOSITIONS:
            preposition = word
        elif word in NAMED:
            behind.add(preposition + NAMED[word])
    return before or subject, DONE[words[at]], frozenset(behind), "not" in words[:at]


def readings(sentence: str) -> list[Reading]:
    """The main clause and what stands beside it."""
    sentence = re.sub(r"^(Yesterday|Recently|Today|Now|Tomorrow|Soon) ", "", sentence)
    if sentence.startswith("When "):
        side, main = sentence.removeprefix("When ").split(", ")
        return [read(main), read(side)]
    main, _, reason = sentence.partition(", because ")
    found = [read(main)]
    if reason and not re.search(r"\b(is|are|was|were)\b", reason):
        found.append(read(reason, found[0][0]))
    return found


def answers_english(question: str, sentence: str) -> bool:
    who, does, rest, _ = read(re.sub(r"^(Who|What|Where|When|Why)( (did|do|does|will))?\b", "It", question))
    return any(
        not denied and does == done and who <= before and rest <= behind
        for before, done, behind, denied in readings(sentence)
    )


# -- Korean -----------------------------------------------------------------------------------------------------------


@cache
def korean_tables() -> tuple[dict[str, str], dict[str, str]]:
    """Every form of a noun with its particle, and every form a predicate begins to end in."""
    particles = ("은", "이", "을", "에", "에서", "에게", "와", "의", "")
    stems = [(noun.korean, noun.name) for noun in nouns] + [(name.korean, name.name) for name in names]
    stems += [(noun.korean + "들", noun.name) for noun in nouns if noun.animate]
    forms = {attach(stem, particle) if particle else stem: name for stem, name in stems for particle in particles}
    done = {}
    for verb in verbs:
        korean = verb.korean
        for form in (korean.present + "요", korean.past + "어요", korean.future, korean.stem + "지"):
            done[form] = verb.korean.stem
    return forms, done


COUNTS = ("두", "세", "네")


def role(word: str) -> str:
    return "who" if word[-1] in "은는이가" else "what" if word[-1] in "을를" else "else"


def main_of(words: list[str], named: dict[str, str]) -> list[str]:
    """Without what happened meanwhile, and without the reason behind the subject."""
    if "때" in words:
        return words[words.index("때") + 1 :]
    if "때문에" in words:
        subject = next(place for place, word in enumerate(words) if word in named)
        subject += 2 * (words[subject + 1] in COUNTS)
        return words[: subject + 1] + words[words.index("때문에") + 1 :]
    return words


def answers_korean(question: str, sentence: str) -> bool:
    """Whether everything the question names stands in the sentence, in the same role, and it is no denial."""
    named, done = korean_tables()

    def said(text: str) -> tuple[set[tuple[str, str]], str]:
        words = main_of(text.rstrip(".?").split(), named)
        found = set()
        for place, word in enumerate(words):
            if word in named and words[place - 1] not in COUNTS:  # 마리 is a counter, and Marie
                counted = place + 2 < len(words) and words[place + 1] in COUNTS
                found.add((named[word], role(words[place + 2] if counted else word)))
        return found, next(done[word] for word in reversed(words) if word in done) + "미소" * ("미소" in words)

    if re.search(r"(않|모르|모를|몰라|몰랐)\S*( 거예요)?\.$", sentence):
        return False
    asked, verb = said(question)
    told, did = said(sentence)
    return asked <= told and verb == did


ANSWERS = {"en": answers_english, "ko": answers_korean}


@pytest.mark.parametrize("split", ["train", "test"])
@pytest.mark.parametrize("language", ANSWERS)
def test_one_sentence_alone_answers(language: str, split: str) -> None:
    seed = fresh()
    for made in grammar_questions(language, split, 600 if split == "train" else 150, seed, share_unanswerable=0.3):
        found = [(start, text) for start, text in sentences(made.context) if ANSWERS[language](made.question, text)]
        if language == "ko" and "무엇을" in made.question:  # 살다 (to live) has no object, 사다 (to buy) sounds like it
            found = [(start, text) for start, text in found if "을 " in text or "를 " in text]
        if not made.answers:
            assert not found, (made, seed)
            continue
        assert len(found) == 1, (made, found, seed)
        (start, text), (answer,) = found[0], made.answers
        assert start <= answer.start < answer.start + len(answer.text) < start + len(text), (made, seed)


@pytest.mark.parametrize("language", LANGUAGES)
def test_answers_are_spans_without_marks(language: str) -> None:
    seed = fresh()
    counts = set()
    for made in grammar_questions(language, "train", 500, seed):
        (answer,) = made.answers
        assert made.context[answer.start : answer.start + len(answer.text)] == answer.text, seed
        assert answer.text == answer.text.strip(" .,?"), (answer, seed)
        assert answer.start == 0 or made.context[answer.start - 1] == " ", (made, seed)
        assert made.question.endswith("?")
        counts.add(len(sentences(made.context)))
    assert counts == {3, 4, 5, 6}, seed


def opener(made: Question) -> str:
    return made.question.split()[0]


def test_kinds_are_balanced_and_answers_are_of_their_kind() -> None:
    seed = fresh()
    made = list(grammar_questions("en", "train", 500, seed))
    for word in ("Who", "What", "Where", "When", "Why"):
        assert sum(opener(one) == word for one in made) == 100, seed
    for one in made:
        first = one.answers[0].text.split()[0]
        if opener(one) == "Where":
            assert first in ("in", "at", "on", "to"), (one, seed)
        elif opener(one) == "Why":
            assert first == "because", (one, seed)
        elif opener(one) == "When":
            assert first in ("When", "Yesterday", "Recently", "Today", "Now", "Tomorrow", "Soon"), (one, seed)


def test_korean_answers_carry_no_particle() -> None:
    seed = fresh()
    bare = {noun.korean for noun in nouns} | {name.korean for name in names}
    bare |= {noun.korean + "들" for noun in nouns if noun.animate} | {noun.counter for noun in nouns}
    for made in grammar_questions("ko", "train", 500, seed):
        if not re.search(r"왜|언제", made.question):
            assert made.answers[0].text.split()[-1] in bare, (made, seed)


def test_one_must_read_to_answer() -> None:
    """The verb of the question is in other sentences too, more often than not."""
    seed = fresh()
    shared = total = 0
    for made in grammar_questions("en", "train", 400, seed):
        does = read(re.sub(r"^(Who|What|Where|When|Why)( (did|do|does|will))?\b", "It", made.question))[1]
        shared += sum(readings(text)[0][1] == does for _, text in sentences(made.context)) > 1
        total += 1
    assert shared > 0.55 * total, (shared, total, seed)


def test_the_share_without_an_answer() -> None:
    seed = fresh()
    without = sum(not made.answers for made in grammar_questions("en", "train", 1000, seed, share_unanswerable=0.33))
    assert 250 < without < 410, (without, seed)
    assert all(made.answers for made in grammar_questions("en", "train", 300, seed))


def test_identities_are_distinct() -> None:
    made = [one.identity for split in ("train", "test") for one in grammar_questions("en", split, 20, fresh())]
    assert len(set(made)) == len(made)
