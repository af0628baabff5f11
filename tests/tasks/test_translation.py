"""Translation as a task: the objective against its formula, tokenizers, validation, and the translator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from jumok import recipe as recipes
from jumok.data import grammar
from jumok.data.batch import PAD, PairBatch
from jumok.errors import BadInput
from jumok.models.build import build
from jumok.recipe import Recipe, Search, Seq2SeqSection
from jumok.tasks.metrics import corpus_scores, tutorial_form
from jumok.tasks.translation import TranslationObjective, TranslationTask
from jumok.tasks.translator import TooLong, Translator
from jumok.tasks.vocabulary import train_tokenizers

KEYS = [
    "data.train.pairs=300", "data.valid.pairs=20", "model.width=16", "model.embedding=8", "model.layers=1",
    "tokenizer.kind=word", "training.batch_tokens=300", "training.validate_sentences=5", "search.beam=2",
]  # fmt: skip


def silent(message: str) -> None:
    pass


def small(*keys: str) -> Recipe:
    return recipes.read("lstm-luong", [*KEYS, *keys])


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> TranslationTask:
    recipe = small()
    place = tmp_path_factory.mktemp("cache")
    return TranslationTask(recipe, train_tokenizers(recipe, silent), torch.device("cpu"), silent, place)


def random_batch(rows: int = 6) -> PairBatch:
    def sentences() -> list[list[int]]:
        return [torch.randint(4, 30, (int(torch.randint(1, 9, ())),)).tolist() for _ in range(rows)]

    return PairBatch.of(sentences(), sentences())


def test_the_objective_is_the_smoothed_cross_entropy_of_real_words_only() -> None:
    torch.manual_seed(int(torch.randint(1 << 30, ())))
    model = build(Seq2SeqSection(width=16, embedding=8, layers=1, dropout=0.0), 30, 30)
    batch = random_batch()
    loss = TranslationObjective(model, label_smoothing=0.1)(batch)
    logits = model.head(model(batch.source, batch.target.ids[:, :-1]))
    labels = batch.target.ids[:, 1:]
    expected = F.cross_entropy(
        logits.flatten(0, 1), labels.flatten(), ignore_index=PAD, reduction="sum", label_smoothing=0.1
    )
    torch.testing.assert_close(loss.sum, expected)
    assert loss.count == batch.tokens == int((labels != PAD).sum())


def test_a_batch_split_in_parts_has_the_same_loss() -> None:
    model = build(Seq2SeqSection(width=16, embedding=8, layers=1, dropout=0.0), 30, 30)
    batch = random_batch(7)
    objective = TranslationObjective(model)
    parts = [objective(part) for part in batch.split(3)]
    assert sum(part.count for part in parts) == batch.tokens
    torch.testing.assert_close(sum(part.sum for part in parts), objective(batch).sum, rtol=1e-4, atol=1e-4)


def test_batches_are_a_pure_function_of_the_update(task: TranslationTask) -> None:
    first = [task.batches(update) for update in range(6)]
    for update in (5, 0, 3):
        (again,), (before,) = task.batches(update), first[update]
        assert torch.equal(again.source.ids, before.source.ids)
        assert again.indices == before.indices


def test_validation_gives_loss_and_scores_and_leaves_no_trace(task: TranslationTask) -> None:
    one, other = task.validate(), task.validate()
    assert one == other
    assert {"loss", "bleu", "chrf"} == one.keys()
    per_word = torch.log(torch.tensor(float(task.target.size)))
    assert one["loss"] == pytest.approx(float(per_word), rel=0.4)


def test_the_shown_pairs_are_those_of_the_corpus(task: TranslationTask) -> None:
    expected = [(pair.source, pair.target) for pair in grammar.pairs("en", "fr", "valid", 5)]
    assert list(zip(*task.shown[0], strict=True)) == expected


def test_without_validation_data_some_pairs_are_kept_back(tmp_path: Path) -> None:
    recipe = small("data.valid=null", "data.hold_out=10")
    told: list[str] = []
    task = TranslationTask(recipe, train_tokenizers(recipe, silent), torch.device("cpu"), told.append, tmp_path)
    (held,) = task.held
    assert len(held.rows) == 10
    assert any("kept back" in line for line in told)
    epoch = {index for update in range(task.plan.batches_per_epoch) for index in task.batches(update)[0].indices}
    assert epoch == set(range(300)) - set(held.rows.tolist())


def test_a_batch_is_named_by_its_lines(task: TranslationTask) -> None:
    (batch,) = task.batches(0)
    assert task.name_batch(batch).startswith(f"the batch of en-fr lines {batch.indices[0] + 1}")


def test_tokenizers_joint_separate_and_given(tmp_path: Path) -> None:
    source, target = train_tokenizers(small("tokenizer.joint=true"), silent)
    assert source is target
    source, target = train_tokenizers(small(), silent)
    assert source.size != target.size
    source.save(tmp_path / "s")
    given, _ = train_tokenizers(small(f"tokenizer.source={tmp_path / 's'}"), silent)
    assert given.fingerprint == source.fingerprint
    with pytest.raises(BadInput, match="joint"):
        train_tokenizers(small(f"tokenizer.source={tmp_path / 's'}", "tokenizer.joint=true"), silent)


def test_the_tokenizer_sample_is_spread_evenly() -> None:
    from jumok.tasks.vocabulary import _sample

    everything = list(_sample(small()))
    assert len(everything) == 300
    assert list(_sample(small("tokenizer.sample=100"))) == everything[::3]


# ------------------------------------------------------------ the translator


def sentences(count: int) -> list[str]:
    return [pair.source for pair in grammar.pairs("en", "fr", "test", count)]


def test_translations_do_not_depend_on_their_neighbours(task: TranslationTask) -> None:
    texts = sentences(9)
    alone = [task.translator.translate([text])[0] for text in texts]
    assert task.translator.translate(texts) == alone
    assert task.translator.translate(texts[::-1]) == alone[::-1]
    assert [found[0].text for found in task.translator.nbest(texts, batch=2)] == alone


def test_empty_sentences_stay_empty_and_in_place(task: TranslationTask) -> None:
    text = sentences(1)[0]
    assert task.translator.translate(["", text, "  "]) == ["", *task.translator.translate([text]), ""]
    assert [len(found) for found in task.translator.nbest(["", text], 2)] == [2, 2]


def test_bad_requests_are_named(task: TranslationTask) -> None:
    with pytest.raises(BadInput, match="list"):
        task.translator.translate("I am a student.")  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="beam"):
        task.translator.nbest(["a"], 5, beam=2)


def test_long_sentences_are_refused_cut_or_left_empty(task: TranslationTask) -> None:
    model: Any = task.translator.model
    short = Translator(model, task.source, task.target, Search(beam=1), 3, torch.device("cpu"))
    texts = ["I am.", "I am a student and a king."]
    with pytest.raises(TooLong, match="sentence 2") as caught:
        short.translate(texts)
    assert (caught.value.index, caught.value.limit) == (1, 3)
    assert short.translate(texts, too_long="skip")[1] == ""
    assert len(short.translate(texts, too_long="truncate")) == 2


# ------------------------------------------------------------ the metrics


def test_scores_are_sacrebleus_own() -> None:
    import sacrebleu

    outputs, references = ["the cat sat on the mat .", "a dog"], ["the cat sat on a mat .", "a dog barks"]
    bleu, chrf = corpus_scores(outputs, references)
    assert bleu.score == pytest.approx(sacrebleu.corpus_bleu(outputs, [references]).score)
    assert chrf.score == pytest.approx(sacrebleu.corpus_chrf(outputs, [references]).score)
    assert "tok:13a" in bleu.signature


def test_the_tutorial_form_is_lower_case_and_cut() -> None:
    assert tutorial_form("Hello, World!") == "hello , world !"
    assert corpus_scores(["Hello, World!"], ["hello , world !"], lowercase_tokenised=True)[0].score == pytest.approx(
        100
    )
