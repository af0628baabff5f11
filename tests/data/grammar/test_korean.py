"""Korean sentences in which an error was found once, or would be easy to make; one table per class."""

import re
from functools import cache

import pytest

from jumok.data.grammar import Pair, hangul, korean_words, pairs
from jumok.data.grammar.lexicon import adjective_named, nouns


@cache
def sample() -> tuple[Pair, ...]:
    return tuple(pairs("en", "ko", "train", 20_000, 11))


def found(english: str) -> list[tuple[str, str]]:
    """The English and the Korean of the pairs whose English matches."""
    hits = [(pair.source, pair.target) for pair in sample() if re.search(english, pair.source)]
    assert len(hits) > 2, english
    return hits


# what the English says, what its Korean must hold, what it must not hold
SAID = [
    # to have is to hold on to; 가 twice ("음악가가 사자가 있어요") would leave the owner open
    (r"^(?!There)[^,]*\b(has|have|had)\b", r"가지고 (있|계)", r"[이가] (있|없)(어|었|을)"),
    # one hears a voice, not a person
    (r"listens? to (him|her|them|\w+)\.$", r"말을 경청", r"(그|그녀|그들)[을를] 경청"),
    (r"\b(heard|hears?) (him|her|them)\.$", r"의 (목소리|소리)를 [들듣]", r"(그|그녀|그들)[을를] [들듣]"),
    # 알다 has a negative of its own
    (r"^[^,]*\b(do|does|did|will) not know\b", r"모르|모를|몰[라랐]", r"알지 않"),
    # what was known for a while is 알았던, not 안
    (r"\b[Tt]he \w+ (who|that \w+) (knew|loved|liked|hated|feared)\b", r"(알았|했)던", r" 안 "),
    # spaces: neither is one word in the dictionary
    (r"\bsmile", r"미소 [짓지]", r"미소[짓지]"),
    (r"\blift", r"들어 올[리려렸릴린립]", r"들어올"),
    # 젊다 is for grown-up people
    (r"\byoung (boy|girl|child|baby|dog|cat|cow|lion)\b", r"어린", r"젊은 (소년|소녀|아이|아기|개|고양이|소|사자)"),
    (r"\byoung (doctor|queen|soldier|teacher)\b", r"젊은", r"어린 (의사|여왕|군인|교사)"),
    # two adjectives are joined
    (r"\bsmall (magnificent|red|white|expensive)\b", r"작고 (멋진|빨간|하얀|비싼)", r"작은 (멋진|빨간|하얀|비싼)"),
    # the negation reaches over the degree
    (r"^[^,]* not (very|quite|too|extremely) \w+\.$", r"지는 않", r"지 않"),
    # no favour is asked for by "please eat"
    (r"^Please (eat|drink)\b", r"드세요\.$", r"먹어|마셔"),
    # 자기 stands before its noun alone
    (r"^(He|She) (?!is|was)\w+ (his|her) (?!friend)\w+\.$", r"자기 |그의 |그녀의 |그를|그녀를", r"자신의"),
    # a shoe is half a pair; places are counted as places
    (r"(two|three|four|five|six|seven|eight|nine|ten) (shoes|gloves)\b", r" 짝", r"켤레"),
    (
        r"\b(two|three|four|five|six|seven|eight|nine|ten) (hotels|schools|stores|banks)\b",
        r" 곳",
        r"(호텔|학교) \w+ 개",
    ),
]


@pytest.mark.parametrize(("english", "has", "lacks"), SAID, ids=lambda cell: cell)
def test_said_in_korean(english: str, has: str, lacks: str) -> None:
    for source, target in found(english):
        assert re.search(has, target), (source, target)
        assert not re.search(lacks, target), (source, target)


def test_who_is_addressed_is_honoured() -> None:
    for source, target in found(r"^(Sir|Madam), (did |do |will |can |are |were )?you [^,]*$"):
        predicate = " ".join(target.split()[-3:])  # 세실 수 없습니다
        assert re.search(r"[가-힣](시지|시고|시면|시는|십니|셨습|셨을|실 |셔야|으십)", predicate), (source, target)


def test_who_is_not_addressed_is_not_honoured() -> None:
    for source, target in found(r"^(Sir|Madam), (he|she|they|I|we) \w+[^,]*$"):
        assert not re.search(r"(으시|하시|하셨|하십|으셨|으십|계십)", target), (source, target)


