"""The attention of a translation: by words or tokens, each row a distribution, and the one the decoding had."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from jumok.data import grammar
from jumok.data.batch import START, source_batch
from jumok.errors import BadInput
from jumok.inspect.forced import forced_attention, word_links
from jumok.inspect.record import record
from jumok.inspect.view import View
from jumok.models.build import build
from jumok.recipe import Search, Seq2SeqSection, TransformerSection
from jumok.tasks.translator import Translator
from jumok.text.special import UNKNOWN
from jumok.text.tokenizer import Tokenizer, train_tokenizer

PAIRS = list(grammar.pairs("en", "fr", "train", 200))
PAIRS_OF_TEXT = [("the dog sleeps", "le chien dort")]


@pytest.fixture(scope="module")
def tokenizers() -> tuple[Tokenizer, Tokenizer]:
    source = train_tokenizer((pair.source for pair in PAIRS), "bpe", 300)
    return source, train_tokenizer((pair.target for pair in PAIRS), "bpe", 300)


def a_translator(tokenizers: tuple[Tokenizer, Tokenizer], **keys: object) -> Translator:
    section: Seq2SeqSection | TransformerSection
    if keys.get("kind") == "transformer":
        section = TransformerSection.model_validate({"width": 16, "heads": 2, "feed_forward": 16, **keys})
    else:
        section = Seq2SeqSection.model_validate({"width": 16, "embedding": 8, "layers": 1, **keys})
    model = build(section, tokenizers[0].size, tokenizers[1].size)
    return Translator(model, *tokenizers, Search(beam=2), 100, torch.device("cpu"))


KINDS = [
    {"attention": "luong"},
    {"attention": "luong", "input_feeding": True},
    {"attention": "bahdanau", "scorer": "additive", "bidirectional": True},
    {"kind": "transformer", "encoder_layers": 2, "decoder_layers": 1},
]


@pytest.mark.parametrize("keys", KINDS, ids=str)
def test_rows_are_distributions_over_the_words_of_the_sentence(
    tokenizers: tuple[Tokenizer, Tokenizer], keys: dict[str, object]
) -> None:
    translator = a_translator(tokenizers, **keys)
    texts = [pair.source for pair in PAIRS[:5]]
    ids = translator.target.encode([pair.target for pair in PAIRS[:5]])
    for words in (True, False):
        for pair, picture in zip(PAIRS, forced_attention(translator, texts, ids, words), strict=False):
            assert np.allclose(picture.weights.sum(axis=1), 1, atol=1e-5)
            if words:
                assert picture.source == (*pair.source.split(), "<eos>")
                assert picture.target == (*pair.target.split(), "<eos>")
            else:
                assert len(picture.target) == len(ids[PAIRS.index(pair)]) + 1


@pytest.mark.parametrize("keys", KINDS, ids=str)
def test_they_are_the_weights_that_decoding_had(
    tokenizers: tuple[Tokenizer, Tokenizer], keys: dict[str, object]
) -> None:
    """Fed the same words one by one through the search's own protocol, the model looks at the same places."""
    translator = a_translator(tokenizers, **keys)
    model = translator.model.eval()
    text, ids = PAIRS[0].source, translator.target.encode([PAIRS[0].target])[0]
    (picture,) = forced_attention(translator, [text], [ids], words=False)
    with torch.inference_mode(), record(model) as seen:
        memory = model.encode(source_batch(translator.source.encode([text])))
        cache = model.start(memory, 1, 50)
        for position, token in enumerate([START, *ids]):
            _, cache = model.step(torch.tensor([token]), torch.tensor([position]), memory, cache)
    steps = [one.weights for one in seen.records if one.kind == "cross"]
    stepped = torch.cat([one.mean(dim=1) if one.dim() == 4 else one for one in steps], dim=1)[0]
    torch.testing.assert_close(torch.from_numpy(picture.weights), stepped, rtol=1e-4, atol=1e-5)


def test_a_model_without_attention_says_so(tokenizers: tuple[Tokenizer, Tokenizer]) -> None:
    with pytest.raises(BadInput, match="no attention"):
        forced_attention(a_translator(tokenizers, attention="none"), ["I am."], [[5, 6]])


def test_words_keep_their_numbers_where_the_vocabulary_does_not_know_them() -> None:
    """An unknown word in the reference must not shift the links of the words after it."""
    known = train_tokenizer(["a b c d e"], "word", 50)
    model = build(Seq2SeqSection(width=16, embedding=8, layers=1), known.size, known.size)
    translator = Translator(model, known, known, Search(beam=1), 100, torch.device("cpu"))
    (links,) = word_links(translator, ["a b c"], ["a zzz yyy d e"])
    assert {target for _, target in links} == {0, 1, 2, 3, 4}


TRANSFORMER = {"kind": "transformer", "encoder_layers": 2, "decoder_layers": 3, "position": "rotary"}


