"""The translator: what is asked in text is what comes out, whoever is in the batch and whichever engine runs it."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from translators import CPU, sentences, translator

from jumok.errors import BadInput
from jumok.layers.tap import Tap
from jumok.models.compiled import CompiledTransformer
from jumok.models.fast_cpu import FastTransformer
from jumok.tasks.engine import Engine, stepper_for
from jumok.tasks.phrases import pattern
from jumok.tasks.translator import Translation, Translator
from jumok.tasks.wishes import Asked, BadSentence, Sentence, Wishes

KINDS = ("bpe", "unigram", "word", "character", "byte")
Agree = Callable[..., None]


@pytest.fixture
def agree(is_tie: Callable[..., bool]) -> Agree:
    """The same texts, ties aside."""

    def check(
        translating: Translator, text: str, one: list[Translation], other: list[Translation], **wishes: Any
    ) -> None:
        if [left.ids for left in one] != [right.ids for right in other]:
            assert is_tie(translating, text, len(one), **wishes), (text, one, other)

    return check


def fast(translating: Translator) -> Translator:
    translating.engine = Engine(translating.models, CPU, fast=True)
    return translating


# ------------------------------------------------------------ order and company


@pytest.mark.parametrize("model", ["transformer", "lstm"])
def test_neither_company_nor_order_nor_engine_changes_a_translation(model: str, agree: Agree) -> None:
    translating = translator(model)
    texts = sentences(20)
    alone = [translating.nbest([text], 2)[0] for text in texts]
    for engine in (translating.engine, Engine(translating.models, CPU, fast=True)):
        translating.engine = engine
        order = random.sample(range(len(texts)), len(texts))
        mixed = translating.nbest([texts[place] for place in order], 2, batch=random.randint(1, 9))
        for place, found in zip(order, mixed, strict=True):
            agree(translating, texts[place], found, alone[place])


def test_the_search_that_stays_on_a_device_gives_every_row_its_own(is_tie: Callable[..., bool]) -> None:
    """Here the device is the CPU, which it would not be chosen for."""
    translating = fast(translator())
    asked = Asked(Wishes(nbest=2), translating.search, translating.phrases)
    texts = sentences(8)
    sources = translating.source.encode(texts)
    rows = [(source, asked.options(n, Sentence(""), len(source))[0]) for n, source in enumerate(sources)]
    there = dict(translating.engine._on_device(rows, 3))
    here = dict(translating.engine.search(rows, 4))
    assert sorted(there) == sorted(here) == list(range(8))
    for place, text in enumerate(texts):
        left, right = ([one.tokens for one in found[place]] for found in (there, here))
        assert left == right or is_tie(translating, text, 2), (left, right)


def test_the_engine_of_a_loaded_transformer_is_the_packed_one() -> None:
    translating = translator()
    assert isinstance(fast(translating).engine.stepper, CompiledTransformer | FastTransformer)
    assert translator().engine.stepper is not None
    with pytest.raises(BadInput, match="--precision half: give float32, bfloat16 or int8"):
        Engine(translating.models, CPU, "half")
    with pytest.raises(BadInput, match="recurrent models compute in float32"):
        stepper_for(translator("lstm").model, "bfloat16", CPU)


# ------------------------------------------------------------ prefixes and phrases


@pytest.mark.parametrize("kind", KINDS)
def test_every_translation_begins_with_its_prefix(kind: str) -> None:
    translating = translator(kind=kind)
    found = translating.nbest(sentences(4), 3, prefix="Le petit chat")
    assert all(one.text.startswith("Le petit chat") for ranks in found for one in ranks)


@pytest.mark.parametrize("kind", KINDS)
def test_every_translation_holds_what_is_required(kind: str) -> None:
    translating = translator(kind=kind, beam=4)
    phrases = random.sample(["étudiant", "un livre", "la maison", ".", "est"], 2)
    found = translating.nbest(sentences(4), 2, require=phrases)
    assert all(1 <= len(ranks) <= 2 for ranks in found), "the texts are distinct: there may be fewer"
    for one in (one for ranks in found for one in ranks):
        assert all(phrase in one.text for phrase in phrases), (phrases, one.text)


@pytest.mark.parametrize("kind", KINDS)
def test_no_translation_holds_what_is_forbidden(kind: str) -> None:
    """The words that the model likes best, so that forbidding them costs it something."""
    texts = sentences(5)
    for _ in range(20):  # one model in some hundreds writes nothing but blanks and signs
        translating = translator(kind=kind)
        before = " ".join(one.text for ranks in translating.nbest(texts, 3) for one in ranks)
        if words := re.findall(r"[^\W\d_]{2,}", before):
            break
    liked = sorted(set(words), key=words.count)[-3:]
    assert liked
    found = translating.nbest(texts, 3, forbid=liked)
    for one in (one for ranks in found for one in ranks):
        assert not any(pattern(word).search(one.text) for word in liked), (liked, one.text)


def test_what_is_asked_of_one_sentence_is_asked_of_it_alone() -> None:
    translating = translator(precise=True)
    first, second, third = sentences(3)
    asked = [first, Sentence(second, prefix="Le chat", require=("maison",)), Sentence(third, require=("livre",))]
    found = translating.translate(asked, require=["rouge"])
    assert "rouge" in found[0]
    assert found[:1] == translating.translate([first], require=["rouge"])
    assert found[1].startswith("Le chat")
    assert all(word in found[1] for word in ("maison", "rouge"))
    assert all(word in found[2] for word in ("livre", "rouge"))


# ------------------------------------------------------------ lengths, repetitions, samples


def test_lengths_count_the_end() -> None:
    translating = translator()
    for found in translating.nbest(sentences(6), 2, min_length=6, max_length=8):
        assert all(6 <= len(one.ids) + 1 <= 8 for one in found)
    for (one,) in translating.nbest(sentences(3), min_length=70):  # more than the source's length allows by itself
        assert len(one.ids) + 1 == 70


def test_no_ngram_comes_twice() -> None:
    translating = translator(no_repeat_ngram=2)
    with torch.no_grad():
        translating.model.bias[20] += 10.0  # a word that the model would rather say again and again
    for (one,) in translating.nbest(sentences(6), min_length=15, max_length=30):
        pairs = list(zip(one.ids, one.ids[1:], strict=False))
        assert len(set(pairs)) == len(pairs)
    again = translating.nbest(sentences(6), min_length=15, max_length=30, no_repeat_ngram=0, beam=1)
    assert any(len(set(one.ids)) < len(one.ids) for (one,) in again)


def test_samples_depend_on_seed_and_sentence_alone() -> None:
    # in float64: the edge between two words can be nearer than float32 is exact
    translating = translator(precise=True)
    texts = sentences(6)
    drawn = translating.nbest(texts, 3, sample=True, seed=5, top_k=4)
    assert [len(ranks) for ranks in drawn] == [3] * 6
    assert any(len({one.ids for one in ranks}) > 1 for ranks in drawn), "three draws, not one three times"
    later = translating.nbest(texts[4:], 3, sample=True, seed=5, top_k=4, first=4, batch=1)
    for one, other in zip(drawn[4:], later, strict=True):
        assert [a.ids for a in one] == [b.ids for b in other]
    other = translating.nbest(texts, 3, sample=True, seed=6, top_k=4)
    assert [one[0].ids for one in drawn] != [one[0].ids for one in other]
    assert translating.translate(texts, sample=True, top_k=1) == translating.translate(texts, beam=1)


def test_the_recipes_beam_is_widened_for_a_longer_list() -> None:
    translating = translator(beam=2)
    assert [len(ranks) for ranks in translating.nbest(sentences(2), 4)] == [4, 4]
    with pytest.raises(BadInput, match="nbest 4 needs a beam at least as wide"):
        translating.nbest(["a"], 4, beam=2)


# ------------------------------------------------------------ what cannot be done


@pytest.mark.parametrize(
    ("wishes", "message"),
    [
        ({"beam": 0}, "beam 0: give 1 or more"),
        ({"nbest": 0}, "nbest 0"),
        ({"batch": -1}, "batch -1"),
        ({"too_long": "perhaps"}, "truncate"),
        ({"require": "étudiant"}, "give a list of phrases"),
        ({"require": [" "]}, "empty phrase"),
        ({"require": ["un chat"], "forbid": ["chat"]}, 'require "un chat" and forbid "chat"'),
        ({"prefix": "un chat", "forbid": ["chat"]}, 'prefix "un chat" holds "chat"'),
        ({"require": ["漢字"]}, "outside the vocabulary"),
        ({"prefix": "漢字"}, 'prefix "漢字": "漢字" is outside the vocabulary'),
        ({"prefix": "le chat " * 9, "max_length": 5}, "sentence 1: its prefix has .* limit of 5"),
        ({"require": ["un livre", "la maison"], "max_length": 3}, "sentence 1: .* need .* tokens, the limit is 3"),
        ({"min_length": 9, "max_length": 3}, "min_length 9 exceeds max_length 3"),
        ({"length_penalty": -1.0}, "length_penalty"),
        ({"max_length": 2_000_000_000}, "max_length 2000000000: give at most 100000"),
        ({"min_length": 100_001}, "min_length 100001: give at most"),
        ({"temperature": 0.5}, "sampling"),
        ({"sample": True, "beam": 4}, "beam 4 searches for the best"),
        ({"sample": True, "top_p": 0.0}, "top_p"),
    ],
)
def test_what_cannot_be_done_is_said(wishes: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        translator().translate(["I am a student."], **wishes)


def test_unknown_wishes_are_an_error_of_the_program() -> None:
    with pytest.raises(TypeError, match="beem"):
        translator().translate(["a"], beem=3)


def test_a_problem_names_its_sentence_in_the_whole_input() -> None:
    asked = [Sentence("I am."), Sentence("I am.", prefix="le chat " * 20)]
    with pytest.raises(BadSentence, match="sentence 42") as caught:
        translator().found(asked, Wishes(max_length=9, first=40))
    assert caught.value.index == 1
    for asked in (Sentence("I am.", prefix="漢字"), Sentence("I am.", require=("漢字",)), Sentence("I am.", "un chat")):
        with pytest.raises(BadSentence, match=r"sentence 2: .*(outside the vocabulary|forbidden)"):
            translator().translate(["I am.", asked], forbid=["chat"])


def test_hooks_and_changed_weights_count_from_the_next_search_on(agree: Agree) -> None:
    translating, texts = translator(), sentences(6)
    quick, plain = Engine(translating.models, CPU, fast=True), Engine(translating.models, CPU)

    def same_of_both() -> list[list[Translation]]:
        results = []
        for translating.engine in (quick, plain):
            results.append(translating.nbest(texts, min_length=2))  # one word at least
        for text, one, other in zip(texts, *results, strict=True):
            agree(translating, text, one, other, min_length=2)
        return results[0]

    before = same_of_both()
    taps = [module for module in translating.model.modules() if isinstance(module, Tap) and module.kind == "cross"]
    handles = [tap.register_forward_hook(lambda _tap, _inputs, output: torch.zeros_like(output)) for tap in taps]
    assert [found[0].score for found in same_of_both()] != pytest.approx([found[0].score for found in before], abs=1e-4)
    for handle in handles:
        handle.remove()
    for text, one, other in zip(texts, same_of_both(), before, strict=True):
        agree(translating, text, one, other, min_length=2)
    assert isinstance(quick.stepper, CompiledTransformer | FastTransformer)
    word = before[0][0].ids[0]
    with torch.no_grad():
        translating.model.bias[word] = -50.0
    assert not any(word in found[0].ids for found in same_of_both())


# ------------------------------------------------------------ ensembles


def test_an_ensemble_of_one_model_twice_is_that_model(agree: Agree) -> None:
    one = translator()
    alone = one.nbest(sentences(5), 2)
    one.models = (one.model, one.model)
    one.engine = Engine(one.models, CPU, fast=True)
    for text, twice, once in zip(sentences(5), one.nbest(sentences(5), 2), alone, strict=True):
        agree(one, text, twice, once)


def test_an_ensembles_log_probability_is_that_of_its_scores() -> None:
    one, other = translator(), translator("lstm")
    one.models = (one.model, other.model)
    one.engine = Engine(one.models, CPU, fast=True)
    texts = sentences(5)
    found = [ranks[0] for ranks in one.nbest(texts)]
    for translation, score in zip(found, one.score(texts, [t.ids for t in found]), strict=True):
        assert translation.log_probability == pytest.approx(score.log_probability, abs=1e-3)
