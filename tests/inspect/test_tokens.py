"""Loaded runs: tokens have their names, their places in the very text that was given, and their words."""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np
import pytest
import torch
from translators import sentences, translator

from jumok import api
from jumok.data.batch import END
from jumok.errors import BadInput
from jumok.inspect.forced import forced_attention
from jumok.inspect.record import record
from jumok.inspect.tokens import Read, Remembering, Vocabulary
from jumok.inspect.view import View
from jumok.models.language import build_language_model
from jumok.recipe import TransformerLanguageSection
from jumok.tasks.engine import Engine
from jumok.tasks.generator import GenerateOptions, Generator
from jumok.text.tags import with_tags
from jumok.text.tokenizer import train_tokenizer


@pytest.mark.parametrize("kind", ["bpe", "word", "byte", "character"])
def test_offsets_are_of_the_text_that_was_given(kind: str) -> None:
    model = translator("transformer", kind, beam=5, max_ratio=0.5)
    texts = [*sentences(3), "  Ein Café, e\u0301t un chien. ", sentences(1)[0]]
    plain = model.translate(texts)
    model.engine = Engine(model.models, model.device, fast=True)
    fast = model.translate(texts)  # the same, but where two words were next to alike
    with record(model, layers=[1]) as seen:
        assert model.translate(texts) == plain
    assert "model itself" in seen.notes[0]
    assert len(seen.paths) == len(texts)
    for number, text in enumerate(texts):  # in the order given, though the longest was searched first
        one = seen.path(number).records["decoder.1.cross"]
        keys, queries = one.keys(), one.queries()
        assert keys.text == text.strip()
        assert queries.text.split() == plain[number].split()  # a random model may write two blanks in a row
        path = seen.path(number)
        assert (keys.tokens[-1], keys.offsets[-1]) == ("<eos>", None)
        assert len(queries) == len(path.tokens) + path.finished
        words = keys.text.split()
        for span, word in zip(keys.spans[:-1], keys.words[:-1], strict=True):
            assert word is not None
            assert span.strip() in words[word]
        assert "".join(keys.spans).replace(" ", "") == keys.text.replace(" ", "") or kind == "byte"
        (forced,) = forced_attention(model, [text], [list(path.tokens)], view=View(1), ended=[path.finished])
        picture = seen.attention(number, layer=1)
        assert (picture.source, picture.target) == (forced.source, forced.target)
        np.testing.assert_allclose(picture.weights, forced.weights, atol=1e-5)
    assert seen.path(texts[1]).sentence == 1
    with pytest.raises(BadInput, match="no sentence 'other'"):
        seen.path("other")
    assert not isinstance(model.source, Remembering)
    assert model.translate(texts) == fast


def test_given_translations_keep_their_own_text() -> None:
    model = translator("lstm", "word")
    with record(model) as seen:
        model.score(["The dog zzz sees ."], ["Le chien qqq voit ."])
    assert seen.attention(words=False).source[2] == "<unk>"
    assert seen.attention().target == ("Le", "chien", "qqq", "voit", ".", "<eos>")
    assert seen.attention().source == ("The", "dog", "zzz", "sees", ".", "<eos>")


def test_a_tag_is_no_part_of_the_text() -> None:
    tagged = with_tags(train_tokenizer(["a b c d"], "word", 20), ["2de"])
    (tag,) = tagged.tags.values()
    ids = tagged.encode(["a b"])[0]
    read = Read((tag, *ids, END), None, Vocabulary(tagged, tagged)).sides("self")[0]
    assert read is not None
    assert read.offsets == (None, (0, 1), (2, 3), None)
    assert read.words == (None, 0, 1, None)
    assert read.text == "a b"


def a_generator() -> Generator:
    seed = secrets.randbelow(2**31)
    print(f"seed {seed}")
    torch.manual_seed(seed)
    tokenizer = train_tokenizer(sentences(20), "bpe", 300)
    section = TransformerLanguageSection(width=16, heads=2, layers=2, feed_forward=16)
    model = build_language_model(section, tokenizer.size).eval()
    return Generator(model, tokenizer, 64, torch.device("cpu"))


@pytest.mark.parametrize("wanted", [{"beam": 3}, {"sample": True, "count": 2}], ids=str)
def test_a_language_model_by_itself(wanted: dict[str, Any]) -> None:
    model, prompts = a_generator(), ["The old dog", "The"]
    options = GenerateOptions(max_tokens=6, **wanted)
    plain = model.continuations(prompts, options)
    with record(model, heads=[1]) as seen:
        assert model.continuations(prompts, options) == plain
    number = 1 if "beam" in wanted else 2  # each sample is searched by itself
    one = seen.path(number).records["decoder.1.causal"]
    assert one.queries().tokens == one.keys().tokens
    assert one.queries().text.strip().startswith("The")
    picture = seen.attention(number)
    assert picture.name == "decoder.0.causal, mean of 1 heads"
    np.testing.assert_allclose(picture.weights.sum(1), 1, atol=1e-5)
    with record(model) as seen:
        model.perplexity(["The old dog", "The"])
    assert seen.attention().kind == "causal"


def test_notebooks_and_the_run_in_the_package() -> None:
    model = api.load_translator(device="cpu")
    with record(model) as seen:
        model.translate(["I am a student.", "<script>alert(1)</script>"], beam=5)
    np.testing.assert_allclose(seen.attention(0).weights, model.attend("I am a student.").weights, atol=1e-5)
    shown = seen._repr_html_()
    for html in (shown, seen.path(1)._repr_html_(), seen.path(1).records["decoder"]._repr_html_()):
        assert "<iframe srcdoc=" in html
        assert "<script>alert" not in html
    assert f"{seen.max_difference:.1e}" in shown
    assert "2 sentences searched" in repr(seen)
    assert "nothing" in type(seen)(model.model, [], None, Vocabulary())._repr_html_()
    with pytest.raises(BadInput, match="2 sentences were searched"):
        seen.weights()
