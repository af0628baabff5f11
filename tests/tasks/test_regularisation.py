"""R-Drop and BPE dropout as the task uses them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

from jumok import recipe as recipes
from jumok.data.batch import PairBatch
from jumok.errors import BadInput
from jumok.models.build import build
from jumok.models.encoder_decoder import EncoderDecoder
from jumok.recipe import Recipe, Seq2SeqSection, TransformerSection
from jumok.tasks.translation import TranslationObjective, TranslationTask
from jumok.tasks.vocabulary import train_tokenizers

KEYS = [
    "data.train.pairs=300", "data.valid.pairs=20", "model.width=16", "model.embedding=8", "model.layers=1",
    "tokenizer.vocabulary=300", "training.batch_tokens=300", "training.validate_sentences=5", "training.accumulate=2",
]  # fmt: skip


def silent(message: str) -> None:
    pass


def small(*keys: str) -> Recipe:
    return recipes.read("lstm-luong", [*KEYS, *keys])


def make(cache: Path, *keys: str) -> TranslationTask:
    recipe = small(*keys)
    return TranslationTask(recipe, train_tokenizers(recipe, silent), torch.device("cpu"), silent, cache)


def random_batch(rows: int = 6) -> PairBatch:
    def sentences() -> list[list[int]]:
        return [torch.randint(4, 30, (int(torch.randint(1, 9, ())),)).tolist() for _ in range(rows)]

    return PairBatch.of(sentences(), sentences())


def model_of(kind: str, dropout: float) -> EncoderDecoder:
    if kind == "seq2seq":
        return build(Seq2SeqSection(width=16, embedding=8, layers=1, dropout=dropout), 30, 30)
    return build(
        TransformerSection(width=16, heads=2, encoder_layers=1, decoder_layers=1, feed_forward=32, dropout=dropout),
        30,
        30,
    )


# ------------------------------------------------------------ R-Drop


@pytest.mark.parametrize("kind", ["seq2seq", "transformer"])
def test_r_drop_is_its_formula_over_two_passes(kind: str) -> None:
    seed = int(torch.randint(1 << 30, ()))
    torch.manual_seed(seed)
    model, batch = model_of(kind, 0.3), random_batch()
    objective = TranslationObjective(model, label_smoothing=0.1, r_drop=3.0)
    torch.manual_seed(seed)
    loss = objective(batch)
    # the same passes, one after the other in the batch, and the paper's loss by hand
    torch.manual_seed(seed)
    hidden = model(batch.source.twice(), batch.target.twice().ids[:, :-1])
    real = batch.target.mask[:, 1:]
    labels = batch.target.ids[:, 1:][real]
    first, second = (model.head(half[real]).log_softmax(-1) for half in hidden.chunk(2))
    entropy = sum(F.cross_entropy(one, labels, reduction="sum", label_smoothing=0.1) for one in (first, second))
    kl = [F.kl_div(b, a, reduction="sum", log_target=True) for a, b in ((first, second), (second, first))]
    paper = entropy + 3.0 * sum(kl) / 2
    torch.testing.assert_close(loss.sum, paper / 2, msg=lambda m: f"seed {seed}: {m}")
    torch.testing.assert_close(loss.parts["kl"], sum(kl) / 2, msg=lambda m: f"seed {seed}: {m}")
    assert float(loss.parts["kl"]) > 0, "the two passes drop different things"
    assert loss.count == batch.tokens


def test_without_dropout_or_in_validation_it_is_the_plain_loss() -> None:
    model, batch = model_of("transformer", 0.0), random_batch()
    plain = TranslationObjective(model, 0.1)(batch)
    twice = TranslationObjective(model, 0.1, r_drop=3.0)(batch)
    torch.testing.assert_close(twice.sum, plain.sum)
    torch.testing.assert_close(twice.parts["nll"], plain.parts["nll"])
    assert float(twice.parts["kl"]) == pytest.approx(0.0, abs=1e-4)
    assert TranslationObjective(model, 0.1, r_drop=3.0).eval()(batch).parts.keys() == {"nll"}


# ------------------------------------------------------------ BPE dropout


@pytest.mark.parametrize("kind", ["bpe", "byte"])
def test_batches_are_cut_anew_but_say_and_plan_the_same(kind: str, tmp_path: Path) -> None:
    plain, dropped = (make(tmp_path, f"tokenizer.kind={kind}", f"training.bpe_dropout={p}") for p in (0.0, 0.3))
    longer = 0
    for update in range(5):
        for before, after in zip(plain.batches(update), dropped.batches(update), strict=True):
            assert (after.indices, after.corpus) == (before.indices, before.corpus)
            for side, tokenizer in (("source", plain.source), ("target", plain.target)):
                rows, anew = getattr(before, side), getattr(after, side)
                assert tokenizer.decode(anew.ids.tolist()) == tokenizer.decode(rows.ids.tolist())
                assert torch.equal(anew.ids[anew.mask][anew.lengths.cumsum(0) - 1], torch.full((len(rows),), 3))
                longer += anew.tokens - rows.tokens
    assert longer > 0


def test_each_update_and_each_micro_batch_has_its_own_cuts_and_they_come_again(tmp_path: Path) -> None:
    keys = ["tokenizer.kind=bpe", "training.bpe_dropout=0.3"]
    one, other = make(tmp_path, *keys), make(tmp_path, *keys)
    epoch = one.plan.batches_per_epoch
    assert epoch % 2 or epoch > 2
    seen = [one.batches(update) for update in range(4)]
    for update in (3, 0, 2, 1):  # another order, another object: a resumed run
        for a, b in zip(seen[update], other.batches(update), strict=True):
            assert torch.equal(a.source.ids, b.source.ids)
            assert torch.equal(a.target.ids, b.target.ids)
    batch = one.stores[0].batch(range(20))
    ways = {(u, m): one._cut_anew(batch, u, m).target.ids.tolist() for u in range(3) for m in range(2)}
    assert len({str(way) for way in ways.values()}) == 6


def test_a_row_never_grows_over_the_limit(tmp_path: Path) -> None:
    keys = ["tokenizer.kind=bpe", "training.bpe_dropout=0.9"]
    limit = int(make(tmp_path, *keys).stores[0].target_lengths.max())
    bounded = make(tmp_path, *keys, f"data.max_length={limit}")
    for update in range(5):
        for batch in bounded.batches(update):
            assert int(batch.source.lengths.max()) <= limit + 1
            assert int(batch.target.lengths.max()) <= limit + 2


def test_a_vocabulary_without_merges_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"training\.bpe_dropout.*word"):
        make(tmp_path, "tokenizer.kind=word", "training.bpe_dropout=0.1")
