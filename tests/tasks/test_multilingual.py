"""Language tags from the recipe to the translation: one model, two languages."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import yaml
from journey import jumok, refused

from jumok import api
from jumok import recipe as recipes
from jumok.errors import BadInput
from jumok.recipe import Recipe
from jumok.tasks.translation import TranslationTask
from jumok.tasks.vocabulary import train_tokenizers

FRENCH = {"grammar": "en-fr", "pairs": 400, "tag": "<2fr>", "weight": 2}
KOREAN = {"grammar": "en-ko", "pairs": 300, "tag": "2ko"}
SMALL = [
    "model.width=48", "model.embedding=32", "model.layers=1", "model.dropout=0.0", "tokenizer.kind=bpe",
    "tokenizer.vocabulary=600", "training.batch_tokens=512", "training.validate_sentences=20", "threads=1",
    "search.beam=2", "training.label_smoothing=0.0", "training.learning_rate=5e-3", "training.warmup=20",
]  # fmt: skip


def read(folder: Path, train: list[dict[str, object]], valid: list[dict[str, object]] | None, *keys: str) -> Recipe:
    file = folder / "recipe.yaml"
    file.write_text(yaml.safe_dump({"data": {"train": train, "valid": valid}}), encoding="utf-8")
    return recipes.read(str(file), [*SMALL, *keys])


def build(recipe: Recipe, cache: Path) -> TranslationTask:
    return TranslationTask(recipe, train_tokenizers(recipe, print), torch.device("cpu"), print, cache)


def is_korean(text: str) -> bool:
    return any("가" <= character <= "힣" for character in text)


@pytest.mark.parametrize("joint", [False, True])
def test_every_source_begins_with_its_corpus_tag(tmp_path: Path, joint: bool) -> None:
    task = build(read(tmp_path, [FRENCH, KOREAN], None, f"tokenizer.joint={joint}"), tmp_path)
    assert list(task.source.tags) == ["2fr", "2ko"]
    assert bool(task.target.tags) == joint
    seen = set()
    for update in range(6):
        (batch,) = task.batches(update)
        tag = task.source.tags[["2fr", "2ko"][batch.corpus]]
        assert (batch.source.ids[:, 0] == tag).all()
        assert int((batch.source.ids == tag).sum()) == len(batch)
        texts = task.target.decode(batch.target.ids.tolist())
        assert all(is_korean(text) == (batch.corpus == 1) for text in texts)
        seen.add(batch.corpus)
    assert seen == {0, 1}


def test_pairs_are_kept_back_from_the_first_corpus_of_each_tag(tmp_path: Path) -> None:
    more = {**FRENCH, "split": "test", "pairs": 100}
    task = build(read(tmp_path, [FRENCH, more, KOREAN], None, "data.hold_out=7"), tmp_path)
    assert [(held.corpus.tag, len(held.rows)) for held in task.held] == [("2fr", 7), ("2ko", 7)]
    trained: dict[int, set[int]] = {0: set(), 1: set(), 2: set()}
    for update in range(4 * task.plan.batches_per_epoch):
        (batch,) = task.batches(update)
        trained[batch.corpus] |= set(batch.indices)
    assert trained[1] == set(range(100))
    for number, held in ((0, task.held[0]), (2, task.held[1])):
        assert trained[number] == set(range(len(task.stores[number]))) - set(held.rows.tolist())


def test_validation_is_the_mean_by_weight_and_tells_of_each(tmp_path: Path) -> None:
    valid = [{**FRENCH, "pairs": 12, "weight": 3}, {**KOREAN, "pairs": 9}]
    values = build(read(tmp_path, [FRENCH, KOREAN], valid), tmp_path).validate()
    names = ("loss", "bleu", "chrf")
    assert set(values) == {*names, *(f"{name}_{tag}" for name in names for tag in ("2fr", "2ko"))}
    assert values["loss_2fr"] != values["loss_2ko"]
    for name in names:
        assert values[name] == pytest.approx((3 * values[f"{name}_2fr"] + values[f"{name}_2ko"]) / 4)


@pytest.mark.full  # a second language takes a while to learn
def test_the_tag_chooses_the_language(tmp_path: Path) -> None:
    recipe = read(tmp_path, [FRENCH, KOREAN], None, "training.updates=150", "training.bpe_dropout=0.05")
    model = api.train(recipe, tmp_path / "run", quiet=True)
    sentences = ["I am a student.", "The dog eats an apple.", "She sees the house."]
    assert all(map(is_korean, model.translate(sentences, tag="ko")))
    french = model.translate(sentences, tag="<2fr>")
    assert all(french)
    assert not any(map(is_korean, french))
    (spelled,) = model.source.encode(["<2ko> I am."])
    assert not set(spelled) & set(model.source.tags.values()), "text that spells the tag does not choose"
    picture = model.tagged("2ko").attend(sentences[0], words=False)
    assert (picture.source[0], picture.source[-1]) == ("<2ko>", "<eos>")
    by_words = model.tagged("2ko").attend(sentences[0])
    assert by_words.source == ("<2ko>", "I", "am", "a", "student.", "<eos>")
    assert (tmp_path / "run" / "report.html").exists()
    run = tmp_path / "run"
    result = jumok("translate", "--run", run, "--tag", "ko", sentences[0])
    assert is_korean(result.stdout), result.stderr
    refused(jumok("translate", "--run", run, sentences[0]), "--tag", "2fr, 2ko")
    with pytest.raises(BadInput, match='no tag "de": this model knows 2fr, 2ko'):
        model.translate(sentences, tag="de")


def test_a_run_without_tags_knows_none(tmp_path: Path) -> None:
    task = build(read(tmp_path, [{"grammar": "en-fr", "pairs": 60}], None), tmp_path)
    with pytest.raises(BadInput, match="without language tags"):
        task.translator.translate(["I am."], tag="fr")


@pytest.mark.parametrize(
    ("train", "valid", "message"),
    [
        ([FRENCH, {"grammar": "en-ko"}], None, "all corpora have a tag or none"),
        ([FRENCH], [KOREAN], "with the tag 2ko.*has the tags: 2fr"),
        ([FRENCH], [{"grammar": "en-fr"}], "without a tag.*has the tags: 2fr"),
        ([{**FRENCH, "tag": "<2 fr>"}], None, r"data\.train.*tag"),
    ],
)
def test_tags_that_do_not_fit_are_refused(
    tmp_path: Path, train: list[dict[str, object]], valid: list[dict[str, object]] | None, message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        read(tmp_path, train, valid)
