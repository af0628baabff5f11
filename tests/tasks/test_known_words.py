"""Reading with a list of words: what is chosen is the likeliest of all that the list and the picture allow."""

from __future__ import annotations

import math
import random
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rapidfuzz.distance import Levenshtein
from striped_words import StripeReader, a_reader, striped

from jumok.data.rendering.words import small
from jumok.errors import BadInput
from jumok.models.recognizer import Reading, Recognizer, build_recognizer
from jumok.recipe.recognition import CharsetSection, RecognizerSection
from jumok.tasks import known_words
from jumok.tasks.known_words import Corrector, KnownWords, cased
from jumok.tasks.text_reader import TextReader, Way
from jumok.text.charset import Charset
from jumok.text.special import END, PAD

LETTERS = Charset.of(CharsetSection(sets=("digits",), extra="abcABC-!"))
KINDS = {
    "vit-ctc": {"encoder": "vit", "decoder": "ctc"},
    "crnn": {"encoder": "recurrent", "decoder": "ctc", "layers": 1, "width": 32},
    "attn-lstm": {"encoder": "recurrent", "decoder": "recurrent", "layers": 1, "width": 32},
    "vit-decoder": {"encoder": "vit", "decoder": "transformer"},
    "permuted": {"encoder": "vit", "decoder": "permuted"},
}
ALL = pytest.mark.parametrize("kind", KINDS)
WRITERS = ("attn-lstm", "vit-decoder")


def a_model(kind: str, charset: Charset = LETTERS) -> Recognizer:
    keys = {
        "image": (16, 48), "channels": 1, "patch": (8, 4), "width": 16, "heads": 2, "layers": 1, "feed_forward": 32,
        "decoder_heads": 2, "max_length": 5, "dropout": 0.0,
    }  # fmt: skip
    model = build_recognizer(RecognizerSection(**{**keys, **KINDS[kind]}), charset).eval()
    for parameter in model.parameters():  # louder than as it begins: pictures are read as different texts
        if parameter.dim() > 1:
            parameter.data *= 2
    return model


def pictures(count: int) -> torch.Tensor:
    return torch.randint(0, 256, (count, 1, 16, 48), dtype=torch.uint8)


def some_words(count: int = 60) -> list[str]:
    return ["".join(random.choices("abc", k=random.randint(1, 5))) for _ in range(count)]


def log_prob(model: Recognizer, image: torch.Tensor, text: str, fast: bool = False) -> float:
    """By what the model is trained with."""
    ids = LETTERS.encode(text)
    row = torch.tensor([[*ids, END, *[PAD] * (model.section.max_length - len(ids))]])
    with torch.no_grad():
        found = model.losses(image[None], row, torch.tensor([len(ids)]))
    return -float(found["ctc" if fast else "characters"] if "characters" in found else found["loss"])


def rows_of(words: list[str]) -> tuple[torch.Tensor, torch.Tensor]:
    longest = max(map(len, words))
    ids = torch.full((len(words), longest + 1), PAD)  # no longer than they are
    for row, word in zip(ids, words, strict=True):
        row[: len(word) + 1] = torch.tensor([*LETTERS.encode(word), END])
    return ids, torch.tensor(list(map(len, words)))


@ALL
@pytest.mark.parametrize("fast", [False, True])
def test_what_a_text_has_is_what_training_gives_it(kind: str, fast: bool) -> None:
    model, images, words = a_model(kind), pictures(3), some_words(20)
    rows = torch.randint(0, 3, (len(words),))
    ids, lengths = rows_of(words)
    found = model.said_as(model.look(images), rows, ids, lengths, fast)
    expected = [
        log_prob(model, images[row], word, fast and kind == "permuted") for row, word in zip(rows, words, strict=True)
    ]
    assert found.total.tolist() == pytest.approx(expected, rel=1e-4, abs=1e-4)
    behind = torch.arange(ids.size(1) - 1) >= lengths[:, None]
    assert found.log_probs[behind].eq(0).all()
    assert found.ids[~behind].tolist() == [id for word in words for id in LETTERS.encode(word)]


@pytest.mark.parametrize("jamo", ["jamo", "syllables"])
def test_classes_that_are_computed_once_are_those_of_each_text(jamo: str) -> None:
    charset = Charset.of(CharsetSection(sets=("digits", "hangul"), hangul=jamo))
    head = a_model("vit-ctc", charset).ctc.head
    columns, rows = torch.randn(3, 4, 16), torch.tensor([2, 0, 2, 1, 1])
    ids = torch.randint(4, charset.size, (5, 6))
    ids[:, 1] = charset.ids["7"]
    expected = head.among(columns[rows], ids)
    assert torch.allclose(head.among_rows(columns, rows, ids), expected, atol=1e-5)


