"""Learning from images: what is learned, kept back and named; the loss of mixed images; resume; unknown classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from stopping import StopAt
from torch.nn import functional as F

from jumok import api
from jumok import recipe as recipes
from jumok.data.images.batch import ImageBatch
from jumok.errors import BadInput
from jumok.models.vit import ImageLabeller
from jumok.recipe import Augmentation, Recipe, VitSection
from jumok.tasks.vision import VisionObjective, VisionTask
from jumok.training.run import RunFolder
from jumok.training.verify import differences

TINY = {
    "kind": "vit",
    "image": 16,
    "patch": 4,
    "width": 32,
    "heads": 2,
    "layers": 2,
    "feed_forward": 64,
    "pooling": "mean",
}
COLOURS = {"red": (200, 40, 40), "green": (40, 200, 40), "blue": (40, 40, 200)}


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUMOK_CACHE", str(tmp_path / "cache"))


def coloured(folder: Path, count: int, names: list[str] | None = None) -> Path:
    """Noisy images whose class is their colour."""
    generator = np.random.default_rng()
    for name in names or list(COLOURS):
        (folder / name).mkdir(parents=True)
        for number in range(count):
            pixels = np.clip(COLOURS.get(name, (9, 9, 9)) + generator.normal(0, 40, (20, 24, 3)), 0, 255)
            Image.fromarray(pixels.astype(np.uint8)).save(folder / name / f"{number}.png")
    return folder


def recipe_of(train: Path, valid: Path | None = None, **keys: Any) -> Recipe:
    training = {"batch_images": 12, "updates": 40, "learning_rate": 0.003, "warmup": 5, "validate_every": 20,
                "checkpoint_every": 20, "log_every": 1, "metric": "accuracy", **keys.pop("training", {})}  # fmt: skip
    data: dict[str, Any] = {"train": {"images": [str(train)]}, **keys.pop("data", {})}
    if valid is not None:
        data["valid"] = {"images": [str(valid)]}
    raw = {"task": "vision", "threads": 1, "device": "cpu", "data": data, "model": TINY, "training": training, **keys}
    return recipes.check(raw, "test")


def task_of(recipe: Recipe, said: list[str] | None = None) -> VisionTask:
    return VisionTask(recipe, torch.device("cpu"), (said if said is not None else []).append)


def test_colours_are_learned(tmp_path: Path) -> None:
    train, test = coloured(tmp_path / "train", 20), coloured(tmp_path / "test", 4)
    model = api.train(recipe_of(train, augment={"crop": 1, "flip": True}), tmp_path / "run", quiet=True)
    files = sorted(test.rglob("*.png"))
    said = model.predict(files)
    assert [one.label for one in said] == [file.parent.name for file in files]
    with pytest.raises(BadInput, match="name images one by one"):
        model.predict([test])
    with pytest.raises(BadInput, match="image 1: give the file"):
        model.predict([Image.open(files[0])])
    assert all(abs(sum(one.probabilities.values()) - 1) < 1e-9 for one in said)
    again = api.load(tmp_path / "run", device="cpu")
    assert again.labels == ("blue", "green", "red")
    arrays = [np.asarray(Image.open(file)) for file in files]
    expected, found = (model.probabilities(model.pixels(images)) for images in (files, arrays))
    np.testing.assert_allclose(found, expected)
    assert (tmp_path / "run" / "report.html").stat().st_size > 1000


def test_what_is_kept_back(tmp_path: Path) -> None:
    said: list[str] = []
    task = task_of(recipe_of(coloured(tmp_path / "train", 20)), said)
    assert "3 training images are kept back for it (so few say little: --valid names more)" in said[-1]
    (_, _, kept), order = task.held[0], task.plan.layouts[0]
    assert len(kept) == 3
    assert not set(kept) & set(order.numbers)  # type: ignore[union-attr]
    assert task.sizes() == "57 images of 3 classes, 3 for validation, 4 batches an epoch"
    batch = task.batches(0)[0]
    names = [task.stores[0].names[index] for index in batch.indices]
    assert [Path(name).parent.name for name in names] == [task.classes.names[label] for label in batch.labels]
    assert names[0] in task.name_batch(batch)
    assert "and 7 more" in task.name_batch(batch)
    assert [other.indices for other in task_of(task.recipe).batches(5)] == [one.indices for one in task.batches(5)]


def test_the_last_image_of_a_class_is_never_kept_back(tmp_path: Path) -> None:
    folder = coloured(tmp_path / "train", 20)
    for colour in ("blue", "green"):
        for file in sorted((folder / colour).iterdir())[1:]:
            file.unlink()
    for number in range(10):
        task = task_of(recipe_of(folder, seed=number))
        kept = {task.classes.names[label] for label in task.labels[0][task.held[0][2]]}
        assert kept == {"red"}
    for file in sorted((folder / "red").iterdir())[1:]:
        file.unlink()
    with pytest.raises(BadInput, match=r"none of 3 images can be kept back .* the only one of its class"):
        task_of(recipe_of(folder))


def test_one_image_is_no_images(tmp_path: Path) -> None:
    said: list[str] = []
    task = task_of(recipe_of(coloured(tmp_path / "train", 2, ["red", "blue"])), said)
    assert "1 training image is kept back" in said[-1]
    assert task.sizes() == "3 images of 2 classes, 1 for validation, 1 batch an epoch"


def test_columns_are_asked_for_by_the_key_of_their_own_corpus(tmp_path: Path) -> None:
    train = coloured(tmp_path / "train", 4)
    (tmp_path / "unclear.csv").write_text("where,what\nimg/1,red\n", encoding="utf-8")
    with pytest.raises(BadInput, match=r"say its number: data\.train\.fields\.text=N$"):
        task_of(recipe_of(tmp_path / "unclear.csv"))
    with pytest.raises(BadInput, match=r"say its number: data\.valid\.fields\.text=N$"):
        task_of(recipe_of(train, tmp_path / "unclear.csv"))
    (tmp_path / "unlabelled.csv").write_text("image,note\ntrain/red/0.png,y\n", encoding="utf-8")
    with pytest.raises(BadInput, match=r"it is not said of which class .* \(data\.train\.fields\.label names"):
        task_of(recipe_of(tmp_path / "unlabelled.csv"))
    with pytest.raises(BadInput, match=r"it is not said of which class .* \(data\.valid\.fields\.label names"):
        task_of(recipe_of(train, tmp_path / "unlabelled.csv"))


def test_classes_that_do_not_fit(tmp_path: Path) -> None:
    train = coloured(tmp_path / "train", 4)
    valid = coloured(tmp_path / "valid", 2, ["red", "grean"])
    with pytest.raises(BadInput, match=r'grean.*the label "grean" was never seen in training.*green'):
        task_of(recipe_of(train, valid))
    with pytest.raises(BadInput, match='there is only one label \\("red"\\)'):
        task_of(recipe_of(coloured(tmp_path / "one", 3, ["red"])))
    with pytest.raises(BadInput, match="violet"):
        task_of(recipe_of(train, training={"class_weights": {"violet": 2.0}}))


@pytest.mark.parametrize("weights", [None, [0.5, 2.0, 1.0]])
def test_the_loss(weights: list[float] | None) -> None:
    model = ImageLabeller(VitSection(**TINY), 3)
    torch.nn.init.normal_(model.scores.weight)
    batch = ImageBatch(torch.randint(0, 256, (6, 3, 16, 16), dtype=torch.uint8), torch.randint(0, 3, (6,)))
    importance = None if weights is None else torch.tensor(weights)
    plain = VisionObjective(model, Augmentation(), weights, 0.1).train()(batch)
    expected = F.cross_entropy(model(batch.images), batch.labels, importance, reduction="none", label_smoothing=0.1)
    assert plain.count == 6
    torch.testing.assert_close(plain.sum, expected.sum())


def test_the_loss_of_mixed_images() -> None:
    model = ImageLabeller(VitSection(**TINY), 3).train()
    torch.nn.init.normal_(model.scores.weight)
    batch = ImageBatch(torch.randint(0, 256, (6, 3, 16, 16), dtype=torch.uint8), torch.randint(0, 3, (6,)))
    objective = VisionObjective(model, Augmentation(mixup=0.8, cutmix=1.0), None, 0.0).train()
    torch.manual_seed(3)
    found = objective(batch)
    torch.manual_seed(3)
    mixed = objective.mix(batch.images, batch.labels)
    log_p = torch.log_softmax(model(mixed.images), dim=-1)
    rows = torch.arange(6)
    expected = -(mixed.share * log_p[rows, mixed.labels] + (1 - mixed.share) * log_p[rows, mixed.others]).sum()
    torch.testing.assert_close(found.sum, expected)
    objective.eval()
    torch.testing.assert_close(
        objective(batch).sum, F.cross_entropy(model(batch.images), batch.labels, reduction="sum")
    )


def test_a_resumed_run_is_the_undisturbed_one(tmp_path: Path) -> None:
    train = coloured(tmp_path / "train", 10)
    augment = {"crop": 2, "flip": True, "rand_augment": 1, "erase": 0.5, "mixup": 0.5, "cutmix": 1.0}
    model = {**TINY, "stochastic_depth": 0.3, "dropout": 0.1}
    training = {"updates": 8, "validate_every": 3, "checkpoint_every": 3, "ema": 0.9}
    recipe = recipe_of(train, augment=augment, model=model, training=training)
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    api.train(recipe, whole, quiet=True, report=False)

    with pytest.raises(KeyboardInterrupt):
        api.train(recipe, cut, quiet=True, report=False, sinks=[StopAt(5)])
    api.train(None, cut, resume=True, quiet=True, report=False)
    assert differences(RunFolder(whole), RunFolder(cut)) == []


def test_a_run_of_before_classes_mattered_goes_on_unless_it_kept_others_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkpoint of then names the same data, but not what was kept back."""
    folder = coloured(tmp_path / "train", 20)
    training = {"updates": 6, "checkpoint_every": 2}

    def begin(recipe: Recipe, run: Path, of_then: bool) -> None:
        with monkeypatch.context() as then:
            if of_then:
                then.setattr(VisionTask, "data_keys", property(lambda task: [task.stores[0].content] * 2))
            with pytest.raises(KeyboardInterrupt):
                api.train(recipe, run, quiet=True, report=False, sinks=[StopAt(3)])

    def go_on(run: Path) -> None:
        api.train(None, run, resume=True, quiet=True, report=False)

    same = recipe_of(folder, training=training)
    begin(same, tmp_path / "same", of_then=True)
    go_on(tmp_path / "same")

    for colour in ("blue", "green"):
        for file in sorted((folder / colour).iterdir())[1:]:
            file.unlink()
    changed = next(
        one for one in (recipe_of(folder, seed=seed, training=training) for seed in range(1000))
        if len(task_of(one).data_keys) == 3
    )  # fmt: skip
    begin(changed, tmp_path / "now", of_then=False)
    go_on(tmp_path / "now")
    begin(changed, tmp_path / "then", of_then=True)
    with pytest.raises(BadInput, match="an older version of jumok, which kept other data back"):
        go_on(tmp_path / "then")


