"""The steps of attention, written out: every number is the model's own."""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from translators import tokenizers, translator

from jumok.data.batch import END, START, PairBatch
from jumok.errors import BadInput
from jumok.inspect.forced import forced_attention
from jumok.inspect.steps import Steps, _place, _said, steps_of
from jumok.inspect.steps_picture import draw_steps, printed, steps_page, write_steps
from jumok.inspect.tokens import Read, Vocabulary
from jumok.inspect.view import View
from jumok.models.build import build
from jumok.recipe import Search, Seq2SeqSection, TransformerSection
from jumok.tasks.translator import Translator
from jumok.text.special import UNKNOWN

SENTENCE, TARGET = "The old woman sees a dog .", "La vieille femme voit un chien ."
RECURRENT: list[dict[str, Any]] = [
    {"attention": "bahdanau", "scorer": "additive", "bidirectional": True},
    {"attention": "luong", "scorer": "dot"},
    {"attention": "luong", "scorer": "scaled-dot"},
    {"attention": "luong", "scorer": "general", "tie_embeddings": True},
    {"attention": "luong", "scorer": "additive"},
    {"attention": "luong", "scorer": "location"},
    {"attention": "luong", "scorer": "general", "input_feeding": True},
]
TRANSFORMERS: list[dict[str, Any]] = [{}, {"position": "rotary", "key_value_heads": 2}, {"position": "relative"}]


def a_translator(section: Any) -> Translator:
    seed = secrets.randbelow(2**31)
    print(f"seed {seed}")
    torch.manual_seed(seed)
    source, target = tokenizers("bpe")
    model = build(section, source.size, target.size).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return Translator(model, source, target, Search(beam=2, max_ratio=1.0, max_extra=5), 100, torch.device("cpu"))


def recurrent(keys: dict[str, Any]) -> Translator:
    return a_translator(Seq2SeqSection(width=16, embedding=8, layers=1, **keys))


def transformer(keys: dict[str, Any]) -> Translator:
    sizes = {"width": 16, "heads": 4, "feed_forward": 16, "encoder_layers": 2, "decoder_layers": 2}
    return a_translator(TransformerSection(**sizes, **keys))


@torch.no_grad()
def own_prediction(model: Translator, place: int) -> torch.Tensor:
    """p(y_t | y_<t, x) of the model's forward."""
    pair = PairBatch.of(model.source.encode([SENTENCE]), model.target.encode([TARGET]))
    return model.model.head(model.model(pair.source, pair.target.ids[:, :-1]))[0, place].softmax(-1)


def predicts(found: Steps, model: Translator) -> None:
    """By probabilities: of two words that are next to alike a step may name one first, a whole pass the other."""
    own = own_prediction(model, found.place)
    names = model.target.pieces(range(len(own)))
    told = [probability for _, probability in found.best]
    np.testing.assert_allclose(told, own.topk(5).values.numpy(), atol=1e-5)
    np.testing.assert_allclose([float(own[names.index(word)]) for word, _ in found.best], told, atol=1e-5)
    assert len({word for word, _ in found.best}) == 5


@pytest.mark.parametrize("keys", RECURRENT, ids=str)
def test_six_steps_from_the_score_to_the_word(keys: dict[str, Any]) -> None:
    model = recurrent(keys)
    seen: list[tuple[Any, torch.Tensor]] = []
    hook = model.model.decoder.tap.register_forward_hook(lambda _m, inputs, output: seen.append((inputs, output)))
    found = steps_of(model, SENTENCE, "voit", TARGET)
    hook.remove()
    (_, _, values, *_), output = seen[-1]
    assert len(found.steps) == 6
    score, distribution, value, joined, state, predicted = found.steps
    assert found.written[found.place].startswith("▁vo")
    np.testing.assert_allclose(distribution.values, np.exp(score.values) / np.exp(score.values).sum(), atol=1e-6)
    (picture,) = forced_attention(model, [SENTENCE], [TARGET], words=False)
    np.testing.assert_allclose(distribution.values, picture.weights[found.place], atol=1e-5)
    assert distribution.labels == picture.source
    assert np.array_equal(value.values, output[0, 0].numpy())  # what the tap gave, not something like it
    np.testing.assert_allclose(value.values, distribution.values @ values[0].numpy(), atol=1e-5)
    assert joined.values.shape == ((40,) if keys["attention"] == "bahdanau" else (32,))
    parts = np.split(joined.values, [16, 32])
    assert np.array_equal(parts[1 if keys["attention"] == "bahdanau" else 0], value.values)
    with torch.no_grad():  # the state that was shown is the one that predicts
        logits = model.model.head(torch.from_numpy(state.values))
    np.testing.assert_allclose(logits.softmax(-1).topk(5).values.numpy(), predicted.values, atol=1e-5)
    assert predicted.symbol == "ŷ_t"
    assert predicted.labels == tuple(word for word, _ in found.best)
    predicts(found, model)


