"""The operations of readers of words in pictures, as PyTorch counts them; places behind a word's end are left out."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from seeded import seed  # noqa: F401
from torch.utils.flop_counter import FlopCounterMode

from jumok.data.rendering.batch import PicturedWords
from jumok.layers import attention
from jumok.layers.recurrent import Recurrent
from jumok.models.recognizer import build_recognizer
from jumok.recipe import Augmentation
from jumok.recipe.recognition import CharsetSection, RecognizerSection
from jumok.tasks.recognition import RecognitionObjective
from jumok.text.charset import Charset
from jumok.text.special import END, PAD
from jumok.training.flops import Flops, flops_of

DIGITS = Charset.of(CharsetSection(sets=("digits",)))
SMALL: dict[str, Any] = {
    "image": (16, 48), "channels": 1, "patch": (8, 4), "width": 24, "heads": 2, "layers": 2, "feed_forward": 40,
    "decoder_heads": 2, "decoder_layers": 2, "max_length": 5, "permutations": 3, "dropout": 0.0,
}  # fmt: skip
ROWS = 3


@pytest.fixture(autouse=True)
def products(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attention by plain products: PyTorch does not count what its fused kernel for the CPU does."""
    fused = attention.attention
    monkeypatch.setattr(
        "jumok.layers.tap.attention", lambda *inputs, **options: fused(*inputs, **{**options, "fused": False})
    )


def objective_of(**keys: Any) -> RecognitionObjective:
    model = build_recognizer(RecognizerSection(**{**SMALL, **keys}), DIGITS)
    for module in model.modules():
        if isinstance(module, Recurrent):  # nor what is in the fused kernels of recurrent networks
            module.written_out = True
    return RecognitionObjective(model, Augmentation(), None)


def batch_of(lengths: list[int], image: tuple[int, int] = (16, 48)) -> PicturedWords:
    ids = torch.full((len(lengths), 6), PAD)
    for row, length in enumerate(lengths):
        ids[row, :length] = torch.randint(4, DIGITS.size, (length,))
        ids[row, length] = END
    images = torch.randint(0, 256, (len(lengths), 1, *image), dtype=torch.uint8)
    return PicturedWords(ids, torch.tensor(lengths), images)


def value(flops: Flops | None, batch: PicturedWords) -> int:
    found = None if flops is None else flops(batch)
    assert found is not None
    return found


@pytest.mark.parametrize(
    "keys",
    [
        {"encoder": "recurrent", "decoder": "ctc"},
        {"encoder": "recurrent", "decoder": "recurrent"},
        {"encoder": "recurrent", "decoder": "permuted", "image": (32, 48)},
        {"encoder": "vit", "decoder": "ctc", "stem": "patch"},
        {"encoder": "vit", "decoder": "ctc", "patch": (16, 3)},
        {"encoder": "vit", "decoder": "ctc", "stem_depth": 3},
        {"encoder": "vit", "decoder": "recurrent"},
        {"encoder": "vit", "decoder": "transformer"},
        {"encoder": "vit", "decoder": "permuted"},
        {"encoder": "vit", "decoder": "permuted", "ctc": 0, "permutations": 1},
    ],
    ids=lambda keys: "-".join(map(str, keys.values())),
)
def test_words_are_counted_as_pytorch_counts_them(keys: dict[str, Any]) -> None:
    """Words as long as can be: PyTorch counts what is behind the end, too. A backward pass is twice the forward."""
    objective = objective_of(**keys).train()
    flops, batch = flops_of(objective), batch_of([5] * ROWS, keys.get("image", SMALL["image"]))
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        objective(batch)
    assert flops is not None
    places = 6
    unseen = 3 * (flops.pairs or {}).get("causal", 0) * ROWS * (places * places - places * (places + 1) // 2)
    assert 3 * counter.get_total_flops() == value(flops, batch) + unseen


@pytest.mark.parametrize("decoder", ["ctc", "recurrent", "transformer", "permuted"])
def test_a_word_counts_as_long_as_it_is(decoder: str) -> None:
    flops = flops_of(objective_of(decoder=decoder))
    each = [value(flops, batch_of([length])) for length in range(6)]
    assert value(flops, batch_of([4, 0, 5, 1])) == sum(each[length] for length in (4, 0, 5, 1))
    if decoder == "ctc":
        assert len(set(each)) == 1  # all columns say something, whatever the word
    else:
        assert each == sorted(set(each))
