"""Work of other processes: in order, the same as here, and done here where they cannot; what kills them is told."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from jumok.data.rendering.processes import in_processes
from jumok.errors import Failure


def square(number: int) -> tuple[int, int]:
    return number * number, os.getpid()


def dies_elsewhere(part: tuple[int, int]) -> int:
    number, home = part
    if os.getpid() != home and number % 2:
        os._exit(1)
    return number


def dies_of_some(files: Sequence[Path]) -> int:
    for file in files:
        if file.suffix == ".kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if file.suffix == ".exit":
            os._exit(3)
    return len(files)


def talks(number: int) -> int:
    print("something else", flush=True)
    return number


def says_nothing(part: tuple[int, int]) -> int:
    number, home = part
    if os.getpid() != home:
        os._exit(0)
    return number


def refuses(number: int) -> int:
    raise LookupError(f"not {number}")


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other processes find this module where pytest has it."""
    monkeypatch.syspath_prepend(os.path.dirname(__file__))
    name = os.path.basename(__file__).removesuffix(".py")
    for function in (square, dies_elsewhere, dies_of_some, talks, says_nothing, refuses):
        monkeypatch.setattr(function, "__module__", name)
    monkeypatch.setitem(sys.modules, name, sys.modules[__name__])


def test_in_order_and_elsewhere(seed: int) -> None:
    numbers = np.random.default_rng(seed).integers(0, 10**6, 4).tolist()
    found = list(in_processes(square, numbers, 2))
    assert [result for result, _ in found] == [number * number for number in numbers]
    assert os.getpid() not in {process for _, process in found}
    assert {process for _, process in in_processes(square, numbers, 1)} == {os.getpid()}


def test_what_others_cannot_do_is_done_here() -> None:
    assert list(in_processes(dies_elsewhere, [(number, os.getpid()) for number in range(3)], 2)) == [0, 1, 2]


@pytest.mark.parametrize(("suffix", "how"), [("kill", "SIGKILL"), ("exit", "code 3")])
def test_what_kills_another_process_is_named_and_not_tried_here(suffix: str, how: str) -> None:
    parts = [[Path("a.ttf")], [Path("b.ttf"), Path(f"c.{suffix}"), Path("d.ttf")]]
    with pytest.raises(Failure, match=rf"^c\.{suffix}: dies of some .*\({how}\)"):
        list(in_processes(dies_of_some, parts, 2))


def test_what_another_process_should_not_have_written() -> None:
    assert list(in_processes(talks, [4, 5], 2)) == [4, 5]
    assert list(in_processes(says_nothing, [(4, os.getpid()), (5, os.getpid())], 2)) == [4, 5]


def test_an_error_is_ours() -> None:
    with pytest.raises(LookupError, match="not 5"):
        list(in_processes(refuses, [5, 6], 2))


def test_without_an_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    assert list(in_processes(square, [2, 3], 2)) == [(4, os.getpid()), (9, os.getpid())]