@pytest.mark.parametrize("keys", TRANSFORMERS, ids=str)
@pytest.mark.parametrize("kind", ["cross", "causal", "self"])
def test_a_head_from_its_query_to_its_value(keys: dict[str, Any], kind: str) -> None:
    model = transformer(keys)
    view = View(1, 2, kind)
    tap = view.tap(model.model)
    outputs: list[torch.Tensor] = []
    hook = tap.register_forward_hook(lambda _m, _i, output: outputs.append(output))
    found = steps_of(model, SENTENCE, "3", TARGET, view)
    hook.remove()
    names = [step.symbol for step in found.steps]
    biased = ["+ b"] if keys.get("position") == "relative" and kind != "cross" else []
    assert names == ["q", "k", "v", "q·k/√d_k", *biased, "mask", "softmax", "Σ"]
    q, k, v, masked, weights = (found[name].values for name in ("q", "k", "v", "mask", "softmax"))
    np.testing.assert_allclose(found["q·k/√d_k"].values, k @ q / np.sqrt(4), atol=1e-5)
    raised = np.exp(masked - masked.max())
    np.testing.assert_allclose(weights, raised / raised.sum(), atol=1e-6)
    assert np.array_equal(found["Σ"].values, outputs[-1][0, 2, found.place].numpy())
    np.testing.assert_allclose(found["Σ"].values, weights @ v, atol=1e-5)
    assert np.isneginf(masked).sum() == (len(masked) - found.place - 1 if kind == "causal" else 0)
    (picture,) = forced_attention(model, [SENTENCE], [TARGET], words=False, view=view)
    np.testing.assert_allclose(weights, picture.weights[found.place], atol=1e-6)
    assert found["softmax"].labels == picture.source
    assert found.written == picture.target
    assert "head 2 of 4" in found.title
    if kind == "self":
        assert found.best == ()
    else:
        predicts(found, model)


def test_a_word_by_number_name_or_token() -> None:
    model = translator("lstm", "bpe", wordy=True)
    found = {word: steps_of(model, SENTENCE, word, TARGET).place for word in ("1", "La", "la", "8", "<eos>", "vieille")}
    assert found["1"] == found["La"] == found["la"] == 0
    assert found["8"] == found["<eos>"] == len(model.target.encode([TARGET])[0])
    assert steps_of(model, SENTENCE, "2", TARGET).place == found["vieille"]
    assert steps_of(model, SENTENCE, "3", TARGET, tokens=True).place == 2
    for word, said in (("0", "There are: 1 La, 2 vieille"), ("9", "8 <eos>"), ("vielle", 'Did you mean "vieille"')):
        with pytest.raises(BadInput, match=said):
            steps_of(model, SENTENCE, word, TARGET)
    own = steps_of(model, SENTENCE, "1")
    best = model.nbest([SENTENCE])[0][0]
    assert own.written == tuple(model.target.pieces(best.ids))  # it never ends: it was cut, and has no <eos>
    with pytest.raises(BadInput, match="no attention"):
        steps_of(translator("plain"), SENTENCE, "1", TARGET)


EVIL = "<script>alert(1)</script> \x1b[31m"


@pytest.mark.parametrize("kind", ["recurrent", "causal"])
def test_it_is_printed_and_shown_in_a_page(kind: str) -> None:
    model = recurrent(RECURRENT[0]) if kind == "recurrent" else transformer({})
    view = View() if kind == "recurrent" else View(0, None, "causal")
    found = steps_of(model, SENTENCE + " " + EVIL, "2", TARGET + " " + EVIL, view)
    text = printed(found, 60)
    assert "\x1b" not in text
    for step in found.steps:
        assert step.formula in text
    first = f"{found.steps[0].values[0]:.3f}".replace("-", "−")
    assert first in text
    page = steps_page(found)
    assert "<script" not in page
    assert first in page
    assert page.count('<section class="step">') == len(found.steps)


def test_every_kind_of_file(tmp_path: Path) -> None:
    found = steps_of(transformer({}), SENTENCE, "2", TARGET, View(0, None, "causal"))
    for kind in ("png", "svg", "json"):
        write_steps(found, tmp_path / f"x.{kind}")
    assert (tmp_path / "x.png").read_bytes()[:4] == b"\x89PNG"
    assert b"<svg" in (tmp_path / "x.svg").read_bytes()
    assert draw_steps(found, "png", dark=True) != (tmp_path / "x.png").read_bytes()
    told = json.loads((tmp_path / "x.json").read_text(encoding="utf-8"))
    for step, plain in zip(found.steps, told["steps"], strict=True):
        values = np.array(plain["values"], dtype=np.float32)  # None becomes nan
        np.testing.assert_array_equal(values, np.where(np.isfinite(step.values), step.values, np.nan))
    with pytest.raises(BadInput, match="gif"):
        write_steps(found, tmp_path / "x.gif")


def test_the_page_opens_in_a_browser(visit: Any, tmp_path: Path) -> None:
    found = steps_of(recurrent(RECURRENT[1]), SENTENCE, "2", TARGET)
    write_steps(found, tmp_path / "x.html")
    page = visit(tmp_path / "x.html")
    assert page.evaluate("document.querySelector('main img').naturalWidth") > 300
    assert page.locator("section.step").count() == 6
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_translation_without_text_has_steps_too() -> None:
    model = translator("lstm", "character")
    blank = model.target.encode([" "])[0] or [UNKNOWN]
    read = Read((5, END), (START, *blank), Vocabulary(model.source, model.target)).sides("cross")[0]
    assert read is not None
    assert _place(read, "1", by_tokens=False) == 0
    assert read.tokens[0] in _said(read, 0)
    with pytest.raises(BadInput, match="no such word"):
        _place(read, "²", by_tokens=False)


def test_a_sentence_over_the_limit_is_refused() -> None:
    model = translator("lstm")
    model.max_length = 3
    with pytest.raises(BadInput, match="limit is 3"):
        steps_of(model, SENTENCE, "1", TARGET)
