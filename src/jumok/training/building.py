"""The same task at all processes: the first one trains tokenizers and encodes corpora, the others find them done."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import torch

from jumok.errors import BadInput
from jumok.recipe import Recipe
from jumok.tasks.build import build_task
from jumok.tasks.objective import Task
from jumok.tasks.translation import chooses_packing
from jumok.text.dropout import refuse_kind
from jumok.training.distributed import Ranks, code
from jumok.training.muon import matrices_of
from jumok.training.precision import choose_precision
from jumok.training.step import check_graphs

Say = Callable[[str], None]


def build_together(recipe: Recipe, device: torch.device, say: Say, saved: Path | None, ranks: Ranks) -> Task:
    """As `build_task`. Files that a recipe names must be there on all machines, the run folder on the first only."""
    made: list[Task] = []

    def build_first() -> dict[str, str]:
        made.append(build_task(recipe, device, say, saved))
        return {} if ranks.alone else _tokenizer_files(made[0])

    files = ranks.first(build_first)

    def build_other() -> None:
        with tempfile.TemporaryDirectory(prefix="jumok-tokenizers-") as place:
            for name, content in files.items():
                (Path(place) / name).parent.mkdir(parents=True, exist_ok=True)
                (Path(place) / name).write_text(content, encoding="utf-8", newline="\n")
            made.append(build_task(recipe, device, say, Path(place)))

    ranks.after_first(build_other)
    ranks.same(**{"version of jumok or PyTorch": code(), "training data": made[0].data_keys})
    if recipe.training.optimizer == "muon":
        matrices_of(made[0].objective)  # a model without them is refused before there is a run
    return made[0]


def _tokenizer_files(task: Task) -> dict[str, str]:
    with tempfile.TemporaryDirectory(prefix="jumok-tokenizers-") as place:
        for name, tokenizer in task.tokenizers.items():
            tokenizer.save(Path(place) / name)
        files = sorted(path for path in Path(place).rglob("*") if path.is_file())
        return {path.relative_to(place).as_posix(): path.read_text(encoding="utf-8") for path in files}


def check(recipe: Recipe, device: torch.device, ranks: Ranks, resume: bool, say: Say) -> None:
    """What cannot be trained on this device, or by so many processes, is refused before anything is read."""
    training, world = recipe.training, ranks.world
    choose_precision(training.precision, device)
    check_graphs(training, device)
    if recipe.task == "translation":
        chooses_packing(recipe, device)
        if (
            training.bpe_dropout and not recipe.tokenizer.source
        ):  # tokenizers that are there already say their kind later
            refuse_kind(recipe.tokenizer.kind)
    if training.shard and ranks.alone:
        say("training.shard: there is one process only, so nothing is split (torchrun starts several)")
    if ranks.alone:
        return
    if training.shard:
        for key, value, instead in (
            ("precision", training.precision == "float16", "bfloat16"),
            ("compile", training.compile, "false"),
            ("graphs", training.graphs is True, "auto"),
            ("optimizer", training.optimizer != "adamw", "adamw"),  # Muon needs whole matrices
        ):
            if value:
                raise ranks.told(BadInput(f"training.{key} does not go with training.shard: use {key}={instead}"))
    accumulate, idle = training.accumulate, world - training.accumulate
    micro_batches = f"training.accumulate={accumulate}: an update has {accumulate} micro-batch{'es' * (accumulate > 1)}"
    if idle > 0 and not resume:
        raise ranks.told(
            BadInput(
                f"{micro_batches}, so {idle} of {world} processes would have nothing to do. Give "
                f"training.accumulate={world} (or a multiple of it); with training.{recipe.batch_key}="
                f"{max(1, recipe.batch_size * accumulate // world)} an update stays as large."
            )
        )
    if idle > 0:
        say(f"note: {micro_batches}, so {idle} of {world} processes have nothing to do: go on with {accumulate}")
    elif accumulate % world:
        waiting = world - accumulate % world
        say(
            f"note: {micro_batches} for {world} processes, so {waiting} of them wait{'s' * (waiting == 1)} while the "
            f"others compute the last: a multiple of {world} would be faster"
        )