def test_a_text_that_the_columns_cannot_say_has_no_probability() -> None:
    model = a_model("vit-ctc")
    model.encoder.grid = (1, 2)  # two columns
    ids, lengths = rows_of(["aa", "ab"])
    found = model.said_as(torch.randn(1, 2, 16), torch.tensor([0, 0]), ids, lengths, False)
    assert found.total[0] == -math.inf
    assert found.total[1].isfinite()
    assert not found.log_probs.isnan().any()


@ALL
@pytest.mark.parametrize("trust", [1.0, 5.0, 1e4, math.inf])
def test_the_best_of_all_is_chosen(kind: str, trust: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the written-out rule: every word of the list within its changes, each judged by itself."""
    monkeypatch.setattr(known_words, "TOGETHER", 7)
    looked = changed = 0
    for _ in range(40):
        model, images, listed = a_model(kind), pictures(8), KnownWords(some_words(), trust)
        seen = model.look(images)
        plain = model.written(seen)
        found = Corrector(model, LETTERS, listed)(seen, plain)
        for image, before, after in zip(images, texts_of(plain), texts_of(found), strict=True):
            if not any(map(str.isalpha, before)) or len(before) > model.section.max_length:  # columns may say more
                assert after == before
                continue
            worth = all_choices(model, image, before, listed)
            assert worth[after] >= max(worth.values()) - 1e-3, (before, after, worth)
            looked, changed = looked + 1, changed + (after != before)
        if looked >= 8 and (changed or trust < 5):
            return
    pytest.fail(f"{looked} readings of words, {changed} changed: nothing was tested")


def all_choices(model: Recognizer, image: torch.Tensor, before: str, listed: KnownWords) -> dict[str, float]:
    core = before.strip("-!")
    most = 1 if len(core) <= known_words.SHORT else 2
    near = [word for word in listed.words if changes(small(core), word) <= most]
    made = {before.replace(core, cased(word, core)) for word in near}
    bonus = min(math.log(listed_trust(listed)), known_words.CERTAIN)
    return {
        text: log_prob(model, image, text) + bonus * (small(text).strip("-!") in listed.words)
        for text in {*made, before}
        if len(text) <= model.section.max_length
    }


def listed_trust(listed: KnownWords) -> float:
    return math.inf if listed.log_trust == known_words.CERTAIN else math.exp(listed.log_trust)


def changes(one: str, other: str) -> int:
    return int(Levenshtein.distance(one, other))


def texts_of(reading: Reading) -> list[str]:
    ids, lengths = reading.ids.tolist(), reading.lengths.tolist()
    return [LETTERS.decode(row[:length]) for row, length in zip(ids, lengths, strict=True)]


@ALL
@pytest.mark.parametrize("way", [{}, {"fast": True}, {"sure": 0.05}, {"beam": 3}])
def test_what_is_read_beside_it_does_not_matter(kind: str, way: dict[str, Any]) -> None:
    reader = TextReader(a_model(kind), LETTERS, "squash", torch.device("cpu"))
    asked = Way(words=KnownWords(some_words(), 50), **way)
    if (kind != "permuted" and {"fast", "sure"} & set(way)) or (kind not in WRITERS and "beam" in way):
        with pytest.raises(BadInput):
            reader.check(asked)
        return
    images = pictures(9).numpy()
    together = reader.look(images, asked)
    alone = [reader.look(images[number : number + 1], asked)[0] for number in range(9)]
    assert [one.text for one in together] == [one.text for one in alone]
    assert [one.confidence for one in together] == pytest.approx([one.confidence for one in alone], abs=1e-5)


def test_each_reading_is_judged_by_who_made_it() -> None:
    """With `sure` some words are the columns', the others the decoder's: a list that is not trusted (1) replaces none
    by what its own judge finds less likely."""
    seen_both = False
    for _ in range(30):
        model, images = a_model("permuted"), pictures(16)
        seen = model.look(images)
        fast = model.written(seen, fast=True).total.exp()
        plain = model.written(seen, sure=float(fast.median()))
        assert plain.drafted is not None
        seen_both |= len(set(plain.drafted.tolist())) == 2
        found = Corrector(model, LETTERS, KnownWords(some_words(), 1))(seen, plain)
        rows = zip(images, texts_of(plain), texts_of(found), plain.drafted.tolist(), strict=True)
        for image, before, after, drafted in rows:
            if after != before:
                judged = [log_prob(model, image, text, drafted) for text in (before, after)]
                assert judged[1] >= judged[0] - 1e-4
    assert seen_both


def test_the_list_of_a_beam_is_looked_for_in_what_the_beam_found() -> None:
    for _ in range(20):
        reader = TextReader(a_model("vit-decoder"), LETTERS, "squash", torch.device("cpu"))
        images = pictures(12).numpy()
        plain, wide = (reader.look(images, Way(beam=beam)) for beam in (1, 4))
        other = [number for number in range(12) if plain[number].text != wide[number].text]
        listed = KnownWords(["0"], 2)  # near nothing with a letter but short ones
        found = reader.look(images, Way(beam=4, words=listed))
        for number in other:
            assert found[number].text in (wide[number].text, "0")
        if other:
            return
    pytest.fail("the beam never found anything else")


def test_near_words_are_all_that_are_near() -> None:
    words = list(dict.fromkeys("".join(random.choices("abcd", k=random.randint(1, 9))) for _ in range(400)))
    listed = KnownWords(words)
    cores = random.sample(words, 10) + ["".join(random.choices("abcde", k=random.randint(0, 10))) for _ in range(30)]
    for core in cores:
        most = 1 if len(core) <= known_words.SHORT else 2
        expected = sorted(
            (changes(core, word), place, word) for place, word in enumerate(words) if changes(core, word) <= most
        )
        assert listed.near(core) == [word for *_, word in expected][: known_words.MOST_NEAR] * bool(core)


def test_the_nearest_are_judged_where_too_many_are_near() -> None:
    words = ["".join(each) for each in product("abcdefgh", repeat=3)]
    random.shuffle(words)
    found = KnownWords(["xxabc", *words]).near("aab")
    assert len(found) == min(known_words.MOST_NEAR, 1 + 3 * 7)
    assert found[0] == "aab"
    long = KnownWords([f"ab{word}" for word in words]).near("abaab")
    assert len(long) == known_words.MOST_NEAR
    assert [changes("abaab", word) for word in long] == sorted(changes("abaab", word) for word in long)


def test_a_letter_of_hangul_is_a_letter() -> None:
    listed = KnownWords(["한글", "항구", "서울", "café"])
    assert listed.near("한굴") == ["한글", "항구"]
    assert listed.near("함글") == ["한글"]
    assert listed.near("하글") == ["한글"]
    assert listed.near("서운") == ["서울"]
    assert listed.near("부산") == []
    assert listed.near("cafe") == ["café"]


@pytest.mark.parametrize(
    ("word", "like", "made"),
    [
        ("stop", "SIOP", "STOP"), ("stop", "sTOP", "STOP"), ("stop", "Slop", "Stop"), ("stop", "slop", "stop"),
        ("o'brien", "O'Brlen", "O'brien"), ("i", "l", "i"), ("i", "I", "I"), ("straße", "STRABE", "straße"),
        ("한글", "한굴", "한글"), ("cd4u", "CD4V", "CD4U"), ("ab", "17", "ab"),
    ],
)  # fmt: skip
def test_case_is_as_it_was_read(word: str, like: str, made: str) -> None:
    assert cased(word, like) == made


def test_marks_and_numbers_stay() -> None:
    reader = a_reader()
    sure = [0.9, 0.6, 0.9]  # something else may stand in the middle

    def read(text: str, *words: str, trust: float = 20.0) -> str:
        shares = [0.9] * len(text) if len(text) != 3 else sure
        return reader.read([striped(text, sure=shares)], words=KnownWords(words, trust))[0].text

    assert read("aXb", "aab") == "aab"
    assert read("aXb", "aab", trust=1) == "aXb"  # 0.4 beside 0.6
    assert read("aXb", "aab", "axb") == "aXb"  # both are known
    assert read("123", "124", "a23") == "123"  # no letters: no word
    assert read("aXb", "가나힣") == "aXb"  # nothing near
    assert read("") == ""


def test_a_word_of_the_list_must_be_likely_enough() -> None:
    for share, trust in product((0.5, 0.9, 0.99), (1.0, 5.0, 50.0)):
        found = a_reader().read([striped("aaa", sure=[1.0, share, 1.0])], words=KnownWords(["aba"], trust))[0]
        taken = trust * (1 - round(255 * share) / 255) > round(255 * share) / 255
        assert found.text == ("aba" if taken else "aaa"), (share, trust)
        other = 1 - round(255 * share) / 255 if taken else round(255 * share) / 255
        assert found.characters[1][1] == pytest.approx(other, abs=1e-3)


def test_words_of_python_are_a_list(tmp_path: Path) -> None:
    picture = striped("aab", sure=[0.9, 0.5, 0.9])
    assert a_reader().read([picture], words=[" abb\n", "", "!", "가나"])[0].text == "abb"
    assert a_reader().read([picture], words=[])[0].text == "aab"
    for none in ("abb", tmp_path / "list.txt"):
        with pytest.raises(BadInput, match="a list of words, as in"):
            a_reader().read([picture], words=none)  # type: ignore[arg-type]


@pytest.mark.parametrize("trust", [0.0, 0.99, -3.0, float("nan")])
def test_a_trust_that_is_none(trust: float) -> None:
    with pytest.raises(BadInput, match=r"^trust .*: how many times likelier"):
        KnownWords(["a"], trust)
    with pytest.raises(BadInput, match=r"^trust .*: how many times likelier"):
        KnownWords.of_files(["nowhere.txt"], trust)


def test_empty_pictures_and_no_pictures() -> None:
    reader = a_reader()
    assert reader.read([], words=["ab"]) == []
    assert reader.read([np.zeros((16, 64), np.uint8)], words=["ab"])[0].text == ""


def other_reader(extra: str, **charset: Any) -> TextReader:
    made = Charset.of(CharsetSection(sets=(), extra=extra, **charset))
    return TextReader(StripeReader(charset=made).eval(), made, "squash", torch.device("cpu"))


def read_as(reader: TextReader, text: str, sure: float, *words: str, trust: float = 50.0) -> str:
    picture = striped(text, sure=[sure] * len(text), charset=reader.charset)
    return reader.read([picture], words=KnownWords(words, trust))[0].text


def test_marks_that_belong_to_letters_stay_with_them() -> None:
    """A final vowel sign is part of its word, a mark that composes with its letter is read as it was read."""
    hindi = other_reader("पानीक")
    assert read_as(hindi, "पानी", 0.6, "पानी", "पाक") == "पानी"
    decomposed = other_reader("\u0301eabqc")
    assert read_as(decomposed, "be\u0301", 0.9, "abc") == "be\u0301"


def test_capitals_are_their_letters_whatever_small_letters_they_have() -> None:
    greek = other_reader("ΟΔΣΕοδσςε")
    assert read_as(greek, "ΟΔΟΣ", 0.6, "οδος", "οδοε") == "ΟΔΟΣ"


def test_words_of_a_list_may_have_marks() -> None:
    reader = other_reader("abcd!")
    assert read_as(reader, "abc!", 0.6, "abc!", "abd") == "abc!"
    assert read_as(reader, "abc!", 0.6, "abd!") == "abd!"


def test_several_words_are_left_as_they_are() -> None:
    reader = other_reader("abx", space=True)
    assert read_as(reader, "ab ab", 0.6, "ab", "abxab") == "ab ab"


def test_a_turned_picture_is_turned_as_it_is_read_best() -> None:
    """A word that is taken for its being in the list is not likely by itself."""
    reader = a_reader()
    upright = striped("aXb", (20, 100), sure=[0.95, 0.96, 0.95])
    tall = np.ascontiguousarray(np.rot90(upright, -1))
    listed = KnownWords(["aab"], 50)
    plain = reader.read([tall, upright], turn=True)
    found = reader.read([tall, upright], turn=True, words=listed)
    assert [one.turned for one in found] == [one.turned for one in plain] == [90, 0]
    assert [one.text for one in plain] == ["aXb", "aXb"]
    assert [one.text for one in found] == ["aab", "aab"]
    with pytest.raises(BadInput, match="image 2"):
        reader.read([tall, np.zeros((0, 3), np.uint8)], turn=True, words=listed)


@pytest.mark.parametrize("precision", ["bfloat16", "int8"])
def test_low_precision(precision: Any) -> None:
    model = a_model("permuted")
    reader = TextReader(model, LETTERS, "squash", torch.device("cpu"))
    if precision == "int8" and not reader.has_int8:
        pytest.skip("no int8 on this processor")
    listed = KnownWords(some_words(), 50)
    for one in reader.look(pictures(9).numpy(), Way(precision=precision, words=listed, fast=True)):
        assert 0 <= one.confidence <= 1 + 1e-6
        assert len(one.characters) == len(one.text)
