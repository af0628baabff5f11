"""Ids of characters: what the order is, that nothing is lost on the way, and what is said about what is not there."""

from __future__ import annotations

import json
import unicodedata
from itertools import combinations
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumok.errors import BadInput
from jumok.recipe.recognition import CharsetSection, SetName
from jumok.text.charset import BLOCK, SETS, Charset, OutsideCharset, named_character
from jumok.text.jamo import SYLLABLES
from jumok.text.special import END, PAD, SPECIAL_TOKENS, START, UNKNOWN

NAMES: tuple[SetName, ...] = get_args(SetName)
seen = st.characters(exclude_categories=("C", "Z"))
sections = st.builds(
    CharsetSection,
    sets=st.lists(st.sampled_from(NAMES), unique=True, min_size=1).map(tuple),
    extra=st.text(seen, max_size=20),
    space=st.booleans(),
    hangul=st.sampled_from(["syllables", "jamo"]),
)


@settings(max_examples=40, deadline=None)
@given(section=sections)
def test_ids_are_in_their_order(section: CharsetSection) -> None:
    charset = Charset.of(section)
    hangul = "hangul" in section.sets
    others = charset.characters[: len(charset.characters) - hangul * SYLLABLES]
    assert list(others) == sorted(set(others))
    assert charset.size == len(SPECIAL_TOKENS) + len(charset.characters) == len(set(charset.characters)) + 4
    assert charset.jamo == (hangul and section.hangul == "jamo")
    assert all(unicodedata.is_normalized("NFC", character) for character in others)
    assert set(unicodedata.normalize("NFC", section.extra)) <= set(charset.characters)
    assert (" " in others) == section.space
    for name in section.sets:
        assert set(SETS[name]) <= set(charset.characters)
    if hangul:
        assert charset.first_syllable == len(SPECIAL_TOKENS) + len(others)
        assert charset.characters[len(others) :] == BLOCK
        assert not set(others) & set(BLOCK)
        assert charset.encode("가나힣") == [charset.first_syllable + place for place in (0, 2 * 588, SYLLABLES - 1)]
    else:
        assert charset.first_syllable is None


@settings(max_examples=40, deadline=None)
@given(section=sections, data=st.data())
def test_text_goes_to_ids_and_back(section: CharsetSection, data: st.DataObject) -> None:
    charset = Charset.of(section)
    text = data.draw(st.text(st.sampled_from(charset.characters), max_size=30))
    composed = unicodedata.normalize("NFC", text)
    if charset.outside(text):  # two characters of the set can make a third one that is not in it
        assert composed != text
        return
    ids = charset.encode(text)
    assert charset.decode(ids) == composed
    assert min(ids, default=4) >= 4
    assert charset.decode([START, *ids, END, PAD, UNKNOWN]) == composed
    assert charset.encode(unicodedata.normalize("NFD", text)) == ids


@settings(max_examples=40, deadline=None)
@given(section=sections, text=st.text(max_size=20))
def test_what_is_outside_is_named(section: CharsetSection, text: str) -> None:
    charset = Charset.of(section)
    composed = unicodedata.normalize("NFC", text)
    outside = charset.outside(text)
    assert set(outside) == set(composed) - set(charset.characters)
    assert len(outside) == len(set(outside))
    if not outside:
        assert charset.decode(charset.encode(text)) == composed
        return
    with pytest.raises(OutsideCharset) as raised:
        charset.encode(text)
    assert raised.value.characters == outside
    assert all(f"U+{ord(character):04X}" in str(raised.value) for character in outside)


@settings(max_examples=40, deadline=None)
@given(section=sections)
def test_it_is_kept(section: CharsetSection) -> None:
    charset = Charset.of(section)
    again = Charset.from_json(charset.to_json())
    assert again == charset
    assert (again.characters, again.first_syllable, again.size) == (
        charset.characters, charset.first_syllable, charset.size,
    )  # fmt: skip


def test_a_syllable_typed_as_jamo_is_one_character() -> None:
    charset = Charset.of(CharsetSection(sets=("hangul",)))
    assert charset.encode(unicodedata.normalize("NFD", "한글")) == charset.encode("한글")
    assert len(charset.encode("한글")) == 2


def test_single_syllables_are_characters_like_others() -> None:
    """A number plate has some forty syllables; it needs no 11,172."""
    charset = Charset.of(CharsetSection(sets=("digits",), extra="허가나다"))
    assert charset.characters == (*"0123456789", *"가나다허")
    assert (charset.first_syllable, charset.jamo) == (None, False)


def test_sets_have_nothing_in_common_and_nothing_invisible() -> None:
    assert all(not set(SETS[one]) & set(SETS[other]) for one, other in combinations(SETS, 2))
    assert set(SETS) == set(NAMES)
    assert [len(SETS[name]) for name in ("digits", "latin", "punctuation", "latin-1", "hangul")] == [
        10, 52, 32, 94, 11_172,
    ]  # fmt: skip
    for characters in SETS.values():
        assert all(unicodedata.category(character)[0] in "LNPS" for character in characters)


@pytest.mark.parametrize(
    ("extra", "said"),
    [("a b", "charset.space"), ("\n", "cannot be seen"), ("\u00a0", "U\\+00A0"), ("\x00", "U\\+0000")],
)
def test_characters_that_cannot_be_read(extra: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        Charset.of(CharsetSection(extra=extra))


def test_no_such_id() -> None:
    charset = Charset.of(CharsetSection(sets=("digits",)))
    for id in (-1, charset.size):
        with pytest.raises(ValueError, match=str(id)):
            charset.decode([4, id])


@pytest.mark.parametrize(
    "content",
    [
        "", "[]", "{", "null", '{"format": 1}', '{"format": 2, "characters": "ab", "hangul": false, "jamo": false}',
        '{"format": 1, "characters": "ba", "hangul": false, "jamo": false}',
        '{"format": 1, "characters": "aa", "hangul": false, "jamo": false}',
        '{"format": 1, "characters": "가", "hangul": true, "jamo": false}',
        '{"format": 1, "characters": 5, "hangul": true, "jamo": false}',
        '{"format": 1, "characters": "a\\ud800", "hangul": false, "jamo": false}',
        '{"format": 1, "characters": "\\u212b", "hangul": false, "jamo": false}', "[" * 100_000,
    ],
)  # fmt: skip
def test_a_file_that_is_none(content: str) -> None:
    with pytest.raises(BadInput, match=r"run/charset\.json"):
        Charset.from_json(content, "run/charset.json")


def test_it_is_readable_json() -> None:
    content = json.loads(Charset.of(CharsetSection(sets=("digits",), extra="é")).to_json())
    assert content["characters"] == "0123456789é"


def test_names_of_characters() -> None:
    assert named_character("’") == "’ (U+2019, right single quotation mark)"
    assert named_character("\u0301") == "U+0301, combining acute accent"
    assert named_character("\n") == "U+000A"