def test_starting_from_another_run(tmp_path: Path) -> None:
    train = coloured(tmp_path / "train", 6)
    api.train(recipe_of(train, training={"updates": 3}), tmp_path / "first", quiet=True, report=False)
    two = coloured(tmp_path / "two", 6, ["red", "blue"])
    raw = {"task": "vision", "threads": 1, "device": "cpu", "start": str(tmp_path / "first"), "model": {"kind": "vit"},
           "data": {"train": {"images": [str(two)]}},
           "training": {"updates": 1, "batch_images": 4, "learning_rate": 1e-9, "freeze": 1, "layer_decay": 0.7},
    }  # fmt: skip
    first = api.load(tmp_path / "first", device="cpu")
    second = api.train(recipes.check(raw, "second"), tmp_path / "second", quiet=True, report=False)
    assert second.labels == ("blue", "red")
    assert second.recipe.model.width == 32
    for name, weight in first.model.reader.state_dict().items():
        torch.testing.assert_close(second.model.reader.state_dict()[name], weight, atol=1e-6, rtol=0)
    larger = {**raw, "model": {"kind": "vit", "image": 32}}
    third = api.train(recipes.check(larger, "third"), tmp_path / "third", quiet=True, report=False)
    assert third.model.reader.positions.weight.shape == (8, 8, 32)
    expected = first.model.reader.positions((8, 8))
    torch.testing.assert_close(third.model.reader.positions.weight, expected, atol=1e-5, rtol=0)
    with pytest.raises(BadInput, match="cannot be cut into patches of 4×4"):
        api.train(recipes.check({**raw, "model": {"kind": "vit", "image": 30}}, "x"), tmp_path / "no", quiet=True)
    keys = [
        *["task=pretraining", "device=cpu", "threads=1", "training.updates=1", "data.train.pairs=60", "model.width=16"]
    ]
    api.train("bert-tiny", tmp_path / "bert", keys, quiet=True, report=False)
    with pytest.raises(BadInput, match=r"run of model\.kind bert; start from a ViT"):
        api.train(recipes.check({**raw, "start": str(tmp_path / "bert")}, "x"), tmp_path / "no", quiet=True)


