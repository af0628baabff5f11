"""Checkpoints that survive a kill at any instant.

A checkpoint is written under a temporary name with the checksum of every file, flushed, and renamed; only then does
`last.json` point to it. Reading verifies the checksums and falls back to the newest good one. Tensors are safetensors,
the rest is JSON: nothing here can execute code.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from jumok.errors import BadInput, Failure
from jumok.files import disk_errors_named, flush_file, flush_folder, remove_folder, replace_file, sha256
from jumok.training.distributed import Ranks
from jumok.training.muon import Muon
from jumok.training.run import RunFolder
from jumok.training.sharding import like, whole
from jumok.training.state import TrainState

MODEL, OPTIMIZER, STATE, CHECKSUMS = "model.safetensors", "optimizer.safetensors", "state.json", "checksums.json"

KINDS = ("F32", "F64", "F16", "BF16", "I64", "I32", "I16", "I8", "U8", "BOOL")  # of numbers that a checkpoint has

OWN = "own weight"  # beside the optimiser's entries: what the model has while an average of it is the checkpoint's

Say = Callable[[str], None]
Weights = dict[str, Tensor]


def save(
    run: RunFolder,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    state: TrainState,
    keep: int,
    best: bool,
    averaged: Weights | None = None,
    ranks: Ranks | None = None,
) -> Path:
    """Write `checkpoints/step-N`, point to it, and remove what is older than the `keep` newest and not the best.

    `averaged` are weights to be used instead of the model's own: they become the checkpoint's model, and the model's
    own go beside the optimiser's, for the training to go on with. Of several processes the first one writes; all must
    call this, because their shards are gathered here.
    """
    ranks = ranks or Ranks()
    gathered = Gathered(ranks.rank == 0)
    weights, behind = gathered.weights(model), gathered.optimizer(model, optimizer)
    if averaged is not None:
        behind |= gathered({f"{name}:{OWN}": parameter for name, parameter in model.named_parameters()})
        weights |= gathered(averaged)
    final = run.checkpoints / f"step-{state.update}"
    ranks.first(lambda: _put_down(run, final, weights, behind, state, keep, best))
    return final


def _put_down(
    run: RunFolder, final: Path, weights: Weights, behind: Weights, state: TrainState, keep: int, best: bool
) -> None:
    last_good = run.pointed("last")
    advice = (
        f"The checkpoint of update {last_good} is intact. " if last_good is not None else ""
    ) + f"Free some space, then: jumok train --resume --run {run.path}"
    with disk_errors_named(f"writing the checkpoint of update {state.update}", run.checkpoints, advice):
        write(final, weights, behind, state)
        if best:
            run.point("best", state.update, value=state.best)
        run.point("last", state.update)
    for step, path in list(_found(run)):
        if step not in (state.update, state.best_update, *state.validated) and step not in _newest(run, keep):
            remove_folder(path)


def repair_pointers(run: RunFolder, state: TrainState) -> None:
    """A kill between a checkpoint and its pointers left them behind: the state that was loaded knows better."""
    if run.pointed("last") != state.update:
        run.point("last", state.update)
    if state.best_update is not None and run.pointed("best") != state.best_update:
        run.point("best", state.best_update, value=state.best)


def lost_best(run: RunFolder, state: TrainState) -> bool:
    """Whether the best checkpoint of this state is gone: a better one came, and was left behind with what came after.

    Then nothing is the best until the next validation, and no pointer names what is not there.
    """
    if state.best_update is None or problem(run.checkpoints / f"step-{state.best_update}") is None:
        return False
    run.forget("best")
    return True


def write(final: Path, weights: Weights, behind: Weights | None, state: TrainState) -> None:
    """A checkpoint's folder, whole or not at all; without the optimiser's tensors it is for using the model only."""
    if state.update and final.exists() and problem(final) is None:
        return  # reached again after a fall-back, or saved a moment ago: the same content
    temporary = final.with_name(f".writing-{final.name}-{os.getpid()}")
    remove_folder(temporary)
    try:
        temporary.mkdir(parents=True)
        _save_tensors(weights, temporary / MODEL)
        if behind is not None:
            _save_tensors(behind, temporary / OPTIMIZER)
        (temporary / STATE).write_text(json.dumps(state.to_json(), indent=1) + "\n", encoding="utf-8")
        files = [name for name in (MODEL, OPTIMIZER, STATE) if (temporary / name).exists()]
        for name in files:  # the library makes its own for nobody else: whoever may read one of them may read all
            (temporary / name).chmod((temporary / STATE).stat().st_mode)
            flush_file(temporary / name)
        replace_file(temporary / CHECKSUMS, json.dumps({name: sha256(temporary / name) for name in files}) + "\n")
        remove_folder(final)  # only there when it is damaged
        temporary.rename(final)
        flush_folder(final.parent)
    finally:
        remove_folder(temporary)


def _save_tensors(tensors: dict[str, Tensor], path: Path) -> None:
    try:
        save_file(tensors, path)
    except SafetensorError as error:  # it wraps the system's error and hides its number
        if "os error 28" in str(error) or "No space" in str(error):
            raise OSError(28, "No space left on device") from None
        raise OSError(5, str(error)) from None


class Gathered:
    """Tensors as they are stored: whole and on the CPU, where this process is the one that `keeps` them."""

    def __init__(self, keeps: bool) -> None:
        self.keeps = keeps

    def __call__(self, tensors: Weights) -> Weights:
        found = {}
        for name, tensor in tensors.items():
            together = whole(tensor.detach())  # one after the other, so that only one is whole at the others
            if self.keeps:
                found[name] = together.cpu().contiguous()
        return found

    def weights(self, model: nn.Module) -> Weights:
        return self(stored_tensors(model))

    def optimizer(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> Weights:
        return self(
            {
                f"{name}:{key}": value
                for name, parameter in model.named_parameters()
                for key, value in optimizer.state.get(parameter, {}).items()
            }
        )


def stored_tensors(model: nn.Module) -> Weights:
    """Each stored tensor once: a tied weight has only its first name."""
    seen: set[int] = set()
    tensors = {}
    for name, tensor in model.state_dict(keep_vars=True).items():
        if id(tensor) not in seen:
            seen.add(id(tensor))
            tensors[name] = tensor
    return tensors


def load(
    folder: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer | None = None,
    averaged: Weights | None = None,
    ranks: Ranks | None = None,
) -> TrainState:
    """Put a verified checkpoint into a model (and an optimiser, and a running average of the weights).

    Of several processes only the first one reads it. However many wrote it, and whether their weights were split or
    not, it is the same.
    """
    ranks = ranks or Ranks()
    load_weights(model, ranks.spread(folder / MODEL), str(folder / MODEL))
    parameters = dict(model.named_parameters())
    for name, tensor in (averaged or {}).items():
        tensor.copy_(parameters[name].detach())
    if optimizer is not None:
        optimizer.state.clear()  # what it has learned since
    if optimizer is not None and ranks.first((folder / OPTIMIZER).exists):
        for entry, value in ranks.spread(folder / OPTIMIZER):
            name, key = entry.rsplit(":", 1)
            parameter = parameters[name]
            if key == "step":  # AdamW keeps its counts on the CPU unless it is the fused CUDA one
                optimizer.state[parameter][key] = value.to(parameter.device) if parameter.is_cuda else value
            elif key == OWN:
                parameter.data.copy_(like(parameter, value))
            else:
                optimizer.state[parameter][key] = like(parameter, value).to(parameter.device)
    if isinstance(optimizer, Muon) and (strangers := optimizer.strangers()):
        name = next(name for name, parameter in parameters.items() if parameter is strangers[0])
        raise BadInput(
            f"{folder}: {name} learned by AdamW there, and would go on by Muon here: this run was begun by a jumok in "
            "which Muon had fewer matrices. Go on with that one, or begin a new run from its weights (--start)"
        )
    return TrainState.from_json(ranks.first(lambda: json.loads((folder / STATE).read_text(encoding="utf-8"))))


def load_weights(model: nn.Module, weights: Weights | Iterable[tuple[str, Tensor]], origin: str) -> None:
    """Weights into a model, each of the right shape (half-precision files are widened)."""
    expected, found = stored_tensors(model), dict[str, Tensor]()
    extra = []
    for name, tensor in weights.items() if isinstance(weights, dict) else weights:
        if name not in expected:
            extra.append(name)
        elif tensor.shape != expected[name].shape:
            raise BadInput(
                f"{origin} does not fit its recipe: {name} is {tuple(tensor.shape)}, "
                f"the recipe says {tuple(expected[name].shape)}"
            )
        else:
            found[name] = like(expected[name], tensor)
    missing = sorted(expected.keys() - found.keys())
    if missing or extra:
        raise BadInput(f"{origin} does not fit its recipe: missing {missing[:3]}, unexpected {sorted(extra)[:3]}")
    model.load_state_dict({name: found[name] for name in expected}, strict=False)


def problem(folder: Path) -> str | None:
    """What is wrong with a checkpoint, or None when every checksum is right."""
    try:
        checksums = json.loads((folder / CHECKSUMS).read_text(encoding="utf-8"))
        for name in (MODEL, OPTIMIZER, STATE):
            if name == OPTIMIZER and name not in checksums:  # a run made for translating only
                continue
            if sha256(folder / name) != checksums[name]:
                return f"{name} is damaged (its checksum differs)"
            if name != STATE:
                _check_tensors(folder / name)
    except FileNotFoundError as error:
        return f"{Path(str(error.filename)).name} is missing"
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return f"it cannot be read ({type(error).__name__}: {error})"
    return None


def _check_tensors(file: Path) -> None:
    """A run may come from anybody, with checksums that are right: what its tensors say of themselves must be, too."""
    with safe_open(file, "pt") as stored:
        for name in stored.keys():  # noqa: SIM118  # it is no dictionary
            kind = stored.get_slice(name).get_dtype()
            if kind not in KINDS:
                raise ValueError(f"{file.name}: {name} has numbers of kind {kind}")


def newest_good(run: RunFolder, say: Say, prefer: str | None = None, ranks: Ranks | None = None) -> Path | None:
    """The checkpoint that `prefer` ("best") names, else the newest; each damaged one is named and passed over.

    None only when nothing was ever written; when all that was written is damaged, that is an error. Of several
    processes the first one looks.
    """
    if ranks is not None and not ranks.alone:
        found_path = ranks.first(lambda: str(newest_good(run, say, prefer) or ""))
        return Path(found_path) if found_path else None
    found = dict(_found(run))
    order = sorted(found, reverse=True)
    preferred = run.pointed(prefer) if prefer else None
    if preferred in found:
        order.remove(preferred)
        order.insert(0, preferred)
    elif preferred is not None:
        say(f"the {prefer} checkpoint (update {preferred}) is not in {run.checkpoints}")
    for position, step in enumerate(order):
        wrong = problem(found[step])
        if wrong is None:
            if position:
                say(f"falling back to the checkpoint of update {step}")
            return found[step]
        say(f"checkpoint {found[step]}: {wrong}")
    if order:
        raise Failure(f"no checkpoint in {run.checkpoints} is intact: nothing to load")
    return None


def why_none(run: RunFolder) -> str:
    """What there is to say where `newest_good` finds nothing: none was written yet, or those that were are gone."""
    had_some = run.pointed("last") is not None or run.pointed("best") is not None
    if had_some or (not run.checkpoints.is_dir() and run.events()):
        return (
            f"{run.path}: the checkpoints that it had are gone ({run.checkpoints} holds none). Put them back from a "
            "copy, or train again into another folder"
        )
    return f"{run.path} has no checkpoint yet. Go on with: jumok train --resume --run {run.path}"


def go_back(run: RunFolder, most: int, ranks: Ranks) -> Path | None:
    """The newest good checkpoint of at most so many updates, for the run to go on from there. Those after it are
    removed: the run will reach their updates by another way."""

    def find() -> str:
        whole = intact(run)
        chosen = max((step for step in whole if step <= most), default=None)
        if chosen is None:
            return ""
        for step, path in list(_found(run)):
            if step > chosen:
                remove_folder(path)
        return str(whole[chosen])

    found = ranks.first(find)
    return Path(found) if found else None


def intact(run: RunFolder) -> dict[int, Path]:
    """All checkpoints that are whole, newest first."""
    return {step: path for step, path in sorted(_found(run), reverse=True) if problem(path) is None}


def _found(run: RunFolder) -> Iterator[tuple[int, Path]]:
    if run.checkpoints.is_dir():
        for path in run.checkpoints.iterdir():
            if match := re.fullmatch(r"step-(\d+)", path.name):
                yield int(match[1]), path


def _newest(run: RunFolder, keep: int) -> set[int]:
    return set(sorted((step for step, _ in _found(run)), reverse=True)[:keep])


def discard_unfinished(run: RunFolder) -> None:
    """Remove what a kill in the middle of writing left behind."""
    for path in run.checkpoints.glob(".writing-*"):
        remove_folder(path)
