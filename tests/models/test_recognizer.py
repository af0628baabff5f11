"""Recognisers behind one interface: what encoders give, what each architecture learns and reads, row by row."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from jumok.errors import BadInput
from jumok.layers.gelu import gelu
from jumok.layers.normed_native import library, normed
from jumok.models.native_encoder import encoding_in
from jumok.models.recognizer import CtcRecognizer, Reading, Recognizer, build_recognizer
from jumok.models.recognizer_encoders import Stem, build_encoder, steps_of
from jumok.models.vit import Vit
from jumok.recipe.recognition import CharsetSection, RecognizerSection
from jumok.text.charset import Charset
from jumok.text.special import END, PAD

DIGITS = Charset.of(CharsetSection(sets=("digits",)))
HANGUL = Charset.of(CharsetSection(sets=("digits", "hangul")))
SPOKEN = "영일이삼사오육칠팔구"
SMALL: dict[str, Any] = {
    "image": (16, 48),
    "channels": 1,
    "patch": (8, 4),
    "width": 32,
    "heads": 2,
    "layers": 2,
    "feed_forward": 64,
    "decoder_heads": 2,
    "max_length": 5,
    "dropout": 0.0,
}
KINDS: dict[str, dict[str, Any]] = {
    "crnn": {"encoder": "recurrent", "decoder": "ctc", "layers": 1, "width": 64},
    "vit-ctc": {"encoder": "vit", "decoder": "ctc"},
    "permuted": {"encoder": "vit", "decoder": "permuted"},
    "permuted on columns": {"encoder": "recurrent", "decoder": "permuted", "layers": 1, "width": 64},
}
ALL = pytest.mark.parametrize("kind", KINDS)


def section_of(kind: str, **keys: Any) -> RecognizerSection:
    return RecognizerSection(**{**SMALL, **KINDS[kind], **keys})


def built(section: RecognizerSection, charset: Charset = DIGITS) -> Recognizer:
    return build_recognizer(section, charset)


def rows_of(words: list[list[int]], places: int) -> tuple[Tensor, Tensor]:
    """`y_1 … y_n <eos> <pad> …` and n."""
    ids = torch.full((len(words), places), PAD)
    for row, word in enumerate(words):
        ids[row, : len(word) + 1] = torch.tensor([*word, END])
    return ids, torch.tensor([len(word) for word in words])


def digits(count: int, longest: int = 4) -> tuple[Tensor, list[str]]:
    """Pictures of different numbers in different places, one of them of nothing."""
    font = ImageFont.load_default(13)
    lengths = torch.randint(1, longest + 1, (count,)).tolist()
    lengths[0] = 0
    words = ["".join(map(str, torch.randint(0, 10, (length,)).tolist())) for length in lengths]
    pictures = []
    for word in words:
        picture = Image.new("L", (48, 16), 230)
        place = (int(torch.randint(1, 8, ())), int(torch.randint(-2, 2, ())))
        ImageDraw.Draw(picture).text(place, word, fill=20, font=font)
        pictures.append(torch.tensor(list(picture.tobytes()), dtype=torch.uint8).view(1, 16, 48))
    return torch.stack(pictures), words


def texts(reading: Reading, charset: Charset) -> list[str]:
    pairs = zip(reading.ids, reading.lengths, strict=True)
    return [charset.decode(ids[:length].tolist()) for ids, length in pairs]


# ---------------------------------------------------------------- encoders


@pytest.mark.parametrize(
    ("keys", "grid"),
    [
        ({}, (4, 32)),
        ({"stem": "patch"}, (4, 32)),
        ({"stem_depth": 3}, (4, 32)),
        ({"stem_depth": 2, "stem_width": 16}, (4, 32)),
        ({"patch": (4, 8), "max_length": 16}, (8, 16)),
        ({"patch": (16, 3), "image": (32, 96)}, (2, 32)),
        ({"patch": (1, 1), "image": (3, 30)}, (3, 30)),
        ({"patch": (5, 7), "image": (10, 42), "max_length": 3}, (2, 6)),
        ({"encoder": "recurrent"}, (1, 32)),
        ({"encoder": "recurrent", "image": (48, 100), "channels": 1}, (1, 25)),
    ],
)
def test_a_vector_for_each_place_of_a_grid(keys: dict[str, Any], grid: tuple[int, int]) -> None:
    section = RecognizerSection(**{"width": 24, "layers": 1, "feed_forward": 32, **keys})
    encoder = build_encoder(section)
    assert encoder.grid == grid
    assert grid[1] == section.columns
    hidden = encoder(torch.randint(0, 256, (2, section.channels, *section.image), dtype=torch.uint8))
    assert hidden.shape == (2, grid[0] * grid[1], 24)
    columns = encoder.columns(hidden)
    assert columns.shape == (2, grid[1], 24)
    places = hidden.view(2, *grid, 24)
    torch.testing.assert_close(columns[:, -1], places[:, :, -1].mean(dim=1))


def test_a_patch_by_steps() -> None:
    assert steps_of((8, 4)) == [(2, 2), (2, 2), (2, 1)]
    assert steps_of((6, 10)) == [(3, 5), (2, 2)]
    assert steps_of((1, 1)) == [(1, 1)]


def test_deeper_stems_add_to_what_the_steps_have_found() -> None:
    """x + gelu(norm(conv(x))) behind each step: with nothing to add it is the stem of depth 1."""
    torch.manual_seed(0)
    plain, deep = Stem(3, (8, 4), 24), Stem(3, (8, 4), 24, depth=3)
    steps = [layer for layer in deep.layers if layer.stride != (1, 1)]  # type: ignore[union-attr]
    assert [deep.layers[number] for number in (0, 3, 6)] == steps
    assert len(deep.layers) == 9 == len(deep.norms) + 1
    with torch.no_grad():
        for layer in deep.layers:
            layer.weight.zero_()  # type: ignore[union-attr, operator]
        for own, its in zip(plain.layers, steps, strict=True):
            its.load_state_dict(own.state_dict())
    # the norm that a depth of 1 has not stands behind the last step, which is followed by others now
    images = torch.rand(2, 3, 16, 24)
    grid_BHWD = gelu(deep.norms[6](plain(images).permute(0, 3, 1, 2))).permute(0, 2, 3, 1)
    torch.testing.assert_close(deep(images), grid_BHWD)
    torch.nn.init.normal_(deep.layers[4].weight)  # type: ignore[arg-type]
    assert not torch.allclose(deep(images), grid_BHWD)


@pytest.mark.parametrize("depth", [1, 3])
def test_whoever_reads_gets_the_same_from_a_stem_in_one_pass(depth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def noted(norm: torch.nn.Module, *pictures: Any) -> Tensor | None:
        asked.append(normed(norm, *pictures))
        return asked[-1]

    monkeypatch.setattr("jumok.models.recognizer_encoders.normed", noted)
    stem, images = Stem(3, (8, 4), 24, depth).eval(), torch.randn(2, 3, 16, 24)
    with torch.no_grad():
        plain = stem(images)
        assert not asked
        with encoding_in("float32"):
            torch.testing.assert_close(stem(images), plain, rtol=1e-5, atol=1e-5)
        assert len(asked) == len(stem.norms)
        assert library() is None or not any(each is None for each in asked)
        with encoding_in("float32"):
            watched = stem.norms[0].register_forward_hook(lambda *_: None)
            stem(images)
            watched.remove()
    with encoding_in("float32"):
        assert stem(images).requires_grad  # nobody only reads who wants a gradient
    assert len(asked) == len(stem.norms)


def test_channels_of_a_stem_double() -> None:
    def channels(*about: int) -> list[int]:
        return [layer.out_channels for layer in Stem(3, (16, 4), 100, *about).layers]  # type: ignore[union-attr, misc]

    assert channels() == [12, 25, 50, 100]
    assert channels(2) == [12, 12, 25, 25, 50, 50, 100, 100]
    assert channels(1, 32) == [32, 64, 100, 100]


def test_convolutions_look_over_the_edges_of_patches() -> None:
    """What a pixel changes: one patch, or its neighbours, too; and only where it is."""
    for stem, across in (("patch", False), ("convolution", True)):
        vit = build_encoder(RecognizerSection(stem=stem, width=24)).vit
        assert isinstance(vit, Vit)
        image = torch.rand(1, 3, 32, 128)
        other = image.clone()
        other[0, :, 15, 43] += 1  # the pixel at the last corner of the patch in row 1, column 10
        if stem == "convolution":  # a norm over the picture lets everything know everything, a little
            for number in range(len(vit.stem.norms)):  # type: ignore[union-attr, arg-type]
                vit.stem.norms[number] = torch.nn.Identity()  # type: ignore[union-attr, operator]
        changed = (vit.stem(image) != vit.stem(other)).any(dim=-1)[0]
        assert changed[1, 10]
        assert bool(changed[2, 11]) == across
        assert not changed[:, 14:].any()
        assert not changed[3:].any()


@pytest.mark.parametrize("encoder", ["vit", "recurrent"])
def test_bytes_and_numbers_are_the_same(encoder: str) -> None:
    model = build_encoder(RecognizerSection(encoder=encoder, width=24, layers=1)).eval()
    images = torch.randint(0, 256, (2, 3, 32, 128), dtype=torch.uint8)
    torch.testing.assert_close(model(images), model(images.float()))
    assert (model(images)[0] - model(images)[1]).abs().max() > 1e-3


def test_pictures_of_another_size_are_refused() -> None:
    for encoder in ("vit", "recurrent"):
        model = build_encoder(RecognizerSection(encoder=encoder, width=24, layers=1))
        with pytest.raises(BadInput, match=r"pictures of 3×32×64 .* this model reads 3×32×128"):
            model(torch.zeros(1, 3, 32, 64))


# ---------------------------------------------------------------- every architecture


@ALL
@pytest.mark.parametrize(
    "charset", [pytest.param(DIGITS, id="digits"), pytest.param(HANGUL, id="jamo", marks=pytest.mark.full)]
)
def test_it_learns_pictures_and_reads_them(kind: str, charset: Charset) -> None:
    section = section_of(kind, ctc=0.5)
    model = built(section, charset)
    images, words = digits(8)
    if charset is HANGUL:
        words = ["".join(SPOKEN[int(digit)] for digit in word) for word in words]
    ids, lengths = rows_of([charset.encode(word) for word in words], section.max_length + 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    for update in range(500):
        model.train()
        losses = model.losses(images, ids, lengths)
        optimizer.zero_grad()
        losses["loss"].mean().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if update % 20 == 19:
            model.eval()
            ways = [model.read(images)] + ([model.read(images, fast=True)] if section.decoder == "permuted" else [])
            if all(texts(way, charset) == words for way in ways):
                break
    for way in ways:
        assert texts(way, charset) == words
        check_reading(way)


def check_reading(reading: Reading) -> None:
    """Its shapes, and that nothing stands behind the end."""
    rows, longest = reading.ids.shape
    assert reading.log_probs.shape == (rows, longest)
    assert reading.lengths.shape == reading.ending.shape == (rows,)
    behind = torch.arange(longest) >= reading.lengths[:, None]
    assert (reading.ids[behind] == PAD).all()
    assert (reading.log_probs[behind] == 0).all()
    assert (reading.ids[~behind] > END).all()
    assert (reading.log_probs <= 0).all()
    assert (reading.ending <= 0).all()
    assert reading.log_probs.dtype == reading.ending.dtype == torch.float32


@ALL
@pytest.mark.parametrize("charset", [DIGITS, HANGUL], ids=["digits", "jamo"])
def test_a_row_does_not_depend_on_what_is_beside_it(kind: str, charset: Charset) -> None:
    section = section_of(kind, permutations=1)
    model = built(section, charset).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    images = torch.randint(0, 256, (5, 1, 16, 48), dtype=torch.uint8)
    words = [torch.randint(4, charset.size, (length,)).tolist() for length in (0, 5, 1, 3, 2)]
    ids, lengths = rows_of(words, section.max_length + 1)
    together, reading = model.losses(images, ids, lengths), model.read(images)
    check_reading(reading)
    for row in range(5):
        one = slice(row, row + 1)
        alone = model.losses(images[one], ids[one], lengths[one])
        assert alone.keys() == together.keys()
        for name in together:
            assert together[name].shape == (5,)
            torch.testing.assert_close(alone[name][0], together[name][row], atol=1e-5, rtol=1e-5)
        read = model.read(images[one])
        assert torch.equal(read.ids[0], reading.ids[row])
        torch.testing.assert_close(read.log_probs[0], reading.log_probs[row], atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(read.ending[0], reading.ending[row], atol=1e-5, rtol=1e-5)


@ALL
def test_all_weights_learn(kind: str) -> None:
    section = section_of(kind, dropout=0.1)
    model = built(section, HANGUL)
    ids, lengths = rows_of([HANGUL.encode(word) for word in ("7", "한글", "", "12가나")], section.max_length + 1)
    model.losses(torch.randint(0, 256, (4, 1, 16, 48)), ids, lengths)["loss"].sum().backward()
    idle = [name for name, one in model.named_parameters() if one.grad is None or not one.grad.abs().sum() > 0]
    assert all(name.endswith("key.bias") for name in idle), idle  # which a softmax does not see


@ALL
def test_in_low_precision(kind: str) -> None:
    model = built(section_of(kind), HANGUL)
    ids, lengths = rows_of([HANGUL.encode(word) for word in ("7", "한글")], 6)
    images = torch.randint(0, 256, (2, 1, 16, 48), dtype=torch.uint8)
    with torch.autocast("cpu", torch.bfloat16):
        losses = model.losses(images, ids, lengths)
        check_reading(model.read(images))
    assert all(loss.dtype == torch.float32 for loss in losses.values())
    losses["loss"].sum().backward()
    gradients = [one.grad for one in model.parameters() if one.grad is not None]
    assert all(torch.isfinite(one).all() for one in gradients)


class NothingWaits(TorchDispatchMode):
    """Refuses whatever a host would have to wait for a device for, or whose shape depends on numbers."""

    REFUSED = ("_local_scalar_dense", "nonzero", "masked_select", "unique", "repeat_interleave.Tensor")

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        assert not any(name in str(func) for name in self.REFUSED), func
        return func(*args, **(kwargs or {}))


@ALL
@pytest.mark.parametrize("charset", [DIGITS, HANGUL], ids=["digits", "jamo"])
def test_nothing_waits_where_learning_can_be_recorded(kind: str, charset: Charset) -> None:
    model = built(section_of(kind, dropout=0.1), charset)
    assert model.replays == (KINDS[kind]["encoder"] == "vit")
    ids, lengths = rows_of([charset.encode(word) for word in ("7", "", "12345", "00")], 6)
    images = torch.randint(0, 256, (4, 1, 16, 48), dtype=torch.uint8)
    with NothingWaits():
        model.losses(images, ids, lengths)["loss"].sum().backward()
    with pytest.raises(AssertionError), NothingWaits():
        bool((lengths > 0).all())


# ---------------------------------------------------------------- CTC


def test_the_loss_is_that_of_pytorch_on_the_columns() -> None:
    model = built(section_of("vit-ctc"))
    assert isinstance(model, CtcRecognizer)
    images, words = digits(6)
    ids, lengths = rows_of([DIGITS.encode(word) for word in words], 6)
    columns = model.encoder.columns(model.encoder(images))
    log_probs = torch.log_softmax(model.ctc.head.map(columns), dim=-1).transpose(0, 1)
    expected = F.ctc_loss(log_probs, ids, torch.full((6,), 12), lengths, blank=PAD, reduction="none")
    torch.testing.assert_close(model.losses(images, ids, lengths)["loss"], expected)


def test_what_is_read_is_the_likeliest_of_every_column() -> None:
    model = built(section_of("crnn")).eval()
    assert isinstance(model, CtcRecognizer)
    with torch.no_grad():
        model.ctc.head.map.weight.mul_(20)
        model.ctc.head.map.bias[1:4] += 100  # no character: never read, however likely
    images = torch.randint(0, 256, (8, 1, 16, 48), dtype=torch.uint8)
    reading = model.read(images)
    log_probs = model.ctc.head.log_probs(model.encoder.columns(model.encoder(images)))
    log_probs[..., 1:4] = float("-inf")
    for row in range(8):
        path = log_probs[row].argmax(dim=-1).tolist()
        said = [id for place, id in enumerate(path) if id and (not place or id != path[place - 1])]
        assert reading.ids[row, : reading.lengths[row]].tolist() == said
        blanks = [log_probs[row, place, 0] for place, id in enumerate(path) if not id]
        torch.testing.assert_close(reading.ending[row], torch.stack(blanks).sum() if blanks else torch.tensor(0.0))
