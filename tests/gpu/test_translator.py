"""A translator on a GPU: what it writes on the CPU, whichever search its wishes need, in either precision."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from translators import sentences, translator

from jumok.search.on_device import device_search_fits
from jumok.tasks.engine import Engine
from jumok.tasks.translator import Translator

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU (make gpu-check)")

CUDA = torch.device("cuda")


@pytest.fixture(autouse=True)
def _full_precision() -> None:
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False


def moved(model: Translator, precision: str = "float32") -> Translator:
    model.model.to(CUDA)
    model.device = CUDA
    model.engine = Engine(model.models, CUDA, precision, fast=True)
    return model


@pytest.mark.parametrize(
    "wishes", [{}, {"beam": 1}, {"nbest": 3}, {"require": ["maison"]}, {"forbid": ["le"]}, {"prefix": "Le"}], ids=str
)
@pytest.mark.parametrize("kind", ["transformer", "lstm"])
def test_the_gpu_writes_what_the_cpu_writes(kind: str, wishes: dict[str, Any]) -> None:
    model = translator(kind)
    texts = sentences(20)
    there = model.nbest(texts, **wishes)
    here = moved(model).nbest(texts, **wishes, batch=7)
    for one, other in zip(there, here, strict=True):
        for left, right in zip(one, other, strict=True):
            assert left.ids == right.ids or left.score == pytest.approx(right.score, abs=1e-4)


def test_bfloat16_scores_are_near_those_of_float32() -> None:
    model = moved(translator(), "bfloat16")
    for wishes in ({}, {"require": ["maison"]}):
        found = [ranks[0] for ranks in model.nbest(sentences(8), **wishes)]
        scored = model.score(sentences(8), [one.ids for one in found])  # in float32
        for one, score in zip(found, scored, strict=True):
            assert one.log_probability == pytest.approx(score.log_probability, rel=0.05, abs=1.0)


def test_plain_wishes_take_the_search_that_stays_on_the_device() -> None:
    from jumok.tasks.phrases import Phrases
    from jumok.tasks.wishes import Asked, Sentence, Wishes

    model = moved(translator())
    for wishes, fits in ((Wishes(), True), (Wishes(beam=1), True), (Wishes(prefix="Le"), False)):
        asked = Asked(wishes, model.search, Phrases(model.target))
        options = [one for n in (5, 9) for one in asked.options(0, Sentence("a"), n)]
        assert device_search_fits(model.model, options, CUDA) == fits
