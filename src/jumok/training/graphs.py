"""CUDA graphs: forward and backward of a batch recorded once and replayed as one launch.

A small model on a large GPU waits for the CPU to launch its thousands of kernels. Where a batch of the same shapes
comes again, the recorded launches are replayed on it: its tensors are copied into those of the recording, dropout draws
from the generator as it stands, and gradients are added to the parameters' own, all at once. Where an update is one
batch alone there is nothing to add to: the gradients of the first recording, where they lie, are the parameters' own
from then on, and other recordings write theirs over them. What is computed is what would be computed without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from jumok.tasks.objective import Loss
from jumok.training.batches import kind, mapped, tensors
from jumok.training.device import is_out_of_memory
from jumok.training.precision import Precision

MOST = 16  # recordings that are kept; shapes beyond them are computed launch by launch
WARM = 3  # runs before a recording: libraries make their choices and claim their memory then


@dataclass(frozen=True)
class Recording:
    graph: torch.cuda.CUDAGraph
    batch: Any  # what it reads
    share: Tensor  # what the loss is multiplied by before the backward pass: scale / count
    names: list[str]
    sums: Tensor  # what it writes


class Graphs:
    def __init__(
        self,
        compute: Callable[[Any], Loss],
        parameters: Iterable[nn.Parameter],
        precision: Precision,
        say: Callable[[str], None],
    ) -> None:
        self.compute, self.precision, self.say = compute, precision, say
        self.most = MOST
        self.parameters = [parameter for parameter in parameters if parameter.requires_grad]
        self.recordings: dict[Any, Recording] = {}
        self.gradients: list[Tensor] = []  # what recordings write: nothing until there is one
        self.pool: Any = None

    def zero(self) -> None:
        """The gradients of all parameters are zero, and where recordings look for them."""
        if self.gradients:
            self.hand_over()
        for parameter in self.parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        torch._foreach_zero_([parameter.grad for parameter in self.parameters if parameter.grad is not None])

    def hand_over(self) -> None:
        """What recordings write are the parameters' gradients, whatever else has been in their place."""
        for parameter, gradient in zip(self.parameters, self.gradients, strict=True):
            parameter.grad = gradient

    def ready(self, batch: Any, alone: bool) -> Recording | None:
        """The recording for batches like this one, made now if need be; None where there are too many already.

        Where the batch is not the only one of its update, its gradients are added to those that are there, and making
        a recording leaves them as they are. The generator it does not.
        """
        key = (alone, kind(batch))
        if key not in self.recordings and len(self.recordings) < self.most:
            # a copy of its own: what is on a GPU already would be written over by the next batch
            own = mapped(batch, lambda tensor: tensor.to(self.precision.device).clone())
            former = torch.cuda.current_stream()
            if alone:
                self.zero()
            there = [parameter.grad for parameter in self.parameters if parameter.grad is not None]
            held = [] if alone else [gradient.clone() for gradient in there]
            try:
                self.recordings[key] = self._record(own, alone)
                self.gradients = [parameter.grad for parameter in self.parameters if parameter.grad is not None]
            except RuntimeError as error:
                for parameter, gradient in zip(self.parameters, there, strict=True):  # not those of what broke off
                    parameter.grad = gradient
                self._give_up(error, former)
            for gradient, before in zip(there, held, strict=False):  # trying it out has added to them
                gradient.copy_(before)
        return self.recordings.get(key)

    def _give_up(self, error: RuntimeError, former: torch.cuda.Stream) -> None:
        """No more recordings: those that are there still serve."""
        self.most = len(self.recordings)
        torch.cuda.set_stream(former)  # a recording that broke off does not leave its own
        generator = torch.cuda.default_generators[torch.cuda.current_device()]
        with suppress(RuntimeError):  # nor does the generator know that it is over
            generator.graphsafe_set_state(generator.clone_state())
        torch.cuda.empty_cache()
        problem = str(error).strip().partition("\n")[0][:200]
        what = "there is no memory for it" if is_out_of_memory(error) else f"this model cannot be recorded: {problem}"
        self.say(f"training.graphs: {what}. The run goes on {'with those it has' if self.most else 'without'}")

    def replay(self, recording: Recording, batch: Any, share: Tensor) -> dict[str, Tensor]:
        """Gradients of share · loss, in the parameters' or added to them; the sums that the loss consists of."""
        self.hand_over()
        for kept, new in zip(tensors(recording.batch), tensors(batch), strict=True):
            kept.copy_(new, non_blocking=True)
        recording.share.copy_(share)
        recording.graph.replay()
        return dict(zip(recording.names, recording.sums.clone().unbind(), strict=True))

    def _record(self, batch: Any, alone: bool) -> Recording:
        share = torch.ones((), device=self.precision.device)
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARM):
                self._once(batch, share, alone)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        # the thread that prepares batches may ask for memory meanwhile: that is its own affair
        with torch.cuda.graph(graph, pool=self.pool, capture_error_mode="thread_local"):
            names, sums = self._once(batch, share, alone, recorded=True)
        self.pool = self.pool or graph.pool()
        return Recording(graph, batch, share, names, sums)

    def _once(self, batch: Any, share: Tensor, alone: bool = False, recorded: bool = False) -> tuple[list[str], Tensor]:
        with self.precision.context():
            loss = self.compute(batch)
        gradients = torch.autograd.grad(loss.sum * share, self.parameters, allow_unused=True)
        if alone and recorded and not self.gradients:
            self._take(gradients)
        owns: list[Tensor] = []
        news: list[Tensor] = []
        unused: list[Tensor] = []
        for parameter, gradient in zip(self.parameters, gradients, strict=True):
            if parameter.grad is not None and gradient is not None and gradient is not parameter.grad:
                owns.append(parameter.grad)
                news.append(gradient)
            elif parameter.grad is not None and gradient is None:
                unused.append(parameter.grad)
        if not alone:
            # `backward` would add each with a kernel of its own: hundreds, most of them for a few numbers
            torch._foreach_add_(owns, news)
        else:
            if owns:
                torch._foreach_copy_(owns, news)
            if unused:  # another recording may have made use of them
                torch._foreach_zero_(unused)
        sums = {"loss": loss.sum, **loss.parts}
        return list(sums), torch.stack([value.detach().float() for value in sums.values()])

    def _take(self, gradients: tuple[Tensor | None, ...]) -> None:
        """Those that can be the parameters' own as they lie are from now on."""
        places: set[int] = set()
        for parameter, gradient in zip(self.parameters, gradients, strict=True):
            if gradient is None or gradient.data_ptr() in places:
                continue  # one piece of memory may be the gradient of two parameters
            if gradient.dtype == parameter.dtype and gradient.is_contiguous() and parameter.is_contiguous():
                places.add(gradient.data_ptr())
                parameter.grad = gradient
