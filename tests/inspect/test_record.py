from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from jumok.data.batch import PairBatch
from jumok.data.packing import PackedPairs
from jumok.errors import BadInput
from jumok.inspect.record import record
from jumok.layers.attention import SCORERS, build_scorer
from jumok.layers.stack import compute_again
from jumok.layers.tap import Tap
from jumok.models.language import LanguageModel, build_language_model
from jumok.models.seq2seq import Seq2Seq
from jumok.models.transformer import Transformer
from jumok.recipe import Seq2SeqSection, TransformerLanguageSection, TransformerSection
from jumok.tasks.translation import TranslationObjective

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


# ---------------------------------------------------------------- the written-out softmax, for every model


def written_out(given: dict[str, Tensor | None], scorer: Any) -> Tensor:
    """α_ts = exp(e_ts) / Σ_s' exp(e_ts') over what may be looked at, with the score of each pair by its formula."""
    query, key = given["query"], given["key"]
    assert query is not None
    assert key is not None
    name = type(scorer).__name__
    if name == "Additive":
        hidden = scorer.query(query)[:, :, None] + key[:, None]
        scores = (torch.tanh(hidden) * scorer.score.weight[0]).sum(-1)
    elif name == "Location":
        scores = query @ scorer.weight.weight[: key.size(1)].T
    else:  # dot, general (whose key is W h by now) and scaled
        scores = torch.einsum("...td,...sd->...ts", query, key)
        scores = scores / query.size(-1) ** 0.5 if name == "ScaledDot" else scores
    if given["bias"] is not None:
        scores = scores + given["bias"]
    open_ = torch.ones_like(scores, dtype=torch.bool)
    if given["mask"] is not None:
        mask = given["mask"]
        mask = mask[:, None] if mask.dim() == 2 else mask
        open_ &= mask[:, None] if scores.dim() == 4 else mask
    if given["causal"]:
        open_ &= torch.ones(scores.shape[-2:], dtype=torch.bool).tril(scores.size(-1) - scores.size(-2))
    raised = torch.exp(scores - scores.amax(-1, keepdim=True)) * open_
    return raised / raised.sum(-1, keepdim=True)


EVERY: dict[str, Any] = {
    "bahdanau": lambda: small_model("bahdanau"),
    **{
        f"luong {scorer}": lambda scorer=scorer: Seq2Seq(
            Seq2SeqSection(embedding=8, width=12, layers=1, attention="luong", scorer=scorer), 20, 20
        ).eval()
        for scorer in ("dot", "scaled-dot", "general", "additive", "location")
    },
    "feeding": lambda: small_model("feeding"),
    **{
        f"transformer {keys}": lambda keys=keys: small_transformer(**keys)
        for keys in (*OPTIONS, {"position": "learned"}, {"width": 24, "heads": 6, "key_value_heads": 2})
    },
    **{
        f"language {position}": lambda position=position: build_language_model(
            TransformerLanguageSection(width=16, heads=4, layers=2, feed_forward=16, position=position), 20
        ).eval()
        for position in ("rotary", "relative")
    },
}


def run(model: nn.Module, batch: PairBatch) -> Tensor:
    if isinstance(model, LanguageModel):
        return model(batch.target.ids)
    return model(batch.source, batch.target.ids[:, :-1])


