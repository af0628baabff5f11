"""The attention of a search: the history of each output, equal to a forced pass over it, however rows were moved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from seeded import seed  # noqa: F401  (fresh random inputs, the seed printed)
from torch import Tensor

from jumok.data.batch import END, PAD, START, Sequences, source_batch, target_batch
from jumok.errors import BadInput
from jumok.inspect.record import Path, Seen, record
from jumok.models.language import build_language_model
from jumok.models.seq2seq import Seq2Seq
from jumok.models.transformer import Transformer
from jumok.recipe import Seq2SeqSection, TransformerLanguageSection, TransformerSection
from jumok.search import Decoding, Ensemble, SearchOptions, generate, refill

WORDS = 30
RECURRENT: dict[str, dict[str, Any]] = {
    "bahdanau": {"attention": "bahdanau", "scorer": "additive", "bidirectional": True},
    "luong-dot": {"attention": "luong", "scorer": "dot"},
    "luong-scaled": {"attention": "luong", "scorer": "scaled-dot"},
    "luong-general": {"attention": "luong", "scorer": "general", "cell": "gru"},
    "luong-additive": {"attention": "luong", "scorer": "additive"},
    "luong-location": {"attention": "luong", "scorer": "location"},
    "feeding": {"attention": "luong", "scorer": "general", "input_feeding": True},
}
TRANSFORMERS: dict[str, dict[str, Any]] = {
    "sinusoidal": {},
    "rotary": {"position": "rotary", "norm": "post"},
    "relative": {"position": "relative", "key_value_heads": 1},
    "learned": {"position": "learned", "max_positions": 40, "key_value_heads": 2},
}
SMALL = {"width": 16, "heads": 4, "feed_forward": 16, "encoder_layers": 2, "decoder_layers": 2}


def network(kind: str) -> Any:
    model: Any
    if kind in RECURRENT:
        model = Seq2Seq(Seq2SeqSection(embedding=8, width=12, layers=1, **RECURRENT[kind]), WORDS, WORDS)
    else:
        model = Transformer(TransformerSection(**{**SMALL, **TRANSFORMERS[kind]}), WORDS, WORDS)
    return decided(model)


def decided(model: Any) -> Any:
    """Larger weights: words and looks that differ clearly; `<eos>` comes early enough for hypotheses to finish.

    In float64: what is left of a difference is then not that of a step and a whole pass, which round otherwise.
    """
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2.0).add_(0.1 * torch.randn_like(parameter))
        model.bias[END] += 1.0
    return model.double().eval()


def sources(count: int = 7) -> list[list[int]]:
    lengths = [1 + (5 * number) % 11 for number in range(count)]
    return [torch.randint(4, WORDS, (length,)).tolist() for length in lengths]


def options(**keys: Any) -> SearchOptions:
    return SearchOptions(**{"beam": 5, "max_length": 12, "forbidden": (PAD, START), **keys})


@torch.no_grad()
def forced(model: Any, source: list[int], path: Path) -> dict[str, Tensor]:
    """What a pass over the tokens sees; one that was cut has no step that wrote `<eos>`, so it reads one word less."""
    ids = target_batch([list(path.tokens)]).ids[:, : len(path.tokens) + path.finished]
    with record(model) as seen:
        model(source_batch([source]), ids)
    return {name: seen.weights(name)[0] for name in seen.names()}


def agrees(seen: Seen, model: Any, rows: list[list[int]], tolerance: float = 1e-6) -> None:
    """Every path is what a forced pass over its tokens sees."""
    assert len(seen.paths) == len(rows)
    for number, source in enumerate(rows):
        for path in seen.paths[number]:
            expected = forced(model, source, path)
            assert set(path.records) == set(expected)
            for name, weights in expected.items():
                torch.testing.assert_close(path[name], weights, atol=tolerance, rtol=0)
                assert path.records[name].max_difference < 1e-5


@pytest.mark.parametrize("kind", [*RECURRENT, *TRANSFORMERS])
def test_the_winners_history_is_what_a_forced_pass_sees(kind: str) -> None:
    model, rows = network(kind), sources()
    plain = generate(model, source_batch(rows), options(nbest=3))
    with record(model) as seen:
        found = generate(model, source_batch(rows), options(nbest=3))
    assert found == plain
    assert [[path.tokens for path in outputs] for outputs in seen.paths] == [
        [tuple(one.tokens) for one in outputs] for outputs in found
    ]
    assert [seen.path(number).score for number in range(7)] == [outputs[0].score for outputs in found]
    agrees(seen, model, rows)


@pytest.mark.parametrize("kind", ["bahdanau", "feeding", "rotary", "relative"])
def test_so_it_is_in_float32(kind: str) -> None:
    """As a network starts, where scores are small."""
    model, rows = network(kind).float(), sources()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(0.4)
    with record(model) as seen:
        generate(model, source_batch(rows), options())
    agrees(seen, model, rows, tolerance=1e-5)  # a step and a whole pass round otherwise


@pytest.mark.parametrize("kind", ["bahdanau", "feeding", "rotary", "relative"])
def test_rows_that_join_a_running_search_are_followed(kind: str) -> None:
    """Continuous batching: sentences leave, others come in beside those under way, at other positions."""
    model, rows = network(kind), sources(9)
    asked = [options(beam=1 + number % 5, max_length=4 + number) for number in range(9)]
    pairs = list(zip(rows, asked, strict=True))
    plain = dict(refill(model, pairs, capacity=3, share=0.3))
    with record(model) as seen:
        found = dict(refill(model, pairs, capacity=3, share=0.3))
    assert found == plain
    assert [seen.path(number).tokens for number in range(9)] == [tuple(found[number][0].tokens) for number in range(9)]
    agrees(seen, model, rows)


def test_outputs_that_were_cut_and_rows_that_were_given_up() -> None:
    model, rows = network("sinusoidal"), sources(4)
    with record(model, kinds=["cross"]) as seen:
        decoding = Decoding(model)
        decoding.add(source_batch(rows), options(beam=2, max_length=6, min_length=6, forbidden=(PAD, START)))
        for _ in range(3):
            decoding.step()
        decoding.cancel(1)
        while not decoding.done:
            decoding.step()
    assert [len(outputs) for outputs in seen.paths] == [1, 0, 1, 1]
    for number in (0, 2, 3):
        path = seen.path(number)
        assert path["decoder.0.cross"].shape == (4, 5 + path.finished, len(rows[number]) + 1)
        torch.testing.assert_close(
            path["decoder.1.cross"], forced(model, rows[number], path)["decoder.1.cross"], atol=1e-6, rtol=0
        )
    with pytest.raises(BadInput, match="sentence 1: nothing was searched for it to the end"):
        seen.path(1)
    with pytest.raises(BadInput, match="sentence 4: 4 sentences were searched"):
        seen.path(4)


def test_two_searches_at_once_and_an_ensemble_do_not_mix() -> None:
    model, other, rows = network("rotary"), network("sinusoidal"), sources(4)
    with record(model) as seen:
        searches = [Decoding(model), Decoding(other), Decoding(Ensemble([other, model]))]
        for search, part in zip(searches, ((0, 2), (0, 2), (2, 4)), strict=True):
            search.add(source_batch(rows[slice(*part)]), options())
        while any(not search.done for search in searches):
            for search in searches:
                search.step()
    agrees(seen, model, rows)


def test_nothing_is_kept_of_hypotheses_that_were_pruned() -> None:
    model, rows = network("sinusoidal"), sources(3)
    with record(model, layers=[1], heads=[2]) as seen:
        decoding = Decoding(model)
        decoding.add(source_batch(rows), options())
        while not decoding.done:
            decoding.step()
            state = seen.trail._searches[decoding]
            live = {id(node) for newest in state.nodes for node in newest.steps()}
            assert len(state.nodes) <= 5 * len(decoding.live)
            assert len(live) <= 5 * 12 * len(decoding.live)
    assert not state.nodes
    assert not state.sentences
    assert seen.names() == ["encoder.1.self", "decoder.1.causal", "decoder.1.cross"]
    assert {one.heads for one in seen.records} == {(2,)}
    for one in seen.records:
        assert one.weights.shape[:2] == (1, 1)
        assert one.weights.untyped_storage().nbytes() == 4 * one.weights.numel()  # no larger tensor is held by a view
    full = forced(model, rows[1], seen.path(1))
    torch.testing.assert_close(seen.path(1)["decoder.1.cross"][0], full["decoder.1.cross"][2], atol=1e-6, rtol=0)


# ---------------------------------------------------------------- language models


@pytest.mark.parametrize("position", ["rotary", "relative", "sinusoidal"])
@pytest.mark.parametrize("search", [{"beam": 4}, {"beam": 1, "sample": True, "seed": 3}], ids=str)
def test_a_language_model_looks_back_at_its_prompt_too(position: str, search: dict[str, Any]) -> None:
    section = TransformerLanguageSection(width=16, heads=4, layers=2, feed_forward=16, position=position)
    model = decided(build_language_model(section, WORDS))
    prompts = [[END, *row] for row in sources(4)] + [[END]]
    plain = generate(model, Sequences.pad(prompts), options(**search))
    with record(model) as seen:
        found = generate(model, Sequences.pad(prompts), options(**search))
    assert found == plain
    for number, prompt in enumerate(prompts):
        path = seen.path(number)
        assert path.tokens == tuple(found[number][0].tokens)
        whole = [*prompt, *path.tokens]
        with torch.no_grad(), record(model) as full:
            model(torch.tensor([whole]))
        for name in ("decoder.0.causal", "decoder.1.causal"):
            torch.testing.assert_close(path[name], full.weights(name)[0], atol=1e-6, rtol=0)
        assert path.records["decoder.1.causal"].queries().tokens == path.records["decoder.1.causal"].keys().tokens
        assert len(path.records["decoder.1.causal"].keys()) == len(whole)


def test_a_search_before_or_after_is_nobodys_business() -> None:
    model, rows = network("luong-dot"), sources(2)
    make: Callable[[], Any] = lambda: generate(model, source_batch(rows), options())  # noqa: E731
    make()
    with record(model) as seen:
        pass
    make()
    assert seen.records == []
    assert seen.paths == []
    with pytest.raises(BadInput, match="no sentence was searched"):
        seen.path(0)
