"""What a ladder will do: which rungs with which seeds, under which budget, on which data."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jumok import recipe as recipes
from jumok.data.folders import default_cache
from jumok.data.hashes import Hashes
from jumok.data.readers import content_hash, grammar_languages, read_pairs
from jumok.errors import BadInput
from jumok.ladder.rungs import UPDATE_SIZE, Rung, chosen, recipe_of
from jumok.recipe import Corpus, Recipe
from jumok.training.comparison import flat
from jumok.training.resuming import with_absolute_paths

FORMAT = 1
MINUTES = 2.0
GRAMMAR_PAIRS, GRAMMAR_HELD = 40_000, 500
VALIDATIONS = 10  # of a budget in updates
MOST_SEEDS = 1000


@dataclass(frozen=True)
class Budget:
    """The same for every rung: so many minutes of training, or so many updates."""

    minutes: float | None = None
    updates: int | None = None

    def __post_init__(self) -> None:
        if self.minutes is not None and self.updates is not None:
            raise BadInput("--minutes and --updates: a budget is one of them")
        if self.minutes is not None and not 0 < self.minutes < math.inf:
            raise BadInput(f"--minutes {self.minutes:g}: give a time above zero")
        if self.updates is not None and self.updates < 1:
            raise BadInput(f"--updates {self.updates}: give a number above zero")

    @property
    def keys(self) -> list[str]:
        """As keys of a recipe; how long a time is in updates shows only when the speed is known."""
        if self.updates is None:
            return []
        often = max(1, self.updates // VALIDATIONS)
        return [
            f"training.updates={self.updates}", f"training.validate_every={often}",
            f"training.checkpoint_every={often}", f"training.log_every={min(20, often)}",
        ]  # fmt: skip

    def __str__(self) -> str:
        if self.minutes is not None:
            return f"{self.minutes:g} minute{'s' * (self.minutes != 1)} of training"
        return f"{self.updates:,} update{'s' * (self.updates != 1)}"


@dataclass(frozen=True)
class Files:
    """The data of a ladder, as it is named: files, or the embedded grammar."""

    grammar: str | None = None
    source: tuple[str, ...] = ()
    target: tuple[str, ...] = ()
    valid_source: tuple[str, ...] = ()
    valid_target: tuple[str, ...] = ()
    test_source: tuple[str, ...] = ()
    test_target: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        pairs = {
            "": (self.source, self.target),
            "valid-": (self.valid_source, self.valid_target),
            "test-": (self.test_source, self.test_target),
        }
        if self.grammar is not None:
            if any(files for pair in pairs.values() for files in pair):
                raise BadInput("--data names the embedded corpus; your own files come with --source and --target alone")
            grammar_languages(self.grammar)
            return
        for kind, (source, target) in pairs.items():
            if bool(source) != bool(target):
                given, missing = ("source", "target") if source else ("target", "source")
                raise BadInput(f"--{kind}{given} is given, but --{kind}{missing} is missing")
            if len(source) != len(target):
                raise BadInput(
                    f"--{kind}source names {len(source)} files and --{kind}target {len(target)}: they must pair up"
                )
        if not self.source:
            raise BadInput("--source and --target are missing: what should the rungs learn from?")
        if not self.test_source:
            raise BadInput(
                "no test data: the rungs are compared on sentences that none of them has seen. "
                "Give --test-source and --test-target"
            )

    @property
    def keys(self) -> list[str]:
        """As keys of a recipe."""
        if self.grammar is not None:
            train = {"grammar": self.grammar, "pairs": GRAMMAR_PAIRS}
            valid = {"grammar": self.grammar, "pairs": GRAMMAR_HELD}
        else:
            train = {"source": list(self.source), "target": list(self.target)}
            valid = {"source": list(self.valid_source), "target": list(self.valid_target)} if self.valid_source else {}
        return [f"data.train={json.dumps(train)}", f"data.valid={json.dumps(valid or None)}"]

    @property
    def test(self) -> Corpus:
        """Read as a recipe's corpus is: patterns become files, paths absolute."""
        named: dict[str, Any] = {"source": list(self.test_source), "target": list(self.test_target)}
        if self.grammar is not None:
            named = {"grammar": self.grammar, "pairs": GRAMMAR_HELD, "split": "test"}
        return recipes.read("lstm", [f"data.train={json.dumps(named)}"]).data.train[0].resolved()


