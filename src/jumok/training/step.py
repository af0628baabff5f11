"""One update, written out: θ ← AdamW(θ, clip(∇ Σ loss / count)). Every faster way must equal this one.

An update whose loss or gradient is not a number leaves the weights as they are. On a GPU that is decided there, so that
nobody waits for it: what an update says of itself (`Outcome`) is read when the next one is on its way already.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from jumok.errors import BadInput, Failure
from jumok.recipe import Training
from jumok.tasks.objective import Loss, Objective
from jumok.training.batches import mapped, repeating_part
from jumok.training.compiling import Compiled
from jumok.training.device import is_out_of_memory, seed_for
from jumok.training.distributed import Ranks
from jumok.training.graphs import Graphs
from jumok.training.precision import Precision
from jumok.training.sharding import Sharded, whole


@dataclass(frozen=True)
class Outcome:
    """What an update was made of, and what it says of itself, which may still be on its way from the GPU."""

    update: int  # its number, from 0
    batches: list[Any]
    count: int
    rate: float
    names: list[str]
    numbers: Tensor
    arrived: torch.cuda.Event | None = None

    def values(self) -> dict[str, float]:
        """The sums of the losses over `count` words, and the norm of the gradient."""
        if self.arrived is not None:
            self.arrived.synchronize()
        return dict(zip(self.names, self.numbers.tolist(), strict=True))


class Step:
    def __init__(
        self,
        objective: Objective,
        optimizer: torch.optim.Optimizer,
        training: Training,
        seed: int,
        precision: Precision,
        say: Callable[[str], None],
        ranks: Ranks | None = None,
    ) -> None:
        self.objective, self.optimizer, self.training, self.seed = objective, optimizer, training, seed
        self.precision, self.device, self.say = precision, precision.device, say
        self.ranks, self.sharded = ranks or Ranks(), isinstance(objective, Sharded)
        self.compiled: Callable[[Any], Loss] = Compiled(objective, say) if training.compile else objective
        self.repeats = bool(getattr(objective.model, "replays", False)) and not self.sharded
        on_gpu = self.device.type == "cuda"
        check_graphs(training, self.device)
        self.says_why_not = training.compile
        graphs = training.graphs and on_gpu and self.repeats
        self.graphs = Graphs(self.compiled, objective.parameters(), precision, say) if graphs else None

    def __call__(self, batches: list[Any], update: int, rate: float) -> Outcome:
        """Learn from the micro-batches of an update, at this learning rate."""
        # nothing counts where all words of a text happen to be unknown: the loss is 0, and 0 / 1 teaches nothing
        count = max(1, self.ranks.count(sum(batch.tokens for batch in batches[: self._counted(len(batches))])))
        self.objective.train()
        sums = self._together(self._gradients(batches, update, count))
        scaler = self.precision.scaler
        if scaler is not None:
            scaler.unscale_(self.optimizer)  # before clipping: the limit is for the true gradient
        norm = whole(torch.nn.utils.clip_grad_norm_(self.objective.parameters(), self.training.clip or math.inf))
        numbers = torch.stack([*sums.values(), norm.float()])
        for group in self.optimizer.param_groups:
            group["lr"] = rate * group.get("share", 1.0)
        if scaler is not None:
            scaler.step(self.optimizer)
            scaler.update()
        else:
            self._apply(numbers)
        return Outcome(update, batches, count, rate, [*sums, "gradient_norm"], *self._on_its_way(numbers))

    @property
    def _size(self) -> str:
        """The key that says how large batches are, in words."""
        key = "batch_images" if self.objective.counted in ("images", "words") else "batch_tokens"
        return f"training.{key} (now {getattr(self.training, key)})"

    @property
    def _or_again(self) -> str:
        """What else saves memory, where it may be turned on."""
        return "" if self.training.align else ", or turn on training.checkpoint_activations"

    def _counted(self, batches: int) -> int:
        """How many of the first of them count; one more is only there because other processes have one."""
        own = range(self.ranks.rank, self.training.accumulate, self.ranks.world)
        return batches if self.ranks.alone else len(own)

    def _together(self, sums: dict[str, Tensor]) -> dict[str, Tensor]:
        """Gradients and sums of all processes, at each of them. Shards have met on the way back already."""
        if self.ranks.alone:
            return sums
        together = [value.float() for value in sums.values()]
        gradients: list[Tensor] = []
        for parameter in self.objective.parameters() if not self.sharded else ():
            if parameter.requires_grad:
                parameter.grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
                gradients.append(parameter.grad)
        self.ranks.add_up([*gradients, *together])
        return dict(zip(sums, together, strict=True))

    def _gradients(self, batches: list[Any], update: int, count: int) -> dict[str, Tensor]:
        """Σ over the micro-batches of ∇ loss / count, into the parameters' `grad`.

        A micro-batch that does not fit into memory is cut in two and all is begun again: gradients are sums, so the
        result is the same but for dropout and the last bits.
        """
        pieces = [[batch] for batch in batches]
        while True:
            sums: dict[str, Tensor] = {}
            alone = sum(len(parts) for parts in pieces) == 1
            if not alone:
                self._zero()
            for turn, parts in enumerate(pieces):
                micro, counts = self.ranks.rank + self.ranks.world * turn, turn < self._counted(len(pieces))
                try:
                    for part, batch in enumerate(parts):
                        # one number more only for pieces, so that what was never cut keeps its randomness
                        seed = seed_for(self.seed, update, micro, *([part] if len(parts) > 1 else []))
                        for name, value in self._add_gradient(batch, seed, counts / count, alone).items():
                            value = value if counts else torch.zeros_like(value)
                            sums[name] = sums[name] + value if name in sums else value
                    continue
                except RuntimeError as error:
                    if not is_out_of_memory(error):
                        raise
                    problem = str(error).partition("\n")[0]
                    if self.sharded:
                        raise self._does_not_fit(parts, update, problem) from None
                pieces[turn] = self._smaller(parts, update, problem)
                break
            else:
                return sums

    def _add_gradient(self, batch: Any, seed: int, weight: float, alone: bool) -> dict[str, Tensor]:
        """weight · ∇ loss of one batch, added to the parameters' unless it is `alone`, the only one of its update; the
        sums that the loss consists of."""
        share = self.precision.scaled(torch.full((), weight, device=self.device))
        fast = self.graphs is not None or self.training.compile
        repeating = repeating_part(batch) if fast and self.repeats else None
        recording = self.graphs.ready(repeating, alone) if self.graphs is not None and repeating is not None else None
        says, self.says_why_not = self.says_why_not and repeating is None, False  # the first batch tells
        if says:
            with_pack = "" if self.training.align else ", or training.pack=true"
            self.say(
                "training.compile is of no use here: it needs a Transformer and batches whose shapes repeat, that "
                f"is a language model{with_pack}. The run goes on without"
            )
        torch.manual_seed(seed)
        if self.graphs is not None and recording is not None:
            return self.graphs.replay(recording, repeating, share)
        if alone:
            self._zero()
        with self.precision.context():
            if repeating is None:
                loss = self.objective(batch.to(self.device))
            else:
                loss = self.compiled(mapped(repeating, lambda tensor: tensor.to(self.device, non_blocking=True)))
        (loss.sum * share).backward()
        return {name: value.detach() for name, value in {"loss": loss.sum, **loss.parts}.items()}

    def _zero(self) -> None:
        """No gradients; those that a recording writes into stay where they are."""
        if self.graphs is None:
            self.optimizer.zero_grad(set_to_none=True)
        else:
            self.graphs.zero()

    def _does_not_fit(self, parts: list[Any], update: int, problem: str) -> Failure:
        return Failure(
            f"process {self.ranks.rank}: update {update + 1} does not fit into memory ({describe(*parts)}): {problem}. "
            "With training.shard it cannot be done in pieces, because all processes are in the midst of it together. "
            f"Lower {self._size}{self._or_again}, and start a new run"
        )

    def _smaller(self, parts: list[Any], update: int, problem: str) -> list[Any]:
        """The same sentences in pieces half as large."""
        self._zero()
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
        smaller = [piece for part in parts for piece in part.split(2)]
        if len(smaller) == len(parts):
            raise Failure(
                f"update {update + 1} does not fit into memory, not even one sentence at a time "
                f"({describe(parts[0])}): {problem}. Lower data.max_length or the size of the model{self._or_again}."
            )
        self.say(
            f"update {update + 1} did not fit into memory ({describe(*parts)}) and is done in {len(smaller)} pieces. "
            f"If this is said often, lower {self._size}."
        )
        return smaller

    def _apply(self, numbers: Tensor) -> None:
        """AdamW, unless something is not a number."""
        bad = ~torch.isfinite(numbers).all()
        if self.device.type != "cuda" or self.sharded:
            if not bad:
                self.optimizer.step()
            return
        self.optimizer.found_inf = bad.float()  # type: ignore[attr-defined]  # the fused AdamW looks at it on the GPU
        self.optimizer.step()

    def _on_its_way(self, numbers: Tensor) -> tuple[Tensor, torch.cuda.Event | None]:
        """Where the numbers will be on the CPU, and when."""
        if self.device.type != "cuda":
            return numbers, None
        held = torch.empty(numbers.shape, dtype=numbers.dtype, pin_memory=True)
        held.copy_(numbers, non_blocking=True)
        arrived = torch.cuda.Event()  # type: ignore[no-untyped-call]
        arrived.record()
        return held, arrived


def check_graphs(training: Training, device: torch.device) -> None:
    if training.graphs is True and device.type != "cuda":
        raise BadInput(f"training.graphs needs a GPU, this run computes on {device.type}: use auto")


def describe(*batches: Any) -> str:
    """How much there is in batches, in words: for messages."""
    rows = sum(len(batch) for batch in batches)
    sides = {
        side: [getattr(batch, side).lengths for batch in batches]
        for side in ("source", "target")
        if all(hasattr(getattr(batch, side, None), "lengths") for batch in batches)
    }
    longest = ", ".join(f"longest {side} {max(int(part.max()) for part in parts)}" for side, parts in sides.items())
    tokens = sum(batch.tokens for batch in batches)
    return f"{rows} row{'s' * (rows != 1)}, {tokens} tokens{', ' * bool(longest)}{longest}"