def test_an_animal_is_no_he() -> None:
    """A pronoun for an animal alone is 그것; its English is he or she."""
    animals = {word for noun in nouns if noun.animate and not noun.person for word in noun.english}
    people = {word for noun in nouns if noun.person for word in noun.english}
    seen = 0
    for pair in sample():
        words = [re.sub(r"[.,?]|'s?$", "", word).lower() for word in pair.source.split()]
        targets = {pronoun for pronoun, head in pair.antecedents if words[head] in animals}
        others = {"he", "she", "him", "her", "his", "they", "them", "their"} & {
            word for index, word in enumerate(words) if index not in targets
        }
        if targets and not others and not people & set(words):
            assert not re.search(r"(^| )(그|그녀|그들)(는|은|가|이|를|을|의|에게|와|과)[ .?]", pair.target), pair
            seen += 1
    assert seen > 10


def test_a_pronoun_stands_behind_the_subject_it_means() -> None:
    """The reason comes first in Korean, but not before the subject that its pronouns mean."""
    seen = 0
    for pair in sample():
        if ", because " in pair.source and pair.target.count(" 때문에 ") == 1:
            for pronoun, head in pair.target_antecedents:
                if pair.target.split()[head].endswith(("은", "는")):
                    assert head < pronoun, pair
                    seen += 1
    assert seen > 20


def test_a_comparison_speaks_of_its_subject() -> None:
    for source, target in found(r"^(A|An|Two|Three) \w+ (is|are|was|were) [^,]* than [^,]*$"):
        assert re.match(r"[^ ]+( \w+ \w+)?[은는] |[^ ]+[은는] ", target), (source, target)


@pytest.mark.parametrize(
    ("word", "irregular", "is_verb", "expected"),
    [
        ("가다", "", True, "가십니다"),
        ("읽다", "", True, "읽으십니다"),
        ("열다", "", True, "여십니다"),
        ("듣다", "t", True, "들으십니다"),
        ("돕다", "p", True, "도우십니다"),
        ("짓다", "s", True, "지으십니다"),
        ("먹다", "", True, "드십니다"),
        ("자다", "", True, "주무십니다"),
        ("있다", "i", False, "계십니다"),
        ("길다", "", False, "기십니다"),
        ("바쁘다", "", False, "바쁘십니다"),
    ],
)
def test_honorific(word: str, irregular: str, is_verb: bool, expected: str) -> None:
    assert korean_words.honorific(hangul.conjugate(word, irregular, is_verb)).formal == expected


def test_honorific_copula() -> None:
    forms = [korean_words.honorific(form) for form in (hangul.copula("학생"), hangul.copula("의사"), hangul.NOT_BE)]
    assert [form.formal for form in forms] == ["학생이십니다", "의사이십니다", "아니십니다"]
    assert [form.plain + "고" for form in forms] == ["학생이시라고", "의사이시라고", "아니시라고"]


def test_every_counter_is_one_that_korean_has() -> None:
    counters = {noun.korean: noun.counter for noun in nouns}
    known = "개 명 마리 대 벌 곳 채 권 통 부 자루 송이 장 짝 척 편 곡 판 그루"
    assert set(counters.values()) == set(known.split())


def test_one_own_before_an_adjective_is_jasin() -> None:
    texts = " ".join(pair.target for pair in sample())
    owned = {noun.korean for noun in nouns}
    for word in re.findall(
        r"(?:^| )(?:자기|우리) (?!때문에|목소리를|말을)([^ ]+)", texts
    ):  # 자기 때문에: because he sleeps
        assert any(word.startswith(noun) for noun in owned), word
    assert min(texts.count(" 자신의 "), texts.count(" 우리의 ")) > 20


def test_two_new_subjects_are_new_together() -> None:
    for source, target in found(r"^(A|An) \w+ and (a|an) \w+ (?!is |are |was |were |will be )[^,?]*\.$"):
        assert re.match(r"[^ ]+ ?[^ ]*[와과] ([^ ]+ ){0,2}[^ ]+[이가] ", target), (source, target)
        assert not re.match(r"[^ ]+ ?[^ ]*[와과] ([^ ]+ ){0,2}[^ ]+[은는] ", target) or " that " in source, target


def test_a_subject_is_said_again_behind_the_one_of_a_reason() -> None:
    again = r"^(He|She|They|I|We|You) (?!\w+ that)[^,]*, (and|but) (he|she|they|I|we|you) [^,]*, because (\w+) [^,]*$"
    seen = 0
    for pair in sample():
        match = re.match(again, pair.source)
        if match and match[1].lower() == match[3].lower() != match[4].lower():
            assert re.search(r"[고만], (.* )?(그|그녀|그들|저|우리|당신)[은는] ", pair.target), pair
            seen += 1
    assert seen > 10


@pytest.mark.parametrize(("name", "stem"), [("rare", "희귀하"), ("hard", "딱딱하")])
def test_words_of_turtles_and_beds(name: str, stem: str) -> None:
    assert adjective_named[name].korean.stem == stem
