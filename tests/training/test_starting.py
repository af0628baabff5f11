"""Starting from a pretrained run: its network, vocabulary and weights are taken over exactly; the head is fresh."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from jumok import api
from jumok import recipe as recipes
from jumok.errors import BadInput
from jumok.interop.wordpiece import tokenizer_of
from jumok.recipe import BertSection, Recipe, TransformerSection
from jumok.tasks.build import build_task
from jumok.tasks.example_task import ExampleTask
from jumok.tasks.vocabulary import save_tokenizers
from jumok.training.loop import Loop
from jumok.training.run import RunFolder
from jumok.training.starting import put_weights, refuse_named, with_start
from jumok.training.verify import differences

FEW = [
    "training.updates=6", "training.warmup=1", "training.validate_every=3", "training.checkpoint_every=3",
    "training.log_every=1", "training.batch_tokens=300", "training.learning_rate=0.01",
]  # fmt: skip
WORDS = ["red", "blue", "old", "new", "cat", "dog", "sits", "runs", "here", "there"]
Weights = dict[str, Tensor]


def written(path: Path, lines: list[str]) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pretrained run, and files to learn labels and translations from."""
    folder, chance = tmp_path_factory.mktemp("start"), random.Random(3)
    lines = [" ".join(chance.choices(WORDS, k=chance.randint(2, 9))) for _ in range(120)]
    text = written(folder / "text.txt", lines)
    written(folder / "labels.tsv", ["text\tlabel", *(f"{line}\t{'yes' if 'cat' in line else 'no'}" for line in lines)])
    written(folder / "other.txt", [line[::-1] for line in lines])
    keys = [
        "tokenizer.vocabulary=80", "data.window=24", "model.width=16", "model.heads=2", "model.layers=2",
        "model.feed_forward=24", "model.dropout=0.2", "model.max_positions=64",
    ]  # fmt: skip
    recipe = recipes.read("bert-tiny", [*FEW, *keys, f"data.train.text={text}", "data.valid=null"])
    api.train(recipe, folder / "pretrained", quiet=True, report=False)
    return folder


def labels(place: Path, *keys: str, start: str | None = None) -> Recipe:
    given = [
        f"data.train.examples={place / 'labels.tsv'}",
        f"start={start or place / 'pretrained'}",
        "data.max_length=24",
    ]
    return recipes.read("classify", [*FEW, *given, *keys])


def translation(place: Path, *keys: str) -> Recipe:
    files = [f"data.train.source={place / 'text.txt'}", f"data.train.target={place / 'other.txt'}", "data.valid=null"]
    sizes = ["tokenizer.vocabulary=80", "data.max_length=40", "model.decoder_layers=1", "model.feed_forward=24"]
    return recipes.read("transformer-tiny", [*FEW, *files, *sizes, f"start={place / 'pretrained'}", *keys])


def pretrained_weights(run: Path) -> Weights:
    best = RunFolder(run).pointed("best")
    return load_file(run / "checkpoints" / f"step-{best}" / "model.safetensors")


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[Weights]:
    """The weights of each run at the moment at which it begins (or goes on) to learn."""
    seen: list[Weights] = []
    go = Loop.go

    def watched(self: Loop) -> Any:
        seen.append({name: tensor.detach().clone() for name, tensor in self.objective.model.state_dict().items()})
        return go(self)

    monkeypatch.setattr(Loop, "go", watched)
    return seen


def readers(weights: Weights) -> Weights:
    return {name: tensor for name, tensor in weights.items() if name.startswith("reader.")}


def same(one: Weights, other: Weights) -> bool:
    return one.keys() == other.keys() and all(torch.equal(tensor, other[name]) for name, tensor in one.items())


@pytest.mark.parametrize("kind", ["labels", "translation", "pretraining"])
def test_the_reader_is_the_pretrained_one_before_the_first_update(
    place: Path, kind: str, tmp_path: Path, begun: list[Weights]
) -> None:
    theirs = pretrained_weights(place / "pretrained")
    if kind == "pretraining":
        keys = [f"data.train.text={place / 'text.txt'}", "data.valid=null", "data.window=24"]
        recipe = recipes.read("bert-tiny", [*FEW, *keys, f"start={place / 'pretrained'}"])
    else:
        recipe = labels(place) if kind == "labels" else translation(place)
    model = api.train(recipe, tmp_path / "run", quiet=True, report=False)
    (first,) = begun
    assert same(readers(first), readers(theirs))
    if kind == "pretraining":
        assert same(first, theirs), "what guesses words goes on, too"
    else:
        again = build_task(with_start(recipe), torch.device("cpu"), lambda _: None).objective.model.state_dict()
        heads = {name: tensor for name, tensor in first.items() if not name.startswith("reader.")}
        assert heads
        assert all(torch.equal(tensor, again[name]) for name, tensor in heads.items()), "all else follows from the seed"
    tokenizer = model.source if kind == "translation" else model.tokenizer
    assert tokenizer.fingerprint == api.load(place / "pretrained", say=lambda _: None).tokenizer.fingerprint
    last = load_file(tmp_path / "run" / "checkpoints" / "step-6" / "model.safetensors")
    assert not same(readers(last), readers(theirs)), "and then it learns"


