from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from jumok.data.batch import PairBatch
from jumok.errors import BadInput
from jumok.inspect.record import record
from jumok.layers.attention import SCORERS, build_scorer
from jumok.layers.tap import Tap
from jumok.models.seq2seq import Seq2Seq
from jumok.models.transformer import Transformer
from jumok.recipe import Seq2SeqSection, TransformerSection

KINDS: dict[str, dict[str, Any]] = {
    "luong": {"attention": "luong", "scorer": "general"},
    "feeding": {"attention": "luong", "scorer": "dot", "input_feeding": True},
    "bahdanau": {"attention": "bahdanau", "scorer": "additive", "bidirectional": True},
}


def small_model(kind: str) -> Seq2Seq:
    return Seq2Seq(Seq2SeqSection(embedding=8, width=12, layers=1, **KINDS[kind]), 20, 20).eval()


def small_transformer(**keys: Any) -> Transformer:
    section = TransformerSection(
        **{"width": 12, "heads": 3, "feed_forward": 16, "encoder_layers": 2, "decoder_layers": 2, **keys}
    )
    model = Transformer(section, 20, 20)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model.eval()


def random_batch(seed: int) -> PairBatch:
    torch.manual_seed(seed)
    lengths = ((3, 4), (6, 2), (1, 5))
    rows = [tuple(torch.randint(4, 20, (length,)).tolist() for length in pair) for pair in lengths]
    return PairBatch.of([source for source, _ in rows], [target for _, target in rows])


@pytest.mark.parametrize("kind", KINDS)
def test_recording_changes_nothing_and_sees_every_step(kind: str) -> None:
    batch = random_batch(torch.seed() % 1000)
    model = small_model(kind)
    target = batch.target.ids[:, :-1]
    plain = model(batch.source, target)
    with record(model) as seen:
        observed = model(batch.source, target)
    assert torch.equal(plain, observed)
    weights = seen.weights()
    assert weights.shape == (3, target.size(1), batch.source.ids.size(1))
    assert (weights.dtype, weights.device.type, weights.requires_grad) == (torch.float32, "cpu", False)
    torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:2]))
    assert (weights.masked_select(~batch.source.mask[:, None].expand_as(weights)) == 0).all()
    assert seen.max_difference < 1e-5
    steps = [(part.step, part.weights.size(1)) for part in seen.records]
    assert [step for step, _ in steps] == [sum(size for _, size in steps[:index]) for index in range(len(steps))]
    assert {part.kind for part in seen.records} == {"cross"}


@pytest.mark.parametrize("kind", KINDS)
def test_forced_and_stepwise_weights_are_the_same(kind: str) -> None:
    batch = random_batch(torch.seed() % 1000)
    model = small_model(kind)
    target = batch.target.ids[:, :-1]
    with torch.inference_mode(), record(model) as seen:
        model(batch.source, target)
        forced = seen.weights()
        seen.begin()
        memory = model.encode(batch.source)
        cache = model.start(memory, 3, target.size(1))
        for position in range(target.size(1)):
            _, cache = model.step(target[:, position], torch.full((3,), position), memory, cache)
    torch.testing.assert_close(seen.weights(), forced, atol=1e-5, rtol=1e-4)


class OneTap(nn.Module):
    def __init__(self, scorer: str) -> None:
        super().__init__()
        self.scorer = build_scorer(scorer, 6, 6, 5, 9)
        self.tap = Tap("cross", "only")

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        return self.tap(query, self.scorer.prepare(key), value, mask=mask, scorer=self.scorer)


@pytest.mark.parametrize("scorer", sorted(name for name in SCORERS if not name.startswith("test")))
def test_the_weights_explain_the_output_of_every_scorer(scorer: str) -> None:
    seed = torch.seed() % 1000
    torch.manual_seed(seed)
    model = OneTap(scorer)
    query, key, value = torch.randn(2, 3, 6), torch.randn(2, 4, 6), torch.randn(2, 4, 7)
    mask = torch.tensor([[True] * 4, [True, True, False, False]])
    with record(model) as seen:
        output = model(query, key, value, mask)
    torch.testing.assert_close(seen.weights() @ value, output, msg=lambda text: f"seed {seed}: {text}")
    assert seen.max_difference == pytest.approx(float((seen.weights() @ value - output.detach()).abs().max()), abs=1e-6)


def test_a_difference_would_be_noticed() -> None:
    """An output that the weights do not explain (here: altered by another hook) shows in max_difference."""
    model = OneTap("dot")
    handle = model.tap.register_forward_hook(lambda _module, _inputs, output: output + 0.5)
    with record(model) as seen:
        model(torch.randn(1, 2, 6), torch.randn(1, 3, 6), torch.randn(1, 3, 6), None)
    handle.remove()
    assert seen.max_difference == pytest.approx(0.5, abs=1e-5)


def test_hooks_are_gone_even_after_an_error() -> None:
    model = small_model("luong")
    batch = random_batch(1)

    def crash() -> None:
        with record(model):
            model(batch.source, batch.target.ids[:, :-1])
            raise RuntimeError("from inside")

    with pytest.raises(RuntimeError, match="from inside"):
        crash()
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    with record(model) as seen:
        pass
    model(batch.source, batch.target.ids[:, :-1])
    assert seen.records == []