def test_a_transformers_views(tokenizers: tuple[Tokenizer, Tokenizer]) -> None:
    """Rows are distributions; on both sides stand those who look and are looked at; the mean is that of the heads."""
    translator = a_translator(tokenizers, **TRANSFORMER)
    texts, targets = [pair.source for pair in PAIRS[:3]], [pair.target for pair in PAIRS[:3]]
    for kind in ("cross", "self", "causal"):
        for words in (True, False):
            mean, *heads = (
                forced_attention(translator, texts, targets, words, view=View(1, head, kind)) for head in (None, 0, 1)
            )
            for index, picture in enumerate(mean):
                np.testing.assert_allclose(picture.weights.sum(axis=1), 1, atol=1e-5)
                of_heads = np.mean([head[index].weights for head in heads], axis=0)
                np.testing.assert_allclose(picture.weights, of_heads, atol=1e-6)
                assert not np.allclose(heads[0][index].weights, heads[1][index].weights, atol=1e-4)
                assert heads[1][index].name.endswith(f".1.{kind}, head 1")
                if words:
                    source, target = texts[index].split(), targets[index].split()
                    sides = {"cross": (source, target), "self": (source, source), "causal": (target, target)}
                    keys, queries = sides[kind]
                    assert picture.target == (*queries, "<eos>")
                    assert picture.source == (("<sos>", *keys) if kind == "causal" else (*keys, "<eos>"))
                if (
                    kind == "causal"
                ):  # a piece is written before it is looked at, by the word's next piece at the earliest
                    assert not np.triu(picture.weights, 2 if words else 1).any()


def test_by_itself_the_second_to_last_layer_is_shown(tokenizers: tuple[Tokenizer, Tokenizer]) -> None:
    translator = a_translator(tokenizers, **TRANSFORMER)
    (default,), (chosen,), (other,) = (
        forced_attention(translator, [PAIRS[0].source], [PAIRS[0].target], view=view)
        for view in (None, View(1), View(2))
    )
    np.testing.assert_array_equal(default.weights, chosen.weights)
    assert default.name == "decoder.1.cross, mean of 2 heads"
    assert not np.allclose(default.weights, other.weights)


def test_links_of_a_chosen_head(tokenizers: tuple[Tokenizer, Tokenizer]) -> None:
    """The strongest word of each row of that head's picture, for texts and for ids alike."""
    translator = a_translator(tokenizers, **TRANSFORMER)
    texts, targets = [pair.source for pair in PAIRS[:70]], [pair.target for pair in PAIRS[:70]]
    found = word_links(translator, texts, targets, layer=2, head=1)
    assert found == word_links(translator, texts, translator.target.encode(targets), layer=2, head=1)
    assert found != word_links(translator, texts, targets)
    pictures = forced_attention(translator, texts, targets, view=View(2, 1))
    for links, picture in zip(found, pictures, strict=True):
        strongest = picture.weights[:-1, :-1].argmax(axis=1)  # <eos> is no word
        assert links == {(int(source), target) for target, source in enumerate(strongest)}
    with pytest.raises(BadInput, match="layer 3: the cross attention of this model is in layers 0 to 2"):
        word_links(translator, texts, targets, layer=3)


def test_a_given_text_keeps_the_words_that_the_vocabulary_does_not_know() -> None:
    known = train_tokenizer(["a b c d e"], "word", 50)
    model = build(Seq2SeqSection(width=16, embedding=8, layers=1), known.size, known.size)
    translator = Translator(model, known, known, Search(beam=1), 100, torch.device("cpu"))
    (picture,) = forced_attention(translator, ["a b zzz"], ["yyy a d"])
    assert picture.source == ("a", "b", "zzz", "<eos>")
    assert picture.target == ("yyy", "a", "d", "<eos>")


@pytest.mark.parametrize("keys", [{"attention": "luong"}, {"kind": "transformer"}])
def test_an_unknown_word_that_was_written_is_part_of_no_other(keys: dict[str, object]) -> None:
    tokenizers = tuple(
        train_tokenizer((side for side in sides), "word", 2000) for sides in zip(*PAIRS_OF_TEXT, strict=True)
    )
    translator = a_translator((tokenizers[0], tokenizers[1]), **keys)
    first, last = translator.target.encode(["le chien"])[0]
    ids = [first, UNKNOWN, last]
    (by_words,) = forced_attention(translator, ["the dog sleeps"], [ids])
    (by_tokens,) = forced_attention(translator, ["the dog sleeps"], [ids], words=False)
    assert by_words.target == ("le", "<unk>", "chien", "<eos>")
    np.testing.assert_allclose(by_words.weights, by_tokens.weights)
    (links,) = word_links(translator, ["the dog sleeps"], [ids])
    strongest = by_tokens.weights[[0, 2], :3].argmax(axis=1)
    assert links == {(int(strongest[0]), 0), (int(strongest[1]), 1)}
