"""A reader of words in pictures: each is read in its place, whatever its kind, and what cannot be read is named."""

from __future__ import annotations

import random
import threading
import zlib
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from striped_words import CHARSET, ENDING, SECTION, StripeReader, a_reader, a_word, striped, write_striped

from jumok.data.images.picture import BadPicture
from jumok.data.images.raw import RawImage
from jumok.errors import BadInput, Failure
from jumok.layers.packed import Precision
from jumok.models.recognizer import build_recognizer
from jumok.search.pictures import search_pictures
from jumok.tasks import text_reader
from jumok.tasks.text_reader import Read, TextReader, Way, ahead


def texts(found: list[Read]) -> list[str]:
    return [one.text for one in found]


def a_size() -> tuple[int, int]:
    return random.randrange(12, 60), random.randrange(40, 200)


def test_files_and_arrays_are_read_in_their_order(tmp_path: Path) -> None:
    words = [a_word() for _ in range(7)]
    files = write_striped(tmp_path, words, a_size())
    reader = a_reader()
    assert texts(reader.read(files)) == words
    assert texts(reader.read([str(file) for file in files[::-1]])) == words[::-1]
    assert texts(reader.read([striped(word, a_size()) for word in words])) == words
    assert texts(reader.read([striped(words[0])[:, :, 0], striped(words[1])[:, :, :1], files[2]])) == words[:3]
    assert reader.read([]) == []
    grey = a_reader(channels=1)
    assert texts(grey.read([*files, striped(words[0])])) == [*words, words[0]]


def test_confidence_is_the_probability_of_all_of_it() -> None:
    word = a_word(3)
    sure = [random.uniform(0.5, 1.0) for _ in word]
    found = a_reader().read([striped(word, sure=sure)])[0]
    assert [character for character, _ in found.characters] == list(word)
    assert [share for _, share in found.characters] == pytest.approx(sure, abs=0.01)
    assert found.confidence == pytest.approx(np.prod([share for _, share in found.characters]) * ENDING)


def test_a_blank_picture_is_read_as_nothing() -> None:
    found = a_reader().read([np.zeros((20, 90, 3), np.uint8)])[0]
    assert (found.text, found.characters) == ("", ())
    assert found.confidence == pytest.approx(ENDING)


