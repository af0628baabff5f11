"""A graph that writes words, held to the model that it was written from: the same readings of the same pictures.

Every place of every row is compared with the same steps in PyTorch, those behind the end, too, which a short word would
never try; and what stands before the end with `read` of the model itself. A choice between two characters whose log p
is closer than rounding may fall either way, and all that follows it with it: rows with such a choice do not count.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F

from jumok.errors import Failure
from jumok.interop.onnx_graph import Graph, Values, differs
from jumok.interop.onnx_words import WordsGraph
from jumok.models.permuted import PermutedRecognizer
from jumok.models.recognizer import reading_of
from jumok.models.recognizer_decoders import WritingRecognizer
from jumok.tasks.engine_onnx import open_session

MORE = (16, 16, 16)  # pictures, in batches, after those of several sizes
DOUBT = 1e-3  # of log p: a smaller lead of the first over the second may be rounding's


@dataclass(frozen=True)
class Compared:
    """What came of some pictures."""

    rows: int
    decided: int  # where rounding decides nothing: all of them were read alike
    difference: float  # the largest, of log p


def verify_readings(model: PermutedRecognizer | WritingRecognizer, graph: Graph, path: Path) -> Compared:
    """Random pictures, in batches of several sizes; `Failure` where one is read otherwise."""
    rows, decided, largest = 0, 0, 0.0
    for where, images_BCHW, found in _computed(graph, path):
        expected, decided_B = _expected(graph, images_BCHW)
        same_B = _same(where, found, expected)
        count, wrong = int(decided_B.sum()), int((decided_B & ~same_B).sum())
        if wrong:
            raise Failure(
                f"{where}: {wrong} of {count} readings differ between onnxruntime and PyTorch: nothing was written"
            )
        largest = max(largest, _numbers(graph, where, found, expected, decided_B))
        _as_read(model, where, found[0][decided_B], found[1][decided_B], images_BCHW[decided_B])
        rows, decided = rows + len(images_BCHW), decided + count
    if not decided:
        raise Failure(f"{path.name}: rounding decides all of {rows} readings: nothing can be compared, nor was written")
    return Compared(rows, decided, largest)


def told_of(compared: Compared) -> str:
    ties = compared.rows - compared.decided
    left_out = f" ({ties} more: decided by rounding)" if ties else ""
    return (
        f"verified: all {compared.decided} readings of random pictures{left_out} are the same in "
        f"onnxruntime and PyTorch; the largest difference of a number is {compared.difference:.1e}"
    )


def rounded_readings(graph: Graph, path: Path, largest_share: float) -> str:
    """How much is left of the readings in 8-bit whole numbers; `Failure` for numbers that are off by more."""
    decided, same, largest = 0, 0, 0.0
    for where, images_BCHW, found in _computed(graph, path):
        expected, decided_B = _expected(graph, images_BCHW)
        same_B = _same(where, found, expected)
        # a row that was read otherwise has other numbers from there on; what the columns say depends on no choice
        largest = max(largest, _numbers(graph, where, found, expected, same_B, largest_share))
        decided, same = decided + int(decided_B.sum()), same + int((same_B & decided_B).sum())
    share = same / max(1, decided)
    return f"written in int8, {share:.1%} of them are the same; the largest difference where they are is {largest:.1e}"


@torch.no_grad()
def _computed(graph: Graph, path: Path) -> Iterator[tuple[str, Tensor, Values]]:
    """What onnxruntime makes of random pictures."""
    session = open_session(path, planned=False)
    (name,) = graph.inputs
    for rows in [*(sizes["batch"] for sizes in graph.tried), *MORE]:
        (images_BCHW,) = graph.sample({"batch": rows})
        where = f"{path.name} (batch {rows})"
        try:
            found = session.run(None, {name: images_BCHW.numpy()})
        except Exception as error:  # onnxruntime has a class of its own for every trouble
            raise Failure(f"{where}: onnxruntime cannot compute it: {error}") from None
        yield where, images_BCHW, tuple(torch.from_numpy(one) for one in found)


@torch.no_grad()
def _expected(graph: Graph, images_BCHW: Tensor) -> tuple[Values, Tensor]:
    """The same steps in PyTorch; and in which rows rounding decides nothing."""
    assert isinstance(graph.module, WordsGraph)
    leads: list[Tensor] = []
    expected = graph.module.read(images_BCHW, leads)
    return expected, (torch.cat(leads, dim=1) > DOUBT).all(dim=1)


def _same(where: str, found: Values, expected: Values) -> Tensor:
    """(B,): which rows have the same ids at all places."""
    if found[0].shape != expected[0].shape:
        shapes = [tuple(one[0].shape) for one in (found, expected)]
        raise Failure(f"{where}: ids have the shape {shapes[0]} in onnxruntime and {shapes[1]} in PyTorch")
    return (found[0] == expected[0]).all(dim=1)


def _numbers(
    graph: Graph, where: str, found: Values, expected: Values, rows_B: Tensor, share: float | None = None
) -> float:
    """The largest difference of log p: in these rows of what was written, in all rows of what the columns say."""
    largest = 0.0
    for name, here, there in list(zip(graph.outputs, found, expected, strict=True))[1:]:
        pair = (here, there) if name == "columns" else (here[rows_B], there[rows_B])
        largest = max(largest, differs(f"{where}: {name}", *pair, share))
    return largest


@torch.no_grad()
def _as_read(
    model: PermutedRecognizer | WritingRecognizer, where: str, ids_BT: Tensor, log_prob_BT: Tensor, images_BCHW: Tensor
) -> None:
    """What stands before the end is what the model itself reads there."""
    if not len(images_BCHW):
        return
    here, there = reading_of(ids_BT, log_prob_BT), model.read(images_BCHW)
    longest = ids_BT.size(1) - 1  # a model may stop early
    room = (0, longest - there.ids.size(1))
    if not torch.equal(here.ids, F.pad(there.ids, room)):
        raise Failure(f"{where}: onnxruntime reads otherwise than the model itself does: nothing was written")
    differs(f"{where}: log p of characters", here.log_probs, F.pad(there.log_probs, room))
    differs(f"{where}: log p of the end", here.ending, there.ending)
