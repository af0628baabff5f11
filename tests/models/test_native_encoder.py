"""The encoder of pictures through transformer.c: the numbers of the stack, in every precision, or the stack itself."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jumok.inspect.record import record
from jumok.layers.packed import PRECISIONS, Precision
from jumok.layers.stack import Stack
from jumok.models import native_encoder as tested
from jumok.models.native import library
from jumok.models.native_encoder import NativeEncoder, encoded, encoding_in, native_encoder, usable
from jumok.models.recognizer import Recognizer, build_recognizer
from jumok.recipe import VitSection
from jumok.recipe.recognition import CharsetSection, RecognizerSection
from jumok.text.charset import Charset

DIGITS = Charset.of(CharsetSection(sets=("digits",)))
FAR: dict[Precision, float] = {"float32": 1e-5, "bfloat16": 0.03, "int8": 0.1}  # relative, of a stack of some layers


def stack_of(width: int = 48, heads: int = 3, feed_forward: int = 96, layers: int = 3, **keys: Any) -> Stack:
    """With weights that make every part matter."""
    section = VitSection(width=width, heads=heads, feed_forward=feed_forward, layers=layers, **keys)
    stack = Stack(section.model_copy(update={"position": "none"}), layers, "self", "encoder").eval()
    with torch.no_grad():
        for weight in stack.parameters():
            weight.add_(torch.randn_like(weight) * 0.1)
    return stack


def needs(precision: Precision = "float32") -> None:
    if not usable(stack_of(), precision):
        pytest.skip(f"no C compiler here, or no {precision} in this processor")


def distance(found: Tensor, expected: Tensor) -> float:
    return float((found - expected).norm() / expected.norm())


# ------------------------------------------------------------ the same numbers


@pytest.mark.parametrize("tokens", [1, 24, 32, 64, 100])
@pytest.mark.parametrize(("width", "heads"), [(48, 3), (64, 4), (96, 4), (192, 3), (80, 4)])
@torch.inference_mode()
def test_float32_is_the_stack(tokens: int, width: int, heads: int) -> None:
    needs()
    stack, x_BTD = stack_of(width, heads), torch.randn(int(torch.randint(1, 12, ())), tokens, width)
    torch.testing.assert_close(NativeEncoder(stack)(x_BTD), stack(x_BTD), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(
    "keys",
    [
        {"activation": "relu"},
        {"activation": "swiglu"},
        {"activation": "silu", "norm": "post"},
        {"norm_kind": "rms"},
        {"heads": 4, "key_value_heads": 2, "width": 64},
    ],
    ids=str,
)
@torch.inference_mode()
def test_every_kind_of_block(keys: dict[str, Any]) -> None:
    needs()
    stack = stack_of(**keys)
    x_BTD = torch.randn(5, 33, keys.get("width", 48))
    torch.testing.assert_close(NativeEncoder(stack)(x_BTD), stack(x_BTD), atol=1e-4, rtol=1e-4)


@torch.inference_mode()
def test_more_places_than_there_is_room_for_at_once() -> None:
    needs()
    stack, x_BTD = stack_of(layers=1), torch.randn(2, 1100, 48)
    torch.testing.assert_close(NativeEncoder(stack)(x_BTD), stack(x_BTD), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("precision", PRECISIONS)
@torch.inference_mode()
def test_other_precisions_are_near(precision: Precision) -> None:
    needs(precision)
    stack, x_BTD = stack_of(96, 3, 192), torch.randn(9, 32, 96)
    found = distance(NativeEncoder(stack, precision)(x_BTD), stack(x_BTD))
    assert (0 if precision == "float32" else 1e-4) < found < FAR[precision]


@pytest.mark.parametrize("precision", PRECISIONS)
@torch.inference_mode()
def test_pictures_and_threads_do_not_know_each_other(precision: Precision) -> None:
    needs(precision)
    native, x_BTD = NativeEncoder(stack_of(), precision), torch.randn(23, 24, 48)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        together = native(x_BTD)
        for count in (2, 3):
            torch.set_num_threads(count)
            assert torch.equal(native(x_BTD), together)
    finally:
        torch.set_num_threads(threads)
    for row in (0, 7, 22):
        assert torch.equal(native(x_BTD[row : row + 1])[0], together[row])
    assert native(x_BTD[:0]).shape == (0, 24, 48)
    assert torch.equal(native(x_BTD.transpose(0, 1).contiguous().transpose(0, 1)), together)


@torch.inference_mode()
def test_what_is_no_number_stays_so_and_alone() -> None:
    needs()
    for precision in PRECISIONS:
        if not usable(stack_of(), precision):
            continue
        x_BTD = torch.randn(3, 32, 48)
        x_BTD[1, 5, 3] = torch.nan
        found = NativeEncoder(stack_of(), precision)(x_BTD)
        assert found[[0, 2]].isfinite().all(), precision
        assert found[1].isnan().all(), precision


def test_gelu() -> None:
    needs()
    found = library()
    assert found is not None
    x = torch.cat([torch.randn(50_000) * 3, torch.linspace(-7, 7, 100_001), torch.tensor([-1e4, 1e4, 0.0, torch.nan])])
    out = torch.empty_like(x)
    found.jumok_gelu(*(ctypes.c_void_p(x.data_ptr()), ctypes.c_longlong(len(x)), ctypes.c_void_p(out.data_ptr())))
    expected = F.gelu(x.double())
    wrong = (out - expected).abs() / expected.abs().clamp(min=1)
    assert float(wrong[:-1].max()) < 1e-6
    assert out[-1].isnan()
    assert float(out[-4]) == 0


# ------------------------------------------------------------ when it is used


def counted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    calls: list[tuple[int, ...]] = []
    plain = NativeEncoder.__call__

    def call(self: NativeEncoder, x_BTD: Tensor) -> Tensor:
        calls.append(tuple(x_BTD.shape))
        return plain(self, x_BTD)

    monkeypatch.setattr(NativeEncoder, "__call__", call)
    return calls


def reader_of(decoder: str) -> Recognizer:
    section = RecognizerSection(
        image=(16, 48), channels=1, patch=(8, 4), width=32, heads=2, layers=2, feed_forward=64, decoder_heads=2,
        max_length=5, decoder=decoder,
    )  # fmt: skip
    return build_recognizer(section, DIGITS).eval()


@pytest.mark.parametrize("decoder", ["ctc", "recurrent", "transformer", "permuted"])
@torch.inference_mode()
def test_every_decoder_reads_what_it_sees(decoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    needs()
    model, pictures = reader_of(decoder), torch.randint(0, 256, (5, 1, 16, 48), dtype=torch.uint8)
    calls, plain = counted(monkeypatch), model.read(pictures)
    assert not calls
    with encoding_in("float32"):
        native = model.read(pictures)
    assert calls == [(5, 24, 32)]
    torch.testing.assert_close(native.ending, plain.ending, atol=1e-3, rtol=1e-3)
    torch.testing.assert_close(native.log_probs, plain.log_probs, atol=1e-3, rtol=1e-3)
    assert torch.equal(native.ids, plain.ids)
    assert tested._ASKED.get() is None


def test_only_where_nobody_learns_or_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    needs()
    stack, x_BTD, calls = stack_of(), torch.randn(2, 24, 48), counted(monkeypatch)
    with encoding_in("float32"):
        assert encoded(stack, x_BTD).requires_grad
        with torch.no_grad():
            encoded(stack.train(), x_BTD)
            stack.eval()
            handle = stack.blocks[1].register_forward_hook(lambda *_: None)
            encoded(stack, x_BTD)
            handle.remove()
            assert not calls
            encoded(stack, x_BTD)
            assert len(calls) == 1
            assert encoded(stack.double(), x_BTD.double()).dtype == torch.float64
            assert len(calls) == 1


@torch.inference_mode()
def test_attention_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    needs()
    model, calls = reader_of("permuted"), counted(monkeypatch)
    with encoding_in("float32"), record(model, kinds=["self"]) as seen:
        model.read(torch.randint(0, 256, (2, 1, 16, 48), dtype=torch.uint8))
    assert not calls
    assert len(seen.records) == 2


@torch.no_grad()
def test_weights_that_change_are_packed_again() -> None:
    needs()
    stack, x_BTD = stack_of(), torch.randn(2, 24, 48)
    first = native_encoder(stack, "float32")
    assert native_encoder(stack, "float32") is first
    for weight in stack.parameters():
        weight.mul_(1.5)
    with encoding_in("float32"):
        torch.testing.assert_close(encoded(stack, x_BTD), stack(x_BTD), atol=1e-4, rtol=1e-4)
    assert native_encoder(stack, "float32") is not first


@torch.inference_mode()
def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jumok.models.native.library", lambda: None)
    stack, x_BTD = stack_of(), torch.randn(2, 24, 48)
    for precision in PRECISIONS:
        assert not usable(stack, precision)
        with encoding_in(precision):
            assert torch.equal(encoded(stack, x_BTD), stack(x_BTD))


def test_what_it_does_not_know() -> None:
    needs()
    section = VitSection(width=48, heads=3, feed_forward=96, layers=1, layer_scale=0.1)
    assert not usable(Stack(section.model_copy(update={"position": "none"}), 1, "self", "encoder"), "float32")
    assert not usable(Stack(section.model_copy(update={"position": "none"}), 1, "causal", "encoder"), "float32")
    assert not usable(nn.Module.to(stack_of(), torch.bfloat16), "float32")
    assert not usable(stack_of(width=30, feed_forward=90), "int8")  # no multiples of 4
