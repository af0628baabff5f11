"""The words that come with the package: real ones first, invented ones that look like them."""

from __future__ import annotations

import unicodedata

import pytest

from jumok.data.rendering.embedded import INVENTED, LONGEST, Language, embedded_words, invented_words, known_words
from jumok.data.rendering.words import small
from jumok.text.jamo import is_syllable

LANGUAGES: tuple[Language, ...] = ("en", "fr", "ko")


@pytest.mark.parametrize("language", LANGUAGES)
def test_known_and_invented_words(language: Language) -> None:
    known, invented = known_words(language), invented_words(language)
    assert len(known) > 1000
    assert len(invented) == INVENTED
    assert len(set(known) | set(invented)) == len(known) + len(invented)
    for word in (*known, *invented):
        assert word == small(word) == unicodedata.normalize("NFC", word).strip()
        assert " " not in word
    assert set("".join(invented)) <= set("".join(known))
    assert min(map(len, invented)) >= 2
    assert max(map(len, invented)) <= LONGEST[language]


def test_frequent_words_come_first() -> None:
    assert "the" in known_words("en")[:3]
    assert "student" in known_words("en")
    assert "학생" in " ".join(known_words("ko"))
    assert all(is_syllable(character) for word in invented_words("ko") for character in word)


def test_the_next_letter_follows_the_last_three() -> None:
    known = {f"^^{word}$"[place : place + 4] for word in known_words("en") for place in range(len(word))}
    for word in invented_words("en"):
        assert all(f"^^{word}$"[place : place + 4] in known for place in range(len(word)))


def test_languages_take_turns() -> None:
    words = embedded_words(["en", "ko"])
    assert len(words) == len(set(words))
    first = words[:200]
    assert 80 < sum(is_syllable(word[0]) for word in first) < 120
    real = {*known_words("en"), *known_words("ko")}
    assert set(words[: len(real)]) == real


def test_no_language_no_words() -> None:
    assert embedded_words([]) == ()
