"""Translating with onnxruntime: a Transformer's two graphs (interop/onnx_decoder.py) as a Stepper, under our search.

So everything that can be asked of a search can be asked here; what cannot is to look inside: a graph has no taps.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from jumok.data.batch import Sequences
from jumok.errors import BadInput
from jumok.layers.cache import join_coverage
from jumok.layers.tap import Tap
from jumok.models.encoder_decoder import EncoderDecoder
from jumok.search import Stepper
from jumok.tasks.engine import Engine

if TYPE_CHECKING:
    from jumok.tasks.engine_onnx_recurrent import RecurrentStepper

MISSING = "onnxruntime or onnx is not installed: pip install 'jumok[onnx]'"
CONFIG, ENCODER, STEP = "config.json", "encoder.onnx", "decoder_step.onnx"
FORMAT, VERSION = "jumok-onnx", 1
COLUMNS = 16  # a cache grows by so many


def open_session(path: Path, planned: bool = True) -> Any:
    """An onnxruntime session with as many threads as PyTorch has. `planned`: which results may lie where others lay is
    found out before; in a graph of thousands of nodes that takes much longer than it saves."""
    try:
        onnxruntime: Any = importlib.import_module("onnxruntime")
    except ImportError as error:
        raise BadInput(f"{MISSING} ({error})") from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = torch.get_num_threads(), 1
    options.enable_mem_reuse = planned
    options.log_severity_level = 4  # what goes wrong is raised
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # it has a class of its own for every trouble
        raise BadInput(f"{path} cannot be opened by onnxruntime: {error}. Export it again") from None


def read_config(folder: Path) -> dict[str, Any]:
    try:
        found = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"{folder} is not an ONNX export of jumok: {CONFIG} cannot be read ({error})") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise BadInput(f"{folder} is not an ONNX export of jumok: {CONFIG} does not say so")
    if found.get("version") != VERSION:
        raise BadInput(f"{folder / CONFIG}: version {found.get('version')!r} is not {VERSION}. Export it again")
    return found


@dataclass(frozen=True)
class Memory:
    """What every decoder layer sees of the source, a row for each hypothesis."""

    owner: Tensor  # (B,) which sentence a row belongs to: rows of one sentence are equal
    store: Tensor  # (L, 2, B, G, S, D)
    mask: Tensor  # (B, S), 1 where a word is

    def select(self, rows: Tensor) -> Memory:
        owner_B = self.owner.index_select(0, rows)
        if torch.equal(owner_B, self.owner):  # hypotheses of one sentence changed places: nothing to copy
            return self
        return Memory(owner_B, self.store.index_select(2, rows), self.mask.index_select(0, rows))

    @staticmethod
    def join(parts: Sequence[Memory]) -> Memory:
        """The rows of all parts; sources are cut and padded to the longest that is left."""
        width = max(int(part.mask.sum(dim=1).max()) for part in parts)
        taken, owners = 0, []
        for part in parts:  # owners of different parts must stay apart
            owners.append(part.owner + taken)
            taken = int(owners[-1].max()) + 1 if len(part.owner) else taken
        stores = [F.pad(part.store, (0, 0, 0, width - part.store.size(4))) for part in parts]
        masks = [F.pad(part.mask, (0, width - part.mask.size(1))) for part in parts]
        return Memory(torch.cat(owners), torch.cat(stores, dim=2), torch.cat(masks))


@dataclass(frozen=True)
class Cache:
    """What was written so far: the token at position p of a row has column p. Steps write in place."""

    store: Tensor  # (L, 2, B, G, C, D), zeros where nothing is: what is masked must still be a number
    filled: int  # columns in use
    covered: Tensor | None = None  # (B, S), Σ_t α_ts

    def with_room(self, columns: int) -> Cache:
        missing = columns - self.store.size(4)
        if missing <= 0:
            return self
        more = -(-missing // COLUMNS) * COLUMNS
        return Cache(F.pad(self.store, (0, 0, 0, more)), self.filled, self.covered)

    def select(self, rows: Tensor) -> Cache:
        """Only columns in use are copied, and there is room for the next."""
        layers, two, _, groups, _, width = self.store.shape
        columns = (self.filled // COLUMNS + 1) * COLUMNS
        store = self.store.new_zeros(layers, two, len(rows), groups, columns, width)
        store[..., : self.filled, :] = self.store[..., : self.filled, :].index_select(2, rows)
        return Cache(store, self.filled, None if self.covered is None else self.covered.index_select(0, rows))

    @staticmethod
    def join(parts: Sequence[Cache], rows: Sequence[int], source: int) -> Cache:
        filled, columns = max(part.filled for part in parts), max(part.store.size(4) for part in parts)
        store = torch.cat([part.with_room(columns).store for part in parts], dim=2)
        covered = [(part.covered, count) for part, count in zip(parts, rows, strict=True)]
        return Cache(store, filled, join_coverage(covered, source))


class OnnxStepper:
    """A folder that `export_onnx` (or the engine) has written, as what the search walks over."""

    def __init__(self, folder: Path) -> None:
        config = read_config(folder)
        if config.get("kind") != "translator":
            raise BadInput(f"{folder} is an ONNX export, but not of a translator: {config.get('kind')}")
        self.layers, self.groups, self.width = (int(config[key]) for key in ("layers", "groups", "head_width"))
        self.max_source: int | None = config["max_source"]
        self.max_target: int | None = config["max_target"]
        self.encoder, self.stepping = open_session(folder / ENCODER), open_session(folder / STEP)
        self.given = [one.name for one in self.stepping.get_inputs()]

    def encode(self, batch: Sequences) -> Memory:
        _reach(batch.ids.size(1), self.max_source)
        mask_BS = batch.mask.long().cpu()
        parts = self.encoder.run(None, {"ids": batch.ids.cpu().numpy(), "mask": mask_BS.numpy()})
        stacked = torch.from_numpy(np.stack(parts))
        store = stacked.view(self.layers, 2, *stacked.shape[1:])
        return Memory(torch.arange(len(batch)), store, mask_BS)

    def start(self, memory: Memory, rows: int, capacity: int, coverage: bool = False) -> Cache:
        _reach(capacity, self.max_target)
        store = torch.zeros(self.layers, 2, rows, self.groups, COLUMNS, self.width)
        return Cache(store, 0, torch.zeros(memory.mask.shape) if coverage else None)

    def step(self, tokens: Tensor, positions: Tensor, memory: Memory, cache: Cache) -> tuple[Tensor, Cache]:
        places_B = positions.cpu()
        filled = max(cache.filled, int(places_B.max()) + 1) if len(places_B) else cache.filled
        cache = cache.with_room(filled)
        given = (tokens.cpu(), places_B, memory.mask, *memory.store.flatten(0, 1), *cache.store.flatten(0, 1))
        feed = {name: one.numpy() for name, one in zip(self.given, given, strict=True)}
        log_probs, weights, *new = self.stepping.run(None, feed)
        rows_B = torch.arange(len(places_B))
        for part, added in zip(cache.store.flatten(0, 1), new, strict=True):
            part[rows_B, :, places_B] = torch.from_numpy(added)[:, :, 0]
        covered = None if cache.covered is None else cache.covered + torch.from_numpy(weights)
        return torch.from_numpy(log_probs).to(tokens.device), Cache(cache.store, filled, covered)

    def select(self, memory: Memory, cache: Cache, rows: Tensor) -> tuple[Memory, Cache]:
        return memory.select(rows.cpu()), cache.select(rows.cpu())

    def join(self, parts: Sequence[tuple[Memory, Cache]]) -> tuple[Memory, Cache]:
        memory = Memory.join([part for part, _ in parts])
        rows = [len(part.mask) for part, _ in parts]
        return memory, Cache.join([cache for _, cache in parts], rows, memory.mask.size(1))

    def coverage(self, cache: Cache) -> Tensor:
        assert cache.covered is not None, "the search started without coverage"
        return cache.covered


def stepper_of(folder: Path) -> OnnxStepper | RecurrentStepper:
    """Of a Transformer, or of a recurrent translator."""
    if read_config(folder).get("decoder") != "recurrent":
        return OnnxStepper(folder)
    from jumok.tasks.engine_onnx_recurrent import RecurrentStepper

    return RecurrentStepper(folder)


def _reach(length: int, longest: int | None) -> None:
    if longest is not None and length > longest:
        raise BadInput(
            f"this model's learned positions end at {longest} tokens (model.max_positions), {length} were asked for: "
            "shorten the text or search.max_ratio and max_extra, or train with sinusoidal positions"
        )


class OnnxEngine(Engine):
    """The searches of a translator over onnxruntime. `models` are those of the translator, of which there is one."""

    name = "onnx"

    def __init__(self, models: Sequence[EncoderDecoder], device: torch.device, folder: Path) -> None:
        refuse_together(models)
        if device.type != "cpu":
            raise BadInput(f"the onnx engine computes on the CPU, not on {device.type}: add --device cpu")
        super().__init__(models, device, read_config(folder).get("precision", "float32"), fast=True)
        self.folder, self._over = folder, stepper_of(folder)

    @property
    def stepper(self) -> Stepper:
        (model,) = self.models
        if any(isinstance(module, Tap) and module.watched for module in model.modules()):
            raise BadInput(
                "the onnx engine cannot show or change what a model attends to: leave --engine onnx out for that"
            )
        return self._over


def refuse_together(models: Sequence[EncoderDecoder]) -> None:
    if len(models) != 1:
        raise BadInput(
            f"the onnx engine translates with one run, {len(models)} were given as an ensemble: leave --engine onnx out"
        )
