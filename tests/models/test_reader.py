"""Readers of texts that are not BERT, and what stands on readers: no text depends on its company."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional as F

from jumok.data.batch import Sequences
from jumok.models.reader import RecurrentReader, TextLabeller, WordLabeller, build_reader
from jumok.recipe import BertSection, RecurrentReaderSection

CLOSE = {"atol": 1e-5, "rtol": 1e-5}
WORDS = 40
BERT = BertSection(width=16, heads=2, layers=2, feed_forward=24, max_positions=32)
APART = BERT.model_copy(update={"pairs": "apart", "pooling": "mean"})


def recurrent(**keys: Any) -> RecurrentReaderSection:
    return RecurrentReaderSection(**{"embedding": 12, "width": 16, "layers": 2, **keys})


SECTIONS = [
    recurrent(),
    recurrent(cell="gru", bidirectional=False, segments=0),
    recurrent(cell="rnn", layers=1),
    BERT,
    BERT.model_copy(update={"pooling": "mean"}),
]


def random_rows(count: int = 5) -> list[list[int]]:
    return [torch.randint(1, WORDS, (int(torch.randint(1, 12, ())),)).tolist() for _ in range(count)]


@pytest.mark.parametrize(
    "section", SECTIONS, ids=lambda s: f"{s.kind} {getattr(s, 'cell', s.model_dump().get('pooling'))}"
)
@torch.no_grad()
def test_neither_padding_nor_neighbours_count(section: Any) -> None:
    rows = random_rows()
    words = Sequences.pad(rows)
    segments = torch.randint(2, words.ids.shape) if section.segments else None
    for kind in (TextLabeller, WordLabeller):
        model = kind(section, WORDS, 3).eval()
        together = model(words, segments)
        noise = torch.where(words.mask, words.ids, torch.randint(1, WORDS, words.ids.shape))
        disturbed = model(Sequences(noise, words.lengths), segments)
        for row, ids in enumerate(rows):
            parts = None if segments is None else segments[row : row + 1, : len(ids)]
            alone = model(Sequences.pad([ids]), parts)[0]
            for found in (together[row], disturbed[row]):
                torch.testing.assert_close(found if kind is TextLabeller else found[: len(ids)], alone, **CLOSE)


@torch.no_grad()
def test_a_recurrent_text_is_the_largest_of_its_words() -> None:
    reader, rows = build_reader(recurrent(), WORDS).eval(), random_rows()
    assert isinstance(reader, RecurrentReader)
    words = Sequences.pad(rows)
    hidden = reader(words)
    hidden = torch.where(words.mask[..., None], hidden, 99.0)  # what is made of padding is nobody's business
    expected = torch.stack([hidden[row, : len(ids)].amax(dim=0) for row, ids in enumerate(rows)])
    torch.testing.assert_close(reader.pooled(hidden, words), expected, **CLOSE)


@torch.no_grad()
def test_it_reads_both_ways() -> None:
    ids = torch.randint(1, WORDS, (1, 8))
    for both in (True, False):
        reader = build_reader(recurrent(bidirectional=both, layers=1), WORDS).eval()
        changed = ids.clone()
        changed[0, 5] = 1 + ids[0, 5] % (WORDS - 1)
        length = torch.tensor([8])
        moved = (reader(Sequences(changed, length)) - reader(Sequences(ids, length))).abs().amax(dim=-1)[0] > 1e-7
        assert moved[5:].all()
        assert moved[:5].all() if both else not moved[:5].any()


@torch.no_grad()
def test_segments_count_where_there_are_any() -> None:
    reader, words = build_reader(recurrent(), WORDS).eval(), Sequences.pad([[5, 6, 7, 8]])
    other = torch.tensor([[0, 0, 1, 1]])
    assert (reader(words, other) - reader(words)).abs().max() > 1e-4
    torch.testing.assert_close(reader(words, torch.zeros_like(other)), reader(words), **CLOSE)


@torch.no_grad()
def test_two_texts_read_apart() -> None:
    """The first ones, then the second ones: each read alone, and compared as it is written."""
    model = TextLabeller(APART, WORDS, 3).eval()
    firsts, seconds = random_rows(4), random_rows(4)
    found = model(Sequences.pad([*firsts, *seconds]))
    assert found.shape == (4, 3)
    for row, pair in enumerate(zip(firsts, seconds, strict=True)):
        u, v = (
            4 * F.normalize(model.reader.pooled(model.reader(one), one), dim=-1)[0]  # √16
            for one in (Sequences.pad([ids]) for ids in pair)
        )
        expected = model.head(torch.cat([u, v, (u - v).abs(), u * v]))
        torch.testing.assert_close(found[row], expected, **CLOSE)