@pytest.mark.parametrize("kind", EVERY)
@torch.no_grad()
def test_records_are_the_written_out_softmax_and_outputs_stay_bit_for_bit(kind: str) -> None:
    seed = torch.seed() % 10000
    batch, model = random_batch(seed), EVERY[kind]()
    plain, inputs = run(model, batch), {}
    names = ("query", "key", "value", "mask", "scorer", "bias", "causal")

    def keep(tap: Any, given: tuple[Any, ...], _output: Tensor) -> None:
        filled = dict.fromkeys(names) | dict(zip(names, given, strict=False))
        inputs.setdefault(tap.name, []).append((filled, given[4]))

    handles = [tap.register_forward_hook(keep) for tap in model.modules() if isinstance(tap, Tap)]
    with record(model) as seen:
        observed = run(model, batch)
    for handle in handles:
        handle.remove()
    assert torch.equal(plain, observed)
    assert len(seen.records) == sum(map(len, inputs.values()))
    for one in seen.records:
        given, scorer = inputs[one.name].pop(0)
        torch.testing.assert_close(
            one.weights, written_out(given, scorer), atol=1e-6, rtol=0, msg=lambda text: f"seed {seed}: {text}"
        )
    assert seen.max_difference < 1e-5


# ---------------------------------------------------------------- batches of training


@pytest.mark.parametrize("keys", OPTIONS, ids=str)
def test_packed_batches_are_seen_sentence_by_sentence(keys: dict[str, Any]) -> None:
    batch, model = random_batch(torch.seed() % 1000), small_transformer(**keys)
    packed = PackedPairs.of(batch)
    plain = model(packed.source, packed.target)
    with record(model) as seen:
        assert torch.equal(model(packed.source, packed.target), plain)
    with record(model) as padded:
        model(batch.source, batch.target.ids[:, :-1])
    for one, same in zip(seen.records, padded.records, strict=True):
        for row in range(3):
            mine, expected = one.attention(row, words=False), same.attention(row, words=False)
            assert (mine.source, mine.target) == (expected.source, expected.target)
            torch.testing.assert_close(torch.tensor(mine.weights), torch.tensor(expected.weights), atol=1e-5, rtol=0)
            assert len(mine.target) == int((batch.source if one.kind == "self" else batch.target).lengths[row]) - (
                one.kind != "self"
            )


def test_an_objective_is_recorded_and_a_recomputed_layer_is_seen_once() -> None:
    """Activation checkpointing computes a layer again in the backward pass: that is no second look."""
    model, batch = small_transformer().train(), random_batch(7)
    compute_again(model)
    objective = TranslationObjective(model, label_smoothing=0.1).train()
    with record(objective, kinds=["cross"]) as seen:
        objective(batch).sum.backward()
    assert [(one.name, one.step) for one in seen.records] == [("decoder.0.cross", 0), ("decoder.1.cross", 0)]
    assert seen.records[0].queries(1).tokens[-1] == "<eos>"
    assert len(seen.records[0].queries(1)) == 3


def test_a_text_read_without_a_forward_begins_anew() -> None:
    model = EVERY["language rotary"]()
    with torch.no_grad(), record(model) as seen:
        _, past = model.read(torch.tensor([[4, 5, 6]]))
        model.read(torch.tensor([[7]]), past)
        both = seen.weights("decoder.0.causal")
        model.read(torch.tensor([[8, 9]]))
    assert both.shape == (1, 4, 4, 4)
    assert seen.weights("decoder.0.causal").shape == (1, 4, 2, 2)


def test_what_is_not_there_is_refused() -> None:
    model = small_transformer()
    with pytest.raises(BadInput, match=r"kinds \['croos'\]: .* causal, cross, self"), record(model, kinds=["croos"]):
        pass
    with pytest.raises(BadInput, match="a network or a loaded run"), record("model"):  # type: ignore[arg-type]
        pass
    batch = random_batch(8)
    with record(model, layers=[1], heads=[2]) as seen:
        run(model, batch)
    assert seen.attention(2, kind="self").name == "encoder.1.self, mean of 1 heads"
    assert seen.attention(1).name.startswith("decoder.1.cross")  # layer 0, the usual one, was not recorded
    for wrong, words in (
        ({"head": 0}, "heads 2 were recorded"),
        ({"layer": 0}, "was recorded in 1"),
        ({"kind": "other"}, "self, causal, cross"),
        ({"row": 3}, "has 3 rows"),
    ):
        with pytest.raises(BadInput, match=words):
            seen.attention(**wrong)
