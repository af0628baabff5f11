"""Words and mistakes sorted into kinds."""

from __future__ import annotations

import random
import unicodedata

import pytest

from jumok.tasks.reading_kinds import LONGEST, MISTAKES, SCRIPTS, length_group, length_name, mistake_of, script_of


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("1,234.50", "digits"), ("Don't!", "latin"), ("Straße", "latin"), ("주목", "hangul"), ("ㅋㅋ", "hangul"),
        ("한글-2", "mixed"), ("A4", "mixed"), ("東京", "other"), ("東京A", "mixed"), ("١٢", "other"), ("?!", "other"),
        ("", "empty"), ("ＡＢ", "latin"),
    ],
)  # fmt: skip
def test_scripts(text: str, script: str) -> None:
    assert script_of(text) == script
    assert script in SCRIPTS


def test_lengths_are_each_in_one_group() -> None:
    names = [length_name(group) for group in range(len(LONGEST) + 1)]
    assert names[:3] == ["0", "1", "2"]
    assert names[-1] == "21 and more"
    for length in (*range(30), 1000):
        name = length_name(length_group(length))
        low, _, high = name.replace(" and more", "–100000").partition("–")
        assert int(low) <= length <= int(high or low)


@pytest.mark.parametrize(
    ("truth", "read", "kind"),
    [
        ("Oslo", "Oslo", None), ("Oslo", "OSLO", "case"), ("it's", "its", "marks"), ("1.5", "15", "marks"),
        ("Oslo", "0slo", "wrong"), ("Oslo", "Osloo", "extra"), ("Oslo", "Olo", "missing"), ("Oslo", "osl0", "several"),
        ("Oslo", "", "nothing"), ("", "i", "invented"), ("?", "!", "wrong"), ("", "", None), ("각", "간", "wrong"),
    ],
)  # fmt: skip
def test_mistakes(truth: str, read: str, kind: str | None) -> None:
    assert mistake_of(truth, read) == kind
    assert kind is None or kind in MISTAKES


def test_every_character_has_a_script() -> None:
    for code in random.sample(range(0x20, 0x30000), 500):
        character = chr(code)
        if unicodedata.category(character) != "Cs":
            assert script_of(character) in SCRIPTS
