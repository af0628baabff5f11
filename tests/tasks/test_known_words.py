"""Reading with a list of words: what is chosen is the likeliest of all that the list and the picture allow."""

from __future__ import annotations

import math
import random
from itertools import product

import numpy as np
import pytest
import torch
from rapidfuzz.distance import Levenshtein
from striped_words import a_reader, striped

from jumok.data.rendering.words import small
from jumok.errors import BadInput
from jumok.models.recognizer import Recognizer, build_recognizer
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


@ALL
@pytest.mark.parametrize("fast", [False, True])
def test_what_a_text_has_is_what_training_gives_it(kind: str, fast: bool) -> None:
    model, images, words = a_model(kind), pictures(3), some_words(20)
    rows = torch.randint(0, 3, (len(words),))
    ids = torch.full((len(words), 6), PAD)
    for row, word in zip(ids, words, strict=True):
        row[: len(word) + 1] = torch.tensor([*LETTERS.encode(word), END])
    lengths = torch.tensor(list(map(len, words)))
    found = model.said_as(model.look(images), rows, ids, lengths, fast)
    expected = [
        log_prob(model, images[row], word, fast and kind == "permuted") for row, word in zip(rows, words, strict=True)
    ]
    assert found.total.tolist() == pytest.approx(expected, rel=1e-4, abs=1e-4)
    behind = torch.arange(5) >= lengths[:, None]
    assert found.log_probs[behind].eq(0).all()
    assert found.ids[~behind].tolist() == [id for word in words for id in LETTERS.encode(word)]


def test_a_text_that_the_columns_cannot_say_has_no_probability() -> None:
    model = a_model("vit-ctc")
    model.encoder.grid = (1, 2)  # two columns
    ids = torch.tensor([[*LETTERS.encode("aa"), END, 0, 0, 0], [*LETTERS.encode("ab"), END, 0, 0, 0]])
    found = model.said_as(torch.randn(1, 2, 16), torch.tensor([0, 0]), ids, torch.tensor([2, 2]), False)
    assert found.total[0] == -math.inf
    assert found.total[1].isfinite()
    assert not found.log_probs.isnan().any()


@ALL
@pytest.mark.parametrize("trust", [1.0, 5.0, 1e4])
def test_the_best_of_all_is_chosen(kind: str, trust: float) -> None:
    """Beside the written-out rule: every word of the list within its changes, each judged by itself."""
    model, images = a_model(kind), pictures(12)
    listed = KnownWords(some_words(), trust)
    seen = model.look(images)
    plain = model.written(seen)
    found = Corrector(model, LETTERS, listed, fast=False)(seen, plain)
    for image, before, after in zip(images, texts_of(plain), texts_of(found), strict=True):
        core = small(before).strip("-!")
        near = [word for word in listed.places if changes(core, word) <= (1 if len(core) <= known_words.SHORT else 2)]
        made = {before.replace(before.strip("-!"), cased(word, before.strip("-!"))) for word in near} if core else set()
        worth = {
            text: math.exp(log_prob(model, image, text)) * (trust if small(text).strip("-!") in listed.places else 1)
            for text in {*made, before}
            if len(text) <= model.section.max_length
        }
        if not any(map(str.isalpha, before)) or len(before) > model.section.max_length:  # columns may say more
            assert after == before
        else:
            assert worth[after] >= max(worth.values()) * (1 - 1e-3), (before, after, worth)


def changes(one: str, other: str) -> int:
    return int(Levenshtein.distance(one, other))


def texts_of(reading: object) -> list[str]:
    ids, lengths = reading.ids.tolist(), reading.lengths.tolist()  # type: ignore[attr-defined]
    return [LETTERS.decode(row[:length]) for row, length in zip(ids, lengths, strict=True)]


@ALL
def test_what_is_read_beside_it_does_not_matter(kind: str) -> None:
    reader = TextReader(a_model(kind), LETTERS, "squash", torch.device("cpu"))
    images, way = pictures(9).numpy(), Way(words=KnownWords(some_words(), 50))
    together = reader.look(images, way)
    alone = [reader.look(images[number : number + 1], way)[0] for number in range(9)]
    assert [one.text for one in together] == [one.text for one in alone]
    assert [one.confidence for one in together] == pytest.approx([one.confidence for one in alone], abs=1e-5)


def test_near_words_are_all_that_are_near() -> None:
    words = list(dict.fromkeys("".join(random.choices("abcd", k=random.randint(1, 9))) for _ in range(400)))
    listed = KnownWords(words)
    cores = random.sample(words, 10) + ["".join(random.choices("abcde", k=random.randint(0, 10))) for _ in range(30)]
    for core, found in zip(cores, listed.near(cores), strict=True):
        most = 1 if len(core) <= known_words.SHORT else 2
        expected = sorted(
            (changes(core, word), place, word) for place, word in enumerate(words) if changes(core, word) <= most
        )
        assert found == [word for *_, word in expected][: known_words.MOST_NEAR] * bool(core)


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


def test_words_of_python_are_a_list() -> None:
    picture = striped("aab", sure=[0.9, 0.5, 0.9])
    assert a_reader().read([picture], words=["abb", "가나"])[0].text == "abb"
    assert a_reader().read([picture], words=[])[0].text == "aab"


@pytest.mark.parametrize("trust", [0.0, 0.99, -3.0, float("nan")])
def test_a_trust_that_is_none(trust: float) -> None:
    with pytest.raises(BadInput, match=r"^trust .*: how many times likelier"):
        KnownWords(["a"], trust)


def test_empty_pictures_and_no_pictures() -> None:
    reader = a_reader()
    assert reader.read([], words=["ab"]) == []
    assert reader.read([np.zeros((16, 64), np.uint8)], words=["ab"])[0].text == ""
