"""How processes come together, and what is said where they cannot."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
import torch.distributed as dist
from hypothesis import given, settings
from hypothesis import strategies as st

from jumok.errors import BadInput
from jumok.training import meeting
from jumok.training.meeting import attendance


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"WORLD_SIZE": "two"}, ["WORLD_SIZE is 'two'", "no number"]),
        ({"WORLD_SIZE": "2"}, ["RANK and MASTER_ADDR and MASTER_PORT are not set", "torchrun"]),
        ({"WORLD_SIZE": "2", "RANK": "0", "MASTER_PORT": "1"}, ["MASTER_ADDR is not set", "unset WORLD_SIZE"]),
        ({"WORLD_SIZE": "2", "RANK": "2", "MASTER_ADDR": "x", "MASTER_PORT": "1"}, ["RANK=2", "counted from 0"]),
        ({"WORLD_SIZE": "2", "RANK": "0", "MASTER_ADDR": "x", "MASTER_PORT": "x"}, ["MASTER_PORT is 'x'"]),
    ],
)
def test_half_a_launcher_is_refused(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], words: list[str]
) -> None:
    for name in ("RANK", "MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(BadInput) as caught, meeting.joined():
        pass
    for word in words:
        assert word in str(caught.value)


def test_a_world_of_one_needs_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "1")
    with meeting.joined() as ranks:
        assert ranks.alone


@pytest.mark.parametrize("name", ["job-7", "none"])
def test_only_the_workers_of_the_same_torchrun_go_on_by_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    said: list[str] = []
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    meeting.note_launch(tmp_path)
    assert not meeting.goes_on(tmp_path, said.append), "without torchrun"
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", name)
    assert not meeting.goes_on(tmp_path, said.append), "a run that somebody else has made"
    meeting.note_launch(tmp_path)
    # a job with a name is the same job whenever it comes again, as when machines come and go
    assert meeting.goes_on(tmp_path, said.append) == (name != "none")
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
    assert meeting.goes_on(tmp_path, said.append)
    assert "goes on" in said[-1]
    assert not meeting.goes_on(tmp_path / "elsewhere", said.append)
    assert "begins from the start" in said[-1]
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "job-8")
    assert not meeting.goes_on(tmp_path, said.append)


@settings(max_examples=15, deadline=None)
@given(world=st.integers(1, 6), order=st.randoms())
def test_every_meeting_has_a_name_of_its_own(world: int, order: random.Random) -> None:
    """Also in a store that holds what others have left there, some of whom never came to an end."""
    meeting.AGREEING = timedelta(seconds=0.1)
    store = dist.HashStore()
    for rank in range(order.randint(0, 6)):
        store.set(f"jumok/note/{rank}", "somebody who is gone")
    store.set("jumok/proposal", "an-old-name somebody who is gone")
    seen = set()
    for _ in range(2):
        with ThreadPoolExecutor(world) as pool:
            ranks = order.sample(range(world), world)
            names = {future.result() for future in [pool.submit(attendance, store, r, world) for r in ranks]}
        assert len(names) == 1
        seen |= names
    assert len(seen) == 2
