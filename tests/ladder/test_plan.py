"""What a ladder will do, and what it will not."""

from __future__ import annotations

from pathlib import Path

import pytest

from jumok import recipe as recipes
from jumok.errors import BadInput
from jumok.ladder.plan import Budget, Files, plan
from jumok.ladder.rungs import RUNGS, SHARED, chosen

GRAMMAR = Files("en-fr")


def test_without_any_option_there_is_a_ladder_of_six_on_the_embedded_corpus() -> None:
    found = plan(GRAMMAR)
    assert [attempt.name for attempt in found.attempts] == [f"{name}-1" for name in RUNGS]
    assert list(RUNGS) == ["rnn", "lstm", "gru", "bahdanau", "luong", "transformer"]
    assert (found.budget, found.size) == (Budget(minutes=2.0), "small")
    test, train = ({source for source, _ in pairs} for pairs in (found.test_pairs(), _training(found.common)))
    assert len(test) > 400
    assert not test & train


def _training(recipe: recipes.Recipe) -> list[tuple[str, str]]:
    from itertools import islice

    from jumok.data.readers import read_pairs

    return list(islice(read_pairs(recipe.data.train[0], "train"), 3000))


@pytest.mark.parametrize("size", list(SHARED))
def test_rungs_differ_in_their_network_and_not_in_what_makes_a_race_fair(size: str) -> None:
    found = plan(GRAMMAR, size=size)
    attention = [getattr(recipe.model, "attention", "multi-head") for recipe in found.recipes.values()]
    assert attention == ["none", "none", "none", "bahdanau", "luong", "multi-head"]
    cells = [getattr(recipe.model, "cell", "-") for recipe in found.recipes.values()]
    assert cells == ["rnn", "lstm", "gru", "lstm", "lstm", "-"]
    for part in ("data", "tokenizer", "search"):
        assert len({getattr(recipe, part).model_dump_json() for recipe in found.recipes.values()}) == 1
    for key in ("batch_tokens", "metric", "label_smoothing", "accumulate", "validate_sentences"):
        assert len({getattr(recipe.training, key) for recipe in found.recipes.values()}) == 1
    if size == "full":  # the recipes of the house, as they ship
        for name, recipe in found.recipes.items():
            assert recipe.model == recipes.read(RUNGS[name].recipe).model


def test_keys_for_all_and_for_one() -> None:
    keys = ["lstm:model.width=96", "model.width=64", "data.max_length=50", "lstm:training.learning_rate=0.5"]
    found = plan(GRAMMAR, ["luong", "lstm"], overrides=keys)
    assert [rung.name for rung in found.rungs] == ["lstm", "luong"]
    assert [recipe.model.width for recipe in found.recipes.values()] == [96, 64]  # what is said of one counts more
    assert [recipe.data.max_length for recipe in found.recipes.values()] == [50, 50]
    assert found.recipes["lstm"].training.learning_rate == 0.5
    assert found.recipes["luong"].training.learning_rate != 0.5


def test_seeds_come_in_whole_ladders() -> None:
    found = plan(GRAMMAR, ["rnn", "gru"], seeds=2)
    assert [attempt.name for attempt in found.attempts] == ["rnn-1", "gru-1", "rnn-2", "gru-2"]
    assert [attempt.recipe.seed for attempt in found.attempts] == [1, 1, 2, 2]


def test_a_budget_in_updates_is_the_same_for_all() -> None:
    found = plan(GRAMMAR, budget=Budget(updates=120))
    assert {recipe.training.updates for recipe in found.recipes.values()} == {120}
    assert {recipe.training.validate_every for recipe in found.recipes.values()} == {12}
    own = plan(GRAMMAR, ["rnn", "lstm"], budget=Budget(minutes=1), overrides=["lstm:training.batch_tokens=64"])
    assert own.recipes["lstm"].training.batch_tokens == 64  # who pays with time may choose
    assert str(Budget(updates=1)) == "1 update"
    assert str(Budget(minutes=1.5)) == "1.5 minutes of training"


def test_settings_know_what_the_files_hold(tmp_path: Path) -> None:
    def ladder(names: str = "source target test_source test_target") -> Files:
        return Files(**{name: (str(tmp_path / name),) for name in names.split()})

    for name in ("source", "target", "test_source", "test_target"):
        (tmp_path / name).write_text("one\ntwo\n")
    before = plan(ladder(), ["rnn"]).settings()
    assert plan(ladder(), ["rnn"]).settings() == before
    assert plan(ladder(), ["rnn"], seeds=3).settings() == before  # more seeds are the same ladder, grown
    (tmp_path / "target").write_text("one\nthree\n")
    assert plan(ladder(), ["rnn"]).settings()["data"] != before["data"]
    (tmp_path / "test_target").write_text("one\nthree\n")
    assert plan(ladder(), ["rnn"]).settings()["test"] != before["test"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rungs": ["lsmt"]}, 'no rung "lsmt". Did you mean "lstm"'),
        ({"rungs": ["rnn", "rnn"]}, "named twice"),
        ({"rungs": []}, "name some of rnn"),
        ({"seeds": 0}, "--seeds 0"),
        ({"size": "huge"}, "small or full"),
        ({"overrides": ["model.widht=3"]}, 'Did you mean "model.width"'),
        ({"overrides": ["lstn:model.width=3"]}, 'no rung "lstn"'),
        ({"overrides": ["lstm:search.length_penalty=3"]}, "the same for all rungs"),
        ({"overrides": ["lstm:data.max_length=3"]}, "the same for all rungs"),
        ({"overrides": ["seed=3"]}, "--seeds"),
        ({"overrides": ["training.updates=3"]}, "--updates"),
        ({"overrides": ["luong:training.updates=3"]}, "--updates"),
        ({"overrides": ["lstm:training.batch_tokens=64"], "budget": Budget(updates=5)}, "batch_tokens differs"),
        ({"overrides": ["lstm:training.accumulate=2"], "budget": Budget(updates=5)}, "lstm 2"),
        ({"beam": 0}, "search.beam"),
        ({"device": "tpu"}, "device"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(BadInput) as told:
        plan(GRAMMAR, **options)  # type: ignore[arg-type]
    assert words in str(told.value)


def test_budgets_that_are_none() -> None:
    for wrong in ({"minutes": 0.0}, {"minutes": float("nan")}, {"updates": 0}, {"minutes": 1.0, "updates": 5}):
        with pytest.raises(BadInput, match="--"):
            Budget(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ({"grammar": "en-de"}, "en-de"),
        ({"grammar": "en-fr", "source": ("a",)}, "--source"),
        ({"source": ("a",)}, "--target is missing"),
        ({"source": ("a",), "target": ("b",)}, "no test data"),
        ({"test_source": ("a",), "test_target": ("b",)}, "--source and --target are missing"),
        ({"source": ("a",), "target": ("b",), "test_target": ("b",)}, "--test-source is missing"),
        ({"source": ("a", "b"), "target": ("b",), "test_source": ("a",), "test_target": ("b",)}, "must pair up"),
    ],
)
def test_data_that_is_not_there(named: dict[str, object], words: str) -> None:
    with pytest.raises(BadInput) as told:
        Files(**named)  # type: ignore[arg-type]
    assert words in str(told.value)


def test_all_rungs_in_their_order_whatever_is_typed_first() -> None:
    assert [rung.name for rung in chosen(["transformer", "rnn"])] == ["rnn", "transformer"]
    assert chosen(None) == tuple(RUNGS.values())