def test_gradients_are_the_same_with_and_without_recording() -> None:
    model = small_model("bahdanau")
    batch = random_batch(2)
    gradients = []
    for recorded in (False, True):
        model.zero_grad()
        if recorded:
            with record(model):
                model(batch.source, batch.target.ids[:, :-1]).square().sum().backward()
        else:
            model(batch.source, batch.target.ids[:, :-1]).square().sum().backward()
        gradients.append([p.grad.clone() for p in model.parameters() if p.grad is not None])
    assert len(gradients[0]) > 5
    assert all(torch.equal(a, b) for a, b in zip(*gradients, strict=True))


def test_the_newest_call_is_what_weights_gives() -> None:
    model = small_model("feeding")
    first, second = random_batch(3), random_batch(4)
    with record(model) as seen:
        model(first.source, first.target.ids[:, :-1])
        before = seen.weights()
        model(second.source, second.target.ids[:, :-1])
    assert seen.weights().shape == before.shape
    assert not torch.equal(seen.weights(), before)


def test_questions_that_have_no_answer() -> None:
    model = OneTap("dot")
    with record(model) as seen:
        with pytest.raises(BadInput, match="nothing was recorded"):
            seen.weights()
        model(torch.randn(1, 2, 6), torch.randn(1, 3, 6), torch.randn(1, 3, 6), None)
        with pytest.raises(BadInput, match="only: only"):
            seen.weights("other")
        model.tap(torch.randn(2, 1, 6), torch.randn(2, 3, 6), torch.randn(2, 3, 6), None, model.scorer)
        with pytest.raises(BadInput, match="beam search"):
            seen.weights("only")
        model.tap.name = "second"
        model(torch.randn(1, 2, 6), torch.randn(1, 3, 6), torch.randn(1, 3, 6), None)
        with pytest.raises(BadInput, match="only, second"):
            seen.weights()
        assert seen.weights("second").shape == (1, 2, 3)


# ---------------------------------------------------------------- many layers, many heads

NAMES = [
    "encoder.0.self",
    "encoder.1.self",
    "decoder.0.causal",
    "decoder.0.cross",
    "decoder.1.causal",
    "decoder.1.cross",
]
OPTIONS: list[dict[str, Any]] = [
    {},
    {"position": "relative", "key_value_heads": 1},
    {"position": "rotary", "norm": "post"},
]


@pytest.mark.parametrize("keys", OPTIONS, ids=str)
def test_every_head_of_every_layer_is_seen_and_explains_the_output(keys: dict[str, Any]) -> None:
    batch = random_batch(torch.seed() % 1000)
    model, target = small_transformer(**keys), batch.target.ids[:, :-1]
    plain = model(batch.source, target)
    with record(model) as seen:
        observed = model(batch.source, target)
    assert torch.equal(plain, observed)
    assert seen.max_difference < 1e-5
    assert seen.names() == NAMES
    read, written = batch.source.ids.size(1), target.size(1)
    for name in NAMES:
        weights = seen.weights(name)
        shape = {"self": (read, read), "causal": (written, written), "cross": (written, read)}[name.split(".")[2]]
        assert weights.shape == (3, 3, *shape)
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:3]))
        if "causal" in name:
            assert not weights.triu(1).any()
        else:
            assert not weights.masked_select(~batch.source.mask[:, None, None].expand_as(weights)).any()
    with pytest.raises(BadInput, match=r"name one of: encoder\.0\.self, "):
        seen.weights()


@pytest.mark.parametrize("keys", OPTIONS, ids=str)
def test_steps_with_a_cache_see_what_the_whole_saw(keys: dict[str, Any]) -> None:
    """Also where a text looks at its own past, of which there is more in each step."""
    batch = random_batch(torch.seed() % 1000)
    model, target = small_transformer(**keys), batch.target.ids[:, :-1]
    with torch.inference_mode(), record(model) as seen:
        model(batch.source, target)
        forced = {name: seen.weights(name) for name in NAMES[2:]}
        seen.begin()
        memory = model.encode(batch.source)
        cache = model.start(memory, 3, target.size(1))
        for position in range(target.size(1)):
            _, cache = model.step(target[:, position], torch.full((3,), position), memory, cache)
    for name in NAMES[2:]:
        torch.testing.assert_close(seen.weights(name), forced[name], atol=1e-5, rtol=1e-4)


def test_only_the_chosen_layers_heads_and_kinds_are_kept() -> None:
    model, batch = small_transformer(), random_batch(5)
    with record(model) as everything:
        model(batch.source, batch.target.ids)
    with record(model, layers=[1], heads=[2, 0], kinds={"cross", "self"}) as seen:
        model(batch.source, batch.target.ids)
    assert seen.names() == ["encoder.1.self", "decoder.1.cross"]
    for name in seen.names():
        assert torch.equal(seen.weights(name), everything.weights(name)[:, [2, 0]])
    with pytest.raises(BadInput, match=r"layers \[1, 2\]: .* layers 0, 1"), record(model, layers={2, 1}):
        pass
    with (
        pytest.raises(BadInput, match=r"heads \[1, 3\]: encoder\.0\.self has 3, counted from 0"),
        record(model, heads=[1, 3]),
    ):
        pass
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


def test_dropout_in_training_shows_as_a_difference() -> None:
    """The weights are those before dropout; what was dropped is stated, not hidden."""
    model, batch = small_transformer(attention_dropout=0.5).train(), random_batch(6)
    with record(model, kinds={"cross"}) as seen:
        model(batch.source, batch.target.ids)
    torch.testing.assert_close(seen.weights("decoder.0.cross").sum(-1), torch.ones(3, 3, batch.target.ids.size(1)))
    assert seen.max_difference > 1e-2
