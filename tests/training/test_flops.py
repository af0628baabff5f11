"""The operations of an update are those that PyTorch's own counter sees, without padding."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from seeded import seed  # noqa: F401
from torch.utils.flop_counter import FlopCounterMode

from jumok.data.batch import PairBatch
from jumok.data.packing import PackedPairs
from jumok.data.series_windows import WindowBatch
from jumok.data.windows import TextBatch
from jumok.layers import attention
from jumok.models.build import build
from jumok.models.forecaster import Forecaster
from jumok.models.language import build_language_model
from jumok.recipe import (
    ForecasterSection,
    RecurrentLanguageSection,
    Seq2SeqSection,
    TransformerLanguageSection,
    TransformerSection,
)
from jumok.tasks.forecasting import ForecastingObjective
from jumok.tasks.language import LanguageObjective
from jumok.tasks.objective import Objective
from jumok.tasks.translation import TranslationObjective
from jumok.training.flops import Flops, flops_of

SOURCE_WORDS, TARGET_WORDS = 29, 37
SEQ2SEQ: dict[str, Any] = {"embedding": 12, "width": 16, "layers": 2, "written_out": True}
TRANSFORMER: dict[str, Any] = {"width": 16, "heads": 2, "feed_forward": 24}


def counted(objective: Objective, batch: Any) -> int:
    """What PyTorch counts in a forward and a backward pass, the output layer and the loss written out."""
    model: Any = objective.model
    with FlopCounterMode(display=False) as counter:
        if isinstance(batch, PairBatch):
            logits = model.head(model(batch.source, batch.target.ids[:, :-1]).flatten(0, 1))
            torch.nn.functional.cross_entropy(logits, batch.target.ids[:, 1:].flatten()).backward()
        elif isinstance(batch, TextBatch):
            logits = model.head(model(batch.ids).flatten(0, 1))
            torch.nn.functional.cross_entropy(logits, batch.targets.flatten()).backward()
        else:
            objective(batch).sum.backward()
    return counter.get_total_flops()


def pairs(rows: int, source: int, target: int) -> PairBatch:
    """Rows of equal lengths: PyTorch counts padding too."""
    words = torch.randint(4, SOURCE_WORDS, (rows, source - 1)).tolist(), torch.randint(4, TARGET_WORDS, (rows, target))
    return PairBatch.of(words[0], words[1][:, : target - 1].tolist())


def above_the_diagonal(flops: Flops, rows: int, width: int) -> int:
    """What plain products compute of causal attention and nobody may see."""
    assert flops.pairs is not None
    return 3 * flops.pairs["causal"] * rows * (width * width - width * (width + 1) // 2)


def first_states(model: torch.nn.Module, rows: int) -> int:
    """The zeros a network begins with are no parameters: one product of the backward pass is left out for them."""
    return 2 * rows * sum(weight.numel() for name, weight in model.named_parameters() if "weight_hh" in name)


@pytest.fixture
def products(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attention by plain products: PyTorch does not count what its fused kernel for the CPU does."""
    fused = attention.attention
    monkeypatch.setattr(
        "jumok.layers.tap.attention", lambda *inputs, **options: fused(*inputs, **{**options, "fused": False})
    )


@pytest.mark.usefixtures("products")
@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"activation": "swiglu", "encoder_layers": 1, "decoder_layers": 3},
        {"key_value_heads": 1, "tie_embeddings": "none", "position": "relative"},
        {"norm": "post", "position": "learned", "max_positions": 64},
    ],
)
def test_transformer(changed: dict[str, Any]) -> None:
    section = TransformerSection(**{"encoder_layers": 2, "decoder_layers": 2, **TRANSFORMER, **changed})
    objective = TranslationObjective(build(section, SOURCE_WORDS, TARGET_WORDS), 0.1)
    flops = flops_of(objective)
    assert flops is not None
    batch = pairs(3, 7, 5)
    assert counted(objective, batch) == flops(batch) + above_the_diagonal(flops, 3, 5)


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"bidirectional": True, "tie_embeddings": True},
        {"cell": "gru", "attention": "bahdanau", "scorer": "additive"},
        {"cell": "rnn", "attention": "none"},
        {"scorer": "location", "max_source": 7, "input_feeding": True},
        {"scorer": "dot"},
    ],
)
@pytest.mark.usefixtures("products")
def test_recurrent(changed: dict[str, Any]) -> None:
    objective = TranslationObjective(build(Seq2SeqSection(**{**SEQ2SEQ, **changed}), SOURCE_WORDS, TARGET_WORDS))
    flops = flops_of(objective)
    assert flops is not None
    batch = pairs(3, 7, 5)
    assert counted(objective, batch) == flops(batch) - first_states(objective.model.encoder, 3)


