"""Heads taken away: nothing else changes, everything comes back, and all heads away is the attention away."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from sacrebleu import corpus_bleu
from seeded import seed as seed
from torch import Tensor, nn
from translators import sentences, translator

from jumok.data.batch import PairBatch
from jumok.errors import BadInput
from jumok.inspect.ablation import Head, ablated, head_importance, heads_of, mean_outputs, usable_pairs
from jumok.layers.tap import Tap
from jumok.models.build import build
from jumok.models.encoder_decoder import EncoderDecoder
from jumok.recipe import Seq2SeqSection, TransformerSection

SOURCES = [[5, 6, 7, 8], [9, 10], [11, 12, 13]]
TARGETS = [[5, 9, 6], [7, 8, 10, 11, 12], [6]]
MODELS = {
    "transformer": TransformerSection(width=16, heads=4, feed_forward=16, encoder_layers=2, decoder_layers=2),
    "grouped": TransformerSection(
        width=16, heads=4, key_value_heads=2, feed_forward=16, encoder_layers=1, decoder_layers=2, norm="post"
    ),
    "luong": Seq2SeqSection(width=16, embedding=8, layers=1, attention="luong"),
    "feeding": Seq2SeqSection(width=16, embedding=8, layers=1, attention="luong", input_feeding=True),
    "bahdanau": Seq2SeqSection(width=16, embedding=8, layers=1, attention="bahdanau", scorer="additive"),
}


def logits(model: EncoderDecoder) -> Tensor:
    batch = PairBatch.of(SOURCES, TARGETS)
    with torch.inference_mode():
        return model.head(model(batch.source, batch.target.ids[:, :-1]))


def a_model(name: str) -> EncoderDecoder:
    return build(MODELS[name], 20, 20).eval()


@pytest.mark.parametrize("name", MODELS)
def test_without_any_head_attention_says_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same as a model whose attention is zero; and when the block ends, the model is what it was."""
    model = a_model(name)
    before = logits(model)
    with ablated(model, heads_of(model)):
        without = logits(model)
    assert torch.equal(logits(model), before)
    assert not any(module.watched for module in model.modules() if isinstance(module, Tap))
    monkeypatch.setattr(
        Tap, "forward", lambda self, query, key, value, *rest: torch.zeros_like(query[..., : value.size(-1)])
    )
    torch.testing.assert_close(without, logits(model))
    assert not torch.allclose(without, before, atol=1e-3)


def test_one_head_away_is_its_columns_of_the_output_map_away() -> None:
    """head_h(x) W_h = 0 either way."""
    model = a_model("transformer")
    with ablated(model, [Head("decoder.1.cross", 2)]):
        without = logits(model)
    output = next(
        module.output
        for module in model.modules()
        if getattr(getattr(module, "tap", None), "name", "") == "decoder.1.cross"
    )
    assert isinstance(output, nn.Linear)
    with torch.no_grad():
        output.weight[:, 8:12] = 0  # four heads of width 4
    torch.testing.assert_close(without, logits(model))


def test_the_mean_is_that_of_real_positions_alone() -> None:
    """Of sentences one by one, where nothing is padded, it is the same; a constant output is not changed by it."""
    one = translator("transformer")
    sources, targets = sentences(3), ["Le chat.", "Les chiens voient le grand oiseau rouge.", "Oui."]
    together = mean_outputs(one, sources, targets)
    alone = [mean_outputs(one, [source], [target]) for source, target in zip(sources, targets, strict=True)]
    read = torch.tensor([len(row) + 1.0 for row in one.source.encode(sources)])
    wrote = torch.tensor([len(row) + 1.0 for row in one.target.encode(targets)])
    for name, mean in together.items():
        counts = read if name.startswith("encoder") else wrote
        weighted = sum(count * each[name] for count, each in zip(counts, alone, strict=True)) / counts.sum()
        torch.testing.assert_close(mean, weighted, rtol=1e-4, atol=1e-5)
        assert mean.shape == (4, 8)
    with ablated(one.model, [Head("encoder.0.self", 1)], together):
        outputs: list[Tensor] = []
        tap = next(
            module for module in one.model.modules() if isinstance(module, Tap) and module.name == "encoder.0.self"
        )
        handle = tap.register_forward_hook(lambda module, inputs, output: outputs.append(output))
        one.score(sources, targets)
        handle.remove()
    torch.testing.assert_close(outputs[0][:, 1], together["encoder.0.self"][1].expand_as(outputs[0][:, 1]))
    assert outputs[0][:, 0].std(dim=1).max() > 1e-4


@pytest.mark.parametrize("kind", ["transformer", "lstm"])
def test_importance_is_measured_by_hand_the_same(kind: str) -> None:
    model = translator(kind, precise=True)  # three sentences are written as they were among six
    sources = sentences(6)
    targets = model.translate(sources, beam=1)
    found = head_importance(model, sources, targets, bleu_sentences=3)
    # 100, unless a random model wrote less than four words, of which no BLEU is made
    assert found.bleu == pytest.approx(corpus_bleu(targets[:3], [targets[:3]]).score)
    assert len(found.heads) == (4 * 3 * 2 if kind == "transformer" else 1)
    changes = [one.loss_change for one in found.heads]
    assert changes == sorted(changes, reverse=True)
    one = found.heads[0]
    with ablated(model.model, [Head(one.tap, one.head)]):
        scored = model.score(sources, targets)
        words = model.translate(sources[:3], beam=1)
    loss = -sum(each.log_probability for each in scored) / sum(len(each.log_probabilities) for each in scored)
    assert one.loss == pytest.approx(loss, abs=1e-6)
    assert one.loss_change == pytest.approx(loss - found.loss, abs=1e-6)
    assert one.bleu == pytest.approx(corpus_bleu(words, [targets[:3]]).score)


def test_what_is_not_there_is_named() -> None:
    model = a_model("transformer")
    assert len(heads_of(model, ["cross"])) == 8
    with pytest.raises(BadInput, match="heads 0 to 3"), ablated(model, [Head("decoder.0.cross", 4)]):
        pass
    with pytest.raises(BadInput, match=r"decoder\.0\.cross"), ablated(model, [Head("decoder.0.cros", 1)]):
        pass
    with pytest.raises(BadInput, match="has no heads"), ablated(a_model("luong"), [Head("decoder", 0)]):
        pass
    with pytest.raises(BadInput, match="no such attention"):
        heads_of(a_model("luong"), ["self"])
    with pytest.raises(BadInput, match="no attention"):
        heads_of(build(Seq2SeqSection(width=16, embedding=8, layers=1, attention="none"), 20, 20))


def test_pairs_that_the_model_cannot_read_are_left_out(tmp_path: Path) -> None:
    model = translator("transformer")
    source, target = tmp_path / "a.en", tmp_path / "a.fr"
    source.write_text(f"The cat.\n\n{'word ' * 300}\nThe dog.\nThe bird.\n", encoding="utf-8")
    target.write_text("Le chat.\nLe chat.\nLe chat.\nLe chien.\nOiseau.\n", encoding="utf-8")
    assert usable_pairs(model, source, target, 2) == (["The cat.", "The dog."], ["Le chat.", "Le chien."], 2)
    target.write_text("\n" * 5, encoding="utf-8")
    with pytest.raises(BadInput, match="blank"):
        usable_pairs(model, source, target, 2)


def test_a_compiled_model_would_not_notice() -> None:
    model = a_model("transformer")
    compiled = torch.compile(model, backend="eager")
    with pytest.raises(BadInput, match="compiled"), ablated(compiled, [Head("decoder.0.cross", 1)]):  # type: ignore[arg-type]
        pass
