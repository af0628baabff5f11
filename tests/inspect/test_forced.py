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
from jumok.models.build import build
from jumok.recipe import Search, Seq2SeqSection
from jumok.tasks.translator import Translator
from jumok.text.tokenizer import Tokenizer, train_tokenizer

PAIRS = list(grammar.pairs("en", "fr", "train", 200))


@pytest.fixture(scope="module")
def tokenizers() -> tuple[Tokenizer, Tokenizer]:
    source = train_tokenizer((pair.source for pair in PAIRS), "bpe", 300)
    return source, train_tokenizer((pair.target for pair in PAIRS), "bpe", 300)


def a_translator(tokenizers: tuple[Tokenizer, Tokenizer], **keys: object) -> Translator:
    section = Seq2SeqSection.model_validate({"width": 16, "embedding": 8, "layers": 1, **keys})
    model = build(section, tokenizers[0].size, tokenizers[1].size)
    return Translator(model, *tokenizers, Search(beam=2), 100, torch.device("cpu"))


KINDS = [
    {"attention": "luong"},
    {"attention": "luong", "input_feeding": True},
    {"attention": "bahdanau", "scorer": "additive", "bidirectional": True},
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
    stepped = torch.cat([one.weights for one in seen.records], dim=1)[0]
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
