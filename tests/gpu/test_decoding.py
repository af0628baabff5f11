"""Decoding in CUDA graphs: the same as launched step by step, the same as the search on the host.

On a machine with a GPU: make gpu-check
"""

from __future__ import annotations

import pytest
import seeded
import torch

from jumok.data.batch import END, START, Sequences
from jumok.models import step_torch
from jumok.models.transformer import Transformer
from jumok.recipe import TransformerSection
from jumok.search import Hypothesis, SearchOptions, generate
from jumok.search.on_device import DeviceSearch, device_search_fits, generate_on_device

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU (make gpu-check)")
seed = seeded.seed
WORDS = 97
MODELS = {
    "pre": ({}, 1),
    "post": ({"norm": "post", "activation": "gelu", "tie_embeddings": "none"}, 4),
    "rotary": ({"norm_kind": "rms", "activation": "swiglu", "position": "rotary", "width": 48}, 3),
    "relative": ({"key_value_heads": 2, "position": "relative", "final_norm": False}, 5),
}


@pytest.fixture(autouse=True)
def _full_precision() -> None:
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False


def a_model(seed: int, **keys: object) -> Transformer:
    section = {"width": 64, "heads": 4, "encoder_layers": 2, "decoder_layers": 3, "feed_forward": 96, **keys}
    torch.manual_seed(seed)
    model = Transformer(TransformerSection.model_validate(section), WORDS, WORDS).cuda().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return model


def a_batch(rows: int = 11) -> Sequences:
    lengths = torch.randint(1, 30, (rows,)).tolist()
    return Sequences.pad([torch.randint(4, WORDS, (length,)).tolist() for length in lengths]).to("cuda")


def assert_same(found: list[list[Hypothesis]], expected: list[list[Hypothesis]], what: str) -> None:
    """The same n-best; outputs whose scores tie may stand in each other's place."""
    different = 0
    for ours, theirs in zip(found, expected, strict=True):
        assert [h.score for h in ours] == pytest.approx([h.score for h in theirs], abs=1e-4), what
        different += [h.tokens for h in ours] != [h.tokens for h in theirs]
    assert different <= len(found) // 10, what


@pytest.mark.parametrize(("keys", "beam"), MODELS.values(), ids=MODELS.keys())
def test_graphs_steps_and_the_host_agree(seed: int, keys: dict[str, object], beam: int) -> None:
    model = a_model(seed, **keys)
    search, plain = DeviceSearch(model, torch.float32), DeviceSearch(model, torch.float32, step_torch)
    print("operations:", search.twin.operations.__name__)  # type: ignore[attr-defined]
    for options in (
        SearchOptions(beam=beam, nbest=beam, max_ratio=1.0, max_extra=8, length_penalty=0.7),
        SearchOptions(beam=beam, min_length=40, max_length=40),
    ):
        batch = a_batch()
        assert device_search_fits(model, options, batch.ids.device)
        expected = generate(model, batch, options)
        each = [options] * len(batch)
        for name, one in (("kernels", search), ("plain", plain)):
            for graphs in (False, True, True):  # captured, then used again
                found = one.generate(batch, each, END, START, graphs)
                assert_same(found, expected, f"seed {seed}: {name}, graphs {graphs}")


def test_graphs_follow_the_weights(seed: int) -> None:
    model, batch = a_model(seed), a_batch()
    options = SearchOptions(beam=4, max_length=12)
    generate_on_device(model, batch, options)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05, fused=True)
    for _ in range(3):
        model.head(model(batch, batch.ids)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        assert_same(generate_on_device(model, batch, options), generate(model, batch, options), f"seed {seed}")


def test_one_graph_serves_batches_of_many_sizes_and_no_random_number_is_drawn(seed: int) -> None:
    model = a_model(seed)
    state = torch.cuda.get_rng_state()
    for rows in (5, 6, 5):
        batch = Sequences.pad([torch.randint(4, WORDS, (9 + row,)).tolist() for row in range(rows)])
        options = [SearchOptions(beam=2, max_length=3 + row, min_length=2) for row in range(rows)]
        expected = generate(model, batch.to("cuda"), options)
        assert_same(generate_on_device(model, batch, options), expected, f"seed {seed}, {rows} rows")
    assert torch.equal(torch.cuda.get_rng_state(), state)


def test_half_precision_drifts_little(seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    model, batch = a_model(seed), a_batch(64)
    options = SearchOptions(beam=1, min_length=20, max_length=20)
    exact = generate_on_device(model, batch, options)
    for dtype in (torch.bfloat16, torch.float16):
        rough = generate_on_device(model, batch, options, dtype=dtype)
        pairs = [
            (a, b) for x, y in zip(rough, exact, strict=True) for a, b in zip(x[0].tokens, y[0].tokens, strict=True)
        ]
        same = sum(a == b for a, b in pairs) / len(pairs)
        off = sorted(abs(x[0].score - y[0].score) for x, y in zip(rough, exact, strict=True))
        with capsys.disabled():
            print(
                f"\n{dtype}: {same:.3f} of the tokens as in float32, scores off by {off[32]:.3f}, at most {off[-1]:.3f}"
            )
        assert same > 0.7  # a word that nearly tied sends the rest of its sentence elsewhere
        assert off[32] < 0.1
