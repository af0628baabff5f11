"""Numbers as they are written: every form, its values, and no character that is not there."""

from __future__ import annotations

import re

import numpy as np
import pytest

from jumok.data.images.drawn_dice import Dice
from jumok.data.rendering.alphabet import Alphabet
from jumok.data.rendering.numbers import FIELDS, FORMS, forms_of
from jumok.data.rendering.stretches import joined
from jumok.recipe.recognition import CharsetSection
from jumok.text.charset import Charset


def drawn(section: CharsetSection, max_length: int, count: int = 20_000) -> list[str]:
    charset = Charset.of(section)
    forms = forms_of(Alphabet(charset), max_length)
    numbers = np.random.default_rng().integers(0, 2**62, count).astype(np.uint64)
    ids, lengths = joined(forms.pool, *forms.draw(Dice(numbers)), max_length)
    return [charset.decode(row[:length]) for row, length in zip(ids.tolist(), lengths.tolist(), strict=True)]


def pattern(form: str) -> str:
    escaped = re.escape(re.sub(r"\{(\w+)\}", r"<\1>", form))
    return re.sub(r"<(\w+)>", lambda field: values(FIELDS[field[1]]), escaped)


def values(texts: list[str]) -> str:
    if all(map(str.isdecimal, texts)):
        return rf"\d{{{min(map(len, texts))},{max(map(len, texts))}}}"
    return f"(?:{'|'.join(texts)})"


def test_every_form_comes_and_nothing_else() -> None:
    section = CharsetSection(sets=("digits", "latin", "punctuation", "latin-1", "hangul"), extra="₩€")
    texts = set(drawn(section, 30))
    forms = {form for lines in FORMS.values() for form in lines.split()}
    for form in forms:
        own = re.compile(pattern(form))
        assert any(own.fullmatch(text) for text in texts), form
    anything = re.compile("|".join(map(pattern, forms)))
    assert all(anything.fullmatch(text) for text in texts)


@pytest.mark.parametrize("max_length", [1, 2, 4, 7, 25])
def test_nothing_is_too_long(max_length: int) -> None:
    texts = drawn(CharsetSection(), max_length, 3000)
    assert 1 <= min(map(len, texts)) <= max(map(len, texts)) <= max_length


def test_only_characters_that_are_there() -> None:
    assert set("".join(drawn(CharsetSection(sets=("digits",)), 25, 3000))) == set("0123456789")
    texts = drawn(CharsetSection(sets=("digits",), extra=":원AMP"), 25)
    assert set("".join(texts)) == set("0123456789:원AMP")  # am, where only capitals are there, is AM


def test_no_digits_no_numbers() -> None:
    assert len(forms_of(Alphabet(Charset.of(CharsetSection(sets=("latin",)))), 25)) == 0
    assert len(forms_of(Alphabet(Charset.of(CharsetSection(sets=("latin",), extra="0123"))), 25)) == 0


def test_dates_and_times_exist() -> None:
    for text in drawn(CharsetSection(), 25):
        if date := re.fullmatch(r"(\d{4})-(\d\d)-(\d\d)", text):
            assert 1 <= int(date[2]) <= 12
            assert 1 <= int(date[3]) <= 31
        if time := re.fullmatch(r"(\d\d?):(\d\d)", text):
            assert int(time[1]) < 24
            assert int(time[2]) < 60
