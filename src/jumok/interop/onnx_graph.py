"""A network written as an ONNX file, and held to what it was written from.

write   torch.onnx.export follows the network once; sizes with a name stay open
check   onnxruntime computes random inputs of several sizes beside PyTorch: max |Δ| ≤ 1e-4 · max(1, max |y|)

PyTorch 2.13 has two exporters. For a decoder step of three layers, the one on torch.export took fifteen seconds and the
older one, which traces, half a second; both graphs were right, with every named size open, and took the same time to
run. So the older one is taken. It may keep a size without a word: that is what `check` tries several for.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from jumok.errors import BadInput, Failure
from jumok.files import disk_errors_named
from jumok.tasks.engine_onnx import MISSING, open_session

LARGEST = 1e-4  # difference of what is the same but for the order of sums in float32, as a share of the largest number
MOST = 2_000_000_000  # bytes: a file of the format ends there
OPSET = 18

Sizes = Mapping[str, int]
Values = tuple[Tensor, ...]


@dataclass(frozen=True)
class Graph:
    """A network with the names of what goes in and comes out.

    `module(list of inputs) -> tuple of outputs`; `inputs` names each input and its open sizes, by axis; `sample` draws
    inputs of given sizes, and `expected` is what the model itself computes from them.
    """

    module: nn.Module
    inputs: Mapping[str, Mapping[int, str]]
    outputs: Mapping[str, Mapping[int, str]]
    sample: Callable[[Sizes], list[Tensor]]
    expected: Callable[[list[Tensor]], Values]
    tried: tuple[Sizes, ...]  # sizes for the check; the first is the one that the exporter sees

    @torch.no_grad()
    def described(self) -> dict[str, Any]:
        """Names, types and shapes for a config.json."""
        given = self.sample(self.tried[0])
        return {"inputs": _described(self.inputs, given), "outputs": _described(self.outputs, self.module(given))}


def _described(named: Mapping[str, Mapping[int, str]], tensors: Sequence[Tensor]) -> dict[str, Any]:
    return {
        name: {
            "type": str(one.dtype).removeprefix("torch."),
            "shape": [axes.get(axis, size) for axis, size in enumerate(one.shape)],
        }
        for (name, axes), one in zip(named.items(), tensors, strict=True)
    }


def need_onnx() -> None:
    """Refuse before any work where the libraries are not there."""
    try:
        for name in ("onnx", "onnxruntime"):
            importlib.import_module(name)
    except ImportError as error:
        raise BadInput(f"{MISSING} ({error})") from None


@torch.no_grad()
def write(graph: Graph, path: Path) -> None:
    graph.module.eval()
    inputs = graph.sample(graph.tried[0])
    weights = sum(one.numel() * one.element_size() for one in graph.module.state_dict().values())
    if weights > MOST:
        raise BadInput(f"{weights / 1e9:.1f} GB of weights: an ONNX file ends at {MOST / 1e9:.0f} GB")
    with _quiet(), disk_errors_named("writing the graph", path, "Free some space, or choose another place."):
        torch.onnx.export(
            graph.module,
            (inputs,),
            path,
            dynamo=False,
            opset_version=OPSET,
            input_names=list(graph.inputs),
            output_names=list(graph.outputs),
            dynamic_axes={name: dict(axes) for name, axes in {**graph.inputs, **graph.outputs}.items()},
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """The exporter tells that it is the older one, and of every place where a size might have been kept."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@torch.no_grad()
def check(graph: Graph, path: Path, largest_share: float | None = None) -> float:
    """The largest difference; `Failure` where it is too large, as a share of the largest number."""
    session = open_session(path)
    largest = 0.0
    for sizes in graph.tried:
        inputs = graph.sample(sizes)
        shown = ", ".join(f"{name} {size}" for name, size in sizes.items())
        try:
            found = session.run(None, {name: one.numpy() for name, one in zip(graph.inputs, inputs, strict=True)})
        except Exception as error:  # onnxruntime has a class of its own for every trouble
            raise Failure(f"{path.name}: onnxruntime cannot compute it ({shown}): {error}") from None
        expected = graph.expected(inputs)
        for name, here, there in zip(graph.outputs, found, expected, strict=True):
            difference = differs(f"{path.name}: {name} ({shown})", torch.from_numpy(here), there, largest_share)
            largest = max(largest, difference)
    return largest


def differs(what: str, found: Tensor, expected: Tensor, share: float | None = None) -> float:
    """max |Δ|; `Failure` where it is no rounding (or more than this share of the largest number)."""
    if found.shape != expected.shape:
        raise Failure(
            f"{what} has the shape {tuple(found.shape)} in onnxruntime and {tuple(expected.shape)} in PyTorch"
        )
    if not expected.numel():
        return 0.0
    difference, value = float((found - expected).abs().max()), float(expected.abs().max())
    allowed = (LARGEST if share is None else share) * max(1.0, value)
    if not difference <= allowed:
        raise Failure(
            f"{what} differs between onnxruntime and PyTorch by {difference:.1e}, more than {allowed:.0e}: nothing was "
            "written"
        )
    return difference


def words_of(rows: int, length: int, vocabulary: int) -> tuple[Tensor, Tensor]:
    """Random texts (B, T) of different lengths, and their mask."""
    lengths_B = torch.randint(1, length + 1, (rows,))
    lengths_B[torch.randint(rows, (1,))] = length
    mask_BT = (torch.arange(length) < lengths_B[:, None]).long()
    return torch.randint(1, vocabulary, (rows, length)) * mask_BT, mask_BT
