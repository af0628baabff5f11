"""Guided alignment: its loss is its formula, one head learns to look where it is told, and a run resumes with it."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from seeded import seed  # noqa: F401

from jumok import api
from jumok import recipe as recipes
from jumok.data import grammar
from jumok.data.links import Places
from jumok.data.pharaoh import format_pharaoh
from jumok.errors import BadInput
from jumok.inspect.aligner import Aligner
from jumok.inspect.alignment import alignment_error_rate
from jumok.inspect.view import View
from jumok.recipe import Recipe
from jumok.tasks.guidance import sum_over_links
from jumok.tasks.translation import TranslationTask
from jumok.tasks.vocabulary import train_tokenizers
from jumok.training.run import RunFolder
from jumok.training.verify import differences

KEYS = [
    "data.train.pairs=400", "data.valid.pairs=20", "tokenizer.kind=word", "model.width=32", "model.heads=2",
    "model.feed_forward=64", "model.encoder_layers=1", "model.decoder_layers=2", "model.dropout=0.1",
    "training.batch_tokens=600", "training.validate_sentences=2", "training.align=0.5", "threads=1",
    "search.max_ratio=1", "search.max_extra=1",
]  # fmt: skip
LEARNS = [
    "training.updates=60", "training.validate_every=60", "training.warmup=10", "training.learning_rate=0.008",
    "model.dropout=0",
]  # fmt: skip


@pytest.fixture
def links(tmp_path: Path) -> Path:
    file = tmp_path / "train.align"
    lines = [format_pharaoh(pair.sure) for pair in grammar.pairs("en", "fr", "train", 400)]
    file.write_text("\n".join(lines) + "\n")
    return file


def recipe_of(links: Path, *keys: str) -> Recipe:
    return recipes.read("transformer-tiny", [*KEYS, f"data.train.alignments={links}", *keys])


def task_of(recipe: Recipe, cache: Path) -> TranslationTask:
    told = train_tokenizers(recipe, lambda text: None)
    return TranslationTask(recipe, told, torch.device("cpu"), lambda text: None, cache)


def test_the_loss_is_its_formula(seed: int) -> None:  # noqa: F811
    weights = torch.rand(2, 3, 5, 4, dtype=torch.float64).softmax(-1)
    chosen = torch.rand(3, 5, 4) < 0.4
    row, target, source = (column.numpy() for column in chosen.nonzero(as_tuple=True))
    order = np.random.default_rng(seed).permutation(len(row))
    found = sum_over_links(weights, Places(row[order], target[order], source[order]))
    expected = 0.0
    for one in range(2):
        for b in range(3):
            for t in range(5):
                of_word = [math.log(weights[one, b, t, s]) for s in range(4) if chosen[b, t, s]]
                expected -= sum(of_word) / len(of_word) if of_word else 0.0
    assert float(found) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("twice", [0.0, 1.0])
def test_it_is_added_while_learning_and_only_then(links: Path, tmp_path: Path, twice: float) -> None:
    recipe = recipe_of(links, "model.dropout=0", f"training.r_drop={twice}", "training.align_layer=1")
    task = task_of(recipe, tmp_path / "cache")
    batch, objective = task.batches(0)[0], task.objective
    objective.train()
    loss = objective(batch)
    guided = loss.parts["alignment"]
    assert guided > 0
    guidance, objective.guidance = objective.guidance, None
    plain = objective(batch)
    assert float(loss.sum.detach()) == pytest.approx(float(plain.sum.detach() + 0.5 * guided), rel=1e-5)
    objective.guidance = guidance
    objective.eval()
    assert "alignment" not in objective(batch).parts
    assert not guidance.tap.watched  # nothing is left behind that would slow the model down


def test_only_the_guided_head_is_pulled(links: Path, tmp_path: Path) -> None:
    """The gradient of the alignment alone, at the maps that make queries of that layer."""
    task = task_of(recipe_of(links, "model.dropout=0"), tmp_path / "cache")
    batch, objective = task.batches(0)[0], task.objective.train()
    with objective.guidance.watching():
        objective.model(batch.source, batch.target.ids[:, :-1])
    objective.guidance.loss(batch).backward()
    maps = [block.cross.query.weight.grad for block in objective.model.decoder.blocks]
    assert maps[1] is None  # without a layer it is the second to last
    assert maps[0][:16].abs().max() > 0
    assert maps[0][16:].abs().max() == 0


def test_the_head_learns_to_look_where_it_is_told(links: Path, tmp_path: Path) -> None:
    """Both models are far from able to translate; one of them looks at the right words already."""
    pairs = list(grammar.pairs("en", "fr", "valid", 60))
    rates = []
    for name, keys in (("guided", []), ("alone", ["data.train.alignments=null", "training.align=0"])):
        recipe = recipe_of(links, *keys, *LEARNS)
        recipe = recipe.model_copy(update={"seed": 3})
        model = api.train(recipe, tmp_path / name, quiet=True, report=False)
        aligner = Aligner(model, View(layer=0, head=0))
        found = aligner.align([pair.source for pair in pairs], [pair.target for pair in pairs])
        sure, possible = [set(pair.sure) for pair in pairs], [set(pair.possible) for pair in pairs]
        rates.append(alignment_error_rate(found, sure, possible).error_rate)
    print(rates)
    assert rates[0] < rates[1] - 0.2


@pytest.mark.full
def test_a_stopped_run_goes_on_to_the_bit(links: Path, tmp_path: Path) -> None:
    class Stop(Exception):
        pass

    class StopAt:
        def event(self, event: str, update: int, values: dict[str, object]) -> None:
            if update == 5:
                raise Stop

        def close(self) -> None: ...

    keys = ["training.updates=8", "training.checkpoint_every=2", "training.validate_every=4", "training.log_every=1"]
    api.train(recipe_of(links, *keys), tmp_path / "whole", quiet=True, report=False)
    with pytest.raises(Stop):
        api.train(recipe_of(links, *keys), tmp_path / "stopped", quiet=True, report=False, sinks=[StopAt()])
    api.train(None, tmp_path / "stopped", resume=True, quiet=True, report=False)
    assert differences(RunFolder(tmp_path / "whole"), RunFolder(tmp_path / "stopped")) == []
    assert all("alignment" in event for event in RunFolder(tmp_path / "whole").events() if event["event"] == "train")


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        (["training.align=0"], "alignments are given, but training.align is 0"),
        (["data.train.alignments=null"], "training.align needs data.train.alignments"),
        (["training.align_layer=2"], "training.align_layer 2: the decoder has 2"),
        (["training.pack=true"], "does not go together with training.pack: true"),
        (["training.bpe_dropout=0.1"], "does not go together with training.bpe_dropout"),
        (["training.checkpoint_activations=true"], "does not go together with training.checkpoint_activations"),
        (["data.train.alignments=null", "training.align=0", "training.align_layer=0"], "belongs to training.align"),
    ],
)
def test_what_does_not_go_together_is_refused(links: Path, keys: list[str], told: str) -> None:
    with pytest.raises((BadInput, ValidationError)) as caught:
        recipe_of(links, *keys)
    assert told in str(caught.value)


def test_a_recurrent_model_has_no_heads_to_guide(links: Path) -> None:
    with pytest.raises(BadInput) as caught:
        recipes.read("lstm-luong", [f"data.train.alignments={links}", "training.align=0.5"])
    assert "teaches a head of a Transformer" in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as caught:
        task_of(recipe_of(tmp_path / "nowhere.align"), tmp_path / "cache")
    assert "nowhere.align" in str(caught.value)


def test_other_alignments_of_the_same_corpus_are_other_links(links: Path, tmp_path: Path) -> None:
    first = task_of(recipe_of(links), tmp_path / "cache")
    other = tmp_path / "other.align"
    other.write_text("0-0\n" * 400)
    second = task_of(recipe_of(other), tmp_path / "cache")
    counts = [len(task.objective.guidance.links[0].of(range(50)).row) for task in (first, second)]
    assert counts[0] > counts[1] > 0  # of the first words alone
    assert first.data_keys != second.data_keys


def test_a_run_does_not_go_on_with_other_alignments(links: Path, tmp_path: Path) -> None:
    keys = ["training.updates=2", "training.checkpoint_every=1", "training.validate_every=2"]
    api.train(recipe_of(links, *keys), tmp_path / "run", quiet=True, report=False)
    links.write_text("0-0\n" * 400)
    with pytest.raises(BadInput) as caught:
        api.train(None, tmp_path / "run", resume=True, quiet=True, report=False)
    assert "data" in str(caught.value)


def test_of_two_corpora_one_may_have_links(links: Path, tmp_path: Path) -> None:
    corpora = [
        {"grammar": "en-fr", "pairs": 400, "alignments": str(links), "tag": "2fr"},
        {"grammar": "en-fr", "pairs": 300, "split": "test", "tag": "2fr"},
    ]
    valid = [{"grammar": "en-fr", "pairs": 20, "tag": "2fr"}]
    recipe = recipe_of(links, f"data.train={json.dumps(corpora)}", f"data.valid={json.dumps(valid)}", "model.dropout=0")
    task = task_of(recipe, tmp_path / "cache")
    parts = {}
    for update in range(4):
        (batch,) = task.batches(update)
        parts[batch.corpus] = float(task.objective.train()(batch).parts["alignment"])
        if batch.corpus == 0:  # the tag stands before all words
            assert task.objective.guidance.links[0].of(batch.indices).source.min() >= 1
    assert parts[0] > 0
    assert parts[1] == 0


def test_pieces_of_a_batch_are_guided_as_the_whole(links: Path, tmp_path: Path) -> None:
    task = task_of(recipe_of(links, "model.dropout=0"), tmp_path / "cache")
    batch, objective = task.batches(0)[0], task.objective.train()
    whole = objective(batch).sum.item()
    assert sum(objective(part).sum.item() for part in batch.split(3)) == pytest.approx(whole, rel=1e-5)
