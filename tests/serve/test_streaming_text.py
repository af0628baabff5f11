"""What is shown of an unfinished translation never has to be taken back."""

from __future__ import annotations

import random
import unicodedata

import pytest
from seeded import seed as seed

from jumok.serve.streaming_text import common, whole_characters
from jumok.text.tokenizer import train_tokenizer

TEXTS = [
    "나는 학생이다. 가나다 각 값",
    "l'élève a mangé à Nîmes",
    "👩‍👩‍👧‍👦 and 🇰🇷🇫🇷 flags, 👍🏽",
    "naïve café — déjà vu!",
]


def test_what_all_begin_with(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(200):
        rows = [[chance.randrange(3) for _ in range(chance.randint(0, 6))] for _ in range(chance.randint(1, 5))]
        found = common(rows)
        assert all(row[: len(found)] == found for row in rows)
        longer = {tuple(row[: len(found) + 1]) for row in rows}
        assert len(longer) > 1 or any(len(row) == len(found) for row in rows)
    assert common([]) == []


@pytest.mark.parametrize("kind", ["byte", "character", "bpe", "unigram", "word", "wordpiece"])
def test_each_text_begins_with_the_one_before(kind: str, seed: int) -> None:
    """Any tokens one after another, also such as no text is cut into."""
    tokenizer = train_tokenizer([*TEXTS, *(unicodedata.normalize("NFD", text) for text in TEXTS)], kind, 400)
    chance = random.Random(seed)
    for _ in range(100):
        tokens = [chance.randrange(tokenizer.size) for _ in range(chance.randint(1, 12))]
        (whole,) = tokenizer.decode([tokens])
        before = ""
        for end in range(len(tokens) + 1):
            shown = whole_characters(tokenizer.decode([tokens[:end]])[0])
            assert shown.startswith(before)
            assert whole.startswith(shown)
            before = shown


def test_no_character_is_shown_in_halves() -> None:
    tokenizer = train_tokenizer(TEXTS, "byte", 300)
    for text in TEXTS:
        (tokens,) = tokenizer.encode([text])
        for end in range(len(tokens)):
            shown = whole_characters(tokenizer.decode([tokens[:end]])[0])
            assert "\ufffd" not in shown
            assert text.startswith(shown)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("abc", "abc"),
        ("abc ", "abc "),
        ("a\ufffd\ufffd", "a"),
        ("a\ufffdb", "a\ufffdb"),
        ("가 \u1112\u1161", "가 "),
        ("가\u1112", "가"),
        ("x 👩\u200d", "x 👩"),
        ("x 👩\u200d👩", "x 👩\u200d👩"),
        ("\U0001f1f0", ""),
        ("a\U0001f1f0\U0001f1f7", "a\U0001f1f0\U0001f1f7"),
        ("\U0001f1f0\U0001f1f7\U0001f1eb", "\U0001f1f0\U0001f1f7"),
    ],
)
def test_what_may_still_become_another_is_held_back(text: str, shown: str) -> None:
    assert whole_characters(text) == shown
