"""Learning to read words in pictures: rendered ones and files; what is kept back and named; resume."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from built_fonts import build, random_shape
from in_process import try_in_process
from small_fonts import FONTS, PLAIN
from stopping import StopAt

from jumok import api
from jumok import recipe as recipes
from jumok.data.rendering.pictures import rendered, with_texts
from jumok.data.rendering.rendered import Split
from jumok.data.text_images.writing import write_text_images
from jumok.errors import BadInput
from jumok.recipe import Recipe
from jumok.tasks import recognition
from jumok.tasks.recognition import Pictured, RecognitionTask, read_charset, same
from jumok.text.charset import Charset
from jumok.text.special import END, PAD
from jumok.training.run import RunFolder
from jumok.training.verify import differences

TINY = {"kind": "recognizer", "channels": 1, "image": [32, 48], "encoder": "vit", "decoder": "ctc", "patch": [16, 4],
        "width": 32, "heads": 2, "layers": 1, "feed_forward": 64, "max_length": 3, "dropout": 0.1}  # fmt: skip
RENDER = {"fonts": [str(FONTS / "DejaVuSans.ttf"), str(FONTS / "DejaVuSerif.ttf")], "size": 24, **PLAIN,
          "texts": {"words": 0, "letters": 1, "numbers": 0, "empty": 0}, "held_out_fonts": 0.5}  # fmt: skip


@pytest.fixture(autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUMOK_CACHE", str(tmp_path_factory.getbasetemp() / "recognition-cache"))


def recipe_of(**keys: Any) -> Recipe:
    training = {"batch_images": 16, "updates": 12, "learning_rate": 0.003, "warmup": 5, "validate_every": 6,
                "checkpoint_every": 6, "log_every": 1, "metric": "accuracy", **keys.pop("training", {})}  # fmt: skip
    data = {"train": {"rendered": "words"}, "valid": {"rendered": "words", "pairs": 20}, "resize": "squash",
            **keys.pop("data", {})}  # fmt: skip
    raw = {"task": "recognition", "threads": 1, "device": "cpu", "charset": {"sets": ["digits"]}, "render": RENDER,
           "data": data, "model": {**TINY, **keys.pop("model", {})}, "training": training, **keys}  # fmt: skip
    return recipes.check(raw, "test")


def task_of(recipe: Recipe, said: list[str] | None = None) -> RecognitionTask:
    return RecognitionTask(recipe, torch.device("cpu"), (said if said is not None else []).append)


def written(folder: Path, count: int, seed: int) -> Path:
    recipe = recipe_of()
    charset = Charset.of(recipe.charset)
    write_text_images(folder, with_texts(rendered(recipe, charset, "train", count, seed), charset))
    return folder


def test_digits_are_learned_from_rendered_ones(tmp_path: Path) -> None:
    keys = {"training": {"updates": 220, "batch_images": 32, "validate_every": 220, "log_every": 50}}
    recipe = recipe_of(model={"max_length": 1, "width": 48, "image": [32, 32]}, **keys)
    reader = api.train(recipe, tmp_path / "run", quiet=True, report=False)
    charset = Charset.of(recipe.charset)
    pairs = list(with_texts(rendered(recipe, charset, "test", 60, 5), charset))
    found = reader.read([pixels for pixels, _ in pairs])
    right = sum(one.text == text for one, (_, text) in zip(found, pairs, strict=True))
    assert right > 40, right  # another font than those of training; by chance: 6
    again = api.load(tmp_path / "run", device="cpu")
    assert [one.text for one in again.read([pixels for pixels, _ in pairs])] == [one.text for one in found]
    assert read_charset(tmp_path / "run/charset.json").characters == tuple("0123456789")


@pytest.mark.parametrize("decoder", ["ctc", "permuted"])
def test_an_interrupted_run_goes_on_exactly(tmp_path: Path, decoder: str) -> None:
    recipe = recipe_of(
        model={"decoder": decoder, "decoder_heads": 2, "ctc": 0.5}, render={**RENDER, "blur": 1, "colour": 1}
    )
    api.train(recipe, tmp_path / "whole", quiet=True, report=False)
    with pytest.raises(KeyboardInterrupt):
        api.train(recipe, tmp_path / "cut", quiet=True, report=False, sinks=[StopAt(9)])
    api.train(None, tmp_path / "cut", resume=True, quiet=True, report=False)
    assert not differences(RunFolder(tmp_path / "whole"), RunFolder(tmp_path / "cut"))


def test_no_word_comes_twice_and_validation_has_other_fonts() -> None:
    task = task_of(recipe_of())
    numbers = [index for update in range(5) for batch in task.batches(update) for index in batch.indices]
    assert len(set(numbers)) == len(numbers)
    first, again = task.batches(3)[0], task.batches(3)[0]
    assert torch.equal(first.ids, again.ids)
    held = task.held[0]
    assert len(held) == 20
    assert "2 fonts" not in task.sizes()  # one is kept back
    assert "the batch of '" in task.name_batch(first)
    assert task.rows(40).ids.shape == (40, 4)


@pytest.mark.parametrize("named", ["valid", "test", "its own", "none"])
def test_validation_reads_what_is_not_learned_from(monkeypatch: pytest.MonkeyPatch, named: str) -> None:
    """Of "valid" unless the recipe says "test"; never of "train", whose words and fonts these are not."""
    count = 20
    corpus: dict[str, Any] = {"rendered": "words", "pairs": count}
    if named in ("valid", "test"):
        corpus["split"] = named
    monkeypatch.setattr(recognition, "VALIDATED", count)
    recipe = recipe_of(data={"valid": None if named == "none" else corpus})
    task = task_of(recipe)
    read: list[tuple[torch.Tensor, torch.Tensor]] = []
    losses = task.objective.model.losses

    def watched(images: torch.Tensor, ids: torch.Tensor, lengths: torch.Tensor) -> dict[str, torch.Tensor]:
        read.append((images, ids))
        return losses(images, ids, lengths)

    monkeypatch.setattr(task.objective.model, "losses", watched)
    task.validate()
    images, ids = (torch.cat(each) for each in zip(*read, strict=True))
    assert len(images) == count
    splits: tuple[Split, ...] = ("train", "valid", "test")
    for split in splits:
        parts = list(rendered(recipe, task.charset, split, count, recipe.seed))
        is_read = split == ("test" if named == "test" else "valid")
        assert torch.equal(ids, torch.cat([part.ids for part in parts])) == is_read, split
        assert torch.equal(images, torch.cat([part.images for part in parts])) == is_read, split


def test_what_fonts_are_told_is_told_once(tmp_path: Path) -> None:
    """Though training and validation look for them."""
    said: list[str] = []
    odd = build(tmp_path / "odd.ttf", {"x": random_shape(np.random.default_rng(9))}, "Odd")
    fonts = [str(FONTS / "DejaVuSans.ttf"), str(odd)]
    task_of(recipe_of(render={**RENDER, "fonts": fonts, "held_out_fonts": 0}), said)
    assert len([line for line in said if "odd.ttf has none" in line]) == 1


def test_a_run_from_before_relatives_by_letters_goes_on(tmp_path: Path) -> None:
    """With the fonts that it had, whether its recipe is named again or not."""
    recipe = recipe_of()
    assert recipe.render.relatives == "letters"
    old = recipe.model_copy(update={"render": recipe.render.model_copy(update={"relatives": "names"})})
    for number, given in enumerate([None, recipe]):
        run = tmp_path / f"run{number}"
        with pytest.raises(KeyboardInterrupt):
            api.train(old, run, quiet=True, report=False, sinks=[StopAt(9)])
        stored = (run / "recipe.yaml").read_text(encoding="utf-8")
        (run / "recipe.yaml").write_text(stored.replace("  relatives: names\n", ""), encoding="utf-8")
        assert "relatives" not in (run / "recipe.yaml").read_text(encoding="utf-8")
        assert RunFolder(run).recipe() == RunFolder(run).recipe().model_copy(update={"render": old.render})
        api.train(given, run, resume=True, quiet=True, report=False)
    asked = recipe_of(render={**RENDER, "relatives": "letters"})
    with pytest.raises(BadInput, match=r"these keys differ: render\.relatives"):
        api.train(asked, run, resume=True, quiet=True, report=False)


def test_pictures_of_files_are_learned_from_and_some_kept_back(tmp_path: Path, seed: int) -> None:
    folder = written(tmp_path / "words", 60, seed)
    said: list[str] = []
    task = task_of(recipe_of(data={"train": {"images": [str(folder)]}, "valid": None}), said)
    assert any("3 training pictures are kept back" in line for line in said)
    assert isinstance(task.held[0], Pictured)
    source = task.sources[0]
    assert isinstance(source, Pictured)
    assert not set(source.numbers) & set(task.held[0].numbers)
    batch = task.batches(0)[0]
    for row, index in zip(batch.ids.tolist(), batch.indices, strict=True):
        assert task.charset.decode(row) == source.store.classes[source.store.labels[index]]
    assert "labels.tsv" in task.name_batch(batch) or "images/" in task.name_batch(batch)
    assert set(task.validate()) == {"loss", "accuracy"}
    # the same files beside rendered words, two batches of these to one of those
    both = recipe_of(data={"train": [{"images": [str(folder)]}, {"rendered": "words", "weight": 2}]})
    kinds = [batch.corpus for update in range(6) for batch in task_of(both).batches(update)]
    assert sorted(kinds) == [0, 0, 1, 1, 1, 1]


def test_one_picture_is_no_pictures(tmp_path: Path, seed: int) -> None:
    said: list[str] = []
    files = {"train": {"images": [str(written(tmp_path / "words", 2, seed))]}, "valid": None}
    task = task_of(recipe_of(data=files), said)
    assert any("1 training picture is kept back" in line for line in said)
    assert task.sizes().startswith("1 picture, ")


def test_texts_outside_the_charset_are_told_before_training(tmp_path: Path) -> None:
    grey = np.full((20, 40, 1), 90, np.uint8)
    write_text_images(tmp_path / "words", [(grey, "12"), (grey, "3€"), (grey, "한글"), (grey, "1234"), (grey, "7")])
    files = {"train": {"images": [str(tmp_path / "words")]}, "valid": None}
    with pytest.raises(BadInput, match=r"(?s)€.*charset\.outside=skip"):
        task_of(recipe_of(data=files))
    said: list[str] = []
    task = task_of(recipe_of(data=files, charset={"sets": ["digits"], "outside": "skip"}), said)
    assert any("left out" in line for line in said)
    source = task.sources[0]
    assert isinstance(source, Pictured)
    kept = {source.store.classes[source.store.labels[n]] for n in (*source.numbers, *task.held[0].numbers)}  # type: ignore[union-attr]
    assert kept == {"12", "7"}


def test_every_picture_outside_the_charset_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUMOK_CACHE", str(tmp_path / "cache"))
    grey = np.full((20, 40, 1), 90, np.uint8)
    texts = [*(f"{number}€" for number in range(9)), "12\t€", "7", "123456789" * 9]
    write_text_images(tmp_path / "words", [(grey, text) for text in texts])
    with pytest.raises(BadInput) as refused:
        task_of(recipe_of(data={"train": {"images": [str(tmp_path / "words")]}, "valid": None}))
    (named,) = re.findall(r"all of them are listed in (.*\.tsv)", str(refused.value))
    rows = [line.split("\t") for line in Path(named).read_text(encoding="utf-8").splitlines()]
    assert rows[0] == ["picture", "text", "why"]
    assert all(len(row) == 3 for row in rows)
    assert len(rows) == 1 + 10 + 1
    assert sum("outside the charset: " in row[2] and "€" in row[2] for row in rows) == 10
    assert sum("81 characters, more than" in row[2] for row in rows) == 1
    (tmp_path / "cache" / "outside").rename(tmp_path / "elsewhere")
    (tmp_path / "cache" / "outside").write_text("no folder")
    with pytest.raises(BadInput, match=r"(?s)€.*could not be written.*charset\.outside=skip"):
        task_of(recipe_of(data={"train": {"images": [str(tmp_path / "words")]}, "valid": None}))


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"data": {"resize": "crop"}}, "crop would cut words off"),
        ({"augment": {"flip": True}}, "mirror"),
        ({"augment": {"mixup": 1.0}}, "two words cannot be mixed"),
        ({"model": {"max_length": 13}}, "12 columns cannot hold"),
        ({"model": {"patch": [5, 4]}}, "cannot be cut into patches"),
        ({"charset": {"sets": []}}, "no characters at all"),
        ({"data": {"train": {"drawn": "shapes"}}}, "drawn shapes are for task: vision"),
        ({"data": {"train": {"grammar": "en-fr"}}}, "rendered: words"),
        ({"render": {"texts": {"words": 0, "letters": 0, "numbers": 0}}}, "nothing would be written"),
        ({"training": {"metric": "bleu"}}, "training.metric"),
        ({"data": {"resize": "pad"}}, "rendered words fill their pictures"),
        ({"augment": {"resized_crop": 0.5}}, "cuts letters off"),
        ({"augment": {"crop": 2}}, "is said in render"),
        ({"data": {"train": {"rendered": "words", "split": "test"}}}, "words and fonts of training"),
        ({"model": {"decoder": "permuted", "decoder_heads": 2, "max_length": 13}}, r"or no CTC head \(ctc: 0\)"),
    ],
)
def test_recipes_that_make_no_sense(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        recipe_of(**keys)


def test_rendered_words_are_not_for_other_tasks() -> None:
    raw = {"task": "vision", "data": {"train": {"rendered": "words"}}, "model": {"kind": "vit"}}
    with pytest.raises(BadInput, match="rendered words are for task: recognition"):
        recipes.check(raw, "test")
    with pytest.raises(BadInput, match="charset is about words in pictures"):
        recipes.check({"data": {"train": {"grammar": "en-fr"}}, "charset": {"sets": ["digits"]}}, "test")


def test_what_is_the_same() -> None:
    true = torch.tensor([[5, 6, END, PAD], [5, END, PAD, PAD], [END, PAD, PAD, PAD]])
    read = torch.tensor([[5, 6], [5, 6], [PAD, PAD]])
    assert same(read, true).tolist() == [True, False, True]
    assert same(torch.zeros(3, 0, dtype=torch.long), true).tolist() == [False, False, True]


def test_seeds_of_any_size_and_labels_that_are_missing(tmp_path: Path) -> None:
    task = task_of(recipe_of(seed=2**63 - 1))
    assert len(task.batches(0)[0]) == 16
    grey = np.full((20, 40, 1), 90, np.uint8)
    write_text_images(tmp_path / "words", [(grey, "12"), (grey, "7")])
    (tmp_path / "words" / "labels.tsv").unlink()
    with pytest.raises(BadInput, match="it is not said what is written there"):
        task_of(recipe_of(data={"train": {"images": [str(tmp_path / "words")]}, "valid": None}))


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({}, "1 picture cannot be learned from by CTC: equal"),
        ({"decoder": "permuted"}, "1 picture cannot be learned from by CTC (the decoder beside it can): equal"),
        ({"decoder": "permuted", "ctc": 0.0}, None),
    ],
)
def test_words_that_columns_cannot_say_are_told(keys: dict[str, Any], told: str | None, tmp_path: Path) -> None:
    grey = np.full((20, 40, 1), 90, np.uint8)
    texts = ["1111111", "1212121", "11", "777777"]  # 13, 7, 3 and 11 columns
    write_text_images(tmp_path / "words", [(grey, text) for text in texts])
    said: list[str] = []
    files = {"train": {"images": [str(tmp_path / "words")]}, "valid": {"rendered": "words", "pairs": 5}}
    task_of(recipe_of(data=files, model={"max_length": 7, "decoder_heads": 2, **keys}), said)
    assert [line for line in said if "by CTC" in line and (told is None or told not in line)] == []
    assert any("by CTC" in line for line in said) == (told is not None)


def test_the_doctor_does_not_count_what_has_no_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from jumok.training.doctor.examine import examine

    try_in_process(monkeypatch)
    report = examine(recipe_of(training={"updates": 2}), tmp_path / "run", trial=False)
    assert not [finding for finding in report.findings if "see only" in finding.what]
