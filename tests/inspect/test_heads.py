"""Which head follows the words: the one that the gold alignments were made from is found."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from jumok.data import grammar
from jumok.inspect.alignment import alignment_error_rate
from jumok.inspect.forced import forced_attention, links_of_views, word_links
from jumok.inspect.heads import best_view, every_reading, score_views
from jumok.inspect.view import View, every_view
from jumok.models.build import build
from jumok.recipe import Search, TransformerSection
from jumok.tasks.translator import Translator
from jumok.text.tokenizer import train_tokenizer

PAIRS = list(grammar.pairs("en", "fr", "train", 70))  # more than one batch of the model
SOURCES, TARGETS = [pair.source for pair in PAIRS], [pair.target for pair in PAIRS]


@pytest.fixture(scope="module")
def translator() -> Translator:
    torch.manual_seed(3)
    words = train_tokenizer([*SOURCES, *TARGETS], "bpe", 300)
    section = TransformerSection(width=16, heads=4, feed_forward=16, encoder_layers=1, decoder_layers=2)
    model = build(section, words.size, words.size)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)  # heads that look at something
    return Translator(model, words, words, Search(beam=2), 100, torch.device("cpu"))


def test_the_head_that_the_links_come_from_is_the_best(translator: Translator) -> None:
    gold = [(links, set()) for links in word_links(translator, SOURCES, TARGETS, layer=1, head=2)]
    views = every_view(translator.model)
    rates = [score.error_rate for score in score_views(translator, SOURCES, TARGETS, gold, views)]
    assert rates[views.index(View(1, 2))] == 0
    assert sum(rate > 0.05 for rate in rates) == len(rates) - 1  # no other head looks just there


def test_all_at_once_is_one_after_another(translator: Translator) -> None:
    gold = [(set(pair.sure), set(pair.possible)) for pair in PAIRS]
    views = [View(), View(0, 3), View(1)]
    together = score_views(translator, SOURCES, TARGETS, gold, views)
    for view, score in zip(views, together, strict=True):
        links = word_links(translator, SOURCES, TARGETS, view.layer, view.head)
        assert score == alignment_error_rate(links, *zip(*gold, strict=True))


def test_the_best_view_is_chosen_among_heads_shifts_and_readings(translator: Translator) -> None:
    view = View(0, 1, shift=True, reading="both")
    views = every_reading(every_view(translator.model))
    assert view in views
    assert len(set(views)) == len(views) == 10 * 2 * 3
    gold = [(links, set()) for (links,) in links_of_views(translator, SOURCES, TARGETS, [view])]
    found = best_view(translator, SOURCES, TARGETS, gold)
    assert found.view == view
    assert found.score.error_rate == 0


def test_shifted_is_the_row_where_the_word_is_read(translator: Translator) -> None:
    """One position later than where it is predicted; of the last word it is the row that predicts <eos>."""
    source, target = "The cat sees the dogs.", "Le chat."
    (picture,) = forced_attention(translator, [source], [target], words=False, view=View(1, 2))
    cut, written = translator.source.encode_with_offsets(source), translator.target.encode_with_offsets(target)
    rows = picture.weights[1:, : len(cut.ids)]
    sums = [[row[[word == w for word in cut.words]].sum() for w in range(5)] for row in rows]
    means = [np.mean([sums[t] for t, word in enumerate(written.words) if word == w], axis=0) for w in range(2)]
    ((links,),) = links_of_views(translator, [source], [target], [View(1, 2, shift=True)])
    assert links == {(int(np.argmax(mean)), word) for word, mean in enumerate(means)}
