"""Whole runs of real models: one process, two processes, and two that split the weights between them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from ranks import together
from safetensors.torch import load_file
from training_together import LSTM, PAIRS, TRANSFORMER, train

from jumok.data import grammar
from jumok.data.pharaoh import format_pharaoh
from jumok.training.run import RunFolder
from jumok.training.verify import differences

REGULARISED = ["training.r_drop=1", "training.ema=0.9", "training.average=2"]
TEXT = ["data.train.grammar=en", "data.train.pairs=60", "data.window=24", "training.batch_tokens=96"]


def same_run(one: Path, other: Path, tolerance: float = 1e-4) -> None:
    """Everything that both have told, and the weights and the optimiser they ended with, to float tolerance."""
    told = [RunFolder(path).events() for path in (one, other)]
    assert [(event["event"], event["step"]) for event in told[0]] == [(e["event"], e["step"]) for e in told[1]]
    for events in zip(*told, strict=True):
        for name in events[0].keys() & {"loss", "nll", "kl", "gradient_norm", "mae", "perplexity"}:
            assert events[1][name] == pytest.approx(events[0][name], rel=tolerance), (events[0]["step"], name)
    last = RunFolder(one).pointed("last")
    assert RunFolder(other).pointed("last") == last
    for file in ("model", "optimizer"):
        stored = [load_file(path / "checkpoints" / f"step-{last}" / f"{file}.safetensors") for path in (one, other)]
        close(*stored, tolerance)


def close(one: dict[str, Any], other: dict[str, Any], tolerance: float = 1e-4) -> None:
    assert one.keys() == other.keys()
    for name, tensor in one.items():
        assert tensor.dtype == other[name].dtype
        torch.testing.assert_close(
            other[name], tensor, rtol=tolerance, atol=tolerance, msg=lambda m, n=name: f"{n}: {m}"
        )


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("lstm-luong", [*PAIRS, *LSTM, "training.accumulate=3"]),
        ("transformer-tiny", [*PAIRS, *TRANSFORMER, *REGULARISED, "tokenizer.kind=bpe", "training.bpe_dropout=0.1"]),
        ("transformer-lm", [*TEXT, *TRANSFORMER[:3], "model.layers=1", "tokenizer.kind=word"]),
        ("forecast", ["model.width=8", "model.layers=1", "training.batch_tokens=512"]),
    ],
)
def test_two_processes_learn_what_one_does(tmp_path: Path, name: str, keys: list[str]) -> None:
    train(tmp_path / "one", name, keys)
    assert together(2, train, tmp_path / "two", name, keys) == ["trained", "trained"]
    same_run(tmp_path / "one", tmp_path / "two")


@pytest.mark.parametrize("shard", ["false", "true"])
def test_two_processes_are_guided_as_one_is(tmp_path: Path, shard: str) -> None:
    """A head that learns alignments, dropout on; also where the weights are split."""
    links = tmp_path / "train.align"
    links.write_text("".join(f"{format_pharaoh(pair.sure)}\n" for pair in grammar.pairs("en", "fr", "train", 120)))
    keys = [*PAIRS, *TRANSFORMER, f"data.train.alignments={links}", "training.align=0.5"]
    train(tmp_path / "one", "transformer-tiny", keys)
    keys += [f"training.shard={shard}"]
    assert together(2, train, tmp_path / "two", "transformer-tiny", keys) == ["trained", "trained"]
    same_run(tmp_path / "one", tmp_path / "two")
    names = ("one", "two")
    told = [[event.get("alignment", 0.0) for event in RunFolder(tmp_path / name).events()] for name in names]
    assert any(told[0])
    assert told[1] == pytest.approx(told[0], rel=1e-4)


def test_bfloat16_too(tmp_path: Path) -> None:
    keys = [*PAIRS, *TRANSFORMER, "training.precision=bfloat16"]
    train(tmp_path / "one", "transformer-tiny", keys)
    assert together(2, train, tmp_path / "two", "transformer-tiny", keys) == ["trained", "trained"]
    same_run(tmp_path / "one", tmp_path / "two", tolerance=0.02)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run by one process, which has nothing to split, and by two that split the weights."""
    place = tmp_path_factory.mktemp("split")
    train(place / "whole", "transformer-tiny", SPLIT)
    assert together(2, train, place / "split", "transformer-tiny", SPLIT) == ["trained", "trained"]
    return place


SPLIT = [*PAIRS, *TRANSFORMER, "training.shard=true", "training.accumulate=3", "training.ema=0.9"]


def test_split_weights_learn_the_same(runs: Path) -> None:
    same_run(runs / "whole", runs / "split")


