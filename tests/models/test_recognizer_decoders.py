"""Reading by writing: what is learned is read back, a step is the whole, neighbours do not matter, all can be seen."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw, ImageFont
from steppers import side_by_side
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from jumok.data.batch import END, PAD, START, UNKNOWN, Sequences
from jumok.inspect.record import record
from jumok.models.recognizer import build_recognizer
from jumok.models.recognizer_decoders import PictureBatch, WritingRecognizer
from jumok.recipe.recognition import CharsetSection, RecognizerSection
from jumok.text.charset import Charset

CLOSE = {"atol": 1e-5, "rtol": 1e-5}
SMALL: dict[str, Any] = {
    "image": (32, 64), "channels": 1, "width": 32, "heads": 2, "decoder_heads": 2, "feed_forward": 48, "layers": 1,
    "decoder_layers": 2, "max_length": 5, "dropout": 0.0,
}  # fmt: skip
KINDS = [("recurrent", "recurrent"), ("vit", "transformer"), ("vit", "recurrent"), ("recurrent", "transformer")]
LETTERS = Charset.of(CharsetSection())
HANGUL = Charset.of(CharsetSection(sets=("digits", "hangul"), hangul="jamo"))
kinds = pytest.mark.parametrize(("encoder", "decoder"), KINDS)
charsets = pytest.mark.parametrize("charset", [LETTERS, HANGUL], ids=["plain", "jamo"])


def model_of(
    encoder: str, decoder: str, charset: Charset = LETTERS, end: float = 0.0, **keys: Any
) -> WritingRecognizer:
    """A small model whose every weight is off its start, so that it counts; `end` makes <eos> likelier."""
    section = RecognizerSection.model_validate({**SMALL, "encoder": encoder, "decoder": decoder, **keys})
    model = build_recognizer(section, charset)
    assert isinstance(model, WritingRecognizer)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.15 * torch.randn_like(parameter))
        model.writer.head.map.bias[END] += end
    return model.eval()


def random_pictures(rows: int) -> Tensor:
    """Blots, each another one."""
    coarse = torch.rand(rows, 1, 4, 8) * 255
    return torch.nn.functional.interpolate(coarse, (32, 64)).to(torch.uint8)


def drawn_length(longest: int) -> int:
    return int(torch.randint(0, longest + 1, ()))


def random_texts(rows: int, charset: Charset = LETTERS, longest: int = 5) -> list[list[int]]:
    return [torch.randint(4, charset.size, (drawn_length(longest),)).tolist() for _ in range(rows)]


def targets(texts: list[list[int]], places: int = 6) -> tuple[Tensor, Tensor]:
    """`y_1 … y_n <eos> <pad> …` and n."""
    rows = [[*ids, END] + [PAD] * (places - len(ids) - 1) for ids in texts]
    return torch.tensor(rows), torch.tensor([len(ids) for ids in texts])


def stepped(model: WritingRecognizer, images: Tensor, ids_BT: Tensor) -> Tensor:
    """(B, T, V): log-probabilities of every position, one step at a time."""
    memory, found = model.encode(model.batch(images)), []
    cache = model.start(memory, len(ids_BT), ids_BT.size(1))
    for position in range(ids_BT.size(1)):
        read = ids_BT[:, position - 1] if position else torch.full((len(ids_BT),), START)
        log_probs, cache = model.step(read, torch.full((len(ids_BT),), position), memory, cache)
        assert log_probs.dtype == torch.float32
        found.append(log_probs)
    return torch.stack(found, dim=1)


def drawn(text: str) -> Tensor:
    picture = Image.new("L", (64, 32), 255)
    ImageDraw.Draw(picture).text((2, 4), text, font=ImageFont.load_default(size=20), fill=0)
    return torch.from_numpy(np.asarray(picture).copy())[None]


def learned(model: WritingRecognizer, images: Tensor, texts: list[list[int]], most: int = 500) -> bool:
    """Whether all pictures are read right before `most` updates are over."""
    ids, lengths = targets(texts)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    for update in range(1, most + 1):
        optimizer.zero_grad()
        model.train().losses(images, ids, lengths)["loss"].mean().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if update % 10 == 0 and read(model.eval(), images) == texts:
            return True
    return False


def read(model: WritingRecognizer, images: Tensor) -> list[list[int]]:
    reading = model.read(images)
    return [ids[:length] for ids, length in zip(reading.ids.tolist(), reading.lengths.tolist(), strict=True)]


# ---------------------------------------------------------------- learning


@kinds
def test_digits_are_learned_and_read_back(encoder: str, decoder: str) -> None:
    """With one picture that has none."""
    charset = Charset.of(CharsetSection(sets=("digits",)))
    texts = ["".join(map(str, torch.randint(0, 10, (1 + drawn_length(3),)).tolist())) for _ in range(15)] + [""]
    section = RecognizerSection.model_validate({**SMALL, "encoder": encoder, "decoder": decoder, "decoder_layers": 1})
    model = build_recognizer(section, charset)
    assert isinstance(model, WritingRecognizer)
    assert learned(model, torch.stack([drawn(text) for text in texts]), [charset.encode(text) for text in texts])


@pytest.mark.parametrize("decoder", ["recurrent", "transformer"])
def test_syllables_are_learned_letter_by_letter(decoder: str) -> None:
    section = RecognizerSection.model_validate({**SMALL, "encoder": "vit", "decoder": decoder, "decoder_layers": 1})
    model = build_recognizer(section, HANGUL)
    assert isinstance(model, WritingRecognizer)
    assert model.writer.head.map.out_features < 100
    assert learned(
        model, random_pictures(6), [HANGUL.encode(text) for text in ("주목", "12한글", "뷁", "", "값3", "가나")]
    )


@kinds
@charsets
@torch.no_grad()
def test_the_loss_is_that_of_the_steps(encoder: str, decoder: str, charset: Charset) -> None:
    """Σ_t −log p(y_t | y_<t, x) with <eos>, up to a text that fills all places; what stands behind does not matter."""
    model = model_of(encoder, decoder, charset)
    texts = [*random_texts(3, charset), [], torch.randint(4, charset.size, (5,)).tolist()]
    images, (ids, lengths) = random_pictures(5), targets(texts)
    each = stepped(model, images, ids).gather(2, ids[..., None])[..., 0]
    torch.testing.assert_close(model.scores(images, ids, lengths)[:, 0], each[:, 0], **CLOSE)
    expected = torch.stack([-each[row, : length + 1].sum() for row, length in enumerate(lengths.tolist())])
    torch.testing.assert_close(model.losses(images, ids, lengths)["loss"], expected, **CLOSE)
    behind = torch.arange(6) > lengths[:, None]
    noise = torch.where(behind, torch.randint(0, charset.size, ids.shape), ids)
    torch.testing.assert_close(model.losses(images, noise, lengths)["loss"], expected, **CLOSE)


@kinds
def test_every_weight_learns(encoder: str, decoder: str) -> None:
    model = model_of(encoder, decoder, dropout=0.1).train()
    ids, lengths = targets([*random_texts(7), [5, 6, 7]])
    model.losses(random_pictures(8), ids, lengths)["loss"].sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.any(), name


class Waiting(TorchDispatchMode):
    """Refuses what must wait for a device to say what it has computed."""

    WAITS = ("_local_scalar_dense", "nonzero", "masked_select", "equal", "is_nonzero")

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.name().removeprefix("aten::").partition(".")[0]
        assert name not in self.WAITS, name
        return func(*args, **(kwargs or {}))


@kinds
@charsets
def test_what_repeats_waits_for_nothing(encoder: str, decoder: str, charset: Charset) -> None:
    """A CUDA graph could record it."""
    model = model_of(encoder, decoder, charset, dropout=0.1).train()
    ids, lengths = targets(random_texts(3, charset))
    with Waiting():
        model.losses(random_pictures(3), ids, lengths)["loss"].sum().backward()
    assert model.replays == (encoder == "vit")
    with pytest.raises(AssertionError, match="_local_scalar_dense"), Waiting():
        model.read(random_pictures(3))  # looks whether all have ended


# ---------------------------------------------------------------- reading


@kinds
@charsets
@torch.no_grad()
def test_a_reading_is_the_likeliest_of_each_step(encoder: str, decoder: str, charset: Charset) -> None:
    """With nothing but characters in it, and an end where there is no room for more."""
    lengths: set[int] = set()
    for end in (-50.0, 0.0, 4.0, 50.0):
        model, images = model_of(encoder, decoder, charset, end), random_pictures(5)
        reading = model.read(images)
        longest = reading.ids.size(1)
        assert longest <= 5
        ids = torch.nn.functional.pad(reading.ids, (0, 1))
        log_probs = stepped(model, images, ids)
        log_probs[..., [PAD, UNKNOWN, START]] = -torch.inf
        for row, length in enumerate(reading.lengths.tolist()):
            lengths.add(length)
            best = log_probs[row].max(dim=-1)
            assert reading.ids[row].tolist() == best.indices[:length].tolist() + [PAD] * (longest - length)
            torch.testing.assert_close(reading.log_probs[row, :length], best.values[:length], **CLOSE)
            assert not reading.log_probs[row, length:].any()
            if length < 5:
                assert int(best.indices[length]) == END
            torch.testing.assert_close(reading.ending[row], log_probs[row, length, END], **CLOSE)
    assert {0, 5} <= lengths  # a picture without text, and a text that was cut


@kinds
@torch.no_grad()
def test_a_reading_does_not_depend_on_its_neighbours(encoder: str, decoder: str) -> None:
    model, images = model_of(encoder, decoder, end=2.0), random_pictures(6)
    ids, lengths = targets(random_texts(6))
    together, losses = model.read(images), model.losses(images, ids, lengths)["loss"]
    for row in range(6):
        alone = model.read(images[row : row + 1])
        length = int(alone.lengths)
        assert length == int(together.lengths[row])
        assert alone.ids[0, :length].tolist() == together.ids[row, :length].tolist()
        torch.testing.assert_close(alone.log_probs[0, :length], together.log_probs[row, :length], **CLOSE)
        torch.testing.assert_close(alone.ending[0], together.ending[row], **CLOSE)
        one = slice(row, row + 1)
        torch.testing.assert_close(model.losses(images[one], ids[one], lengths[one])["loss"], losses[one], **CLOSE)


@kinds
def test_no_pictures_give_no_readings(encoder: str, decoder: str) -> None:
    reading = model_of(encoder, decoder).read(random_pictures(0))
    assert (len(reading.ids), len(reading.lengths), len(reading.log_probs), len(reading.ending)) == (0, 0, 0, 0)


# ---------------------------------------------------------------- the Stepper protocol


def pictures_of(batch: Sequences) -> Tensor:
    """A picture for each row of text, the same for the same text."""

    def picture(ids: list[int]) -> Tensor:
        generator = torch.Generator().manual_seed(hash(tuple(ids)) % 2**31)
        return torch.randint(0, 256, (1, 4, 8), generator=generator).float()

    return torch.nn.functional.interpolate(torch.stack([picture(ids) for ids in batch.ids.tolist()]), (32, 64))


class Drawn:
    """The model as a stepper over texts, of which it sees the pictures."""

    def __init__(self, model: WritingRecognizer) -> None:
        self.model = model

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    def encode(self, batch: Sequences) -> Any:
        return self.model.encode(self.model.batch(pictures_of(batch)))


class Forced:
    """The same without a cache: each step looks at the picture and reads all that was written again."""

    def __init__(self, model: WritingRecognizer) -> None:
        self.model = model

    def encode(self, batch: Sequences) -> Tensor:
        return pictures_of(batch)

    def start(self, memory: Tensor, rows: int, capacity: int, coverage: bool = False) -> Tensor:
        return torch.zeros(rows, capacity, dtype=torch.long)

    def step(self, tokens: Tensor, positions: Tensor, memory: Tensor, cache: Tensor) -> tuple[Tensor, Tensor]:
        rows = torch.arange(len(tokens))
        cache[rows, positions] = tokens
        hidden_BTD = self.model(memory, cache[:, : int(positions.max()) + 1])
        return self.model.writer.log_probs(hidden_BTD[rows, positions]), cache

    def select(self, memory: Tensor, cache: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        return memory[rows], cache[rows]

    def join(self, parts: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        return torch.cat([memory for memory, _ in parts]), torch.cat([cache for _, cache in parts])


@kinds
def test_rows_are_kept_repeated_reordered_dropped_and_joined(encoder: str, decoder: str, seed: int) -> None:
    model = model_of(encoder, decoder, max_length=40)
    steps = 0
    for found in side_by_side(Drawn(model), Forced(model), random.Random(seed), coverage=False):
        torch.testing.assert_close(*found.log_probs, **CLOSE)
        steps += 1
    assert steps == 14


@kinds
@torch.no_grad()
def test_coverage_is_the_sum_of_what_was_looked_at(encoder: str, decoder: str) -> None:
    model, images = model_of(encoder, decoder), random_pictures(3)
    memory = model.encode(model.batch(images))
    cache = model.start(memory, 3, 6, coverage=True)
    for position in range(3):
        _, cache = model.step(torch.randint(4, 90, (3,)), torch.full((3,), position), memory, cache)
        covered = model.coverage(cache)
        assert covered.shape == (3, model.encoder.grid[0] * model.encoder.grid[1])
        torch.testing.assert_close(covered.sum(dim=1), torch.full((3,), position + 1.0))


def test_a_batch_is_what_a_search_asks_for() -> None:
    batch = PictureBatch(random_pictures(3), 16)
    assert (len(batch), batch.lengths.tolist(), batch.ids.shape) == (3, [16] * 3, (3, 16))
    assert batch.ids.min() > END
    assert batch.to("meta").images.device.type == "meta"


# ---------------------------------------------------------------- what is seen


@kinds
@torch.no_grad()
def test_what_each_character_looked_at_can_be_seen(encoder: str, decoder: str) -> None:
    """As it reads, and as it learns: the weights of each character over the places of the grid."""
    model, images = model_of(encoder, decoder, end=1.0), random_pictures(4)
    name = "decoder" if decoder == "recurrent" else "decoder.1.cross"
    places, heads = model.encoder.grid[0] * model.encoder.grid[1], () if decoder == "recurrent" else (2,)
    with record(model, kinds=["cross"]) as seen:
        reading = model.read(images)
    read_weights = seen.weights(name)
    steps = read_weights.size(-2)
    assert read_weights.shape == (4, *heads, steps, places)
    assert int(reading.lengths.max()) + 1 <= steps <= 6
    assert seen.max_difference < 1e-5
    torch.testing.assert_close(read_weights.sum(dim=-1), torch.ones(4, *heads, steps))
    ids = torch.nn.functional.pad(reading.ids, (0, 1))[:, :steps]
    with record(model) as again:
        model.scores(images, ids, reading.lengths)
    assert ("encoder.0.self" in again.names()) == (encoder == "vit")
    for row, length in enumerate(reading.lengths.tolist()):
        forced, stepped = (weights[row, ..., : length + 1, :] for weights in (again.weights(name), read_weights))
        torch.testing.assert_close(forced, stepped, **CLOSE)