def test_what_pools_is_taken_along(tmp_path: Path) -> None:
    train = coloured(tmp_path / "train", 6)
    pooled = {**TINY, "pooling": "sequence", "pooled_norm": True}
    first = api.train(
        recipe_of(train, model=pooled, training={"updates": 3}), tmp_path / "first", quiet=True, report=False
    )
    raw = {"task": "vision", "threads": 1, "device": "cpu", "start": str(tmp_path / "first"),
           "model": {"kind": "vit", "pooling": "class"},  # stands in a recipe: the run decides
           "data": {"train": {"images": [str(train)]}},
           "training": {"updates": 1, "batch_images": 4, "learning_rate": 1e-9}}  # fmt: skip
    second = api.train(recipes.check(raw, "second"), tmp_path / "second", quiet=True, report=False)
    assert second.recipe.model.pooling == "sequence"
    ours, theirs = second.model.state_dict(), first.model.state_dict()
    for name in ours:
        same = torch.allclose(ours[name], theirs[name], atol=1e-6)
        assert same or name.startswith("scores."), name
    assert not torch.allclose(ours["scores.weight"], theirs["scores.weight"], atol=1e-6)


def test_a_run_goes_on_with_images_that_were_copied(tmp_path: Path) -> None:
    import shutil

    train = coloured(tmp_path / "train", 8)
    key = task_of(recipe_of(train)).data_keys
    copied = tmp_path / "copy" / "train"
    shutil.copytree(train, copied)
    (copied / "red" / "0.png").chmod(0o600)
    assert task_of(recipe_of(copied)).data_keys == key
    (copied / "red" / "0.png").unlink()
    assert task_of(recipe_of(copied)).data_keys != key


def test_keys_that_do_not_belong_to_images(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="images are for task: vision"):
        recipes.read("classify", ["data.train.images=[x]"])
    with pytest.raises(BadInput, match="task vision learns from images"):
        recipes.read("vit-demo", ["data.train.grammar=en", "data.train.drawn=null"])
    with pytest.raises(BadInput, match="augment is about images"):
        recipes.read("classify", ["augment.flip=true"])
    raw = {"task": "vision", "model": {"kind": "bert"}, "data": {"train": {"drawn": "shapes"}}}
    with pytest.raises(BadInput, match=r"model\.kind: bert cannot learn task: vision"):
        api.train(recipes.check(raw, "x"), tmp_path / "r")
