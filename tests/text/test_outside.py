"""The charset's doctor counts everything, names the first, and says what to do."""

from __future__ import annotations

import unicodedata
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumok.recipe.recognition import CharsetSection, RecognizerSection
from jumok.text.charset import Charset
from jumok.text.outside import FIRST, LONGEST, SHOWN, each_outside, report_outside

CHARSET = Charset.of(CharsetSection())


@given(texts=st.lists(st.text(max_size=8), max_size=30), max_length=st.integers(1, 8))
def test_counts_are_complete(texts: list[str], max_length: int) -> None:
    samples = [(f"picture {number}", text) for number, text in enumerate(texts)]
    report = report_outside(CHARSET, iter(samples), max_length)
    composed = [unicodedata.normalize("NFC", text) for text in texts]
    outside = [[character for character in text if character not in CHARSET.ids] for text in composed]
    assert report.samples == len(texts)
    assert report.with_outside == sum(map(bool, outside))
    assert report.too_long == sum(len(text) > max_length for text in composed)
    assert report.fine == (report.with_outside == report.too_long == 0) == (not report.lines())
    times = Counter(character for characters in outside for character in characters)
    having = Counter(character for characters in outside for character in set(characters))
    assert {found.character: found.times for found in report.characters} == times
    assert {found.character: found.samples for found in report.characters} == having
    for found in report.characters:
        names = [name for (name, _), characters in zip(samples, outside, strict=True) if found.character in characters]
        assert list(found.first) == names[:FIRST]
    assert [found.samples for found in report.characters] == sorted(having.values(), reverse=True)
    every = {name: why for name, _, why in each_outside(CHARSET, samples, max_length)}
    wrong = {name for (name, _), found in zip(samples, outside, strict=True) if found}
    long = {name for (name, _), text in zip(samples, composed, strict=True) if len(text) > max_length}
    assert {name for name, why in every.items() if "outside the charset" in why} == wrong
    assert {name for name, why in every.items() if f"more than {max_length}" in why} == long
    told = "\n".join(report.lines())
    assert not report.names_all or all(name in told for name in every)


def test_what_to_do_is_said() -> None:
    samples = [("1.png", "café"), ("2.png", "Ünal Ü"), ("3.png", "한국"), ("4.png", "漢字★"), ("5.png", "two words"),
               ("6.png", "a\u200bb"), ("7.png", "fine")]  # fmt: skip
    lines = report_outside(CHARSET, samples, 5).lines()
    text = "\n".join(lines)
    assert "6 of 7 texts have characters outside the charset (9 different ones)" in lines[0]
    assert "é (U+00E9, latin small letter e with acute): 1 text; 1.png" in text
    assert "diaeresis): 1 text, 2 times; 2.png" in text
    assert "set latin-1; add it to charset.sets" in text
    assert "국 한: in the set hangul" in text
    assert "★ 字 漢: in no set; add them by charset.extra" in text
    assert "charset.space=true" in text
    assert "U+200B: cannot be seen" in text
    assert "2 texts of 7 longer than 5 characters (the longest has 9); 2.png, 5.png" in text
    assert "model.max_length=9" in text


def test_no_length_is_advised_that_a_model_cannot_have() -> None:
    for length in (LONGEST, LONGEST + 1, 5 * LONGEST):
        *_, last = report_outside(CHARSET, [("1.png", "a" * length)], 25).lines()
        assert f"model.max_length={LONGEST}" in last
        assert ("which is the most" in last) == (length > LONGEST)
    assert RecognizerSection.model_validate({"max_length": LONGEST, "decoder": "transformer"}).max_length == LONGEST
    with pytest.raises(ValueError, match="max_length"):
        RecognizerSection.model_validate({"max_length": LONGEST + 1, "decoder": "transformer"})


def test_a_set_that_is_there_is_not_recommended() -> None:
    charset = Charset.of(CharsetSection(sets=("latin-1",)))
    text = "\n".join(report_outside(charset, [("a", "é1")]).lines())
    assert "set digits" in text
    assert "latin-1" not in text


def test_memory_does_not_grow_with_the_samples() -> None:
    report = report_outside(CHARSET, ((f"name {number}", "é") for number in range(5000)))
    assert report.with_outside == report.characters[0].samples == 5000
    assert report.characters[0].first == ("name 0", "name 1", "name 2")
    assert report.lines()[1].endswith("name 2 …")


def test_many_characters_are_told_in_short() -> None:
    report = report_outside(CHARSET, [("page", "".join(chr(0x4E00 + place) for place in range(500)))])
    lines = report.lines()
    assert len(lines) < SHOWN + 5
    assert f"and {500 - SHOWN} more" in "\n".join(lines)
    assert "(500 different ones)" in lines[0]


def test_of_no_samples() -> None:
    report = report_outside(CHARSET, [])
    assert report.fine
    assert report.lines() == []