@pytest.mark.parametrize(
    "worlds",
    [(1, 2), (2, 1), pytest.param((2, 3), marks=pytest.mark.full), pytest.param((3, 2), marks=pytest.mark.full)],
)
def test_a_checkpoint_does_not_know_how_many_have_written_it(
    runs: Path, tmp_path: Path, worlds: tuple[int, int]
) -> None:
    assert stopped_and_resumed(tmp_path / "run", worlds) == ["stopped", "trained"]
    same_run(runs / "whole", tmp_path / "run")


def test_resumed_by_as_many_it_is_the_same_to_the_bit(runs: Path, tmp_path: Path) -> None:
    assert stopped_and_resumed(tmp_path / "run", (2, 2)) == ["stopped", "trained"]
    assert differences(RunFolder(runs / "split"), RunFolder(tmp_path / "run")) == []


def stopped_and_resumed(run: Path, worlds: tuple[int, int]) -> list[str]:
    """Begun by so many, gone before the update after a checkpoint was told, and resumed by so many."""
    seen = []
    for world, stop_at, resume in ((worlds[0], 5, False), (worlds[1], 0, True)):
        arguments = run, "transformer-tiny", SPLIT, stop_at, resume
        seen += [train(*arguments)] if world == 1 else together(world, train, *arguments)[:1]
    return seen


@pytest.mark.full
@pytest.mark.parametrize(
    "keys",
    [
        ["training.checkpoint_activations=true"],
        ["training.pack=true", "training.loss_chunk=16", "training.r_drop=1"],
        ["model.position=relative", "model.tie_embeddings=all", "tokenizer.joint=true"],
        ["model.position=rotary", "model.key_value_heads=1", "model.norm=post", "model.activation=swiglu"],
    ],
)
def test_every_way_of_training_can_be_split(tmp_path: Path, keys: list[str]) -> None:
    keys = [*PAIRS, *TRANSFORMER, *keys, "training.shard=true"]
    train(tmp_path / "whole", "transformer-tiny", keys)
    assert together(2, train, tmp_path / "split", "transformer-tiny", keys) == ["trained", "trained"]
    same_run(tmp_path / "whole", tmp_path / "split")


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("transformer-tiny", [*PAIRS, *TRANSFORMER, "training.average=2", "model.tie_embeddings=target"]),
        ("lstm-luong", [*PAIRS, *LSTM]),
    ],
)
def test_other_models_are_split_too(tmp_path: Path, name: str, keys: list[str]) -> None:
    train(tmp_path / "whole", name, keys)
    assert together(2, train, tmp_path / "split", name, [*keys, "training.shard=true"]) == ["trained", "trained"]
    last = RunFolder(tmp_path / "whole").pointed("last")
    assert last == (7 if "training.average=2" in keys else 6)
    files = [tmp_path / run / "checkpoints" / f"step-{last}" / "model.safetensors" for run in ("whole", "split")]
    close(*map(load_file, files))


def test_split_weights_out_of_memory_end_with_a_message(tmp_path: Path) -> None:
    keys = [*PAIRS, *TRANSFORMER, "training.shard=true"]
    first, second = together(2, train, tmp_path / "run", "transformer-tiny", keys, 0, False, (1, 4))
    assert second[0] == 1
    assert "process 1: update 4 does not fit into memory" in second[1]
    assert "training.batch_tokens (now 256)" in second[1]
    assert first[0] == 1
    assert "another process of this run has ended" in first[1]
    assert json.loads((tmp_path / "run" / "last.json").read_text())["step"] == 3


def test_whole_weights_out_of_memory_go_on(tmp_path: Path) -> None:
    keys = [*PAIRS, *TRANSFORMER, "model.dropout=0"]
    train(tmp_path / "one", "transformer-tiny", keys)
    assert together(2, train, tmp_path / "two", "transformer-tiny", keys, 0, False, (1, 4)) == ["trained", "trained"]
    same_run(tmp_path / "one", tmp_path / "two")


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        (["training.accumulate=1"], ["1 of 2 processes would have nothing to do", "accumulate=2", "batch_tokens=128"]),
        (["training.shard=true", "training.precision=float16"], ["training.precision", "bfloat16"]),
        (["training.shard=true", "training.compile=true"], ["training.compile", "training.shard"]),
        (["device=cuda"], ["cuda is not available"]),
    ],
)  # fmt: skip
def test_what_cannot_be_shared_is_refused(tmp_path: Path, keys: list[str], words: list[str]) -> None:
    results = together(2, train, tmp_path / "run", "transformer-tiny", [*PAIRS, *TRANSFORMER, *keys])
    assert results[0][0] == results[1][0] == 2
    for word in words:
        assert word in results[0][1]
    assert not (tmp_path / "run").exists()


def test_an_existing_run_is_refused_once(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "recipe.yaml").write_text("mine")
    first, second = together(2, train, tmp_path / "run", "transformer-tiny", [*PAIRS, *TRANSFORMER])
    assert first[0] == second[0] == 2
    assert "holds a run already" in first[1]
    assert second[1] == "another process says what is wrong"
