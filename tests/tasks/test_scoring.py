"""Log-probabilities of given translations: the search's own numbers."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from translators import sentences, translator

from jumok.data.batch import source_batch
from jumok.errors import BadInput


@pytest.mark.parametrize("model", ["transformer", "lstm", "plain"])
@pytest.mark.parametrize("beam", [1, 4])
def test_a_translation_has_the_log_probability_that_its_search_gave_it(model: str, beam: int) -> None:
    translating = translator(model)
    texts = sentences(12)
    found = translating.nbest(texts, beam, beam=beam)
    pairs = [(text, one) for text, ranks in zip(texts, found, strict=True) for one in ranks]
    scored = translating.score([text for text, _ in pairs], [one.ids for _, one in pairs])
    for (_, one), score in zip(pairs, scored, strict=True):
        assert score.log_probability == pytest.approx(one.log_probability, abs=1e-3, rel=1e-5)
        assert len(score.tokens) == len(one.ids) + 1
        assert score.tokens[-1] == "<eos>"
        assert score.average == pytest.approx(one.log_probability / (len(one.ids) + 1), rel=1e-4)


def test_scores_stay_in_order_and_do_not_depend_on_their_neighbours() -> None:
    translating = translator()
    texts, targets = sentences(30), sentences(30, "valid")
    together = translating.score(texts, targets)
    for text, target, score in list(zip(texts, targets, together, strict=True))[::7]:
        (alone,) = translating.score([text], [target])
        assert alone.tokens == score.tokens
        assert alone.log_probabilities == pytest.approx(score.log_probabilities, abs=1e-4)


def test_several_models_score_with_the_mean_of_their_probabilities() -> None:
    first, second = translator(), translator("lstm")
    texts, targets = sentences(3), sentences(3, "valid")
    first.models = (first.model, second.model)
    together = first.score(texts, targets)
    first.models = (first.model,)
    each = [one.score(texts, targets) for one in (first, second)]
    for row, score in enumerate(together):
        pairs = zip(each[0][row].log_probabilities, each[1][row].log_probabilities, strict=True)
        means = [math.log((math.exp(a) + math.exp(b)) / 2) for a, b in pairs]
        assert score.log_probabilities == pytest.approx(means, abs=1e-4)


def test_each_token_has_the_probability_of_its_step() -> None:
    translating = translator()
    (text,), (target,) = sentences(1), sentences(1, "valid")
    (score,) = translating.score([text], [target])
    (source,), (ids,) = translating.source.encode([text]), translating.target.encode([target])
    model = translating.model
    with torch.inference_mode():
        memory = model.encode(source_batch([source]))
        cache = model.start(memory, 1, len(ids) + 1)
        expected = []
        for place, (before, after) in enumerate(zip([2, *ids], [*ids, 3], strict=True)):
            log_probs, cache = model.step(torch.tensor([before]), torch.tensor([place]), memory, cache)
            expected.append(float(log_probs[0, after]))
    assert score.log_probabilities == pytest.approx(expected, abs=1e-4)


def test_a_source_over_the_limit_is_named() -> None:
    with pytest.raises(BadInput, match="sentence 2"):
        translator().score(["a", "a student " * 120], ["b", "b"])


@pytest.mark.parametrize(
    ("texts", "targets", "message"),
    [
        (["a", "b"], ["un"], "2 sentences and 1 translations"),
        (["a"], [[4], [5]], "1 sentences and 2 translations"),
        (["a"], [], "1 sentences and 0"),
        ("ab", "un", "takes lists"),
    ],
)
def test_sentences_and_translations_pair_up(texts: Any, targets: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        translator().score(texts, targets)
