"""Several processes learn what one does: real processes that talk through gloo."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from line import told
from lines_together import Trouble, disagree, fail_first, learn, talk
from ranks import together

from jumok.errors import Failure
from jumok.training import distributed
from jumok.training.distributed import Ranks

KEYS = ["training.updates=6", "training.validate_every=3", "training.checkpoint_every=2"]


def close(one: Any, other: Any) -> None:
    assert one.keys() == other.keys()
    for name in one:
        torch.testing.assert_close(torch.tensor(one[name]), torch.tensor(other[name]), rtol=1e-5, atol=1e-6)


def test_they_can_talk() -> None:
    every = together(3, talk)
    for heard in every:
        assert heard["total"] == [4.5, 3.0]
        assert heard["share"] == {"from": 0, "text": "주목"}
        assert heard["each"] == [0, 10, 20]
        assert heard["first"] == "done by 0"
        assert heard["tensors"] == [[3.0] * 3, [0.0, 3.0, 6.0, 9.0]]
        assert heard["model"] == [[0.0, 0.0], [0.0, 0.0]]
    first, second, third = (heard["after"] for heard in every)
    assert second[0] < third[0] < min(first[-1], second[-1], third[-1]), "in turn, and all wait for the last"
    assert len(first) == 1


def test_what_the_first_cannot_do_it_alone_complains_about() -> None:
    first, *others = together(3, fail_first)
    assert first == (2, "no such file")
    assert others == [(2, "another process says what is wrong")] * 2


def test_processes_with_different_code_do_not_train_together() -> None:
    code, message = together(2, disagree, 1)[0]
    assert code == 2
    assert "process 1 of 2 has another code than process 0" in message


@given(accumulate=st.integers(1, 40), world=st.integers(1, 12), sharded=st.booleans())
def test_every_micro_batch_is_dealt_to_one_process(accumulate: int, world: int, sharded: bool) -> None:
    hands = [Ranks(rank, world).numbers(accumulate, sharded) for rank in range(world)]
    assert sorted(number for hand in hands for number in hand if number < accumulate) == list(range(accumulate))
    assert all(hands), "nobody stays away"
    assert len({len(hand) for hand in hands}) == 1 if sharded else max(map(len, hands)) - min(map(len, hands)) <= 1


@given(sizes=st.lists(st.integers(0, 50), max_size=12))
def test_buckets_hold_everything_in_order(sizes: list[int]) -> None:
    before, distributed.BUCKET = distributed.BUCKET, 40
    try:
        tensors = [torch.empty(size) for size in sizes]
        groups = list(distributed.buckets(tensors))
        assert [id(tensor) for group in groups for tensor in group] == [id(tensor) for tensor in tensors]
        assert all(len(group) == 1 or sum(map(torch.numel, group)) <= 40 for group in groups)
    finally:
        distributed.BUCKET = before


@pytest.mark.parametrize("keys", [[], ["training.ema=0.9", "training.average=2"]])
@pytest.mark.parametrize(("world", "sizes"), [(2, (3, 4)), (2, (5, 1, 2)), (3, (2, 4)), (3, (1, 2, 3, 4, 5, 6, 7))])
def test_the_same_is_learned(tmp_path: Path, world: int, sizes: tuple[int, ...], keys: list[str]) -> None:
    """Dropout on: randomness follows the micro-batch. Also where some have more of them, or none at all."""
    one = learn(tmp_path / "one", sizes, [*KEYS, *keys])
    results = together(world, learn, tmp_path / "several", sizes, [*KEYS, *keys])
    for several in results:
        close(several["gradients"], one["gradients"])
        for key in ("loss_mean", "loss_spread"):
            assert several["state"].pop(key) == pytest.approx(one["state"][key], rel=1e-5)
        assert several["state"] == {key: value for key, value in one["state"].items() if key in several["state"]}
    close(results[0]["weights"], one["weights"])
    for each in ("train", "valid"):
        for event, expected in zip(told(tmp_path / "several", each), told(tmp_path / "one", each), strict=True):
            assert event["step"] == expected["step"]
            for name in set(event) & {"loss", "absolute", "gradient_norm", "learning_rate"}:
                assert event[name] == pytest.approx(expected[name], rel=1e-5), name


def test_the_same_world_is_the_same_to_the_bit(tmp_path: Path) -> None:
    runs = [together(2, learn, tmp_path / name, (3, 4, 2), KEYS)[0]["weights"] for name in ("a", "b")]
    assert runs[0] == runs[1]


def test_out_of_memory_at_one_process_is_its_own_business(tmp_path: Path) -> None:
    plenty = together(2, learn, tmp_path / "plenty", (7, 6), KEYS, Trouble(room=(100, 100)))
    narrow = together(2, learn, tmp_path / "narrow", (7, 6), KEYS, Trouble(room=(100, 2)))
    close(narrow[0]["gradients"], plenty[0]["gradients"])
    assert narrow[1]["weights"] == narrow[0]["weights"]
    assert narrow[0]["said"] == []


def test_not_a_number_at_one_process_is_left_out_by_all(tmp_path: Path) -> None:
    first, second = together(2, learn, tmp_path / "run", (3, 5), KEYS, Trouble(poison=(2, 1)))
    assert first["state"] == second["state"]
    assert first["state"]["recovered"] == 1
    assert first["weights"] == second["weights"]
    assert all(math.isfinite(value) for value in first["weights"]["weight"][0])
    assert "update 3 is not a number" in first["said"][0]
    assert "3 points; 5 points" in first["said"][0], "the batches of all processes are named"
    one = learn(tmp_path / "one", (3, 5), KEYS, Trouble(poison=(2, 1)))
    close(first["weights"], one["weights"])


def test_too_much_that_is_not_a_number_ends_all_and_is_said_once(tmp_path: Path) -> None:
    keys = [*KEYS, "training.skip_bad=0"]
    first, second = together(2, learn, tmp_path / "run", (3, 5), keys, Trouble(poison=(4, 1)))
    assert first[0] == 1
    assert "update 5 is not a number" in first[1]
    assert second == (1, "another process says what is wrong")
    assert json.loads((tmp_path / "run" / "last.json").read_text())["step"] == 4


def test_all_go_back_together(tmp_path: Path) -> None:
    keys = ["training.updates=80", "training.validate_every=1000", "training.checkpoint_every=20"]
    trouble = Trouble(huge=(73, 1))
    first, second = together(2, learn, tmp_path / "run", (3, 5), keys, trouble)
    assert first["state"] == second["state"]
    assert first["weights"] == second["weights"]
    assert first["state"]["left_out"] == list(range(68, 76))
    one = learn(tmp_path / "one", (3, 5), keys, trouble)
    close(first["weights"], one["weights"])


def test_one_is_asked_to_stop_and_all_do(tmp_path: Path) -> None:
    first, second = together(2, learn, tmp_path / "run", (3, 5), KEYS, Trouble(stop=(4, 1)))
    assert first[0] == 130
    assert "stopped after update 5; everything is saved" in first[1]
    assert "torchrun … -m jumok -- train --resume --run" in first[1]
    assert second == (130, "another process says what is wrong")
    assert json.loads((tmp_path / "run" / "last.json").read_text())["step"] == 5


@pytest.mark.parametrize("gone", [0, 1])
def test_who_is_left_says_so_and_ends(tmp_path: Path, gone: int) -> None:
    results = together(2, learn, tmp_path / "run", (3, 5), KEYS, Trouble(end=(3, gone)))
    assert results[gone] == ("killed", 9)
    code, message = results[1 - gone]
    assert code == Failure.exit_code
    assert f"process {1 - gone} of 2: another process of this run has ended" in message
    assert "--resume" in message
    assert (tmp_path / "run" / "checkpoints" / "step-2").is_dir()


def test_an_error_at_one_process_ends_the_others(tmp_path: Path) -> None:
    first, second = together(2, learn, tmp_path / "run", (3, 5), KEYS, Trouble(error=(1, 1)))
    assert second == ("ValueError", "something else")
    assert first[0] == 1
    assert "another process of this run has ended" in first[1]
