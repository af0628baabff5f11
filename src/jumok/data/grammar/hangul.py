"""Hangul: syllables taken apart and put together, particles by the final consonant, and conjugation.

A syllable is (initial, vowel, final), code point 0xAC00 + (initial * 21 + vowel) * 28 + final. A predicate is given by
its dictionary form (먹다) and a class for the irregular ones: "p" ㅂ (돕다), "t" ㄷ (듣다), "s" ㅅ (짓다), "h" ㅎ
(빨갛다), "i" for the adjectives made with 있다 (맛있다). Regular, 하다, 르, 으 and ㄹ predicates are recognised by
their stems.
"""

from dataclasses import dataclass

FIRST, LAST = 0xAC00, 0xD7A3
VOWELS = "ㅏㅐㅑㅒㅓㅔㅕㅖㅗㅘㅙㅚㅛㅜㅝㅞㅟㅠㅡㅢㅣ"
FINALS = ("", *"ㄱㄲㄳㄴㄵㄶㄷㄹㄺㄻㄼㄽㄾㄿㅀㅁㅂㅄㅅㅆㅇㅈㅊㅋㅌㅍㅎ")
INITIALS = "ㄱㄲㄴㄷㄸㄹㅁㅂㅃㅅㅆㅇㅈㅉㅊㅋㅌㅍㅎ"
N, L, B, SS = FINALS.index("ㄴ"), FINALS.index("ㄹ"), FINALS.index("ㅂ"), FINALS.index("ㅆ")
BRIGHT = ("ㅏ", "ㅗ", "ㅑ")
PARTICLES = {
    "은": ("는", "은"),
    "이": ("가", "이"),
    "을": ("를", "을"),
    "와": ("와", "과"),
    "로": ("로", "으로"),
    "이에요": ("예요", "이에요"),
}


def is_syllable(character: str) -> bool:
    return len(character) == 1 and FIRST <= ord(character) <= LAST