def test_what_it_brings_and_what_the_recipe_keeps(place: Path) -> None:
    theirs = RunFolder(place / "pretrained").recipe()
    raw = {
        **recipes.read("classify", ["data.max_length=64"]).model_dump(mode="json"),
        "start": str(place / "pretrained"),
        "model": {"kind": "bert"},
    }
    plain = with_start(recipes.check(raw, "here"))
    assert plain.model == theirs.model
    assert plain.tokenizer.vocabulary == theirs.tokenizer.vocabulary
    raw["model"] = {"kind": "bert", "dropout": 0.35, "pooling": "mean", "width": 99, "heads": 3}
    named = with_start(recipes.check(raw, "here"))
    assert isinstance(named.model, BertSection)
    assert (named.model.dropout, named.model.pooling) == (0.35, "mean")
    assert named.model == theirs.model.model_copy(update={"dropout": 0.35, "pooling": "mean"}), "the network is theirs"
    moved = with_start(translation(place)).model
    assert isinstance(moved, TransformerSection)
    assert moved.reader == theirs.model
    assert (moved.width, moved.heads, moved.decoder_layers, moved.tie_embeddings) == (16, 2, 1, "target")


def test_a_wrong_start_is_refused(place: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no run folder .*nowhere"):
        with_start(labels(place, start=str(tmp_path / "nowhere")))
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match="not a run folder"):
        with_start(labels(place, start=str(tmp_path / "empty")))
    other = tmp_path / "lstm"
    RunFolder.create(other, recipes.read("lstm"))
    with pytest.raises(BadInput, match=r"model\.kind seq2seq; start from a BERT"):
        with_start(labels(place, start=str(other)))
    with pytest.raises(BadInput, match="task language cannot start"):
        with_start(recipes.read("lstm-lm", [f"start={place / 'pretrained'}"]))
    with pytest.raises(BadInput, match=r"needs model\.kind transformer, not seq2seq"):
        with_start(recipes.read("lstm", [f"start={place / 'pretrained'}"]))
    bare = tmp_path / "bare"
    shutil.copytree(place / "pretrained", bare)
    shutil.rmtree(bare / "checkpoints")
    task = build_task(with_start(labels(place)), torch.device("cpu"), lambda _: None)
    with pytest.raises(BadInput, match=r"start: .*bare: the checkpoints that it had are gone"):
        put_weights(task.objective.model, str(bare))
    (bare / "last.json").unlink()
    (bare / "best.json").unlink()
    with pytest.raises(BadInput, match=r"start: .*bare: the checkpoints that it had are gone"):
        put_weights(task.objective.model, str(bare))
    (bare / "checkpoints").mkdir()  # so it is in a run that was ended before its first one
    with pytest.raises(BadInput, match="no checkpoint yet"):
        put_weights(task.objective.model, str(bare))
    smaller = labels(place, "model.width=32", "start=null")
    model = build_task(smaller, torch.device("cpu"), lambda _: None).objective.model
    with pytest.raises(BadInput, match="does not fit the model: reader"):
        put_weights(model, str(place / "pretrained"))


def test_layers_are_counted_in_the_model_that_is_started_from(place: Path) -> None:
    """The recipe's own has 4, the pretrained one 2."""
    with pytest.raises(BadInput, match=r"start: .*pretrained: training\.freeze 3: the model has 2 layers"):
        with_start(labels(place, "training.freeze=3"))
    assert with_start(labels(place, "training.freeze=2")).training.freeze == 2
    with pytest.raises(BadInput, match=r"data\.max_length 65 is more than model\.max_positions 64"):
        with_start(labels(place, "data.max_length=65"))
    with pytest.raises(BadInput, match=r"training\.freeze 5: the model has 4 layers"):
        labels(place, "training.freeze=5", "start=null")
    keys = [f"start={place / 'pretrained'}", "training.freeze=2", "data.window=60"]
    smaller = recipes.read("bert-tiny", [*keys, "model.layers=1", "model.max_positions=32"])
    assert with_start(smaller).training.freeze == 2, "what only stands in the recipe does not count"
    with pytest.raises(BadInput, match=r"model\.max_positions 64 is less than data\.window 70"):
        with_start(recipes.read("bert-tiny", [*keys, "data.window=70"]))


