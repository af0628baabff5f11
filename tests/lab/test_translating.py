"""The embedded grammar for experiments, and a small model that has learned from it."""

from __future__ import annotations

from jumok.data.batch import END, START
from jumok.lab.translating import Corpus, learned, sentences
from jumok.recipe import Seq2SeqSection

SMALL = Seq2SeqSection(embedding=16, width=16, layers=1, attention="none", dropout=0.1)


def test_sentences_go_with_their_translations_and_no_longer_than_asked(seed: int) -> None:
    pairs = sentences("train", 60, seed % 1000, size=7)
    corpus = Corpus.of(pairs, longest=7)
    known = {pair.source: pair.target for pair in pairs}
    assert 0 < len(corpus.rows) < 60
    seen, batches = 0, corpus.batches(8, seed)
    while seen <= 60:  # they have no end
        batch = next(batches)
        sources = corpus.source.decode([row[: row.index(END)] for row in batch.source.ids.tolist()])
        targets = corpus.target.decode([row[1 : row.index(END)] for row in batch.target.ids.tolist()])
        assert (batch.target.ids[:, 0] == START).all()
        assert int(batch.source.lengths.max()) <= 7 + 1  # and <eos>
        assert [known[source] for source in sources] == targets
        seen += len(batch)


def test_those_to_test_may_be_as_short_as_those_to_learn_from() -> None:
    pairs = sentences("test", 60, 1, size=7)
    corpus = Corpus.of(pairs, longest=7)
    short = corpus.within(pairs, 7)
    assert len(short) == len(corpus.rows)
    assert short == [pair for pair in pairs if len(corpus.source.encode([pair.source])[0]) <= 7]


def test_other_splits_and_seeds_have_other_sentences() -> None:
    train, again, other = (sentences(*which) for which in (("train", 30, 1), ("train", 30, 1), ("train", 30, 2)))
    test = sentences("test", 30, 1)
    assert train == again
    assert train != other
    assert not {pair.source for pair in train} & {pair.source for pair in test}


def test_the_seed_decides_what_is_learned_and_the_teacher_is_asked_at_every_update() -> None:
    corpus = Corpus.of(sentences("train", 40, 1, size=7), longest=9)
    asked: list[int] = []

    def truth(update: int) -> float:
        asked.append(update)
        return 0.5

    texts = [pair.source for pair in sentences("test", 5, 1, size=7)]
    outputs = [learned(corpus, SMALL, 3, seed, 8, 0.01, truth).score(texts, texts) for seed in (1, 1, 2)]
    assert asked == [0, 1, 2] * 3
    assert outputs[0] == outputs[1] != outputs[2]
