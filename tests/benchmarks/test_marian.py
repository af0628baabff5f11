"""Three engines, one model: what decode.py compares writes the same sentences."""

from __future__ import annotations

import importlib
import random
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from invariance import differences
from seeded import seed as seed

from jumok.data.batch import END, PAD, START, UNKNOWN, source_batch
from jumok.errors import BadInput
from jumok.models.fast import fast_stepper
from jumok.models.transformer import Transformer
from jumok.recipe import TransformerSection
from jumok.search import SearchOptions, generate

WORDS, LONGEST = 90, 14


@pytest.fixture
def marian(monkeypatch: pytest.MonkeyPatch) -> Any:
    pytest.importorskip("transformers")
    folder = Path(__file__).parents[2] / "benchmarks"
    if not folder.exists():
        pytest.skip("the benchmarks are not part of this package")
    monkeypatch.syspath_prepend(str(folder))
    yield importlib.import_module("marian")
    sys.modules.pop("marian", None)


def moved(model: Transformer) -> Transformer:
    """Weights off their start; `<unk>` never comes, since CTranslate2 replaces it by what it looks at."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
        model.bias[UNKNOWN] = -100.0
    return model.eval()


def test_the_same_outputs(marian: Any, seed: int, tmp_path: Path) -> None:
    """Greedy: beams agree too, but for the last token, which is <eos> with us whatever it costs."""
    drawn = random.Random(seed)
    model = moved(Transformer(marian.section(32, 4, 48, 2), WORDS, WORDS))
    theirs = marian.to_marian(model)
    rows = [[drawn.randrange(4, WORDS) for _ in range(drawn.randint(1, 9))] for _ in range(6)]
    source = source_batch(rows)
    options = SearchOptions(min_length=LONGEST, max_length=LONGEST)
    ours = [tuple(found[0].tokens) for found in generate(fast_stepper(model), source, options)]

    def same(found: list[list[int]]) -> bool:
        """But for ties: each engine rounds in its own way."""
        return all(each.tie for each in differences(model, rows, options, ours, [tuple(row) for row in found]))

    lengths = {"min_new_tokens": LONGEST, "max_new_tokens": LONGEST}
    ids = theirs.generate(
        input_ids=source.ids,
        attention_mask=source.mask.long(),
        do_sample=False,
        suppress_tokens=[PAD, START],
        **lengths,
    )
    assert same([row[1:LONGEST] for row in ids.tolist()])

    ctranslate2 = pytest.importorskip("ctranslate2")
    translator = ctranslate2.Translator(str(marian.to_ctranslate2(theirs, tmp_path / "ct2")), device="cpu")
    found = translator.translate_batch(
        [[marian.token(number) for number in [*row, END]] for row in rows],
        beam_size=1,
        min_decoding_length=LONGEST,
        max_decoding_length=LONGEST,
        suppress_sequences=[[marian.token(PAD)], [marian.token(START)]],
    )
    assert same([[int(word) for word in each.hypotheses[0][: LONGEST - 1]] for each in found])


def test_what_marian_cannot_hold(marian: Any) -> None:
    model = Transformer(
        TransformerSection(width=16, heads=2, feed_forward=16, encoder_layers=1, decoder_layers=1), 20, 20
    )
    with pytest.raises(BadInput, match=r"MarianMT cannot hold this model: train it with model\.norm=post"):
        marian.to_marian(model)
