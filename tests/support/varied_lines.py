"""Lines of all that a tokenizer may meet, and a vocabulary that knows most of it, laid out as BERT's are."""

from __future__ import annotations

import random
import unicodedata

SCRIPTS = (
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "éèêëàâäçñöüßøåÉÈÀÇÑÖÜØÅıİŁłőČžṩẹ",
    "αβγδεζηθικλμνξοπρςτυφχψωΑΒΓΔΕΣάέήίόύώϊΐ",
    "абвгдеёжзийклмнопрстуфхцчшщъыьэюяАБВГДЁЙ",
    "가나다라마바사아자차카타파하한글은는이를을입니습학생먹었겠않값닭뷁힣",
    "一二三四五人大小中国日本語漢字學校東京愛龍㐀𠀀豈",
    "ひらがなカタカナがぎぐパピプー",
    "אבגדהוזחטיךשׁ",
    "ابتثجحخدذرزسشصضمرحباًٌ",
    "कखगघनमस्तेिीुू",
    "กขคงนมสวัสดีที่",
)
MARKS = "\u0301\u0308\u0323\u0327\u0302\u3099"
PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~«»“”‘’—–…·¿¡、。「」！？।፡‽"
SYMBOLS = "€£¥©®™°±×÷→∞≠√▁█♥½²"
EMOJI = ("👩\u200d👩\u200d👧", "🇰🇷", "👍🏽", "❤\ufe0f", "🤦🏼\u200d♂\ufe0f", "😀", "🏴\U000e0067\U000e0062\U000e007f")
BLANKS = (" ", " ", " ", "  ", "\t", "\n", "\r\n", "\u00a0", "\u3000", "\u2009", "\u2028", "\u1680")
DROPPED = "\x00\x01\x07\x0b\x0c\x1b\x1c\x7f\x85\xad\u200b\u200c\u200d\u200e\u2060\ufeff\ufffd\ue000\U000f0000"
DIGITS = "0123456789٣४๕"


def lines(count: int, draw: random.Random) -> list[str]:
    return [_line(draw) for _ in range(count)]


def _line(draw: random.Random) -> str:
    parts = []
    for _ in range(draw.randrange(12)):
        parts.append(_word(draw))
        parts.append(draw.choice(BLANKS) if draw.random() < 0.85 else "")
    text = "".join(parts)
    form = draw.choice(("", "", "NFC", "NFD", "NFKC"))
    return unicodedata.normalize(form, text) if form else text


def _word(draw: random.Random) -> str:
    kind = draw.random()
    if kind < 0.05:
        return draw.choice(EMOJI) * draw.randrange(1, 3)
    if kind < 0.1:
        return "".join(draw.choices(DIGITS, k=draw.randrange(1, 6)))
    if kind < 0.2:
        return "".join(draw.choices(PUNCTUATION + SYMBOLS, k=draw.randrange(1, 4)))
    length = draw.choice((99, 100, 101, 130)) if kind < 0.22 else draw.randrange(1, 9)
    if kind < 0.3:  # all scripts mixed
        letters = "".join(draw.choices("".join(SCRIPTS) + PUNCTUATION + DROPPED, k=length))
    else:
        letters = "".join(draw.choices(draw.choice(SCRIPTS), k=length))
    for extra in (MARKS, DROPPED, PUNCTUATION):
        if draw.random() < 0.08:
            place = draw.randrange(len(letters) + 1)
            letters = letters[:place] + draw.choice(extra) + letters[place:]
    return letters


def vocabulary(draw: random.Random) -> list[str]:
    """[PAD] first, [UNK] at 100, [unused] ones between; then letters as they are, lower-cased and taken apart, most of
    them both at the beginning of a word and within one, and longer pieces of the same scripts."""
    tokens = ["[PAD]", *(f"[unused{number}]" for number in range(99)), "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    known = set()
    for character in "".join((*SCRIPTS, MARKS, PUNCTUATION, SYMBOLS, DIGITS, *EMOJI)):
        for form in ("NFC", "NFD"):
            for text in (character, character.lower()):
                known.update(unicodedata.normalize(form, text))
    known -= set(DROPPED) | set(draw.sample(sorted(known), len(known) // 50))
    pieces = sorted(known) + ["##" + character for character in sorted(known)]
    for script in SCRIPTS:
        for _ in range(150):
            piece = "".join(draw.choices(script, k=draw.randrange(2, 4)))
            for form in ("NFC", "NFD"):
                for text in (piece, piece.lower(), _bare(piece.lower())):
                    pieces.append(draw.choice(("", "##")) + unicodedata.normalize(form, text))
    pieces = list(dict.fromkeys(pieces))
    draw.shuffle(pieces)
    return tokens + pieces


def _bare(text: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Mn")
