"""A translation that was cut at its limit: the model wrote no `<eos>`, so nothing shows one."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from translators import sentences, translator

from jumok import api
from jumok.data.batch import END
from jumok.errors import BadInput
from jumok.inspect.all_heads import all_heads
from jumok.inspect.attribution import attribute
from jumok.inspect.forced import forced_attention
from jumok.inspect.record import record
from jumok.inspect.steps import steps_of
from jumok.inspect.terminal import draw
from jumok.inspect.view import View
from jumok.tasks.translator import Translator

SENTENCE = sentences(1)[0]
LIMIT = {"max_ratio": 0.001, "max_extra": 5}  # four words and <eos>


def endless(model: str = "transformer") -> Translator:
    """It never ends a sentence by itself."""
    return translator(model, "word", wordy=True, **LIMIT)


def hasty(model: str = "transformer") -> Translator:
    """It ends every sentence before the first word."""
    made = translator(model, "word", **LIMIT)
    with torch.no_grad():
        made.model.bias[END] += 100.0
    return made


@pytest.mark.parametrize("kind", ["transformer", "lstm"])
def test_who_ended_a_translation_is_known(kind: str) -> None:
    texts = [SENTENCE, "", sentences(2)[1]]
    cut, whole = endless(kind), hasty(kind)
    assert [best.finished for (best,) in cut.nbest(texts)] == [False, True, False]
    assert all(best.finished for (best,) in whole.nbest(texts))


@pytest.mark.parametrize("kind", ["transformer", "lstm"])
@pytest.mark.parametrize("words", [True, False])
def test_what_is_recorded_and_what_is_read_off_have_no_end_that_was_not_written(kind: str, words: bool) -> None:
    model = endless(kind)
    with record(model) as seen:
        ((best,),) = model.nbest([SENTENCE])
    path = seen.path(0)
    assert (len(best.ids), best.finished, path.finished) == (4, False, False)
    for name, one in path.records.items():
        view = View(one.layer, None, one.kind)
        (picture,) = forced_attention(model, [SENTENCE], [best.ids], words, view=view, ended=[best.finished])
        recorded = path.attention(name, words=words)
        assert (recorded.source, recorded.target) == (picture.source, picture.target)
        np.testing.assert_allclose(recorded.weights, picture.weights, atol=1e-5)
        np.testing.assert_allclose(picture.weights.sum(axis=1), 1, atol=1e-5)
        if one.kind == "self":
            assert picture.target[-1] == "<eos>"  # the source has its own
        else:
            assert path[name].shape[-2] == 4
            assert "<eos>" not in picture.target
            assert picture.written == " ".join(picture.target)
        if one.kind == "causal":
            assert path[name].shape[-1] == 4  # <sos> and all words but the last, at which nobody looked
            assert words or picture.source == ("<sos>", *picture.target[:-1])


def test_one_that_ended_has_it() -> None:
    model = hasty()
    with record(model) as seen:
        model.translate([SENTENCE])
    assert seen.attention().target == ("<eos>",)
    assert seen.attention().written == ""
    assert seen.path(0)["decoder.1.cross"].shape[-2] == 1


def test_all_heads_steps_and_attributions_have_none_either() -> None:
    model = endless()
    for kind in all_heads(model, SENTENCE).kinds:
        assert (kind.queries.tokens[-1] == "<eos>") == (kind.kind == "self")
    assert list(attribute(model, SENTENCE, steps=2).target) == model.translate([SENTENCE])[0].split()
    assert attribute(model, SENTENCE, "Le chat .", steps=2).target[-1] == "<eos>"  # a given one is taken as whole
    assert len(steps_of(model, SENTENCE, "1").written) == 4
    with pytest.raises(BadInput, match="no such word"):
        steps_of(model, SENTENCE, "<eos>")


def test_one_that_was_cut_before_the_first_word() -> None:
    model = translator("transformer", "word", wordy=True, max_ratio=0.001, max_extra=1)
    with record(model) as seen:
        model.translate([SENTENCE])
    assert seen.attention().target == ()
    assert seen.attention(kind="causal").source == ()
    assert "no attention" in draw(seen.attention())
    with pytest.raises(BadInput, match="the translation is empty"):
        attribute(model, SENTENCE, steps=2)


def test_pictures_of_a_loaded_run(tmp_path: Path) -> None:
    model = api.load_translator(device="cpu")
    whole = model.attend("I am a student.")
    model.search = model.search.model_copy(update={"max_ratio": 0.001, "max_extra": 3})
    cut = model.attend("I am a student.")
    assert whole.target[-1] == "<eos>"
    assert "<eos>" not in cut.target
    assert whole.written.startswith(cut.written)
    np.testing.assert_allclose(cut.weights, whole.weights[: len(cut.target)], atol=1e-4)
    cut.save(tmp_path / "cut.json")
    written = json.loads((tmp_path / "cut.json").read_text(encoding="utf-8"))
    assert written["target"] == list(cut.target)
    assert len(written["weights"]) == len(cut.target)