@dataclass(frozen=True)
class Attempt:
    """One rung with one seed: an ordinary run."""

    rung: Rung
    seed: int
    recipe: Recipe

    @property
    def name(self) -> str:
        return f"{self.rung.name}-{self.seed}"

    def __str__(self) -> str:
        return f"{self.rung.title}, seed {self.seed}"


@dataclass(frozen=True)
class Plan:
    recipes: dict[str, Recipe]  # by rung, from the bottom up
    rungs: tuple[Rung, ...]
    seeds: int
    budget: Budget
    size: str
    files: Files

    @property
    def attempts(self) -> list[Attempt]:
        """All rungs with the first seed, then with the second …: a ladder that is stopped has whole ones."""
        return [
            Attempt(rung, seed, self.recipes[rung.name].model_copy(update={"seed": seed}))
            for seed in range(1, self.seeds + 1)
            for rung in self.rungs
        ]

    @property
    def common(self) -> Recipe:
        """For what is the same on all rungs: data, tokenizer and search."""
        return self.recipes[self.rungs[0].name]

    def test_pairs(self) -> list[tuple[str, str]]:
        return list(read_pairs(self.files.test, "test"))

    def settings(self) -> dict[str, Any]:
        """All that decides a run or its score: what must not change while a ladder grows. More rungs and seeds may."""
        hashes, data = Hashes(default_cache()), self.common.data
        held = [("train", corpus) for corpus in data.train] + [("valid", corpus) for corpus in data.valid]
        contents = [content_hash(corpus, split, hashes) for split, corpus in held]
        keys = {name: flat(recipe.model_dump(mode="json", exclude={"seed"})) for name, recipe in self.recipes.items()}
        return {
            "format": FORMAT,
            "budget": {"minutes": self.budget.minutes, "updates": self.budget.updates},
            "data": contents,
            "test": content_hash(self.files.test, "test", hashes),
            "rungs": keys,
        }


def plan(
    files: Files,
    rungs: Sequence[str] | None = None,
    seeds: int = 1,
    budget: Budget | None = None,
    size: str | None = None,
    overrides: Sequence[str] = (),
    beam: int | None = None,
    device: str = "auto",
) -> Plan:
    """A plan that can be carried out: wrong names, keys and files are found here, before anything is trained."""
    if not 1 <= seeds <= MOST_SEEDS:
        raise BadInput(f"--seeds {seeds}: give a number from 1 to {MOST_SEEDS}")
    budget = budget if budget is not None and budget != Budget() else Budget(minutes=MINUTES)
    steps = chosen(rungs)
    size = size or ("full" if files.grammar is None else "small")
    shared = [*files.keys, *budget.keys, f"device={device}", *([] if beam is None else [f"search.beam={beam}"])]
    found = {rung.name: with_absolute_paths(recipe_of(rung, size, shared, overrides)) for rung in steps}
    for recipe in found.values():
        if recipe.task != "translation":
            raise BadInput(f"task={recipe.task}: a ladder translates")
    if budget.updates is not None:
        _check_updates(found)
    result = Plan(found, steps, seeds, budget, size, files)
    result.test_pairs()  # unequal, unreadable or empty files: before the long work
    for corpus in result.common.data.valid:
        for _ in read_pairs(corpus, "valid"):
            pass
    return result


def _check_updates(found: dict[str, Recipe]) -> None:
    """An update is worth the same on every rung."""
    for key in UPDATE_SIZE:
        values = {name: getattr(recipe.training, key.partition(".")[2]) for name, recipe in found.items()}
        if len(set(values.values())) > 1:
            told = ", ".join(f"{name} {value}" for name, value in values.items())
            raise BadInput(
                f"{key} differs ({told}): under --updates some rungs would learn from more than others. "
                "Give it without a rung's name, or a budget in --minutes"
            )
