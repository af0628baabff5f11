"""Hangul against known-right forms and against Unicode's own decomposition."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumok.data.grammar import hangul

syllables = st.integers(hangul.FIRST, hangul.LAST).map(chr)


@given(syllables)
def test_compose_undoes_decompose_and_agrees_with_unicode(syllable: str) -> None:
    initial, vowel, final = hangul.decompose(syllable)
    assert hangul.compose(initial, vowel, final) == syllable
    assert hangul.has_final(syllable) == (len(unicodedata.normalize("NFD", syllable)) == 3)


@given(syllables, st.sampled_from(hangul.FINALS))
def test_with_final_changes_only_the_final(syllable: str, final: str) -> None:
    assert hangul.decompose(hangul.with_final(syllable, final)) == (*hangul.decompose(syllable)[:2], final)


@pytest.mark.parametrize("text", ["a", "ㄱ", "한글", ""])
def test_decompose_refuses_what_is_not_one_syllable(text: str) -> None:
    with pytest.raises(ValueError, match="not a Hangul syllable"):
        hangul.decompose(text)


@pytest.mark.parametrize(
    ("noun", "particle", "expected"),
    [
        ("학생", "은", "학생은"),
        ("의사", "은", "의사는"),
        ("학생", "이", "학생이"),
        ("개", "이", "개가"),
        ("책", "을", "책을"),
        ("사과", "을", "사과를"),
        ("형", "와", "형과"),
        ("친구", "와", "친구와"),
        ("집", "로", "집으로"),
        ("기차", "로", "기차로"),
        ("지하철", "로", "지하철로"),
        ("학교", "에서", "학교에서"),
    ],
)
def test_particles_follow_the_last_sound(noun: str, particle: str, expected: str) -> None:
    assert hangul.attach_particle(noun, particle) == expected


# dictionary form, class, then: present, past, past modifier, future, condition, formal, plain
VERBS = [
    ("먹다", "", "먹어", "먹었", "먹은", "먹을", "먹으면", "먹습니다", "먹는다"),
    ("가다", "", "가", "갔", "간", "갈", "가면", "갑니다", "간다"),
    ("오다", "", "와", "왔", "온", "올", "오면", "옵니다", "온다"),
    ("마시다", "", "마셔", "마셨", "마신", "마실", "마시면", "마십니다", "마신다"),
    ("배우다", "", "배워", "배웠", "배운", "배울", "배우면", "배웁니다", "배운다"),
    ("보내다", "", "보내", "보냈", "보낸", "보낼", "보내면", "보냅니다", "보낸다"),
    ("하다", "", "해", "했", "한", "할", "하면", "합니다", "한다"),
    ("돕다", "p", "도와", "도왔", "도운", "도울", "도우면", "돕습니다", "돕는다"),
    ("듣다", "t", "들어", "들었", "들은", "들을", "들으면", "듣습니다", "듣는다"),
    ("짓다", "s", "지어", "지었", "지은", "지을", "지으면", "짓습니다", "짓는다"),
    ("웃다", "", "웃어", "웃었", "웃은", "웃을", "웃으면", "웃습니다", "웃는다"),
    ("모르다", "", "몰라", "몰랐", "모른", "모를", "모르면", "모릅니다", "모른다"),
    ("부르다", "", "불러", "불렀", "부른", "부를", "부르면", "부릅니다", "부른다"),
    ("쓰다", "", "써", "썼", "쓴", "쓸", "쓰면", "씁니다", "쓴다"),
    ("살다", "", "살아", "살았", "산", "살", "살면", "삽니다", "산다"),
    ("열다", "", "열어", "열었", "연", "열", "열면", "엽니다", "연다"),
    ("뛰다", "", "뛰어", "뛰었", "뛴", "뛸", "뛰면", "뜁니다", "뛴다"),
    ("되다", "", "돼", "됐", "된", "될", "되면", "됩니다", "된다"),
]
ADJECTIVES = [
    ("크다", "", "커", "컸", "큰", "클"),
    ("예쁘다", "", "예뻐", "예뻤", "예쁜", "예쁠"),
    ("배고프다", "", "배고파", "배고팠", "배고픈", "배고플"),
    ("빠르다", "", "빨라", "빨랐", "빠른", "빠를"),
    ("아름답다", "p", "아름다워", "아름다웠", "아름다운", "아름다울"),
    ("빨갛다", "h", "빨개", "빨갰", "빨간", "빨갈"),
    ("하얗다", "h", "하얘", "하얬", "하얀", "하얄"),
    ("길다", "", "길어", "길었", "긴", "길"),
    ("맛있다", "i", "맛있어", "맛있었", "맛있는", "맛있을"),
    ("좁다", "", "좁아", "좁았", "좁은", "좁을"),
]


@pytest.mark.parametrize("row", VERBS, ids=lambda row: row[0])
def test_verbs(row: tuple[str, ...]) -> None:
    verb = hangul.conjugate(row[0], row[1])
    assert row[2:] == (
        verb.present, verb.past, verb.past_modifier, verb.future, verb.condition, verb.formal, verb.plain
    )  # fmt: skip


@pytest.mark.parametrize("row", ADJECTIVES, ids=lambda row: row[0])
def test_adjectives(row: tuple[str, ...]) -> None:
    adjective = hangul.conjugate(row[0], row[1], is_verb=False)
    assert row[2:] == (adjective.present, adjective.past, adjective.modifier, adjective.future)


def test_present_modifier_of_verbs_drops_the_l_of_the_stem() -> None:
    assert [hangul.conjugate(word).modifier for word in ("살다", "먹다", "가다")] == ["사는", "먹는", "가는"]


def test_copula() -> None:
    student, doctor = hangul.copula("학생"), hangul.copula("의사")
    assert (student.present + "요", doctor.present + "요") == ("학생이에요", "의사예요")
    assert (student.past + "어요", doctor.past + "어요") == ("학생이었어요", "의사였어요")
    assert (student.plain + "고", doctor.plain + "고") == ("학생이라고", "의사라고")