def decompose(syllable: str) -> tuple[str, str, str]:
    """한 -> ("ㅎ", "ㅏ", "ㄴ"); the final is "" when there is none."""
    if not is_syllable(syllable):
        raise ValueError(f"not a Hangul syllable: {syllable!r}")
    code = ord(syllable) - FIRST
    return INITIALS[code // 588], VOWELS[code % 588 // 28], FINALS[code % 28]


def compose(initial: str, vowel: str, final: str = "") -> str:
    """("ㅎ", "ㅏ", "ㄴ") -> 한."""
    return chr(FIRST + (INITIALS.index(initial) * 21 + VOWELS.index(vowel)) * 28 + FINALS.index(final))


def final_index(text: str) -> int:
    """Index of the last syllable's final consonant, 0 when it ends in a vowel or is not Hangul."""
    return (ord(text[-1]) - FIRST) % 28 if text and is_syllable(text[-1]) else 0


def has_final(text: str) -> bool:
    return final_index(text) != 0


def with_final(text: str, final: str) -> str:
    """`text` with the final consonant of its last syllable replaced ("" takes it away)."""
    initial, vowel, _ = decompose(text[-1])
    return text[:-1] + compose(initial, vowel, final)


def attach_particle(noun: str, particle: str) -> str:
    """The noun and the form of the particle its last sound asks for: 학생은, 의사는, 서울로, 집으로."""
    if particle not in PARTICLES:
        return noun + particle
    after_vowel, after_final = PARTICLES[particle]
    final = final_index(noun)
    if particle == "로" and final == L:
        return noun + after_vowel
    return noun + (after_final if final else after_vowel)


def infinitive(word: str, irregular: str = "") -> str:
    """The -아/어 form, with harmony and contraction: 가다 -> 가, 마시다 -> 마셔, 돕다 -> 도와, 하다 -> 해."""
    stem = word[:-1]
    head, last = stem[:-1], stem[-1]
    initial, vowel, final = decompose(last)
    if last == "하":
        return head + "해"
    if irregular == "p":
        return head + compose(initial, vowel) + ("와" if last in "돕곱" else "워")
    if irregular == "h":
        return head + compose(initial, "ㅒ" if vowel == "ㅑ" else "ㅐ")
    if irregular in ("t", "s"):
        return head + compose(initial, vowel, "ㄹ" if irregular == "t" else "") + ("아" if vowel in BRIGHT else "어")
    if final:
        return stem + ("아" if vowel in BRIGHT else "어")
    if last == "르":
        return with_final(head, "ㄹ") + ("라" if decompose(head[-1])[1] in BRIGHT else "러")
    if vowel == "ㅡ":
        bright = bool(head) and decompose(head[-1])[1] in BRIGHT
        return head + compose(initial, "ㅏ" if bright else "ㅓ")
    contracted = {"ㅗ": "ㅘ", "ㅜ": "ㅝ", "ㅣ": "ㅕ", "ㅚ": "ㅙ"}.get(vowel)
    if contracted:
        return head + compose(initial, contracted)
    return stem + "어" if vowel in "ㅟㅢ" else stem


def _before_eu(word: str, irregular: str) -> str:
    """The stem that the endings in (으) meet: 돕다 -> 도우, 듣다 -> 들으, 빨갛다 -> 빨가, 먹다 -> 먹으, 살다 -> 살."""
    stem = word[:-1]
    if irregular == "p":
        return with_final(stem, "") + "우"
    if irregular == "h":
        return with_final(stem, "")
    if irregular in ("t", "s"):
        return with_final(stem, "ㄹ" if irregular == "t" else "") + "으"
    final = final_index(stem)
    return stem + "으" if final and final != L else stem


@dataclass(frozen=True, slots=True)
class KoreanPredicate:
    """Every form this grammar uses of a verb or an adjective."""

    stem: str  # 먹
    present: str  # 먹어
    past: str  # 먹었 (a stem)
    modifier: str  # 먹는, 큰
    past_modifier: str  # 먹은, 컸던
    future: str  # 먹을
    condition: str  # 먹으면
    formal: str  # 먹습니다
    plain: str  # 먹는다, 크다
    is_verb: bool


def conjugate(word: str, irregular: str = "", is_verb: bool = True) -> KoreanPredicate:
    """All the forms of a dictionary form."""
    stem = word[:-1]
    soft = with_final(stem, "") if final_index(stem) == L else stem  # ㄹ falls before ㄴ and ㅂ
    joined = _before_eu(word, irregular)
    before_n = with_final(joined, "") if final_index(joined) == L else joined
    present = infinitive(word, irregular)
    past = with_final(present, "ㅆ")
    modifier = soft + "는" if is_verb or irregular == "i" else with_final(before_n, "ㄴ")
    plain = stem + "다"
    if is_verb:
        plain = stem + "는다" if has_final(soft) else with_final(soft, "ㄴ") + "다"
    return KoreanPredicate(
        stem=stem,
        present=present,
        past=past,
        modifier=modifier,
        past_modifier=with_final(before_n, "ㄴ") if is_verb else past + "던",
        future=with_final(joined, "ㄹ"),
        condition=joined + "면",
        formal=stem + "습니다" if has_final(soft) else with_final(soft, "ㅂ") + "니다",
        plain=plain,
        is_verb=is_verb,
    )


def copula(noun: str) -> KoreanPredicate:
    """이다 after `noun`: 학생이에요, 의사예요, 학생이었어요, 의사였어요, 의사라고."""
    closed = has_final(noun)
    return KoreanPredicate(
        stem=noun + "이",
        present=noun + ("이에" if closed else "예"),
        past=noun + ("이었" if closed else "였"),
        modifier=noun + "인",
        past_modifier=noun + ("이었던" if closed else "였던"),
        future=noun + "일",
        condition=noun + "이면",
        formal=noun + "입니다",
        plain=noun + ("이라" if closed else "라"),
        is_verb=False,
    )


NOT_BE = KoreanPredicate("아니", "아니에", "아니었", "아닌", "아니었던", "아닐", "아니면", "아닙니다", "아니라", False)