@pytest.mark.parametrize("count", [1, 5, 8, 9, 23])
def test_many_are_read_in_batches(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_reader, "ROWS", 8)
    reader = a_reader()
    words = [a_word() for _ in range(count)]
    assert texts(reader.read([striped(word) for word in words])) == words
    rows = [asked["rows"] for asked in reader.model.asked]
    assert rows == [8] * (count // 8) + [count % 8] * bool(count % 8)
    prepared = np.stack([striped(word).transpose(2, 0, 1) for word in words])
    assert texts(reader.look(prepared)) == words


# ---------------------------------------------------------------- pictures of every kind


def test_kinds_of_files(tmp_path: Path) -> None:
    word = a_word()
    picture = Image.fromarray(striped(word, (32, 128)))
    for name in ("a.png", "a.bmp", "a.tif", "a.webp", "a.ppm"):
        picture.save(tmp_path / name, **({"lossless": True} if name.endswith("webp") else {}))
    picture.save(tmp_path / "a.jpg", quality=98)
    deep = Image.fromarray(np.asarray(picture.convert("L")).astype(np.uint16) * 257)
    deep.save(tmp_path / "deep.png")
    clear = picture.convert("RGBA")
    clear.putalpha(255)
    clear.save(tmp_path / "clear.png")
    exif = Image.Exif()
    exif[0x0112] = 3
    picture.rotate(180).save(tmp_path / "upside-down.png", exif=exif)
    other = Image.fromarray(striped(a_word(), (32, 128)))
    picture.convert("L").save(tmp_path / "moving.gif", save_all=True, append_images=[other.convert("L")])
    names = sorted(tmp_path.iterdir())
    assert len(names) == 10
    assert dict(zip(names, texts(a_reader().read(names)), strict=True)) == dict.fromkeys(names, word)


def test_odd_sizes() -> None:
    reader = a_reader()
    for shape in ((1, 1), (1, 5000), (5000, 1), (2, 3)):
        assert isinstance(reader.read([np.zeros((*shape, 3), np.uint8)])[0].text, str)
    word = a_word()
    assert texts(reader.read([striped(word, (3000, 64)), striped(word, (16, 5000))])) == [word, word]


def huge_png() -> bytes:
    """A header that promises 60,000 × 60,000 pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    side = (60_000).to_bytes(4, "big")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", side + side + b"\x08\x02\0\0\0") + chunk(b"IEND", b"")


def test_what_cannot_be_read_says_why(tmp_path: Path) -> None:
    good = write_striped(tmp_path / "words", ["0", "1"])
    for name, data, said in (
        ("empty.png", b"", "is empty"),
        ("huge.png", huge_png(), "60000 × 60000 is more than"),
        ("torn.png", good[0].read_bytes()[:60], "cut off|broken"),
        ("page.png", b"<html>", "a web page"),
    ):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(BadPicture, match=rf"{name}: .*({said})"):
            a_reader().read([good[0], tmp_path / name])
        raw = [RawImage("first", "0", good[0].read_bytes()), RawImage(name, "?", data)]
        first, bad, last = a_reader().stream([*raw, RawImage("last", "1", good[1].read_bytes())])
        assert isinstance(first.read, Read)
        assert isinstance(bad.read, BadPicture)
        assert isinstance(last.read, Read)
        assert (first.read.text, last.read.text) == (first.image.label, last.image.label) == ("0", "1")
        assert bad.image.name == name


@pytest.mark.parametrize(
    ("image", "said"),
    [
        (np.zeros((4, 4, 4), np.uint8), "image 2: give bytes"), (np.zeros((4, 4), np.float32), "image 2: give bytes"),
        (np.zeros(4, np.uint8), "image 2: give bytes"), (np.zeros((0, 5, 3), np.uint8), "5 × 0 pixels"),
        (Image.new("RGB", (4, 4)), r"image 2: give the file, or numpy\.asarray"), ("nowhere.png", "no such file"),
    ],
)  # fmt: skip
def test_what_is_no_image(image: Any, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        a_reader().read([striped("0"), image])


def test_a_folder_is_not_one_image(tmp_path: Path) -> None:
    write_striped(tmp_path, ["0", "1"])
    with pytest.raises(BadInput, match="one by one"):
        a_reader().read([tmp_path])


# ---------------------------------------------------------------- ways of reading


def test_tall_pictures_are_turned_where_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_reader, "ROWS", 4)
    reader = a_reader()
    words = [a_word(5) for _ in range(9)]
    turns = [random.choice((0, 90, 270)) for _ in words]
    images = [np.rot90(striped(word, (20, 90)), -turn // 90) for word, turn in zip(words, turns, strict=True)]
    found = reader.read(images, turn=True)
    assert [(one.text, one.turned) for one in found] == list(zip(words, turns, strict=True))
    assert sum(asked["rows"] for asked in reader.model.asked) == 9 + 2 * sum(turn > 0 for turn in turns)
    as_they_are = reader.read(images)
    assert {one.turned for one in as_they_are} == {0}
    assert all(one.text != word for one, word, turn in zip(as_they_are, words, turns, strict=True) if turn)
    upright = striped(words[0], (170, 80))  # tall, but a word that stands upright
    assert (reader.read([upright], turn=True)[0].text, reader.read([upright])[0].text) == (words[0], words[0])


def test_a_long_word_is_not_beaten_by_a_short_one() -> None:
    def a_read(length: int, confidence: float) -> Read:
        return Read("x" * length, confidence, (("x", 0.0),) * length)

    assert text_reader._worth(a_read(8, 0.5)) > text_reader._worth(a_read(1, 0.6))
    assert text_reader._worth(a_read(8, 0.5)) > text_reader._worth(a_read(0, 0.99)), "nothing, seen from the side"
    assert text_reader._worth(a_read(1, 0.1)) < text_reader._worth(a_read(0, 0.9)), "nothing at all"


def test_what_a_model_cannot_do_is_refused() -> None:
    reader = a_reader()
    reader.read([striped("0")], fast=True)
    assert reader.model.asked == [{"rows": 1, "fast": True, "sure": 1.0}]
    for keys, way, said in (
        ({"decoder": "ctc"}, Way(fast=True), r"decoder: ctc.* only one way"),
        ({"ctc": 0.0}, Way(fast=True), "only one way"),
        ({}, Way(beam=3), r"decoder: permuted\) is not searched"),
        ({"decoder": "ctc"}, Way(beam=2), r"decoder: ctc\) is not searched"),
        ({}, Way(fast=True, beam=2), "the CTC head is not searched"),
        ({"decoder": "ctc"}, Way(sure=0.9), r"sure 0.9 is for models with .*decoder: ctc.* only one way"),
        ({"ctc": 0.0}, Way(sure=0.9), "only one way"),
        ({}, Way(fast=True, sure=0.9), "give one of the two"),
        ({}, Way(sure=1.1), "a probability, from 0 to 1"),
        ({}, Way(sure=float("nan")), "a probability, from 0 to 1"),
        ({}, Way(beam=0), "are 1 to"),
        ({}, Way(beam=10**6), "are 1 to"),
    ):
        with pytest.raises(BadInput, match=said):
            a_reader(**keys).check(way)
        with pytest.raises(BadInput, match=said):
            list(a_reader(**keys).stream([], way))


@pytest.mark.parametrize(
    ("encoder", "decoder", "ways"),
    [
        ("recurrent", "ctc", [Way()]),
        ("vit", "ctc", [Way()]),
        ("recurrent", "recurrent", [Way(), Way(beam=3)]),
        ("vit", "transformer", [Way(), Way(beam=3)]),
        ("vit", "permuted", [Way(), Way(fast=True), Way(sure=0.5)]),
    ],
)
def test_real_models(encoder: str, decoder: str, ways: list[Way]) -> None:
    """Whatever a model says: its rows by themselves are what the reader makes of all of them together."""
    section = SECTION.model_copy(update={"encoder": encoder, "decoder": decoder, "max_length": 6, "patch": (8, 8)})
    model = build_recognizer(section, CHARSET).eval()
    with torch.no_grad():
        for parameter in model.parameters():  # off its start, so that it says different things
            parameter.add_(0.3 * torch.randn_like(parameter))
    reader = TextReader(model, CHARSET, "squash", torch.device("cpu"))
    images = [np.random.default_rng().integers(0, 256, (16, 64, 3), dtype=np.uint8) for _ in range(5)]
    for way in ways:
        found = reader.read(images, fast=way.fast, beam=way.beam, sure=way.sure)
        for image, one in zip(images, found, strict=True):
            rows = torch.from_numpy(image.transpose(2, 0, 1)[None])
            with torch.no_grad():
                alone = model.read(rows, way.fast, way.sure)
                if way.beam > 1:
                    alone = search_pictures(model, rows, way.beam)
            assert one.text == CHARSET.decode(alone.ids[0])
            assert np.log(one.confidence) == pytest.approx(float(alone.log_probs.sum() + alone.ending), abs=1e-3)
            assert len(one.characters) == int(alone.lengths) <= 6 or decoder == "ctc" or way.fast


def test_weights_that_are_no_numbers() -> None:
    reader = a_reader()
    with torch.no_grad():
        reader.model.place.fill_(torch.nan)
    with pytest.raises(Failure, match="not a number"):
        reader.read([striped("0")])


def test_the_model_is_set_to_reading() -> None:
    reader = a_reader()
    reader.model.train()
    assert texts(reader.read([striped("01")])) == ["01"]
    assert isinstance(reader.model, StripeReader)


def test_thumbnails_keep_their_shape() -> None:
    images = [striped("0", size) for size in ((10, 30), (200, 100), (50, 900), (2, 4000))]
    seen = list(a_reader().stream((RawImage("x", None, image) for image in images), thumbnail=(40, 120)))
    sizes = [one.thumbnail.shape[:2] for one in seen if one.thumbnail is not None]
    assert sizes == [(10, 30), (40, 20), (7, 120), (1, 120)]
    assert seen[0].thumbnail is not None
    np.testing.assert_array_equal(seen[0].thumbnail, images[0])
    assert next(a_reader().stream([RawImage("x", None, images[0])])).thumbnail is None


# ---------------------------------------------------------------- ahead


def test_work_is_done_ahead_but_not_far() -> None:
    taken = count()
    begun: list[int] = []

    def work(number: int) -> int:
        begun.append(number)
        return 2 * number

    found = ahead(taken, work, 10)
    assert list(islice(found, 5)) == [0, 2, 4, 6, 8]
    found.close()
    assert len(begun) <= next(taken) <= 16


def test_an_error_of_a_thread_is_told_in_its_place() -> None:
    def work(number: int) -> int:
        if number == 3:
            raise MemoryError
        return number

    found = ahead(range(100), work, 20)
    assert list(islice(found, 3)) == [0, 1, 2]
    with pytest.raises(MemoryError):
        next(found)
    assert not [one for one in threading.enumerate() if one.name.startswith("decode")]


@pytest.mark.parametrize("precision", ["bfloat16", "int8"])
def test_fewer_bits_read_nearly_the_same(precision: Precision) -> None:
    model = build_recognizer(SECTION.model_copy(update={"encoder": "vit", "decoder": "ctc"}), CHARSET).eval()
    reader = TextReader(model, CHARSET, "squash", torch.device("cpu"))
    pictures = np.random.default_rng().integers(0, 256, (9, 3, *SECTION.image), np.uint8)[:, : SECTION.channels]
    if precision == "int8" and not reader.has_int8:
        pytest.skip("no C compiler here, or no int8 in this processor")
    whole, half = reader.look(pictures), reader.look(pictures, Way(precision=precision))
    assert [one.confidence for one in whole] != [one.confidence for one in half]
    same = [(one, other) for one, other in zip(whole, half, strict=True) if one.text == other.text]
    near = [np.log(one.confidence) == pytest.approx(np.log(other.confidence), rel=0.1, abs=0.5) for one, other in same]
    # without training a column may say a letter once more as likely as a blank: one of 500 words, and it counts
    assert near.count(False) <= 2 < len(near)
    with pytest.raises(BadInput, match="precision float8"):
        reader.check(Way(precision="float8"))  # type: ignore[arg-type]


def test_int8_is_for_what_can_do_it() -> None:
    model = build_recognizer(SECTION.model_copy(update={"encoder": "recurrent", "decoder": "ctc"}), CHARSET).eval()
    reader = TextReader(model, CHARSET, "squash", torch.device("cpu"))
    with pytest.raises(BadInput, match="encoder: vit"):
        reader.check(Way(precision="int8"))


def test_prepared_pictures_are_those_that_are_read(tmp_path: Path) -> None:
    words = [a_word() for _ in range(3)]
    files = write_striped(tmp_path, words, a_size())
    reader = a_reader()
    raw = [RawImage(file.name, None, file.read_bytes()) for file in files]
    assert texts(reader.look(reader.prepared(raw))) == words
    assert len(reader.prepared([])) == 0
    with pytest.raises(BadInput):
        reader.prepared([RawImage("broken.png", None, b"no picture")])
