"""A pickle of plain values read without unpickling: dicts, lists, texts, numbers and arrays of bytes, as the Python
version of CIFAR has them.

A pickle is a program, and Python's own reader runs whatever it names. Here `pickletools` only takes the program apart,
and the few instructions that such a file consists of are carried out by the lines below. The names that it may use
(NumPy's way to write an array down, and how Python 3 writes bytes in an old pickle) stand for these lines too: nothing
is imported, nothing is called. Everything else is refused.
"""

from __future__ import annotations

import pickletools
from typing import Any

import numpy as np

from jumok.data.images.raw import Pixels
from jumok.errors import BadInput

MARK = object()
ARRAY, KIND, ENCODE, CLASS = "an array", "its kind of numbers", "bytes from letters", "the class of arrays"
NAMES = {
    "numpy.core.multiarray _reconstruct": ARRAY,
    "numpy._core.multiarray _reconstruct": ARRAY,
    "numpy ndarray": CLASS,
    "numpy dtype": KIND,
    "_codecs encode": ENCODE,
}
NOTHING_TO_DO = {"PROTO", "FRAME", "STOP"}
VALUES = {
    "SHORT_BINSTRING", "BINSTRING", "STRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "BINBYTES",
    "SHORT_BINBYTES", "BINBYTES8", "INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1",
}  # fmt: skip
CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
SHORT_TUPLES = {"EMPTY_TUPLE": 0, "TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


class _Name:
    """A name that may stand in the file; only what it stands for here."""

    def __init__(self, meaning: str) -> None:
        self.meaning = meaning


class _Array:
    """An array, of which the numbers come later in the file."""

    pixels: Pixels | None = None


class _Kind:
    """The kind of an array's numbers, which is bytes."""


def read_pickled(data: bytes, where: str) -> Any:
    """What the pickle holds; texts of Python 2 are str in Latin-1."""
    machine = _Machine(where)
    try:
        for operation, argument, place in pickletools.genops(data):
            machine.do(operation.name, argument, place or 0)
        return _finished(machine.stack.pop())
    except (ValueError, IndexError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        reason = str(error).strip() or type(error).__name__
        raise BadInput(
            f"{where}: damaged, cut off, or not a file of CIFAR's Python version ({reason}). Download it again"
        ) from None


class _Machine:
    """The stack and the memory that a pickle's instructions work on."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.stack: list[Any] = []
        self.memory: dict[int, Any] = {}

    def do(self, name: str, argument: Any, place: int) -> None:
        stack = self.stack
        if name in VALUES:
            stack.append(argument)
        elif name in NOTHING_TO_DO:
            pass
        elif name in ("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"):
            self.memory[len(self.memory) if name == "MEMOIZE" else int(argument)] = stack[-1]
        elif name in ("GET", "BINGET", "LONG_BINGET"):
            stack.append(self.memory[int(argument)])
        elif name in CONSTANTS:
            stack.append(CONSTANTS[name])
        elif name == "MARK":
            stack.append(MARK)
        elif name in SHORT_TUPLES:
            stack.append(tuple(self._pop(SHORT_TUPLES[name])))
        elif name in ("TUPLE", "LIST", "DICT"):
            values = self._pop_to_mark()
            stack.append(tuple(values) if name == "TUPLE" else values if name == "LIST" else _pairs(values))
        elif name in ("EMPTY_LIST", "EMPTY_DICT"):
            stack.append([] if name == "EMPTY_LIST" else {})
        elif name in ("APPEND", "APPENDS"):
            values = self._pop(1) if name == "APPEND" else self._pop_to_mark()
            _of(list, stack[-1]).extend(values)
        elif name in ("SETITEM", "SETITEMS"):
            values = self._pop(2) if name == "SETITEM" else self._pop_to_mark()
            _of(dict, stack[-1]).update(_pairs(values))
        elif name in ("GLOBAL", "STACK_GLOBAL"):
            stack.append(self._name(argument if name == "GLOBAL" else " ".join(self._pop(2)), place))
        elif name == "REDUCE":
            called, arguments = self._pop(2)
            stack.append(self._made(called, arguments, place))
        elif name == "BUILD":
            self._fill(stack[-2], stack.pop(), place)
        else:
            raise self._refused(f"the instruction {name}", place)

    def _pop(self, count: int) -> list[Any]:
        if count == 0:
            return []
        values = self.stack[-count:]
        if len(values) < count or any(value is MARK for value in values):
            raise IndexError("an instruction has nothing to work on")
        del self.stack[-count:]
        return values

    def _pop_to_mark(self) -> list[Any]:
        place = len(self.stack) - 1
        while self.stack[place] is not MARK:
            place -= 1
            if place < 0:
                raise IndexError("an instruction has nothing to work on")
        values = self.stack[place + 1 :]
        del self.stack[place:]
        return values

    def _name(self, name: str, place: int) -> _Name:
        if name not in NAMES:
            raise self._refused(f"the name {ascii(name[:80].replace(' ', '.'))[1:-1]}", place)
        return _Name(NAMES[name])

    def _made(self, called: Any, arguments: Any, place: int) -> Any:
        """What the file means by a call; nothing is called."""
        meaning = called.meaning if isinstance(called, _Name) else None
        if meaning == ARRAY:
            return _Array()
        if meaning == KIND and arguments[0] in ("u1", b"u1", "uint8"):
            return _Kind()
        if meaning == ENCODE and arguments[1:] in ((), ("latin1",), ("latin-1",)):
            return _of(str, arguments[0]).encode("latin-1")
        raise self._refused(f"a call of {meaning or type(called).__name__} that pictures do not need", place)

    def _fill(self, target: Any, state: Any, place: int) -> None:
        if isinstance(target, _Kind):
            return  # the order of its bytes: one has none
        if not isinstance(target, _Array):
            raise self._refused(f"a state for {type(target).__name__}", place)
        _, shape, kind, by_columns, content = state
        _of(_Kind, kind)
        raw = content.encode("latin-1") if isinstance(content, str) else _of(bytes, content)
        sides = tuple(_of(int, side) for side in _of(tuple, shape))
        target.pixels = np.frombuffer(raw, np.uint8).reshape(sides, order="F" if by_columns else "C")

    def _refused(self, what: str, place: int) -> BadInput:
        return BadInput(
            f"{self.where}, byte {place}: {what}. Files of CIFAR hold only pixels, labels and names, so this is none "
            "of them; nothing in it was run. Delete it if you do not know where it comes from"
        )


def _of(kind: type[Any], value: Any) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"{type(value).__name__.strip('_')} in the place of {kind.__name__.strip('_')}")
    return value


def _pairs(values: list[Any]) -> dict[str, Any]:
    """Keys and values in turn; keys of Python 2 may have become bytes."""
    if len(values) % 2:
        raise ValueError("a key without a value")
    keys = [key.decode("latin-1") if isinstance(key, bytes) else _of(str, key) for key in values[::2]]
    return dict(zip(keys, map(_finished, values[1::2]), strict=True))


def _finished(value: Any) -> Any:
    return value.pixels if isinstance(value, _Array) else value