@pytest.mark.parametrize(
    "key",
    ["model.width=64", "model.layers=1", "tokenizer.vocabulary=200", "model={kind: bert, width: 64}",
     "tokenizer.lowercase=true", "model={kind: recurrent}"],
)  # fmt: skip
def test_keys_that_the_pretrained_run_decides_cannot_be_named(place: Path, key: str) -> None:
    start = f"start={place / 'pretrained'}"
    given = [f"data.train.examples={place / 'labels.tsv'}", "data.max_length=24", start]
    with pytest.raises(BadInput, match=r"(model|tokenizer)\.\w+=.*--start .*pretrained has .*Leave the key out"):
        refuse_named(recipes.read("classify", [*given, key]), [key])


def test_keys_that_agree_or_are_a_recipes_own_are_no_trouble(place: Path) -> None:
    fine = ["model.width=16", "model.layers=2", "model.dropout=0.3", "model.pooling=mean", "training.updates=3"]
    recipe = labels(place, *fine)
    refuse_named(recipe, fine)
    refuse_named(recipe, [])
    refuse_named(labels(place, "model.width=64", start="gone"), ["model.width=64"])  # which is told elsewhere
    moved = ["tokenizer.vocabulary=80", "model.feed_forward=24", "model.decoder_layers=1"]
    refuse_named(translation(place), moved)
    for key in ("model.width=32", "model.encoder_layers=3"):
        with pytest.raises(BadInput, match=key.partition("=")[0]):
            refuse_named(translation(place, key), [key])


def test_a_translator_starts_from_any_vocabulary_with_its_special_tokens_in_place(place: Path, tmp_path: Path) -> None:
    """Where it was made does not matter."""
    ours = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    for name, tokens in {"fits": ours, "elsewhere": [*ours[:2], *WORDS, *ours[2:5]]}.items():
        theirs, run = tmp_path / f"{name}-vocabulary", tmp_path / name
        theirs.mkdir()
        written(theirs / "vocab.txt", tokens)
        shutil.copytree(place / "pretrained", run)
        shutil.rmtree(run / "tokenizer")
        save_tokenizers(run / "tokenizer", {"text": tokenizer_of(theirs)})
    assert with_start(translation(place, f"start={tmp_path / 'fits'}")).model.kind == "transformer"
    with pytest.raises(BadInput, match=r"\[PAD\], \[CLS\] and \[SEP\] at 0, 12 and 13.* at 0, 2 and 3"):
        with_start(translation(place, f"start={tmp_path / 'elsewhere'}"))


class Stop(Exception):
    pass


def stopped_at(update: int, monkeypatch: pytest.MonkeyPatch) -> None:
    batches = ExampleTask.batches

    def stopping(self: ExampleTask, number: int, *rest: Any) -> Any:
        if number == update:
            raise Stop
        return batches(self, number, *rest)

    monkeypatch.setattr(ExampleTask, "batches", stopping)


@pytest.mark.parametrize("update", [1, 4], ids=["before a checkpoint", "after one"])
def test_stopped_and_resumed_it_is_the_same_run(
    place: Path, update: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the first checkpoint, too: the pretrained weights are not forgotten."""
    recipe = labels(place)
    api.train(recipe, tmp_path / "plain", quiet=True, report=False)
    with monkeypatch.context() as patched:
        stopped_at(update, patched)
        with pytest.raises(Stop):
            api.train(recipe, tmp_path / "stopped", quiet=True, report=False)
    assert (RunFolder(tmp_path / "stopped").pointed("last") is None) == (update == 1)
    api.train(recipe, tmp_path / "stopped", resume=True, quiet=True, report=False)
    assert differences(RunFolder(tmp_path / "plain"), RunFolder(tmp_path / "stopped")) == []


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("relative", [False, True])
def test_it_goes_on_where_the_pretrained_run_is_gone(
    place: Path, named: bool, relative: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the recipe given again, or without."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(place / "pretrained", tmp_path / "gone")
    recipe = labels(place, start="gone" if relative else str(tmp_path / "gone"))
    api.train(recipe, tmp_path / "plain", quiet=True, report=False)
    with monkeypatch.context() as patched:
        stopped_at(4, patched)
        with pytest.raises(Stop):
            api.train(recipe, tmp_path / "run", quiet=True, report=False)
    shutil.rmtree(tmp_path / "gone")
    model = api.train(recipe if named else None, tmp_path / "run", resume=True, quiet=True, report=False)
    assert differences(RunFolder(tmp_path / "plain"), RunFolder(tmp_path / "run")) == []
    assert model.predict(["red cat"])[0].label in ("yes", "no")
    if named:
        with pytest.raises(BadInput, match=r"these keys differ: training\.learning_rate"):
            api.train(labels(place, "training.learning_rate=0.02", start=recipe.start), tmp_path / "run", resume=True)