def test_r_drop_goes_through_twice() -> None:
    model = build(TransformerSection(**TRANSFORMER, encoder_layers=1, decoder_layers=1), SOURCE_WORDS, TARGET_WORDS)
    once, twice = flops_of(TranslationObjective(model)), flops_of(TranslationObjective(model, r_drop=1.0))
    assert once is not None
    assert twice is not None
    batch = pairs(2, 4, 6)
    assert twice(batch) == 2 * (once(batch) or 0)


@pytest.mark.usefixtures("products")
@pytest.mark.parametrize("kind", ["transformer", "recurrent"])
def test_language_models(kind: str) -> None:
    section = (
        TransformerLanguageSection(**TRANSFORMER, layers=2)
        if kind == "transformer"
        else RecurrentLanguageSection(**SEQ2SEQ)
    )
    objective = LanguageObjective(build_language_model(section, TARGET_WORDS))
    flops = flops_of(objective)
    assert flops is not None
    ids = torch.randint(4, TARGET_WORDS, (3, 9))
    batch = TextBatch(ids[:, :-1], ids[:, 1:])
    not_needed = above_the_diagonal(flops, 3, 8) - first_states(objective.model, 3)
    assert counted(objective, batch) == flops(batch) + not_needed


@pytest.mark.usefixtures("products")
def test_forecaster() -> None:
    section = ForecasterSection(cell="transformer", width=16, heads=2, feed_forward=24, layers=2)
    objective = ForecastingObjective(Forecaster(section, 12, 4))
    flops = flops_of(objective)
    assert flops is not None
    batch = WindowBatch(torch.randn(3, 12), torch.randn(3, 4))
    inputs = 2 * (3 * 12 * 16 + 3 * 12 * 4)  # numbers are no parameters: the first products have no gradient for them
    assert counted(objective, batch) == flops(batch) + above_the_diagonal(flops, 3, 12) - inputs


def test_padding_does_not_count() -> None:
    objective = TranslationObjective(build(TransformerSection(**TRANSFORMER), SOURCE_WORDS, TARGET_WORDS))
    flops = flops_of(objective)
    assert flops is not None
    rows = [pairs(1, 3, 4), pairs(1, 9, 2), pairs(1, 5, 5)]
    sides = [
        [side.ids[0, start:-1].tolist() for side in parts]
        for start, parts in ((0, [row.source for row in rows]), (1, [row.target for row in rows]))
    ]
    together = PairBatch.of(*sides)
    assert flops(together) == sum(flops(row) or 0 for row in rows)
    assert flops(PackedPairs.of(together, (64, 64))) == flops(together)


def test_what_nobody_counted_is_not_guessed() -> None:
    class Strange(Objective):
        def __init__(self) -> None:
            super().__init__()
            self.model = torch.nn.Linear(3, 3)

    assert flops_of(Strange()) is None
    known = flops_of(TranslationObjective(build(Seq2SeqSection(**SEQ2SEQ), SOURCE_WORDS, TARGET_WORDS)))
    assert known is not None
    assert known("no batch") is None


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"stem": "convolution", "stem_layers": 2, "pooling": "sequence"},
        {"stem": "convolution", "stem_layers": 2, "stem_depth": 2, "stem_width": 24},
        {"registers": 3},
    ],
)
def test_images_are_counted_as_pytorch_counts_them(keys: dict[str, Any]) -> None:
    from jumok.data.images.batch import ImageBatch
    from jumok.models.vit import ImageLabeller
    from jumok.recipe import Augmentation, VitSection
    from jumok.tasks.vision import VisionObjective

    model = ImageLabeller(VitSection(image=(16, 24), width=32, heads=2, layers=2, feed_forward=48, **keys), 7)
    objective = VisionObjective(model, Augmentation(), None, 0.0)
    flops = flops_of(objective)
    assert flops is not None
    batch = ImageBatch(torch.zeros(5, 3, 16, 24, dtype=torch.uint8), torch.zeros(5, dtype=torch.int64))
    with FlopCounterMode(display=False) as counter, torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        model.eval()(batch.images)
    assert flops(batch) == pytest.approx(3 * counter.get_total_flops(), rel=0.01)
