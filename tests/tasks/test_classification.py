"""Labels and numbers for texts: what the losses are, what is refused, and that both readers learn it from files."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from seeded import seed  # noqa: F401
from torch.nn import functional as F

from jumok import api
from jumok import recipe as recipes
from jumok.data.batch import Sequences
from jumok.data.labelled_batch import LabelledBatch
from jumok.errors import BadInput
from jumok.models.reader import TextLabeller
from jumok.recipe import BertSection, Recipe, Training
from jumok.tasks.build import build_task
from jumok.tasks.classification import ClassificationObjective, RegressionObjective
from jumok.tasks.labelling import Classes, Numbers

FILLERS = ["the", "a", "of", "to", "in", "and", "on", "with", "at", "from", "by", "for", "as", "but", "or", "if", "so"]
LABELS = {"cats": "animal", "bread": "food", "rain": "weather"}
SMALL = [
    "tokenizer.kind=wordpiece", "tokenizer.vocabulary=150", "training.batch_tokens=400", "training.updates=60",
    "training.warmup=5", "training.validate_every=30", "training.checkpoint_every=30", "training.learning_rate=0.005",
    "data.max_length=24",
]  # fmt: skip
BERT = [*SMALL, "model.width=32", "model.heads=2", "model.layers=1", "model.feed_forward=64", "model.dropout=0.0"]
RECURRENT = [*SMALL, "model.width=32", "model.embedding=24", "model.dropout=0.0"]
RECIPES = {"classify": BERT, "classify-lstm": RECURRENT, "similarity": BERT}
CPU = torch.device("cpu")


def sentence(chance: random.Random, *words: str) -> str:
    made = [*words, *chance.choices(FILLERS, k=chance.randint(3, 9))]
    chance.shuffle(made)
    return " ".join(made)


def labelled_file(path: Path, count: int = 300, start: int = 1) -> Path:
    chance = random.Random(start)
    rows = []
    for _ in range(count):
        word = chance.choice(list(LABELS))
        rows.append(f"{sentence(chance, word)}\t{LABELS[word]}")
    path.write_text("\n".join(["text\tlabel", *rows]) + "\n", encoding="utf-8")
    return path


def recipe_of(name: str, file: Path, *keys: str) -> Recipe:
    return recipes.read(name, [*RECIPES[name], f"data.train.examples={file}", *keys])


# ------------------------------------------------------------ labels


def test_labels_stand_in_a_fixed_order_and_are_counted() -> None:
    classes = Classes.learned(["b", "a", "10", "b", "9", "b"])
    assert (classes.names, classes.counts) == (("9", "10", "a", "b"), (1, 1, 1, 3))
    with pytest.raises(BadInput, match='only one label \\("x"\\)'):
        Classes.learned(["x", "x"])
    with pytest.raises(BadInput, match=r'f\.tsv, line 3: the label "bb".*Did you mean "b"'):
        classes.index("bb", "f.tsv, line 3")


def test_class_weights() -> None:
    classes = Classes.learned(["a"] * 6 + ["b"] * 3 + ["c"])
    assert classes.weights(Training()) is None
    balanced = classes.weights(Training(class_weights="balanced"))
    assert balanced == pytest.approx([10 / 18, 10 / 9, 10 / 3])
    assert sum(w * n for w, n in zip(balanced or [], classes.counts, strict=True)) == pytest.approx(10)
    assert classes.weights(Training(class_weights={"b": 2.5})) == [1.0, 2.5, 1.0]
    for given, words in (
        ({"bb": 2.0}, 'class_weights: the label "bb".*Did you mean "b"'),
        ({"a": -1.0}, 'the weight of "a" is -1'),
        ({"a": 0.0, "b": 0.0, "c": 0.0}, "all labels have the weight 0"),
    ):
        with pytest.raises(BadInput, match=words):
            classes.weights(Training(class_weights=given))


def test_numbers_are_learned_around_their_mean() -> None:
    values = [1.0, 4.0, 10.0]
    numbers = Numbers.learned(values)
    assert (numbers.mean, numbers.lowest, numbers.highest) == (5.0, 1.0, 10.0)
    assert numbers.scale == pytest.approx(np.std(values))
    with pytest.raises(BadInput, match="the same number"):
        Numbers.learned([2.0, 2.0])


# ------------------------------------------------------------ losses


def random_batch(labels: torch.Tensor) -> LabelledBatch:
    rows = [torch.randint(1, 40, (int(torch.randint(1, 9, ())),)).tolist() for _ in labels]
    return LabelledBatch(Sequences.pad(rows), labels, len(labels))


def model_of(labels: int, dropout: float = 0.0) -> TextLabeller:
    section = BertSection(width=16, heads=2, layers=1, feed_forward=24, dropout=dropout, attention_dropout=dropout)
    model = TextLabeller(section, 40, labels)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return model


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_of_labels(smoothing: float) -> None:
    model, weights = model_of(3), [0.5, 2.0, 1.0]
    batch = random_batch(torch.tensor([0, 2, 1, 1, 0]))
    log_p = F.log_softmax(model(batch.words), dim=-1)
    expected = 0.0
    for row, label in enumerate(batch.labels.tolist()):
        for other in range(3):
            share = smoothing / 3 + (1 - smoothing) * (other == label)
            expected -= weights[other] * share * log_p[row, other].item()
    found = ClassificationObjective(model, weights, smoothing)(batch)
    assert (found.sum.item(), found.count) == (pytest.approx(expected, rel=1e-5), 5)
    plain = ClassificationObjective(model, None)(batch)
    assert plain.sum.item() == pytest.approx(-log_p.gather(1, batch.labels[:, None]).sum().item(), rel=1e-5)


def test_r_drop_is_nothing_where_nothing_is_dropped() -> None:
    batch = random_batch(torch.tensor([0, 2, 1]))
    model = model_of(3)
    plain, twice = ClassificationObjective(model, None), ClassificationObjective(model, None, r_drop=2.0)
    torch.testing.assert_close(twice(batch).sum, plain(batch).sum)
    assert float(twice(batch).parts["kl"]) == pytest.approx(0, abs=1e-6)
    noisy = ClassificationObjective(model_of(3, 0.3), None, r_drop=2.0)
    loss = noisy(batch)
    assert float(loss.parts["kl"]) > 0
    assert loss.sum.item() == pytest.approx(float(loss.parts["nll"] + loss.parts["kl"]), rel=1e-5)
    assert not noisy.eval()(batch).parts, "there is no second pass where nothing is learned"


def test_the_loss_of_numbers() -> None:
    model, batch = model_of(1), random_batch(torch.tensor([0.5, -1.0, 2.0]))
    found = RegressionObjective(model)(batch)
    expected = (model(batch.words)[:, 0] - batch.labels).square().sum()
    assert (found.sum.item(), found.count) == (pytest.approx(float(expected), rel=1e-5), 3)


# ------------------------------------------------------------ from files


@pytest.mark.parametrize("name", ["classify", "classify-lstm"])
def test_it_learns_labels(name: str, tmp_path: Path) -> None:
    keys = ["model.pooling=mean"] * (name == "classify")  # what a few updates are enough for
    recipe = recipe_of(name, labelled_file(tmp_path / "train.tsv"), "training.class_weights=balanced", *keys)
    model = api.train(recipe, tmp_path / "run", quiet=True, report=False)
    assert model.labels == ("animal", "food", "weather")
    chance = random.Random(99)
    asked = [(chance.choice(list(LABELS)), chance) for _ in range(40)]
    texts = [sentence(chance, word) for word, chance in asked]
    said = model.predict(texts)
    right = sum(one.label == LABELS[word] for one, (word, _) in zip(said, asked, strict=True))
    assert right > 34, right
    for one in said:
        assert sum(one.probabilities.values()) == pytest.approx(1)
        assert one.probability == max(one.probabilities.values()) == one.probabilities[one.label]
    # in any company, in any order
    alone = np.concatenate([model.probabilities([text]) for text in texts])
    np.testing.assert_allclose(model.probabilities(texts), alone, atol=1e-5)
    np.testing.assert_allclose(model.probabilities(texts[::-1])[::-1], alone, atol=1e-5)
    events = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert max(event["accuracy"] for event in events if event["event"] == "valid") > 0.8
    with pytest.raises(BadInput, match="no numbers"):
        model.measure(texts)


@pytest.mark.parametrize("pairs", ["together", "apart"])
def test_it_learns_about_two_texts(pairs: str, tmp_path: Path) -> None:
    """The label is a word of the second text; the first one says the same words of others."""
    chance, file = random.Random(3), tmp_path / "pairs.tsv"
    rows = []
    for _ in range(300):
        first, second = (chance.choice(list(LABELS)) for _ in range(2))
        rows.append(f"{sentence(chance, first)}\t{sentence(chance, second)}\t{LABELS[second]}")
    file.write_text("\n".join(["text\tsecond\tlabel", *rows]) + "\n", encoding="utf-8")
    keys = [f"model.pairs={pairs}", "model.pooling=mean", "training.updates=100", "data.train.fields.second=second"]
    model = api.train(recipe_of("classify", file, *keys), tmp_path / "run", quiet=True, report=False)
    asked = [("cats", "bread"), ("bread", "rain"), ("rain", "cats"), ("bread", "cats")] * 5
    said = model.predict([(sentence(chance, a), sentence(chance, b)) for a, b in asked])
    right = sum(one.label == LABELS[b] for one, (_, b) in zip(said, asked, strict=True))
    assert right > 15, right


def test_it_learns_numbers(tmp_path: Path) -> None:
    """How many cats are there? Told in units of its own."""
    chance, file = random.Random(3), tmp_path / "numbers.csv"
    counts = [chance.randint(0, 4) for _ in range(300)]
    rows = [f"{sentence(chance, *['cats'] * count)},{100 + 10 * count}" for count in counts]
    file.write_text("\n".join(["text,label", *rows]) + "\n", encoding="utf-8")
    keys = ["data.train.fields.second=null", "model.pooling=mean", "training.metric=pearson"]
    model = api.train(recipe_of("similarity", file, *keys), tmp_path / "run", quiet=True, report=False)
    asked = [chance.randint(0, 4) for _ in range(40)]
    found = model.measure([sentence(chance, *["cats"] * count) for count in asked])
    assert np.corrcoef(found, asked)[0, 1] > 0.8
    assert 90 < found.min() < found.max() < 150, "in the units of the file"
    assert float(model.predict(["cats cats"])[0].label) == pytest.approx(model.measure(["cats cats"])[0], abs=1e-3)
    with pytest.raises(BadInput, match="no probabilities"):
        model.probabilities(["cats"])


# ------------------------------------------------------------ the task


def test_batches_are_the_same_however_they_are_asked_for(tmp_path: Path) -> None:
    file = labelled_file(tmp_path / "train.tsv")
    recipe = recipe_of("classify", file, "training.accumulate=3")
    one, other = (build_task(recipe, CPU, lambda _: None) for _ in range(2))
    for update in (20, 0, 7):
        whole = one.batches(update)
        for number in (1, 2, 0):
            (alone,) = other.batches(update, [number])
            assert torch.equal(alone.words.ids, whole[number].words.ids)
            assert torch.equal(alone.labels, whole[number].labels)
    lines = file.read_text(encoding="utf-8").splitlines()
    (batch, *_) = one.batches(4)
    told = one.name_batch(batch)
    item = one.item_of(0, batch.indices[0])
    assert lines[item.line - 1].startswith(item.text)
    assert f"{file}, line {item.line}" in told


def test_validation_measures_what_the_model_says(tmp_path: Path) -> None:
    task: Any = build_task(recipe_of("classify", labelled_file(tmp_path / "a.tsv")), CPU, lambda _: None)
    values = task.validate()
    rows, labels = task.held[0]
    words, segments = rows.batch(np.arange(len(rows)))
    with torch.no_grad():
        scores = task.objective.model(words, segments)
    expected = torch.from_numpy(labels)
    assert values["loss"] == pytest.approx(float(F.cross_entropy(scores, expected)), rel=1e-4)
    assert values["accuracy"] == pytest.approx(float((scores.argmax(dim=-1) == expected).float().mean()))
    assert len(rows) == 15, "a twentieth is kept back"


def written(path: Path, rows: list[str], header: str = "text\tlabel") -> Path:
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


def test_what_is_kept_back_is_never_the_last_of_a_label(tmp_path: Path) -> None:
    rows = [*(f"cats {n}\tcommon" for n in range(6)), *(f"rain {n}\trare{n}" for n in range(30))]
    random.shuffle(rows)
    file = written(tmp_path / "a.tsv", rows)
    for number in range(12):
        task: Any = build_task(recipe_of("classify", file, f"seed={number}"), CPU, lambda _: None)
        assert [item.label for item in task.kept[0]] == ["common"]
        assert json.loads(task.about())["counts"] == [5, *[1] * 30], "of what is learned from"
    told: list[str] = []
    rows += ["one more\tcommon"] * 200
    build_task(recipe_of("classify", written(file, rows), "data.hold_out=7"), CPU, told.append)
    few = " (so few say little: --valid names more)"
    assert f"no validation data given: 7 training examples are kept back for it{few}" in told
    single = written(tmp_path / "b.tsv", ["cats\ta", "rain\tb"])
    with pytest.raises(BadInput, match=r"b\.tsv: none of 2 examples can be kept back.*no other one has.*--valid"):
        build_task(recipe_of("classify", single), CPU, lambda _: None)


def test_one_label_alone_is_told_with_its_column(tmp_path: Path) -> None:
    file = written(tmp_path / "a.tsv", ["cats\tx\tgood", "rain\tx\tbad"], "text\tlabel\tmark")
    with pytest.raises(BadInput, match=r'only one label \("x"\) in column "label"'):
        build_task(recipe_of("classify", file), CPU, lambda _: None)


def test_pairs_with_an_empty_text_are_left_out(tmp_path: Path) -> None:
    rows = ["cats\train\tx", "cats\t \ty", "\train\ty", "bread\tcats\ty", "bread\train\tx", "cats\tcats\ty"]
    told: list[str] = []
    file = written(tmp_path / "a.tsv", rows, "text\tsecond\tlabel")
    task: Any = build_task(recipe_of("classify", file), CPU, told.append)
    assert any("2 examples without text are left out" in line for line in told), told
    assert all(item.text.strip() and item.second.strip() for part in (*task.items, *task.kept) for item in part)


def test_scores_that_are_not_defined_are_left_out(tmp_path: Path) -> None:
    """A single example correlates with nothing; the best checkpoint is chosen all the same."""
    train = written(tmp_path / "a.tsv", [f"{'cats ' * n}rain\t{n}" for n in range(8)])
    valid = written(tmp_path / "b.tsv", ["cats rain\t3"])
    keys = [f"data.valid={{examples: {valid}}}", "data.train.fields.second=null", "training.metric=pearson"]
    few = ["training.updates=2", "training.validate_every=1", "training.checkpoint_every=1"]
    model = api.train(recipe_of("similarity", train, *keys, *few), tmp_path / "run", quiet=True, report=True)
    events = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    for event in (event for event in events if event["event"] == "valid"):
        assert "loss" in event
        assert not {"pearson", "spearman"} & event.keys()
    assert model.run.pointed("best") == 1, "undefined is not better than undefined"
    labels = written(tmp_path / "c.tsv", ["cats\tx", "rain\ty", "bread\tx"])
    one = written(tmp_path / "d.tsv", ["cats\tx"])
    task: Any = build_task(recipe_of("classify", labels, f"data.valid={{examples: {one}}}"), CPU, lambda _: None)
    assert {"loss", "accuracy", "f1"} <= task.validate().keys()
    assert "matthews" not in task.validate()


@pytest.mark.parametrize(
    ("train", "valid", "keys", "words"),
    [
        ("a\tx\nb\ty\n", "c\tz\n", [], ["valid.tsv, line 2", '"z" was never seen']),
        ("a\tx\nb\tx\n", "c\tx\n", [], ["only one label"]),
        ("a\tx\nb\ty\n", "c\tx\n", ["training.class_weights={q: 2.0}"], ["class_weights", '"q"']),
        ("a\tx\nb\ty\n", "c\tx\n", ["data.max_length=2"], ["data.max_length 2", "no room"]),
        ("a\tx\nb\ty\n", "c\tx\n", ["model.pairs=apart"], ["model.pairs: apart", "only one"]),
        ("a\t1\nb\tmany\n", "c\t1\n", ["task=regression", "training.metric=loss"], ["train.tsv, line 3", '"many"']),
        ("a\t1\nb\t1\n", "c\t1\n", ["task=regression", "training.metric=loss"], ["the same number"]),
    ],
)
def test_what_cannot_be_learned_is_named(
    train: str, valid: str, keys: list[str], words: list[str], tmp_path: Path
) -> None:
    for name, content in (("train", train), ("valid", valid)):
        (tmp_path / f"{name}.tsv").write_text("text\tlabel\n" + content, encoding="utf-8")
    recipe = recipe_of("classify", tmp_path / "train.tsv", f"data.valid={{examples: {tmp_path / 'valid.tsv'}}}", *keys)
    with pytest.raises(BadInput) as caught:
        build_task(recipe, CPU, lambda _: None)
    for word in words:
        assert word in str(caught.value)


def test_texts_over_the_limit_are_told(tmp_path: Path) -> None:
    told: list[str] = []
    build_task(recipe_of("classify", labelled_file(tmp_path / "a.tsv"), "data.max_length=6"), CPU, told.append)
    assert any("longer than data.max_length (6 tokens) and are cut there" in line for line in told), told
