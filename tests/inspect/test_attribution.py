"""Attributions: gradients add up, occlusion is two forwards, and each source is asked in the order it is read in."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from seeded import seed as seed
from torch.nn import functional as F
from translators import translator

from jumok.data.batch import END, PAD, START, UNKNOWN, Sequences
from jumok.errors import BadInput
from jumok.inspect.attribution import Question, attribute, source_vectors
from jumok.models.build import build
from jumok.models.encoder_decoder import EncoderDecoder
from jumok.recipe import Seq2SeqSection, TransformerSection

SOURCE, TARGET = [5, 6, 7, 8, 9, END], [START, 11, 12, 13, END]
SMOOTH = {"width": 16, "heads": 2, "feed_forward": 16, "encoder_layers": 1, "decoder_layers": 1, "activation": "gelu"}
MODELS = {
    "transformer": TransformerSection(**SMOOTH),
    "shared table": TransformerSection(**SMOOTH, tie_embeddings="all", position="rotary"),
    "luong": Seq2SeqSection(width=16, embedding=8, layers=1, attention="luong", bidirectional=True),
    "backwards": Seq2SeqSection(width=16, embedding=8, layers=1, attention="luong", reverse_source=True),
    "bahdanau": Seq2SeqSection(width=16, embedding=8, layers=1, attention="bahdanau", scorer="additive"),
}


def a_question(name: str, absent: int = UNKNOWN) -> Question:
    return Question(build(MODELS[name], 20, 20).eval(), SOURCE, TARGET, absent)


def by_hand(model: EncoderDecoder, source: list[int]) -> torch.Tensor:
    """log p of each target token, by a forward of its own."""
    with torch.no_grad():
        hidden = model(Sequences.pad([source]), torch.tensor([TARGET[:-1]]))
        return F.log_softmax(model.head(hidden), dim=-1)[0].gather(1, torch.tensor(TARGET[1:])[:, None])[:, 0]


@pytest.mark.parametrize("name", MODELS)
def test_integrated_gradients_add_up(name: str) -> None:
    """Σ_s = log p(y_t | x) − log p(y_t | nothing but absent tokens)."""
    question = a_question(name)
    found = question.integrated_gradients(400 if name == "bahdanau" else 100)  # its maxout has edges
    assert found.shape == (4, 6)
    difference = by_hand(question.model, SOURCE) - by_hand(question.model, [UNKNOWN] * 6)
    torch.testing.assert_close(found.sum(dim=1), difference, rtol=1e-2, atol=5e-3)


@pytest.mark.parametrize("name", MODELS)
def test_a_word_that_is_absent_already_has_no_part(name: str) -> None:
    """So values stand at their own words, also where the source is read backwards."""
    question = a_question(name)
    question.source[1] = UNKNOWN
    found = question.integrated_gradients(8)
    assert torch.equal(found[:, 1], torch.zeros(4))
    assert (found[:, [0, 2, 3, 4]].abs() > 0).all()
    assert question.occlusion([[1]]).abs().max() < 1e-5  # two rows of one batch may round in different ways


@pytest.mark.parametrize("absent", [UNKNOWN, PAD])
@pytest.mark.parametrize("name", MODELS)
def test_occlusion_is_the_difference_of_two_forwards(name: str, absent: int) -> None:
    question = a_question(name, absent)
    found = question.occlusion([[0], [1, 2], [5]])
    for column, places in enumerate([[0], [1, 2], [5]]):
        without = [absent if place in places else id for place, id in enumerate(SOURCE)]
        expected = by_hand(question.model, SOURCE) - by_hand(question.model, without)
        torch.testing.assert_close(found[:, column], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_only_the_source_is_replaced_and_only_inside_the_block(name: str) -> None:
    """The vectors of another source make that source's log-probabilities; where the table is shared, too."""
    question = a_question(name)
    model, other = question.model, [9, 8, 12, 6, 5, END]
    vectors: list[torch.Tensor] = []

    def keep(vectors_BSD: torch.Tensor) -> torch.Tensor:
        vectors.append(vectors_BSD)
        return vectors_BSD

    before = by_hand(model, SOURCE)
    with source_vectors(model, keep):
        expected = by_hand(model, other)
    with source_vectors(model, lambda _: vectors[0]):
        found = by_hand(model, SOURCE)
    torch.testing.assert_close(found, expected)
    assert torch.equal(by_hand(model, SOURCE), before)


@pytest.mark.parametrize("kind", ["transformer", "lstm"])
def test_a_sentence_by_words(kind: str) -> None:
    model = translator(kind)
    source, target = "The cat sees the dogs.", "Le chat voit les chiens."
    found = attribute(model, source, target, steps=4)
    assert found.source == ("The", "cat", "sees", "the", "dogs.", "<eos>")
    assert found.target == (*target.split(), "<eos>")
    assert found.methods == [
        "attention",
        *(["rollout"] if kind == "transformer" else []),
        "integrated gradients",
        "occlusion",
    ]
    scored = model.score([source], [target])[0]
    assert sum(found.log_probabilities) == pytest.approx(scored.log_probability, abs=1e-3)
    assert all(values.shape == (6, 6) for values in found.values.values())
    for picture in found.pictures():
        np.testing.assert_allclose(picture.weights.sum(axis=1), 1, atol=1e-5)
    for row in range(6):
        order = found.ranking("occlusion", row)
        size = np.abs(found.values["occlusion"][row])[order]
        assert sorted(order) == list(range(6))
        assert (np.diff(size) <= 0).all()
    for agreement in found.agreements().values():
        assert agreement.kendall is not None
        assert -1 <= agreement.kendall <= 1
    read = json.loads(found.to_json())
    assert read["values"]["occlusion"] == found.values["occlusion"].tolist()


def test_pieces_of_words_are_put_together() -> None:
    """Occluding a word takes away all its pieces, and its log-probability is that of all its pieces."""
    model = translator("transformer")
    source, target = "Grandmothers celebrate.", "Les bibliothécaires célèbrent."
    found = attribute(model, source, target, steps=2)
    ids = model.source.encode([source])[0]
    words = model.source.encode_with_offsets(source).words
    without = [UNKNOWN if word == 0 else id for id, word in zip(ids, words, strict=True)]
    assert words.count(0) > 1
    written = model.target.encode([target])[0]
    question = Question(model.model, [*ids, END], [START, *written, END])
    whole, gone = question.log_probs([[*ids, END], [*without, END]])
    pieces = model.target.encode_with_offsets(target).words
    of_word = torch.tensor([word == 1 for word in pieces] + [False])
    expected = float((whole - gone)[of_word].sum())
    assert found.values["occlusion"][1, 0] == pytest.approx(expected, abs=1e-4)


def test_its_own_translation_and_what_cannot_be_asked() -> None:
    model = translator("lstm", wordy=True)
    own = attribute(model, "The cat sees.", steps=2)
    assert list(own.target) == model.translate(["The cat sees."])[0].split()  # it never ends: it was cut
    with pytest.raises(BadInput, match="empty"):
        attribute(model, "  ")
    with pytest.raises(BadInput, match="padding"):
        attribute(model, "The cat.", absent="paddin")
    with pytest.raises(BadInput, match="no attention"):
        attribute(translator("plain"), "The cat.")
