"""Plain pickles are read as Python reads them; whatever else a pickle says is refused, and never done."""

from __future__ import annotations

import contextlib
import os
import pickle
import random
import subprocess
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jumok.data.images.pickled import read_pickled
from jumok.errors import BadInput


def content() -> dict[str, Any]:
    rng = np.random.default_rng()
    return {
        "batch_label": "training batch 1 of 5",
        "labels": rng.integers(0, 10, 2500).tolist(),  # more than one APPENDS
        "data": rng.integers(0, 256, (25, 3072), np.uint8),
        "filenames": [f"cat_{number}.png" for number in range(25)],
        "nothing": None,
        "yes": True,
        "large": 2**40,
        "below": -5,
    }


def same(first: dict[str, Any], second: dict[str, Any]) -> bool:
    return first.keys() == second.keys() and all(np.array_equal(first[key], second[key]) for key in first)


@pytest.mark.parametrize("protocol", [1, 2, 3, 4])
def test_plain_values_come_back(protocol: int) -> None:
    whole = content()
    found = read_pickled(pickle.dumps(whole, protocol), "x")
    assert same(found, whole)
    assert type(found["data"]) is np.ndarray


def test_columns_first_and_keys_in_bytes() -> None:
    rows = np.asfortranarray(np.random.default_rng().integers(0, 256, (7, 5), np.uint8))
    found = read_pickled(pickle.dumps({b"data": rows}, 2), "x")
    assert np.array_equal(found["data"], rows)


class Bomb:
    """Unpickled, it runs what it was given."""

    def __init__(self, call: Any, *arguments: Any) -> None:
        self.call, self.arguments = call, arguments

    def __reduce__(self) -> Any:
        return self.call, self.arguments


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_a_bomb_does_not_go_off(protocol: int, tmp_path: Path) -> None:
    mark = tmp_path / "it-ran"
    for bomb in (
        Bomb(os.mkdir, str(mark)),
        Bomb(os.system, f"mkdir {mark}"),
        Bomb(subprocess.check_call, ["mkdir", str(mark)]),
        Bomb(eval, f"__import__('os').mkdir({str(mark)!r})"),
    ):
        for value in (bomb, {"data": bomb, "labels": [1]}, [bomb]):
            data = pickle.dumps(value, protocol)
            with pytest.raises(BadInput, match=r"^some/file, byte \d+: the (name|instruction) .*nothing in it was run"):
                read_pickled(data, "some/file")
            assert not mark.exists()
        pickle.loads(data)  # so that the test would see it
        assert mark.exists()
        mark.rmdir()


@pytest.mark.parametrize(
    "data",
    [
        b"cbuiltins\neval\n(S'1'\ntR.",
        b"\x80\x02cnumpy\nload\nU\x01x\x85R.",
        b"\x80\x02cnumpy.core.multiarray\n_reconstruct\n}b.",  # a state for a name
        b"\x80\x02cnumpy\nndarray\n)R.",  # a call of the class itself
        b"\x80\x02cnumpy\ndtype\nU\x01O\x85R.",  # objects in an array
        b"\x80\x02c_codecs\nencode\nU\x01xU\x03zip\x86R.",
        b"\x80\x02cnumpy\nndarray\n)\x81.",  # NEWOBJ
        b"\x80\x02U\x01xQ.",  # BINPERSID
        b"\x80\x02\x82\x01.",  # EXT1
        b"(S'x'\nios\nsystem\n.",  # INST
    ],
)
def test_other_ways_to_call_something(data: bytes) -> None:
    with pytest.raises(BadInput, match="nothing in it was run"):
        read_pickled(data, "x")


@pytest.mark.parametrize(
    "value", [OrderedDict(a=1), {1, 2}, 1.5, np.ones(3, np.float32), np.array([1], object), np.uint8(3), lambda: 0]
)
def test_what_cifar_has_not_is_refused(value: Any) -> None:
    try:
        data = pickle.dumps({"data": value}, 2)
    except (pickle.PicklingError, AttributeError):
        data = b"\x80\x02cbuiltins\nprint\n."
    with pytest.raises(BadInput, match=r"^x, byte \d+: "):
        read_pickled(data, "x")


def test_a_list_that_holds_itself_many_times_takes_no_time() -> None:
    nested: list[Any] = []
    for _ in range(60):
        nested = [nested, nested]
    assert len(read_pickled(pickle.dumps(nested, 2), "x")) == 2
    with pytest.raises(BadInput):
        read_pickled(pickle.dumps({"x": Bomb(eval, nested)}, 2), "x")


def test_a_shape_that_the_bytes_do_not_fill_is_damage() -> None:
    data = pickle.dumps({"data": np.zeros((3, 4), np.uint8)}, 3)
    assert data.count(b"K\x03K\x04\x86") == 1
    for other in (b"K\xffK\xff\x86", b"J\xff\xff\xff\xffK\x05\x86"):
        with pytest.raises(BadInput, match=r"^x: damaged, cut off"):
            read_pickled(data.replace(b"K\x03K\x04\x86", other), "x")


def test_cut_off_or_scratched_it_is_told_and_nothing_else_happens() -> None:
    rng = random.SystemRandom()
    whole = pickle.dumps(content(), 2)
    for _ in range(40):
        with pytest.raises(BadInput, match=r"^x: damaged, cut off"):
            read_pickled(whole[: rng.randrange(len(whole))], "x")
    small = pickle.dumps({"labels": [1, 2, 3], "data": np.ones((2, 3), np.uint8), "names": ["a", "b"]}, 2)
    for _ in range(2000):
        data = bytearray(small)
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        with contextlib.suppress(BadInput):
            read_pickled(bytes(data), "x")
